"""Is there anything to see in a view? DuckDB says, over the tables at some moments of a script.

A view that has the same rows at all of them, none most often, will hardly change in the script,
and what never changes shows little of how changes are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
from sql_queries import duckdb_text


class Trials:
    def __init__(self, tables: Sequence[str], moments: Iterable[Sequence[str]]) -> None:
        """Of tables as they are defined, and of the statements up to each of several moments."""
        self._states = [_state([*tables, *statements]) for statements in moments]

    def define(self, name: str, query: str) -> None:
        """Let later views read this one, and none that had its name before."""
        for state in self._states:
            state.execute(f"DROP VIEW IF EXISTS {name}")
            _succeeds(state, f"CREATE VIEW {name} AS {duckdb_text(query)}")

    def moves(self, name: str) -> bool:
        """Are the rows of a view that is defined not always the same?"""
        seen = [_rows(state, name) for state in self._states]
        return any(each != seen[0] for each in seen)

    def close(self) -> None:
        for state in self._states:
            state.close()


def _state(statements: Iterable[str]) -> duckdb.DuckDBPyConnection:
    state = duckdb.connect(config={"threads": 1})
    for each in statements:
        _succeeds(state, each)
    return state


def _succeeds(state: duckdb.DuckDBPyConnection, statement: str) -> bool:
    """A script may hold what fails: then nothing happens, as in the script itself."""
    try:
        state.execute(statement)
    except duckdb.Error:
        return False
    return True


def _rows(state: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    if not _succeeds(state, f"SELECT * FROM {name}"):
        return []
    return sorted(map(repr, state.fetchall()))
