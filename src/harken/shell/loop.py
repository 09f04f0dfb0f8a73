"""What the shell does with a piece of input, wherever it comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import suppress

import harken
from harken.cli.reporting import as_ours
from harken.database.language import AMOSQL
from harken.database.results import Result
from harken.statements.language import language_named, languages

LEAVING = ("quit", "exit")


def switch() -> re.Pattern[str]:
    """The name of a language before a statement in it."""
    names = "|".join(each.name for each in languages())
    return re.compile(rf"\s*({names})[ \t]+(?=[\w.+?-])", re.IGNORECASE)


class Quit(Exception):
    """The person wants to leave."""


class Loop:
    """Runs complete input against a database, statement by statement."""

    def __init__(self, db: harken.Database) -> None:
        self.db = db
        self.failed = False
        self.language = AMOSQL
        self._switch = switch()

    def is_complete(self, text: str) -> bool:
        """Can this be run, in the language that is spoken?"""
        name, text = self._spoken(text)
        if not text.strip() or command_in(text) is not None:
            return True
        return language_named(name).is_complete(text)

    def _spoken(self, text: str) -> tuple[str, str]:
        """The language of a text, and the text with blanks for its name if that comes first."""
        found = self._switch.match(text)
        if found is None:
            return self.language, text
        name = found[1]
        return name.lower(), text.replace(name, " " * len(name), 1)

    def read(self, lines: Iterable[str]) -> None:
        """All of a stream; what it ends with needs no `;`."""
        waiting, first_line = "", 0
        with suppress(Quit):
            for number, line in enumerate(lines):
                if not waiting.strip():
                    waiting, first_line = "", number
                waiting += line
                if self.is_complete(waiting):
                    self.run(waiting, first_line)
                    waiting = ""
            self.run(waiting, first_line)

    def run(self, text: str, first_line: int = 0) -> None:
        """Every statement of the text; those after a failing one are left out.

        `first_line` is how many lines came before, so that an error tells the right one.
        """
        command = command_in(text)
        if command == "help":
            print(language_named(self.language).help)
        elif command in LEAVING:
            raise Quit
        elif command is not None:
            self.language = command
        else:
            self.language, text = self._spoken(text)
            self._run_statements(text, first_line)

    def _run_statements(self, text: str, first_line: int) -> None:
        for offset, statement in language_named(self.language).split(text):
            line = first_line + text.count("\n", 0, offset)
            column = offset - (text.rfind("\n", 0, offset) + 1)
            try:
                # Blanks in place of what came before keep lines and columns true.
                placed = "\n" * line + " " * column + statement
                self.db.run_program(self.language, placed, show, warn=self._say)
            except BrokenPipeError:
                raise
            except Exception as error:
                self._fail(as_ours(error).report())
                return
            except KeyboardInterrupt:
                self._fail("stopped; the statement was undone")
                return

    def _fail(self, message: str) -> None:
        self.failed = True
        self._say(message)

    def finish(self) -> None:
        """Roll back what is open, and say so."""
        if self.db.in_transaction:
            self.db.rollback()
            self._say("What was not committed is rolled back; `commit;` keeps it next time.")

    def _say(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


def show(result: Result) -> None:
    lines = result.lines()
    if lines:
        print("\n".join(lines), flush=True)


def command_in(text: str) -> str | None:
    """`help`, `quit`, `sql` and the like, with or without the semicolon.

    >>> command_in(" Exit; ")
    'exit'
    """
    word = text.strip().removesuffix(";").strip().lower()
    return word if word in commands() else None


def commands() -> tuple[str, ...]:
    """What the shell itself understands: the name of a language means that it is spoken next."""
    return ("help", *LEAVING, *(each.name for each in languages()))
