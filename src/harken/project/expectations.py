"""Tests of a project: the rows that a query should have.

A test with `given` rows runs on them alone, in a database of its own in memory; one without runs on
the database itself, in the state that is about to be committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harken.database.results import Result
from harken.errors import HarkenError, counted
from harken.ir.relations import Column
from harken.project.seeds import RawRow, Seed, read_rows
from harken.project.written_rows import typed_row

if TYPE_CHECKING:
    from harken.api.database import Database
    from harken.project.documents import Node

ENTRIES = ("name", "query", "view", "rows", "count", "ordered", "given")
SHOWN = 5
"""Rows of each kind that a failure shows."""


@dataclass(slots=True)
class Expectation:
    name: str
    query: str
    columns: tuple[str, ...]
    """The columns to compare; all of them if none are named."""
    rows: list[RawRow] | None
    count: int | None
    ordered: bool
    given: list[Seed] = field(default_factory=list)
    node: Node | None = None

    @property
    def meaning(self) -> str:
        parts = (self.name, self.query, self.columns, self.rows, self.count, self.ordered)
        return repr((*parts, [(each.table, each.meaning) for each in self.given]))


def read_expectation(node: Node) -> Expectation:
    entries = node.known("a test", ENTRIES)
    if ("query" in entries) == ("view" in entries):
        node.wrong("a test has a `query` or a `view`", "query: SELECT ..., or view: its name")
    if ("rows" in entries) == ("count" in entries):
        node.wrong("a test has the `rows` that it expects, or their `count`", "rows: [[1, a]]")
    if "view" in entries:
        asked = f"SELECT * FROM `{entries['view'].words('a view')}`"
    else:
        asked = entries["query"].words("a query")
    columns: tuple[str, ...] = ()
    rows: list[RawRow] | None = None
    count = entries["count"].scalar("a count") if "count" in entries else None
    if "rows" in entries:
        columns, rows, _ = read_rows(entries["rows"])
    elif not isinstance(count, int) or isinstance(count, bool):
        entries["count"].wrong("a count is a whole number")
    ordered = bool(entries["ordered"].scalar("`ordered`")) if "ordered" in entries else False
    return Expectation(
        name=entries["name"].words("a name") if "name" in entries else " ".join(asked.split()),
        query=asked,
        columns=columns,
        rows=rows,
        count=count,
        ordered=ordered,
        given=_given(entries.get("given")),
        node=node,
    )


def _given(node: Node | None) -> list[Seed]:
    if node is None:
        return []
    found = []
    for table, rows in node.entries("`given`").items():
        columns, values, places = read_rows(rows)
        found.append(
            Seed(table.lower(), columns, values, places, rows.source, rows.span, rows.text)
        )
    return found


def complaint(db: Database, test: Expectation) -> str | None:
    """What is wrong with the present rows of a query; None if they are as expected."""
    result = answer(db, test)
    found = list(result.rows)
    if test.count is not None:
        return None if len(found) == test.count else _counts(test.count, len(found))
    if test.columns:
        unknown = [name for name in test.columns if name not in result.columns]
        if unknown:
            return f"its query has no column {unknown[0]}: it has {', '.join(result.columns)}"
        places = [result.columns.index(name) for name in test.columns]
        found = [tuple(row[i] for i in places) for row in found]
        types = [result.types[i] for i in places]
    else:
        types = list(result.types)
    assert test.rows is not None
    columns = [Column(f"{i + 1}", type_) for i, type_ in enumerate(types)]
    wrong = next((row for row in test.rows if len(row) != len(columns)), None)
    if wrong is not None:
        expected_values = counted(len(wrong), "value")
        return f"{expected_values} expected in a row of {counted(len(columns), 'column')}"
    expected = [typed_row(row, columns) for row in test.rows]
    return _compared(db, test, expected, found)


def answer(db: Database, test: Expectation) -> Result:
    results = db.sql(test.query)
    if not results:
        raise HarkenError(f"{test.query} gives no rows", code="bad-project")
    return results[-1]


def _compared(
    db: Database, test: Expectation, expected: list[RawRow], found: list[RawRow]
) -> str | None:
    missing = list((Counter(expected) - Counter(found)).elements())
    surplus = list((Counter(found) - Counter(expected)).elements())
    if not missing and not surplus:
        if test.ordered and expected != found:
            return f"the rows come in another order: {_shown(found)}"
        return None
    parts = [
        f"{_counted(len(rows))} {word}: {_shown(rows)}"
        for rows, word in ((missing, "missing"), (surplus, "not expected"))
        if rows
    ]
    return "; ".join(parts)


def _counts(expected: int, found: int) -> str:
    return f"{_counted(expected)} expected, and there {'is' if found == 1 else 'are'} {found:,}"


def _counted(number: int) -> str:
    return f"{number:,} {'row' if number == 1 else 'rows'}"


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    lines = Result("rows", (), list(rows[:SHOWN]), repr).lines()
    more = [f"and {len(rows) - SHOWN:,} more"] if len(rows) > SHOWN else []
    return ", ".join([*lines, *more])
