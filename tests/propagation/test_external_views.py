"""A view that is kept by its clients only: after any number of transactions nothing of it, nor of
what lies between it and the facts, is stored. Looked up in the tables themselves."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import harken

PROGRAM = """
.decl edge(x: number, y: number)
.decl node(x: number)
.decl path(x: number, y: number)
.decl apart(x: number, y: number)
.decl reach(x: number, n: number)
.decl busy(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
apart(x, y) :- node(x), node(y), !path(x, y).
reach(x, n) :- node(x), n = count : { path(x, _) }.
busy(x) :- reach(x, n), n > 2.
busy(y) :- busy(x), edge(x, y).
"""
VIEWS = ("path", "apart", "reach", "busy")


def rows_by_table(db: harken.Database) -> dict[str, int]:
    """How many rows each table of the file and of the session has."""
    connection = db.internals.connection
    found = {}
    for schema in ("main", "temp"):
        tables = connection.rows(f"SELECT name FROM {schema}.sqlite_schema WHERE type = 'table'")
        for (name,) in tables:
            if not str(name).startswith("sqlite_"):
                found[f"{schema}.{name}"] = connection.value(
                    f'SELECT count(*) FROM {schema}."{name}"'
                )
    return found


def change(db: harken.Database, random: Random) -> None:
    sign = random.choice("+-")
    edges = [(random.randint(0, 6), random.randint(0, 6)) for _ in range(random.randint(1, 3))]
    db.datalog("\n".join(f"{sign}edge({x}, {y})." for x, y in edges))


def opened(path: Path, strategy: str) -> harken.Database:
    db = harken.connect(path / f"{strategy}.db")
    db.datalog(PROGRAM + "\n".join(f"node({i})." for i in range(7)))
    for view in VIEWS:
        db.monitor(view, strategy=strategy)
    return db


def test_external_stores_no_row_of_a_view(tmp_path: Path) -> None:
    random = Random(3)
    with opened(tmp_path, "external") as db:
        before = rows_by_table(db)
        for _ in range(40):
            change(db, random)
        after = rows_by_table(db)
        edges = int(db.datalog("?- n = count : { edge(_, _) }.").rows[0][0])
    (facts,) = [name for name in after if name.startswith("main.edge(")]
    assert after[facts] == edges
    in_file = {name for name in after if name.startswith("main.")}
    grown = {name for name in in_file if after[name] > before.get(name, 0)} - {facts}
    # The number of the last transaction, and what changes took.
    assert grown <= {"main.harken_meta", "main.harken_measurements"}
    assert {name: rows for name, rows in after.items() if name.startswith("temp.") and rows} == {}


def test_materialized_does(tmp_path: Path) -> None:
    """The test above would see it."""
    random = Random(3)
    with opened(tmp_path, "materialized") as db:
        for _ in range(10):
            change(db, random)
        stored = [rows for name, rows in rows_by_table(db).items() if name.startswith("temp.kept")]
    assert sum(stored) > 0


def test_a_strategy_that_is_not_there() -> None:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        with pytest.raises(harken.HarkenError, match="no strategy cheap"):
            db.monitor("path", strategy="cheap")
