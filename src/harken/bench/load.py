"""`harken bench load`: many objects with three properties in one call, against `executemany`.

There are two baselines. The same tables: extents and properties with their foreign keys, as Harken
has them. One wide table without objects or integrity, which shows what those cost.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeAlias

import apsw
import pyarrow

import harken
from harken.bench import baseline
from harken.bench.figures import Figure, seconds

SCHEMA = "create type item properties (quantity integer, price real, name charstring); commit;"
PROPERTIES = ("quantity", "price", "name")

SAME_TABLES = """
CREATE TABLE object (c0 INTEGER PRIMARY KEY) STRICT;
CREATE TABLE item (
    c0 INTEGER PRIMARY KEY, FOREIGN KEY (c0) REFERENCES object (c0) ON DELETE CASCADE) STRICT;
CREATE TABLE quantity (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 INTEGER NOT NULL) STRICT;
CREATE TABLE price (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 REAL NOT NULL) STRICT;
CREATE TABLE name (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 TEXT NOT NULL) STRICT;
"""
WIDE_TABLE = """
CREATE TABLE item (
    c0 INTEGER PRIMARY KEY, quantity INTEGER NOT NULL, price REAL NOT NULL, name TEXT NOT NULL
) STRICT;
"""

ITERABLE, ARROW = "iterable", "Arrow table"
SAME, WIDE = "same tables", "wide table"

ItemRow: TypeAlias = tuple[int, float, str]
Way: TypeAlias = Callable[[str], float]
"""Loads all rows into a new database at that path; returns the seconds."""


def figures(items: int = 1_000_000, rounds: int = 3) -> Iterator[Figure]:
    rows = [(n % 10_000, n % 997 / 4, f"item {n}") for n in range(items)]
    quantities, prices, names = (list(column) for column in zip(*rows, strict=True))
    table = pyarrow.table({"quantity": quantities, "price": prices, "name": names})
    ways: dict[str, Way] = {
        ITERABLE: lambda path: _load_ours(path, iter(rows), rows),
        ARROW: lambda path: _load_ours(path, table, rows),
        SAME: lambda path: _load_plain(path, SAME_TABLES, _fill_same, rows),
        WIDE: lambda path: _load_plain(path, WIDE_TABLE, _fill_wide, rows),
    }
    for where in ("memory", "file"):
        yield from _figures(_take_turns(ways, where, rounds), {"items": items, "database": where})


def _take_turns(ways: dict[str, Way], where: str, rounds: int) -> dict[str, list[float]]:
    """Each way once per round, always into a new database."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        order = list(ways.items())
        for name, way in order if number % 2 == 0 else reversed(order):
            with baseline.directory() as directory:
                path = ":memory:" if where == "memory" else str(directory / "load.db")
                took[name].append(way(path))
    return took


def _figures(took: dict[str, list[float]], params: dict[str, Any]) -> Iterator[Figure]:
    for name, times in took.items():
        how = "harken" if name in (ITERABLE, ARROW) else "executemany"
        yield Figure("load", f"{how}, {name} s", statistics.median(times), params)
    for source in (ITERABLE, ARROW):
        for plain, needs in ((SAME, "<= 3"), (WIDE, None)):
            ratio = _ratio(took[source], took[plain])
            yield Figure("load", f"{source}/{plain}", ratio, params, needs)


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


# --- the ways ------------------------------------------------------------------------------


def _load_ours(path: str, source: Any, rows: list[ItemRow]) -> float:
    with harken.connect(path) as db:
        db.amosql(SCHEMA)
        loaded: list[harken.Object] = []
        took = seconds(lambda: loaded.extend(_ends(db.load("item", source, PROPERTIES))))
        for item, row in zip(loaded, (rows[0], rows[-1]), strict=True):
            if tuple(db.function(name)[item] for name in PROPERTIES) != row:
                raise AssertionError(f"{item} is not {row}")
    return took


def _ends(objects: Sequence[harken.Object]) -> tuple[harken.Object, harken.Object]:
    return objects[0], objects[-1]


def _load_plain(
    path: str,
    schema: str,
    fill: Callable[[apsw.Connection, list[ItemRow]], None],
    rows: list[ItemRow],
) -> float:
    with closing(baseline.connect(path)) as connection:
        connection.execute(schema)
        return seconds(lambda: fill(connection, rows))


def _fill_same(connection: apsw.Connection, rows: list[ItemRow]) -> None:
    oids = range(1, len(rows) + 1)
    with connection:
        for extent in ("object", "item"):
            connection.executemany(f"INSERT INTO {extent} VALUES (?)", zip(oids, strict=True))
        for table, column in zip(PROPERTIES, zip(*rows, strict=True), strict=True):
            connection.executemany(
                f"INSERT INTO {table} VALUES (?, ?)", zip(oids, column, strict=True)
            )


def _fill_wide(connection: apsw.Connection, rows: list[ItemRow]) -> None:
    with connection:
        connection.executemany(
            "INSERT INTO item VALUES (?, ?, ?, ?)",
            ((oid, *row) for oid, row in enumerate(rows, start=1)),
        )
