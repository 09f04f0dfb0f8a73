"""What the shell does with a piece of input, wherever it comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

import harken
from harken.cli.reporting import as_ours
from harken.database.results import Result
from harken.lang.amosql.statement_shapes import split
from harken.lang.datalog.parser import is_closed as is_whole
from harken.lang.sql.parser import cut, is_closed

HELP = """\
Statements end with `;` and may take several lines:

  create type item properties (name charstring, quantity integer);
  create item(name, quantity) instances :pen("pen", 12), :ink("ink", 3);
  select name(i), quantity(i) for each item i where quantity(i) < 10;
  set quantity(:ink) = 20;
  select name(f), definition(f) for each function f;      what functions there are

  commit;      keep what was changed      rollback;    undo it
  sql          what follows is SQL        datalog      what follows is Datalog
  help         this                       quit, exit   leave (also Ctrl-D)

The star in `harken*>` says that something is not committed; leaving rolls it back.
Tab completes names. Ctrl-C drops what you are typing or stops the statement that runs.
docs/amosql.md has the whole language."""

HELP_SQL = """\
Statements end with `;` and may take several lines:

  CREATE TABLE item (name STRING PRIMARY KEY, quantity INT);
  INSERT INTO item VALUES ('pen', 12), ('ink', 3);
  CREATE VIEW low AS SELECT name FROM item WHERE quantity < 10;
  SELECT * FROM low;
  BEGIN; UPDATE item SET quantity = 20 WHERE name = 'ink'; COMMIT;

  amosql       what follows is AMOSQL     datalog      what follows is Datalog
  help         this                       quit, exit   leave (also Ctrl-D)

Outside of BEGIN and COMMIT every statement is committed at once.
docs/sql.md has the whole language."""

HELP_DATALOG = """\
Facts, rules and queries end with a dot and may take several lines:

  .decl edge(x: symbol, y: symbol)
  .decl path(x: symbol, y: symbol)
  path(x, y) :- edge(x, y).
  path(x, z) :- path(x, y), edge(y, z).
  +edge("a", "b").             a fact comes        -edge("a", "b").    and goes
  ?- path("a", x).             a query             .monitor path       tell of changes

  amosql       what follows is AMOSQL     sql          what follows is SQL
  help         this                       quit, exit   leave (also Ctrl-D)

What you enter is committed at once, unless a transaction of AMOSQL or SQL is open.
docs/datalog.md has the whole language."""

AMOSQL, SQL, DATALOG = "amosql", "sql", "datalog"
COMMANDS = ("help", "quit", "exit", AMOSQL, SQL, DATALOG)
HELPS = {AMOSQL: HELP, SQL: HELP_SQL, DATALOG: HELP_DATALOG}
SWITCH = re.compile(r"\s*(amosql|sql|datalog)[ \t]+(?=[\w.+?-])", re.IGNORECASE)
"""The name of a language before a statement in it."""


class Quit(Exception):
    """The person wants to leave."""


class Loop:
    """Runs complete input against a database, statement by statement."""

    def __init__(self, db: harken.Database) -> None:
        self.db = db
        self.failed = False
        self.language = AMOSQL

    def is_complete(self, text: str) -> bool:
        """Can this be run, in the language that is spoken?"""
        language, text = self._spoken(text)
        if language == AMOSQL:
            return is_complete(text)
        closed = is_closed if language == SQL else is_whole
        return not text.strip() or command_in(text) is not None or closed(text)

    def _spoken(self, text: str) -> tuple[str, str]:
        """The language of a text, and the text with blanks for its name if that comes first."""
        switch = SWITCH.match(text)
        if switch is None:
            return self.language, text
        name = switch[1]
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
            print(HELPS[self.language])
        elif command is not None and command in HELPS:
            self.language = command
        elif command is not None:
            raise Quit
        else:
            self.language, text = self._spoken(text)
            self._run_statements(text, first_line)

    def _run_statements(self, text: str, first_line: int) -> None:
        run = {AMOSQL: self.db.run, SQL: self.db.run_sql, DATALOG: self._run_datalog}[self.language]
        for offset, statement in self._pieces(text):
            line = first_line + text.count("\n", 0, offset)
            column = offset - (text.rfind("\n", 0, offset) + 1)
            try:
                # Blanks in place of what came before keep lines and columns true.
                run("\n" * line + " " * column + statement, show)
            except BrokenPipeError:
                raise
            except Exception as error:
                self._fail(as_ours(error).report())
                return
            except KeyboardInterrupt:
                self._fail("stopped; the statement was undone")
                return

    def _run_datalog(self, text: str, listener: Callable[[Result], None]) -> None:
        self.db.run_datalog(text, listener, warn=self._say)

    def _pieces(self, text: str) -> list[tuple[int, str]]:
        if self.language == AMOSQL:
            return [(each.offset, each.text) for each in split(text)]
        if self.language == DATALOG:
            return [(0, text)]
        try:
            return cut(text)
        except harken.HarkenError:  # it says so when it is run
            return [(0, text)]

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
    return word if word in COMMANDS else None


def is_complete(text: str) -> bool:
    """Is this nothing but whole statements, each with its semicolon?

    If so, a new statement can begin right after it. Whether one does is for the parser's own
    cutting to say: it knows strings, comments and `begin ... end`.

    >>> is_complete("select 1;"), is_complete("begin commit;"), is_complete('print(";')
    (True, False, False)
    """
    if not text.strip() or command_in(text):
        return True
    closings = "\nend;" * (text.lower().count("begin") + 1)
    return any(piece.offset == len(text) + 1 for piece in split(text + closings))
