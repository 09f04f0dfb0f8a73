"""What the shell does with its input, from a terminal or from a stream."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import harken
from harken.cli.reporting import to_harken_error
from harken.database.language_names import SQL
from harken.database.results import Result
from harken.shell.backslash_commands import BackslashCommands
from harken.shell.display import Plain
from harken.statements.language_registry import language_named, language_of_suffix, languages

LEAVING = ("quit", "exit")


def switch() -> re.Pattern[str]:
    """Matches the name of a language in front of a statement."""
    names = "|".join(each.name for each in languages())
    return re.compile(rf"\s*({names})[ \t]+(?=[\w.+?-])", re.IGNORECASE)


class Quit(Exception):
    """The user wants to leave."""


class Loop:
    """Runs complete input against a database, statement by statement."""

    def __init__(
        self, db: harken.Database, language: str = SQL, display: Plain | None = None
    ) -> None:
        self.db = db
        self.failed = False
        self.language = language
        self.display = display or Plain()
        self.last_query: tuple[str, str] | None = None
        """The last text that gave rows, and its language."""
        self.language_names = [each.name for each in languages()]
        self.backslash = BackslashCommands(self)
        self._switch = switch()

    def is_complete(self, text: str) -> bool:
        """Whether the text can be run in the current language."""
        name, text = self._language_of(text)
        if not text.strip() or command_in(text) is not None or is_backslash(text):
            return True
        statement, command = _with_command(text)
        return language_named(name).is_complete(statement) or bool(command)

    def _language_of(self, text: str) -> tuple[str, str]:
        """The language of a text, and the text; a language name in front of it is replaced by
        blanks."""
        found = self._switch.match(text)
        if found is None:
            return self.language, text
        name = found[1]
        return name.lower(), text.replace(name, " " * len(name), 1)

    def speak(self, language: str) -> None:
        self.language = language

    def leave(self) -> None:
        raise Quit

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
        elif is_backslash(text):
            self._guarded(lambda: self.backslash.run(text))
        else:
            self.language, text = self._language_of(text)
            statement, command = _with_command(text)
            if self._run_statements(statement, first_line) and command:
                self._guarded(lambda: self.backslash.run(command))

    def run_file(self, text: str, source: str) -> None:
        """Run the text of a file, in the language that its suffix tells."""
        suffix = "." + source.rpartition(".")[2]
        known = language_of_suffix(suffix)
        language = known.name if known else self.language
        show = partial(self.display.show, language=language)
        self._timed(
            lambda: self.db.run_program(language, text, show, source, warn=self.display.warn)
        )

    def _run_statements(self, text: str, first_line: int) -> bool:
        language = self.language
        for offset, statement in language_named(language).split(text):
            line = first_line + text.count("\n", 0, offset)
            column = offset - (text.rfind("\n", 0, offset) + 1)
            # Blanks in place of the earlier text keep lines and columns right.
            placed = "\n" * line + " " * column + statement
            if not self._guarded(partial(self._timed, partial(self._run_one, placed))):
                return False
        return True

    def _run_one(self, text: str) -> None:
        gave_rows: list[Result] = []

        def show(result: Result) -> None:
            gave_rows.append(result)
            self.display.show(result, language=self.language)

        self.db.run_program(self.language, text, show, warn=self.display.warn)
        if any(each.kind == "rows" for each in gave_rows):
            self.last_query = self.language, text

    def _timed(self, run: Callable[[], None]) -> None:
        started = time.perf_counter()
        run()
        self.display.done(time.perf_counter() - started, is_open=self.db.in_transaction)

    def _guarded(self, run: Callable[[], None]) -> bool:
        """Whether it went well; if not, that is said."""
        try:
            run()
        except (BrokenPipeError, Quit):
            raise
        except Exception as error:
            self._fail(to_harken_error(error).report())
            return False
        except KeyboardInterrupt:
            self._fail("stopped; the statement was rolled back")
            return False
        return True

    def _fail(self, message: str) -> None:
        self.failed = True
        self.display.failed(message, is_open=self.db.in_transaction)

    def commit(self) -> bool:
        return self._guarded(self.db.commit)

    def finish(self) -> None:
        """Roll back an open transaction, and say so."""
        if self.db.in_transaction:
            self.db.rollback()
            self.display.warn(
                "Uncommitted changes were rolled back; end with `commit;` to keep them."
            )


def is_backslash(text: str) -> bool:
    return text.lstrip().startswith("\\")


def _with_command(text: str) -> tuple[str, str]:
    r"""A statement, and the `\watch` that may stand behind it.

    >>> _with_command("SELECT 1 \\watch 5")
    ('SELECT 1 ', '\\watch 5')
    """
    found = re.search(r"\\watch\b[^\n;\\]*;?\s*$", text)
    return (text, "") if found is None else (text[: found.start()], found[0].strip())


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
