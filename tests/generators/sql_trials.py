"""Is there anything to see in a view? DuckDB says, over the tables at some moments of a script.

A view that has the same rows at all of them, none most often, will hardly change in the script,
and what never changes shows little of how changes are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from tests.generators.sql_queries import duckdb_text


class Trials:
    def __init__(self, tables: Sequence[str], moments: Iterable[Sequence[str]]) -> None:
        """Of tables as they are defined, and of the statements up to each of several moments."""
        self._states = [_State([*tables, *statements]) for statements in moments]

    def define(self, name: str, query: str) -> None:
        """Let later views read this one, and none that had its name before."""
        for state in self._states:
            state.run(f"DROP VIEW IF EXISTS {name}")
            state.run(f"CREATE VIEW {name} AS {duckdb_text(query)}")

    def moves(self, name: str) -> bool:
        """Are the rows of a view that is defined not always the same?"""
        seen = [state.rows(name) for state in self._states]
        return any(each != seen[0] for each in seen)

    def size(self, name: str) -> int:
        """The most rows that a view has at any of the moments."""
        return max(len(state.rows(name)) for state in self._states)

    def close(self) -> None:
        for state in self._states:
            state.close()


class _State:
    """A database of DuckDB's. Some queries crash it: then it is created again."""

    def __init__(self, statements: Iterable[str]) -> None:
        self._done: list[str] = []
        self._open()
        for each in statements:
            self.run(each)

    def _open(self) -> None:
        self._duck = duckdb.connect(config={"threads": 1})
        for each in self._done:
            self._duck.execute(each)

    def run(self, statement: str) -> None:
        """A script may hold what fails: then nothing happens, as in the script itself."""
        if self._succeeds(statement):
            self._done.append(statement)

    def rows(self, name: str) -> list[str]:
        if not self._succeeds(f"SELECT * FROM {name}"):
            return []
        return sorted(map(repr, self._duck.fetchall()))

    def _succeeds(self, statement: str) -> bool:
        try:
            self._duck.execute(statement)
        except duckdb.FatalException:
            self.close()
            self._open()
            return False
        except duckdb.Error:
            return False
        return True

    def close(self) -> None:
        self._duck.close()
