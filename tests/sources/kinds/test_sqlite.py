"""Files of SQLite: types, keys, idle polls, and what is pushed."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import apsw
import pytest

from harken.sources.outside import Answering, Condition
from tests.harness.outside import opened, refused, rows_of, types_of
from tests.harness.outside_models import batch_rows

DEFINITION = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(8, 2), weight REAL, day DATE,
                    at DATETIME, ok BOOLEAN, name VARCHAR(9), raw BLOB, anything);
    INSERT INTO t VALUES
        (1, 1.5, 2, '2024-02-29', '2024-02-29 10:00:00.5', 1, 'x', x'01ff', 'free');
    INSERT INTO t (id) VALUES (2);
"""


def file_with(path: Path, script: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    list(connection.execute(script))
    return connection


def test_each_type_has_values_of_ours(tmp_path: Path) -> None:
    file_with(tmp_path / "f.db", DEFINITION)
    source = opened("sqlite", path=str(tmp_path / "f.db"), table="t")
    assert source.schema().key == ("id",)
    first, second = rows_of(source.snapshot())
    assert first == (
        1,
        decimal.Decimal("1.50"),
        2.0,
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 10, 0, 0, 500_000),
        True,
        "x",
        "\\x01ff",
        "free",
    )
    assert second == (2, *[None] * 8)
    source.close()


@pytest.mark.parametrize(
    ("definition", "key"),
    [
        ("a INTEGER PRIMARY KEY, b", ("a",)),
        ("a TEXT PRIMARY KEY, b", ()),
        ("a TEXT NOT NULL PRIMARY KEY, b", ("a",)),
        ("a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a)", ("b", "a")),
        ("a, b", ()),
    ],
)
def test_the_key_is_one_that_identifies(
    tmp_path: Path, definition: str, key: tuple[str, ...]
) -> None:
    file_with(tmp_path / "f.db", f"CREATE TABLE t ({definition})")
    source = opened("sqlite", path=str(tmp_path / "f.db"), table="t")
    assert source.schema().key == key
    source.close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_an_idle_file_is_not_read(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "f.db"
    writer = file_with(path, f"PRAGMA journal_mode = {mode}; CREATE TABLE t (a INTEGER)")
    source = opened("sqlite", path=str(path), table="t")
    first = source.snapshot()
    assert first is not None
    assert rows_of(first) == []
    assert source.snapshot(first.position) is None
    writer.execute("INSERT INTO t VALUES (1)")
    second = source.snapshot(first.position)
    assert rows_of(second) == [(1,)]
    assert second is not None
    assert source.snapshot(second.position) is None
    source.close()
    again = opened("sqlite", path=str(path), table="t")
    writer.execute("INSERT INTO t VALUES (2)")
    third = again.snapshot(second.position)
    assert rows_of(third) == [(1,), (2,)]
    again.close()
    writer.close()


def test_a_file_that_took_the_place_of_another_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    file_with(path, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)").close()
    source = opened("sqlite", path=str(path), table="t")
    first = source.snapshot()
    assert first is not None
    assert rows_of(first) == [(1,)]
    other = tmp_path / "other.db"
    file_with(other, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (2)").close()
    other.rename(path)
    assert rows_of(source.snapshot(first.position)) == [(2,)]
    source.close()


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    file_with(path, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES ('x')")
    source = opened("sqlite", path=str(path), table="t")
    with refused("bad-option", "column a", "'x'"):
        rows_of(source.snapshot())
    source.close()
    source = opened("sqlite", path=str(path), table="t", types=("a text",))
    assert rows_of(source.snapshot()) == [("x",)]
    source.close()
    with refused("source-changed", "no table nothing"):
        opened("sqlite", path=str(path), table="nothing").schema()
    with refused("source-down", "no file"):
        opened("sqlite", path=str(tmp_path / "none.db"), table="t").schema()
    with refused("not-allowed", "outside"):
        opened(
            "sqlite", given={"allowed_roots": (str(tmp_path / "in"),)}, path=str(path), table="t"
        ).schema()
    (tmp_path / "text.db").write_text("not a database " * 100)
    with refused("source-suspect", "not a file of SQLite"):
        opened("sqlite", path=str(tmp_path / "text.db"), table="t").schema()


def test_views_have_the_types_of_their_values(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    script = "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CREATE VIEW v AS "
    file_with(path, f"{script} SELECT a, a + 0.5 AS half, 'x' || a AS name FROM t")
    source = opened("sqlite", path=str(path), table="v")
    assert types_of(source.snapshot()) == {"a": "int64", "half": "double", "name": "string"}
    source.close()


def test_what_is_pushed_keeps_every_row(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    texts = ["", "a", "B", "ä", "a'b", "é", "𝒳", None]
    writer = file_with(path, 'CREATE TABLE t (n INTEGER, s TEXT COLLATE NOCASE, "o?" REAL)')
    rows = [(i % 4 or None, text, i / 2) for i, text in enumerate(texts)]
    writer.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    source = opened("sqlite", path=str(path), table="t")
    assert isinstance(source, Answering)
    for column, values in (("n", (1, 2)), ("s", ("a", "é"))):
        for operator in ("=", "<>", "<", "<=", ">", ">=", "in"):
            given = values if operator == "in" else values[:1]
            condition = Condition(column, operator, given)  # type: ignore[arg-type]
            question = source.question(["n", "s", "o?"], [condition])
            assert question.pushed == (condition,)
            place = 0 if column == "n" else 1
            assert batch_rows(question.batches()) == [
                row
                for row in rows
                if row[place] is not None and _holds(operator, row[place], given)
            ]
    question = source.question(["s"], [Condition("n", "=", (1,)), Condition("o?", "=", (0.5,))], 5)
    assert (len(question.pushed), question.limited) == (1, False)
    assert question.text == 'SELECT "s" FROM "t" WHERE "n" = 1'
    source.close()


def _holds(operator: str, value: object, given: tuple[object, ...]) -> bool:
    compared = {"=": "==", "<>": "!="}.get(operator, operator)
    if operator == "in":
        return value in given
    return bool(eval(f"a {compared} b", {"a": value, "b": given[0]}))
