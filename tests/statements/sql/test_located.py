"""CREATE TABLE ... LOCATION: tables of others as tables of SQL."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import harken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("Item", pa.string()), ("n", pa.int64()), ("m", pa.decimal128(9, 2))])
Row = tuple[Any, ...]
FIRST: list[Row] = [("pen", 1, Decimal("0.50")), ("pen", 1, Decimal("0.50")), (None, 2, None)]
MORE: list[Row] = [("ink", None, Decimal("2.25"))]


def write(format: str, path: Path, rows: list[Row], number: int) -> None:
    columns = zip(*rows, strict=True)
    table = pa.table([list(each) for each in columns], schema=SCHEMA)
    if format == "delta":
        write_deltalake(path, table, mode="append")
        return
    path.mkdir(exist_ok=True)
    file = path / f"{number}.{format}"
    if format == "parquet":
        pq.write_table(table, file)
    elif format == "csv":
        pa.csv.write_csv(table, file)
    else:
        lines = (dict(zip(SCHEMA.names, row, strict=True)) for row in rows)
        file.write_text("\n".join(json.dumps(each, default=float) for each in lines))


@pytest.mark.parametrize("format", ["delta", "parquet", "csv", "json"])
def test_each_format(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """A bag whose columns may be NULL, which grows; a view over it says exactly what changed."""
    source = tmp_path / "source"
    write(format, source, FIRST, 1)
    columns = " (item STRING, n BIGINT, m DECIMAL(9, 2))" if format in ("csv", "json") else ""
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        db.sql(f"CREATE TABLE t{columns} USING lake LOCATION '{source}'")
        assert Counter(db.sql("SELECT * FROM t").rows) == Counter(FIRST)
        db.sql("CREATE VIEW v AS SELECT item, count(*) AS c, sum(m) AS s FROM t GROUP BY item")
        monitor = db.monitor("v")
        write(format, source, MORE, 2)
        db.step()
        (change,) = monitor.changes()
        assert (change.plus, change.minus) == ([("ink", 1, Decimal("2.25"))], [])
        monitor.close()
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        for engine in (None, "spark"):
            db.internals.engine.forced = engine
            assert Counter(db.sql("SELECT * FROM t").rows) == Counter(FIRST + MORE)
        db.internals.engine.forced = None
        with pytest.raises(harken.HarkenError) as caught:
            db.sql("INSERT INTO t VALUES ('a', 1, 1)")
        assert caught.value.code == "read-only"


def test_with_a_key(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write("delta", source, FIRST[1:], 1)
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        db.sql(f"CREATE TABLE t (n BIGINT, item STRING) USING delta LOCATION '{source}' KEY (n)")
        assert Counter(db.sql("SELECT * FROM t").rows) == {(1, "pen"): 1, (2, None): 1}
        assert db.sql("SELECT item FROM t WHERE n = 1").rows == [("pen",)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE t USING lake LOCATION '{}/no'", "no-lake-table"),
        ("CREATE TABLE t USING orc LOCATION '{}'", "unsupported"),
        ("CREATE TABLE t (item INT) USING lake LOCATION '{}'", "type-mismatch"),
        ("CREATE TABLE t (itm STRING) USING lake LOCATION '{}'", "unknown-column"),
        ("CREATE TABLE t USING lake LOCATION '{}' KEY (x)", "unknown-column"),
        ("CREATE TABLE t USING lake LOCATION '{}' KEY (n)", "not-unique"),
    ],
)
def test_refused(tmp_path: Path, text: str, code: str) -> None:
    write("delta", tmp_path / "source", FIRST, 1)
    with harken.connect(tmp_path / "a.db") as db, pytest.raises(harken.HarkenError) as caught:
        db.sql(text.format(tmp_path / "source"))
    assert caught.value.code == code
