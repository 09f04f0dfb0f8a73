r"""What a person can ask the shell itself: `\d`, `\timing`, `\watch` and the like, as in psql."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harken.cli.result_tables import count_line, table_lines
from harken.database.language_names import SQL
from harken.database.results import Result
from harken.errors import HarkenError, NameFault, nearest
from harken.shell.display import Tables

if TYPE_CHECKING:
    from harken.shell.loop import Loop

HELP = r"""
  \d             tables and views      \d NAME        its columns, text and readers
  \dt  \dv  \dr  tables; views; rules  \timing        show times, or not
  \watch [SEC]   run the last query again and again, and show it when its rows change
  \i FILE        run a file            \pager         use a pager, or not
  \sql  \amosql  \datalog              the language of what follows
  \?             this                  \q             leave (also Ctrl-D)

Tab completes names, Ctrl-R searches the history, Ctrl-C drops what is typed (the history keeps it)
or stops a statement."""

PAUSE = 2.0
"""Seconds between two runs of a query that is watched."""
ALIKE = {"source": " table", "domain": " view"}
"""What else is listed among tables and views."""


class BackslashCommands:
    def __init__(self, loop: Loop, sleep: Callable[[float], None] = time.sleep) -> None:
        self._loop = loop
        self._sleep = sleep
        self.by_name: dict[str, Callable[[str], None]] = {
            "d": self._describe,
            "dt": lambda rest: self._list("table"),
            "dv": lambda rest: self._list("view"),
            "dr": lambda rest: self._rules(),
            "timing": self._timing,
            "pager": self._pager,
            "watch": self._watch,
            "i": self._include,
            "q": lambda rest: self._loop.leave(),
            "?": lambda rest: print(HELP.strip("\n")),
            "h": lambda rest: print(HELP.strip("\n")),
        }

    def run(self, text: str) -> None:
        name, _, rest = text.strip().removeprefix("\\").partition(" ")
        rest = rest.strip().removesuffix(";").strip()
        name = name.removesuffix(";").removesuffix("+")
        if name in self._loop.language_names:
            self._loop.speak(name)
        elif name in self.by_name:
            self.by_name[name](rest)
        else:
            near = nearest(name, [*self.by_name, *self._loop.language_names])
            raise NameFault(
                f"there is no command \\{name}",
                code="syntax",
                hint=f"did you mean \\{near}?" if near else "\\? lists them",
            )

    # --- what there is ---------------------------------------------------------------------

    def _rows(self, query: str) -> Result:
        found: list[Result] = []
        self._loop.db.run_program(SQL, query, found.append)
        return found[-1]

    def _put(self, result: Result) -> None:
        lines = [*table_lines(result), count_line(result)]
        if isinstance(self._loop.display, Tables):
            self._loop.display.put(lines)
        else:
            print("\n".join(lines))

    def _list(self, kind: str) -> None:
        found = self._rows("SHOW TABLES")
        rows = [row for row in found.rows if (str(row[1]) + ALIKE.get(row[1], "")).endswith(kind)]
        self._put(Result(found.kind, found.columns, rows, types=found.types))

    def _rules(self) -> None:
        rules = [(e.name,) for e in self._loop.db.definitions() if e.kind == "rule"]
        self._put(Result("rows", ("rule",), rules))

    def _describe(self, name: str) -> None:
        if not name:
            self._put(self._rows("SHOW TABLES"))
            return
        plain = name.strip("`").lower()
        definitions = [
            each
            for each in self._loop.db.definitions()
            if each.name.partition("(")[0].lower() == plain
        ]
        try:
            self._put(self._rows(f"DESCRIBE `{plain}`"))
        except HarkenError:
            if not definitions:
                raise
        for each in definitions:
            print(each.text.strip() or f"type {each.name}")
        readers = (
            self._loop.db.readers_of(definitions[0].name.partition("(")[0]) if definitions else []
        )
        if readers:
            print(f"read by {', '.join(readers)}")

    # --- settings --------------------------------------------------------------------------

    def _timing(self, rest: str) -> None:
        self._toggle("timing", "times are", rest)

    def _pager(self, rest: str) -> None:
        self._toggle("paging", "the pager is", rest)

    def _toggle(self, name: str, what: str, rest: str) -> None:
        display = self._loop.display
        if not isinstance(display, Tables):
            return
        wanted = {"on": True, "off": False}.get(rest.lower(), not getattr(display, name))
        setattr(display, name, wanted)
        print(f"{what} {'on' if wanted else 'off'}")

    # --- again -----------------------------------------------------------------------------

    def _include(self, name: str) -> None:
        try:
            text = Path(name).expanduser().read_text("utf-8")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise HarkenError(f"{name} cannot be read: {reason}", code="cannot-read") from None
        except UnicodeDecodeError:
            raise HarkenError(f"{name} is not UTF-8", code="not-utf-8") from None
        self._loop.run_file(text, name)

    def _watch(self, rest: str) -> None:
        """Run the last query until Ctrl-C; its rows are shown when they are not as before."""
        query = self._loop.last_query
        if query is None:
            raise HarkenError(
                "there is no query to watch yet", code="syntax", hint="SELECT ...; and then \\watch"
            )
        try:
            pause = float(rest) if rest else PAUSE
        except ValueError:
            raise HarkenError(
                f"{rest} is no number of seconds", code="bad-value", hint="\\watch 5"
            ) from None
        language, text = query
        before: list[Result] | None = None
        try:
            while True:
                found: list[Result] = []
                self._loop.db.run_program(language, text, found.append)
                if found != before:
                    now = datetime.datetime.now().strftime("%H:%M:%S")
                    print(f"-- {now}, every {pause:g} s; Ctrl-C ends this")
                    for each in found:
                        self._put(each)
                    before = found
                self._sleep(pause)
        except KeyboardInterrupt:
            print()
