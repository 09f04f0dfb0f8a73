"""The tables of TPC-H in Harken, in plain SQLite and in DuckDB: three stores for one stream of
transactions.

SQLite has the tables as one would make them there: decimals as REAL, dates as texts, indexes on the
primary and the foreign keys, and ANALYZE. DuckDB has them as it likes them, and all processors.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from types import ModuleType
from typing import Any

import pyarrow
import sqlglot
from sqlglot import exp

import harken
from harken.bench import baseline
from harken.bench.tpch import SCHEMA, missing, query, unordered
from harken.values.rows import Row

FOREIGN_KEYS = (
    ("nation", "n_regionkey"),
    ("supplier", "s_nationkey"),
    ("partsupp", "ps_suppkey"),
    ("customer", "c_nationkey"),
    ("orders", "o_custkey"),
    ("lineitem", "l_partkey, l_suppkey"),
    ("lineitem", "l_suppkey"),
)
"""Those that no primary key begins with."""
DIGITS = 1e-6
"""Quotients and averages of decimals differ in so small a part of them, or by so much."""


class Resident:
    """The tables in Harken's own database, in memory."""

    def __init__(self, tables: Mapping[str, pyarrow.Table]) -> None:
        self.db = harken.connect()
        self.db.sql(SCHEMA)
        for name, rows in tables.items():
            self.db.load(name, rows)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self.db.load(table, rows)

    def run(self, text: str) -> None:
        self.db.sql(text)

    def add_view(self, name: str, text: str | None = None) -> None:
        self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text or query(name)}")

    def drop_view(self, name: str) -> None:
        self.db.sql(f"DROP MATERIALIZED VIEW {name}")

    def kept(self, name: str) -> list[Row]:
        return list(self.db.sql(f"SELECT * FROM {name}").rows)


class Plain:
    """The tables in SQLite, through apsw."""

    def __init__(self, tables: Mapping[str, pyarrow.Table]) -> None:
        self.connection = baseline.connect(":memory:")
        self.connection.pragma("case_sensitive_like", True)
        self.connection.execute(_in_sqlite(SCHEMA))
        for name, rows in tables.items():
            columns = [_plain_column(column).to_pylist() for column in rows.columns]
            self._insert(name, zip(*columns, strict=True))
        for table, key in FOREIGN_KEYS:
            index = f"{table}_{key.replace(', ', '_')}"
            self.connection.execute(f"CREATE INDEX {index} ON {table} ({key})")
        self.connection.execute("ANALYZE")

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self._insert(table, [tuple(map(_plain, row)) for row in rows])

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        rows = iter(rows)
        first = next(rows)
        marks = ", ".join("?" for _ in first)
        with self.connection:
            self.connection.execute(f"INSERT INTO {table} VALUES ({marks})", first)
            self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def run(self, text: str) -> None:
        self.connection.execute(_in_sqlite(text))

    def answer(self, name: str) -> list[Row]:
        return self.connection.execute(_in_sqlite(query(name))).fetchall()


class Duck:
    """The tables in DuckDB."""

    def __init__(self, tables: Mapping[str, pyarrow.Table], threads: int | None = None) -> None:
        self._connection = _duckdb().connect()
        if threads is not None:
            self._connection.execute(f"SET threads = {threads}")
        for name, rows in tables.items():
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._connection.unregister("given")

    def run(self, text: str) -> None:
        self._connection.execute(text)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        names = [row[0] for row in self.rows(f"DESCRIBE {table}")]
        columns = zip(*rows, strict=True)
        given = pyarrow.table(dict(zip(names, map(list, columns), strict=True)))
        self._connection.register("given", given)
        self._connection.execute(f"INSERT INTO {table} SELECT * FROM given")
        self._connection.unregister("given")

    def rows(self, text: str) -> list[Row]:
        found: list[Row] = self._connection.execute(text).fetchall()
        return found

    def answer(self, name: str) -> list[Row]:
        return self.rows(query(name))

    def answer_unordered(self, name: str) -> list[Row]:
        return self.rows(unordered(name))


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError:
        raise missing("duckdb", "recomputes the queries for comparison") from None
    return duckdb


@cache
def _in_sqlite(text: str) -> str:
    """A text of ours as SQLite has it: dates are texts there, and decimals are reals, of which
    0.06 + 0.01 is not 0.07."""
    return ";\n".join(_translated(node) for node in sqlglot.parse(text, read="spark") if node)


def _translated(node: exp.Expr) -> str:
    return node.transform(_sqlite_node).sql("sqlite")


def _sqlite_node(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.DataType():
            kinds = {exp.DType.DECIMAL: "REAL", exp.DType.DATE: "TEXT", exp.DType.TEXT: "TEXT"}
            return exp.DataType.build(kinds.get(node.this, "INTEGER"))
        case exp.Add(expression=exp.Interval()) | exp.Sub(expression=exp.Interval()):
            sign = "+" if isinstance(node, exp.Add) else "-"
            span = f"{sign}{node.expression.name} {node.expression.unit.name.lower()}"
            return exp.func("date", node.this.transform(_sqlite_node), exp.Literal.string(span))
        case exp.Add() | exp.Sub() if _is_number(node.this) and _is_number(node.expression):
            left, right = Decimal(node.this.name), Decimal(node.expression.name)
            exact = left + right if isinstance(node, exp.Add) else left - right
            return exp.Literal.number(exact)
        case exp.Cast(this=exp.Expr() as given) if node.to.is_type("date"):
            return given
        case exp.Subquery() if node.args.get("alias") and node.args["alias"].columns:
            return _named(node)
        case exp.Extract() | exp.Year():
            of = node.expression if isinstance(node, exp.Extract) else node.this
            year = exp.func("substr", of, exp.Literal.number(1), exp.Literal.number(4))
            return exp.cast(year, "integer")
    return node


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _named(node: exp.Subquery) -> exp.Subquery:
    """SQLite has no names for columns behind a subquery: they stand inside."""
    alias = node.args["alias"]
    columns = zip(node.this.expressions, alias.columns, strict=True)
    node.this.set("expressions", [exp.alias_(each.unalias(), name) for each, name in columns])
    alias.set("columns", None)
    return node


def _plain_column(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    if pyarrow.types.is_decimal(column.type):
        return column.cast(pyarrow.float64())
    if pyarrow.types.is_date(column.type):
        return column.cast(pyarrow.string())
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def check_same(name: str, ours: Iterable[Row], theirs: Iterable[Row]) -> None:
    """The same bag of rows, but for the last digits of quotients, and for sums that are floating
    in one and exact in the other."""
    only_ours = Counter(tuple(map(_plain, row)) for row in ours)
    only_theirs = Counter(tuple(map(_plain, row)) for row in theirs)
    both = only_ours & only_theirs
    left = sorted((only_ours - both).elements(), key=repr)
    right = sorted((only_theirs - both).elements(), key=repr)
    for row in left:
        found = next((r for r in right if all(map(_is_same, row, r))), None)
        if found is None:
            raise AssertionError(f"{name} has {row}, and should have one of {right[:5]}")
        right.remove(found)
    if right:
        raise AssertionError(f"{name} lacks {right[:5]}")


def _is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return abs(ours - theirs) <= DIGITS * max(100.0, abs(ours))
    return bool(ours == theirs)
