"""What the shell does with its input, from a terminal or from a stream."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import suppress

import harken
from harken.cli.reporting import to_harken_error
from harken.database.language_names import AMOSQL
from harken.database.results import Result
from harken.statements.language_registry import language_named, languages

LEAVING = ("quit", "exit")


def switch() -> re.Pattern[str]:
    """Matches the name of a language in front of a statement."""
    names = "|".join(each.name for each in languages())
    return re.compile(rf"\s*({names})[ \t]+(?=[\w.+?-])", re.IGNORECASE)


class Quit(Exception):
    """The user wants to leave."""


class Loop:
    """Runs complete input against a database, statement by statement."""

    def __init__(self, db: harken.Database) -> None:
        self.db = db
        self.failed = False
        self.language = AMOSQL
        self._switch = switch()

    def is_complete(self, text: str) -> bool:
        """Whether the text can be run in the current language."""
        name, text = self._language_of(text)
        if not text.strip() or command_in(text) is not None:
            return True
        return language_named(name).is_complete(text)

    def _language_of(self, text: str) -> tuple[str, str]:
        """The language of a text, and the text; a language name in front of it is replaced by
        blanks."""
        found = self._switch.match(text)
        if found is None:
            return self.language, text
        name = found[1]
        return name.lower(), text.replace(name, " " * len(name), 1)

    def read(self, lines: Iterable[str]) -> None:
        """Run all of a stream; its last statement needs no `;`."""
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
        """Run the statements of the text up to the first that fails.

        `first_line` is the number of lines before the text, so that errors show the right line.
        """
        command = command_in(text)
        if command == "help":
            print(language_named(self.language).help)
        elif command in LEAVING:
            raise Quit
        elif command is not None:
            self.language = command
        else:
            self.language, text = self._language_of(text)
            self._run_statements(text, first_line)

    def _run_statements(self, text: str, first_line: int) -> None:
        for offset, statement in language_named(self.language).split(text):
            line = first_line + text.count("\n", 0, offset)
            column = offset - (text.rfind("\n", 0, offset) + 1)
            try:
                # Blanks in place of the earlier text keep lines and columns right.
                placed = "\n" * line + " " * column + statement
                self.db.run_program(self.language, placed, show, warn=self._warn)
            except BrokenPipeError:
                raise
            except Exception as error:
                self._fail(to_harken_error(error).report())
                return
            except KeyboardInterrupt:
                self._fail("stopped; the statement was rolled back")
                return

    def _fail(self, message: str) -> None:
        self.failed = True
        self._warn(message)

    def finish(self) -> None:
        """Roll back an open transaction, and say so."""
        if self.db.in_transaction:
            self.db.rollback()
            self._warn("Uncommitted changes were rolled back; end with `commit;` to keep them.")

    def _warn(self, message: str) -> None:
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
    """The shell's own commands; the name of a language switches to it."""
    return ("help", *LEAVING, *(each.name for each in languages()))
