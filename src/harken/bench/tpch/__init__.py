"""TPC-H: its tables with their data, its 22 queries, and transactions that refresh the tables.

The data come from the benchmark's own generator. `stores` has the tables in Harken, in SQLite and
in DuckDB, `refresh` the transactions, and `by_hand` triggers as one writes them without Harken.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import sqlglot

from harken.errors import EngineError

__all__ = ["QUERIES", "SCHEMA", "TABLES", "generated", "query", "unordered"]

HERE = Path(__file__).parent
TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
QUERIES = tuple(path.stem for path in sorted((HERE / "queries").glob("q*.sql")))
SCHEMA = (HERE / "schema.sql").read_text()


def query(name: str) -> str:
    """The text of a query, as the benchmark has it."""
    return (HERE / "queries" / f"{name}.sql").read_text()


@cache
def unordered(name: str) -> str:
    """The text of a query without its ORDER BY."""
    node = sqlglot.parse_one(query(name), read="spark")
    for key in ("order", "limit"):
        node.set(key, None)
    return node.sql("spark")


@cache
def generated(scale: float) -> Mapping[str, pyarrow.Table]:
    """The tables of the benchmark as its generator makes them."""
    with tempfile.TemporaryDirectory(prefix="harken-tpch-") as directory:
        subprocess.run(
            [_generator(), "parquet", "-s", str(scale), "--output-dir", directory, "--quiet"],
            check=True,
        )
        tables = {name: _read(Path(directory) / f"{name}.parquet") for name in TABLES}
    return {**tables, "partsupp": _unique(tables["partsupp"])}


def _generator() -> Path:
    path = Path(sys.executable).with_name("tpchgen-cli")
    if not path.exists():
        raise missing("tpchgen-cli", "makes the data of TPC-H")
    return path


def missing(package: str, purpose: str) -> EngineError:
    return EngineError(
        f"{package}, which {purpose}, is not installed",
        code="missing-package",
        hint=f"{sys.executable} -m pip install {package}",
    )


def _read(path: Path) -> pyarrow.Table:
    table = pyarrow.parquet.read_table(path)
    plain = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_string_view(field.type) else field
        for field in table.schema
    ]
    return table.cast(pyarrow.schema(plain))


def _unique(partsupp: pyarrow.Table) -> pyarrow.Table:
    """With ten suppliers the generator assigns the same one twice to some parts."""
    seen: dict[tuple[Any, ...], int] = {}
    for i, key in enumerate(zip(*(partsupp.column(c).to_pylist() for c in (0, 1)), strict=True)):
        seen.setdefault(key, i)
    return partsupp.take(list(seen.values()))
