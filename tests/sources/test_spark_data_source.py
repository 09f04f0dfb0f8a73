"""Kinds of sources as data sources of PySpark, with Spark alone."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import harken
from harken.sources.kinds import OF_USERS, kind_names
from harken.sources.spark_data_source import PUSHES
from tests.harness.patience import PATIENCE
from tests.harness.servers import PostgresDatabase

PAGE = """
<table><tr><th>station</th><th>wind</th></tr>
<tr><td>Oslo</td><td>3</td></tr><tr><td>Bergen</td><td>7.5</td></tr></table>
"""

FILES = {
    "page.html": PAGE,
    "rows.json": '[{"id": 1}, {"id": 2}]',
    "feed.xml": """<rss version="2.0"><channel><title>N</title>
        <item><guid>1</guid><title>a</title></item>
        <item><guid>2</guid><title>b</title></item></channel></rss>""",
    "refs.bib": "@book{a, title={A}}\n@book{b, title={B}}\n",
    "books.xml": "<c><b id='1'/><b id='2'/></c>",
    "log.txt": "one\ntwo\n",
    "papers/a.txt": "A",
    "papers/b.txt": "B",
    "sales/1.csv": "id\n1\n",
    "sales/2.csv": "id\n2\n",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    @harken.source_kind("squares", key="n")
    def squares(most: int = 3) -> Any:
        for number in range(most):
            yield {"n": number, "square": number * number}

    spark.conf.set(PUSHES, "true")
    harken.register_data_sources(spark, allow_private_addresses=True)
    del OF_USERS["squares"]
    yield spark
    spark.conf.unset(PUSHES)


def test_batches_of_several_kinds(session: SparkSession, tmp_path: Path) -> None:
    """One job reads a page, a file of SQLite with pushed filters, and a function of the user's."""
    (tmp_path / "page.html").write_text(PAGE)
    connection = sqlite3.connect(tmp_path / "f.db")
    connection.execute(
        "CREATE TABLE place (name TEXT PRIMARY KEY NOT NULL, people INTEGER, d DATE)"
    )
    connection.execute(
        "INSERT INTO place VALUES ('Oslo', 700, '2024-02-29'), ('Bergen', 290, NULL)"
    )
    connection.commit()
    connection.close()

    def read(name: str) -> Any:
        return session.read.format(name)

    weather = read("harken_html").option("path", str(tmp_path / "page.html")).option("table", "1")
    places = read("harken_sqlite").option("PATH", str(tmp_path / "f.db")).option("table", "place")
    squares = read("harken_squares").option("most", "8").load()
    joined = weather.load().withColumnRenamed("station", "name").join(places.load(), "name")
    found = joined.where("people > 300").join(squares, squares.n == 3).collect()
    day = datetime.date(2024, 2, 29)
    assert [tuple(row) for row in found] == [("Oslo", 3.0, 700, day, 3, 9)]
    assert places.load().schema.simpleString() == "struct<name:string,people:bigint,d:date>"


def test_a_stream_has_every_change_once(session: SparkSession, tmp_path: Path) -> None:
    """Also after the stream was stopped and started again, and across failures of the source."""
    path, state = tmp_path / "rows.json", tmp_path / "state"
    seen: list[list[tuple[Any, ...]]] = []

    def run_once() -> None:
        stream = (
            session.readStream.format("harken_json")
            .option("path", str(path))
            .option("state", str(state))
            .option("key", "id")
            .load()
        )
        query = (
            stream.writeStream.foreachBatch(lambda frame, _: seen.append(_rows(frame)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(once=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE)

    path.write_text(json.dumps([{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]))
    run_once()
    path.write_text(json.dumps([{"id": 2, "n": "c"}, {"id": 3, "n": "d"}]))
    run_once()
    changes = [row for batch in seen for row in batch]
    assert sorted(changes) == [
        (1, "a", "delete", 2),
        (1, "a", "insert", 1),
        (2, "b", "insert", 1),
        (2, "b", "update_preimage", 2),
        (2, "c", "update_postimage", 2),
        (3, "d", "insert", 2),
    ]
    rows: Counter[Any] = Counter()
    for *row, kind, _ in changes:
        rows[tuple(row)] += -1 if kind in ("delete", "update_preimage") else 1
    assert +rows == Counter([(2, "c"), (3, "d")])


def every_kind(directory: Path) -> dict[str, dict[str, str]]:
    """Options of each kind that reads files, and of SQLAlchemy over one: two rows for each."""
    for name, text in FILES.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    connection = sqlite3.connect(directory / "f.db")
    connection.executescript(
        "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)"
    )
    connection.close()
    paths = {
        "html": ("page.html", {"table": "1"}),
        "json": ("rows.json", {}),
        "feed": ("feed.xml", {}),
        "bibtex": ("refs.bib", {}),
        "xml": ("books.xml", {"rows": "/c/b", "columns": "@id", "names": "id"}),
        "text": ("log.txt", {"pattern": r"(?P<word>\w+)"}),
        "sqlite": ("f.db", {"table": "t"}),
    }
    found = {name: {"path": str(directory / path), **o} for name, (path, o) in paths.items()}
    return {
        **found,
        "documents": {"directory": str(directory / "papers")},
        "directory": {"directory": str(directory / "sales")},
        "sqlalchemy": {"url": f"sqlite:///{directory / 'f.db'}", "table": "t"},
    }


@pytest.mark.parametrize(
    "streamed", [["xml", "sqlite"], pytest.param([], marks=pytest.mark.nightly)]
)
def test_every_kind_as_batch_and_as_stream(
    session: SparkSession, tmp_path: Path, streamed: list[str]
) -> None:
    """In one job each; PostgreSQL has a test of its own."""
    kinds = every_kind(tmp_path)
    assert {*kinds, "postgresql"} == {*kind_names()}

    def together(frames: list[Any]) -> Any:
        return reduce(lambda one, other: one.union(other), frames)

    def counted(reader: Any, name: str, options: dict[str, str]) -> Any:
        return (
            reader.format(f"harken_{name}").options(**options).load().selectExpr(f"'{name}' kind")
        )

    batches = together([counted(session.read, name, each) for name, each in kinds.items()])
    assert Counter(row.kind for row in batches.collect()) == dict.fromkeys(kinds, 2)
    streams = together(
        [
            counted(session.readStream, name, {**each, "state": str(tmp_path / f"state {name}")})
            for name, each in kinds.items()
            if name in (streamed or kinds)
        ]
    )
    seen: Counter[str] = Counter()
    query = (
        streams.writeStream.foreachBatch(
            lambda frame, _: seen.update(row.kind for row in frame.collect())
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(once=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE)
    assert seen == dict.fromkeys(streamed or kinds, 2)


def test_a_table_of_postgresql(
    session: SparkSession, tmp_path: Path, plain_database: PostgresDatabase
) -> None:
    """Batches push conditions; a stream polls, whatever the server permits."""
    plain_database.run("CREATE TABLE sale (id int PRIMARY KEY, shop text, amount numeric(9, 2))")
    plain_database.run("INSERT INTO sale VALUES (1, 'Oslo', 2.50), (2, 'Bergen', NULL)")

    def read(reader: Any) -> Any:
        return reader.format("harken_postgresql").options(url=plain_database.url, table="sale")

    batch = read(session.read).load()
    assert [tuple(row) for row in batch.where("shop = 'Oslo'").collect()] == [
        (1, "Oslo", Decimal("2.50"))
    ]
    seen: list[tuple[Any, ...]] = []
    for change in ("UPDATE sale SET amount = 3 WHERE id = 2", "DELETE FROM sale WHERE id = 1"):
        stream = read(session.readStream).option("state", str(tmp_path / "state")).load()
        query = (
            stream.writeStream.foreachBatch(lambda frame, _: seen.extend(_rows(frame)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(once=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE)
        plain_database.run(change)
    kinds = Counter((row[0], row[3]) for row in seen)
    assert kinds == {
        (1, "insert"): 1,
        (2, "insert"): 1,
        (2, "update_preimage"): 1,
        (2, "update_postimage"): 1,
    }


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row)[:4] for row in frame.collect()]


def test_errors_are_told(session: SparkSession, tmp_path: Path) -> None:
    for options, words in (
        ({"pth": "x"}, "no option pth"),
        ({"path": str(tmp_path / "none.json")}, "none.json"),
        ({"path": "secret:unknown"}, "HARKEN_SECRET_UNKNOWN"),
    ):
        with pytest.raises(Exception, match=words):
            session.read.format("harken_json").options(**options).load()
