"""TPC-H: its tables with their data, its queries, and the same in DuckDB.

The data are those of the benchmark's generator. A query is a view without its ORDER BY, which says
nothing of a bag of rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import sqlglot

import harken
from harken import Database

HERE = Path(__file__).parent
TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
QUERIES = tuple(path.stem for path in sorted((HERE / "queries").glob("q*.sql")))

Row = tuple[Any, ...]


@cache
def generated(scale: float) -> Mapping[str, pyarrow.Table]:
    """The tables of the benchmark as its generator makes them."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [generator, "parquet", "-s", str(scale), "--output-dir", directory, "--quiet"],
            check=True,
        )
        tables = {name: _read(Path(directory) / f"{name}.parquet") for name in TABLES}
    return {**tables, "partsupp": _unique(tables["partsupp"])}


def _unique(partsupp: pyarrow.Table) -> pyarrow.Table:
    """With ten suppliers the generator gives some parts the same one twice."""
    seen: dict[Row, int] = {}
    for i, key in enumerate(zip(*(partsupp.column(c).to_pylist() for c in (0, 1)), strict=True)):
        seen.setdefault(key, i)
    return partsupp.take(list(seen.values()))


def _read(path: Path) -> pyarrow.Table:
    table = pyarrow.parquet.read_table(path)
    plain = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_string_view(field.type) else field
        for field in table.schema
    ]
    return table.cast(pyarrow.schema(plain))


def query(name: str) -> str:
    """The text of a query, as the benchmark has it."""
    return (HERE / "queries" / f"{name}.sql").read_text()


@cache
def view_query(name: str) -> str:
    """The text of a query without what orders it."""
    node = sqlglot.parse_one(query(name), read="spark")
    for key in ("order", "limit"):
        node.set(key, None)
    return node.sql("spark")


def resident(tables: Mapping[str, pyarrow.Table]) -> Database:
    """A database with the tables and no views."""
    db = harken.connect()
    db.sql((HERE / "schema.sql").read_text())
    for name, rows in tables.items():
        db.load(name, rows)
    return db


def add_views(db: Database, names: Iterable[str] = QUERIES) -> None:
    for name in names:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {view_query(name)}")


class Duck:
    """The same tables in DuckDB, which answers for all views from scratch."""

    def __init__(self, tables: Mapping[str, pyarrow.Table]) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        for name, rows in tables.items():
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._connection.unregister("given")

    def run(self, text: str) -> None:
        self._connection.execute(text)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        given = list(rows)
        marks = ", ".join("?" for _ in given[0])
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", given)

    def rows(self, text: str) -> list[Row]:
        return self._connection.execute(text).fetchall()

    def answer(self, name: str) -> list[Row]:
        return self.rows(view_query(name))
