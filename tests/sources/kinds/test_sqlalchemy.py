"""Databases of SQLAlchemy, on SQLite and on MariaDB."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pytest
import sqlalchemy as sa

from harken.errors import SourceFault
from harken.sources.outside import Answering, Condition
from tests.harness.outside import opened, refused, rows_of, types_of
from tests.harness.outside_models import batch_rows


def run(url: str, *statements: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for each in statements:
            connection.exec_driver_sql(each)
    engine.dispose()


@pytest.fixture(
    params=["sqlite", pytest.param("mariadb", marks=pytest.mark.xdist_group("servers"))]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/f.db"
    return str(request.getfixturevalue("mariadb_url"))


DEFINITION = (
    "CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(9), price DECIMAL(8, 2), "
    "weight DOUBLE, day DATE, at DATETIME)"
)
ROW = "INSERT INTO t VALUES (1, 'Ångström', 1.5, 0.25, '2024-02-29', '2024-02-29 10:00:00')"


def test_a_table_is_read(url: str) -> None:
    run(url, DEFINITION, ROW, "INSERT INTO t (id) VALUES (2)")
    source = opened("sqlalchemy", url=url, table="t")
    assert source.schema().key == ("id",)
    snapshot = source.snapshot()
    assert types_of(snapshot) == {
        "id": "int64",
        "name": "string",
        "price": "decimal128(8, 2)",
        "weight": "double",
        "day": "date32[day]",
        "at": "timestamp[us]",
    }
    assert rows_of(snapshot) == [
        (
            1,
            "Ångström",
            decimal.Decimal("1.50"),
            0.25,
            datetime.date(2024, 2, 29),
            datetime.datetime(2024, 2, 29, 10),
        ),
        (2, *[None] * 5),
    ]
    source.close()


def test_a_cheap_query_says_that_nothing_changed(url: str) -> None:
    run(url, DEFINITION, ROW)
    source = opened("sqlalchemy", url=url, table="t", changed_when="SELECT count(*) FROM t")
    first = source.snapshot()
    assert first is not None
    rows_of(first)
    assert source.snapshot(first.position) is None
    run(url, "INSERT INTO t (id) VALUES (2)")
    assert len(rows_of(source.snapshot(first.position))) == 2
    source.close()


def test_what_is_pushed_keeps_every_row(url: str) -> None:
    run(url, "CREATE TABLE t (n INTEGER, s VARCHAR(20))")
    texts = ["a", "A", "ä", "a ", "", "b", None]
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for i, text in enumerate(texts):
            insert = sa.text("INSERT INTO t VALUES (:n, :s)")
            connection.execute(insert, {"n": i % 3 or None, "s": text})
    engine.dispose()
    source = opened("sqlalchemy", url=url, table="t")
    assert isinstance(source, Answering)
    rows = rows_of(source.snapshot())
    cases = [
        Condition("s", "=", ("a",)),
        Condition("s", "in", ("a", "b")),
        Condition("s", "=", ("",)),
        Condition("s", "<>", ("a",)),
        Condition("s", ">", ("a",)),
        Condition("n", "<>", (1,)),
        Condition("n", "<=", (1,)),
        Condition("n", "in", ()),
        Condition("n", "is null"),
        Condition("n", "is not null"),
    ]
    for condition in cases:
        place = 0 if condition.column == "n" else 1
        right = [row for row in rows if _holds(condition, row[place])]
        question = source.question(["n", "s"], [condition], limit=2)
        answer = batch_rows(question.batches())
        found = [row for row in answer if _holds(condition, row[place])]
        if question.limited:
            assert (len(found), found) == (min(2, len(right)), answer), question.text
        else:
            assert sorted(found, key=repr) == sorted(right, key=repr), question.text
    question = source.question(["s"], [Condition("n", "=", (1,))], limit=3)
    assert "WHERE" in question.text
    assert question.limited
    source.close()


def _holds(condition: Condition, value: object) -> bool:
    if condition.operator in ("is null", "is not null"):
        return (value is None) == (condition.operator == "is null")
    if value is None:
        return False
    if condition.operator == "in":
        return value in condition.values
    other = condition.values[0]
    return {
        "=": value == other,
        "<>": value != other,
        "<=": value <= other,  # type: ignore[operator]
        ">": value > other,  # type: ignore[operator]
    }[condition.operator]


def test_types_of_mariadb(mariadb_url: str) -> None:
    run(
        mariadb_url,
        "CREATE TABLE t (u BIGINT UNSIGNED, t TINYINT(1), b BLOB, e ENUM('x', 'y'), "
        "c SET('p', 'q'), d TIME, y YEAR, j JSON, f FLOAT, bits BIT(4))",
        "INSERT INTO t VALUES (18446744073709551615, 1, x'01ff', 'y', 'q,p', '-01:00:02', 2024, "
        """'{"a": 1}', 0.5, b'101')""",
    )
    source = opened("sqlalchemy", url=mariadb_url, table="t")
    assert rows_of(source.snapshot()) == [
        (
            decimal.Decimal(2**64 - 1),
            1,
            "\\x01ff",
            "y",
            "p,q",
            "-01:00:02",
            2024,
            '{"a": 1}',
            0.5,
            "\\x05",
        )
    ]
    source.close()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/f.db"
    run(url, "CREATE TABLE t (d DATE)", "INSERT INTO t VALUES ('some day')")
    source = opened("sqlalchemy", url=url, table="t")
    with refused("source-changed", "t has a value", "types"):
        rows_of(source.snapshot())
    with refused("source-changed", "nothing is not there"):
        opened("sqlalchemy", url=url, table="nothing").schema()
    with refused("bad-option", "not one of SQLAlchemy"):
        opened("sqlalchemy", url="nonsense", table="t")
    with refused("bad-option", "no dialect"):
        opened("sqlalchemy", url="nonsense://h/d", table="t").schema()
    with refused("not-allowed", "outside"):
        opened("sqlalchemy", given={"allowed_roots": ("/nowhere",)}, url=url, table="t")
    private = {"allow_private_addresses": False}
    for place in ("127.0.0.1", "h"):
        more = "" if place == "127.0.0.1" else "?read_default_file=/etc/passwd"
        with refused("not-allowed"):
            opened("sqlalchemy", given=private, url=f"mysql+pymysql://{place}/d{more}", table="t")


def test_nobody_sees_the_password(mariadb_url: str) -> None:
    wrong = mariadb_url.replace("root@", "root:hidden@")
    source = opened("sqlalchemy", url=wrong, table="t")
    with pytest.raises(SourceFault) as found:
        source.schema()
    assert found.value.code == "source-down"
    assert "hidden" not in found.value.report()
