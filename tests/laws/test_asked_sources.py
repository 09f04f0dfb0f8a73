"""The law of sources without a mirror: a query over one has the rows that it has over a mirror,
whatever is asked of the source (columns, conditions, keys of joins, first rows).
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

import harken
from tests.harness.servers import PostgresDatabase

QUERIES, MANY = 60, 3_000
TEXTS = ["", "a", "A", "ä", "b ", "b", "𝒳", "a'b", "é", "\\x61", "~"]
STOCK = [(1, "a"), (2, "b"), (2, "A"), (5, None), (None, "ä"), (9, "𝒳")]
SQLITE = "CREATE TABLE item (id INTEGER PRIMARY KEY, k INTEGER, s TEXT COLLATE NOCASE, x REAL)"
POSTGRES = """
    CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    CREATE TABLE item (id int PRIMARY KEY, k bigint, s text COLLATE {collation}, x float8, d date,
        m numeric(6, 2), t timestamp, u uuid, c char(3), b bool)
"""
KINDS = ["sqlite", "sqlalchemy", "postgresql"]
COLLATIONS = ["loose", '"C"', '"und-x-icu"']
NEEDED = ["LIMIT", " IN (", "ORDER BY"]


class Queries:
    """Random ones over `{item}` and `stock`."""

    def __init__(self, choose: random.Random, columns: list[str]) -> None:
        self._choose, self._columns = choose, columns

    def query(self) -> str:
        one = self._choose.choice
        return one([self._first, self._first, self._joined, self._inner])()

    def _value(self, column: str) -> str:
        one = self._choose.choice
        given = {
            "s": "'" + one(TEXTS).replace("'", "''") + "'",
            "x": one(["0.5", "1.5", "0.0"]),
            "d": f"DATE '{one(['2026-01-02', '0001-01-01', '9999-12-31'])}'",
            "m": one(["1.5", "0", "-2.25"]),
            "t": "TIMESTAMP '2026-01-02 00:00:00'",
            "b": one(["TRUE", "FALSE"]),
        }
        return given.get(column, str(self._choose.randrange(-1, 8)))

    def _test(self, alias: str, columns: list[str]) -> str:
        one = self._choose.choice
        column = one([each for each in columns if each not in "uc"])
        name, value = f"{alias}{column}", self._value(column)
        return one(
            [
                f"{name} {one(['=', '<>', '<', '<=', '>', '>='])} {value}",
                f"{value} {one(['=', '<'])} {name}",
                f"{name} IN ({value}, {self._value(column)})",
                f"{name} BETWEEN {value} AND {self._value(column)}",
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
                f"NOT {name} = {value}",
                f"({name} = {value} OR {name} IS NULL)",
            ]
        )

    def _tests(self, alias: str, columns: list[str]) -> list[str]:
        return [self._test(alias, columns) for _ in range(self._choose.choice([0, 0, 1, 1, 2]))]

    def _first(self) -> str:
        """The first rows of the source alone."""
        one, choose = self._choose.choice, self._choose
        shown = choose.sample(self._columns, choose.randrange(1, 4))
        parts = [one([each, f"{each} AS {one('kyz')}{i}"]) for i, each in enumerate(shown)]
        text = f"SELECT {one([', '.join(parts), '*'])} FROM {{item}}"
        tests = self._tests("", self._columns)
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        keys = [
            f"{each}{one(['', ' DESC'])}{one(['', ' NULLS FIRST', ' NULLS LAST'])}"
            for each in choose.sample(self._columns, choose.randrange(3))
        ]
        text += f" ORDER BY {', '.join(keys)}" if keys else ""
        return text + f" LIMIT {choose.randrange(6)}" + one(["", f" OFFSET {choose.randrange(4)}"])

    def _joined(self) -> str:
        one = self._choose.choice
        join = one(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN"])
        on = one(["i.k = s.k", "s.k = i.id", "i.s = s.s", "i.k = s.k AND i.s = s.s", "i.k < s.k"])
        item, stock = "{item} i", "stock s"
        sides = one([(item, stock), (stock, item)])
        text = f"FROM {sides[0]} {join} {sides[1]} ON {on}"
        if one([True, False, False]):
            text = f"FROM {sides[0]} JOIN {sides[1]} USING ({one(['k', 's'])})"
        tests = self._tests("i.", self._columns) + self._tests("s.", ["k", "s"])
        if "ANTI" in join:
            tests = []
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        first = sides[0][-1]
        return f"SELECT {first}.k, {first}.s, count(*) {text} GROUP BY {first}.k, {first}.s"

    def _inner(self) -> str:
        one = self._choose.choice
        tests = self._tests("", ["k", "s"])
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        more = f" AND {self._test('i.', self._columns)}"
        return one(
            [
                f"SELECT id FROM {{item}} i WHERE i.k IN (SELECT k FROM stock{where}){more}",
                "SELECT id FROM {item} i WHERE i.k NOT IN"
                f" (SELECT k FROM stock WHERE k > 1){more}",
                "SELECT k, s FROM stock s WHERE EXISTS"
                f" (SELECT 1 FROM {{item}} i WHERE i.k = s.k{more})",
                "SELECT k, s FROM stock s WHERE NOT EXISTS"
                f" (SELECT 1 FROM {{item}} i WHERE i.s = s.s{more})",
                "SELECT s.k, (SELECT max(i.id) FROM {item} i WHERE i.k = s.k) FROM stock s",
            ]
        )


def sqlite_items(directory: Path, choose: random.Random, encoding: str) -> Path:
    path = directory / "shop.sqlite"
    writer = sqlite3.connect(path)
    writer.execute(f"PRAGMA encoding = '{encoding}'")
    writer.execute(SQLITE)
    rows = [
        (
            number,
            choose.choice([None, *range(4)]),
            choose.choice([None, b"a", b"\xff", *TEXTS]),
            choose.choice([None, 0.5, 1.5, -0.0]),
        )
        for number in range(12)
    ]
    writer.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows)
    writer.commit()
    writer.close()
    return path


def postgres_items(database: PostgresDatabase, choose: random.Random, collation: str) -> None:
    database.run(POSTGRES.format(collation=collation))
    one = choose.choice
    for number in range(14):
        database.run(
            "INSERT INTO item VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                number,
                one([None, *range(4)]),
                one([None, *TEXTS]),
                one([None, 0.5, 1.5, "NaN", "-Infinity", -0.0]),
                one([None, "2026-01-02", "infinity", "-infinity", "0044-03-15 BC", "9999-12-31"]),
                one([None, "1.5", "NaN", "-2.25", "0"]),
                one([None, "2026-01-02", "infinity", "10000-01-01", "0001-01-01"]),
                one(
                    [
                        None,
                        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                        "00000000-0000-" + "0" * 4 + "-0000-" + "0" * 12,
                    ]
                ),
                one([None, "a", "ab ", "", " b"]),
                one([None, True, False]),
            ],
        )


def run(
    kind: str, options: dict[str, str], columns: list[str], choose: random.Random, many: int
) -> None:
    queries, asked = Queries(choose, columns), Counter[str]()
    with harken.connect(":memory:", settings={"allow_private_addresses": True}) as db:
        db.source("asked", kind, mirror=False, **options)
        db.source("kept", kind, **options)
        db.sql("CREATE TABLE stock (k BIGINT, s STRING)")
        db.sql("INSERT INTO stock VALUES (?, ?)", STOCK)
        for _ in range(many):
            query = queries.query()
            found, right = (db.sql(query.format(item=name)).rows for name in ("asked", "kept"))
            if " LIMIT " in query:
                assert found == right, query
            else:
                assert Counter(found) == Counter(right), query
            if choose.random() < 0.2:
                plan = db.sql("EXPLAIN " + query.format(item="asked"))[-1].rows
                asked.update(each for each in NEEDED if each in str(plan))
    assert set(asked) == set(NEEDED) or many < MANY


@pytest.mark.parametrize("kind", ["sqlite", "sqlalchemy"])
@pytest.mark.parametrize("many", [QUERIES, pytest.param(MANY, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_over_files_of_sqlite(tmp_path: Path, kind: str, encoding: str, many: int) -> None:
    choose = random.Random(f"{kind} {encoding} {many}")
    path = sqlite_items(tmp_path, choose, encoding)
    place = {"path": str(path)} if kind == "sqlite" else {"url": f"sqlite:///{path}"}
    run(kind, {**place, "table": "item"}, ["id", "k", "s", "x"], choose, many)


@pytest.mark.parametrize(
    ("collation", "many"),
    [
        ("loose", QUERIES),
        *(pytest.param(each, MANY, marks=pytest.mark.nightly) for each in COLLATIONS),
    ],
)
def test_over_postgresql(plain_database: PostgresDatabase, collation: str, many: int) -> None:
    choose = random.Random(f"{collation} {many}")
    postgres_items(plain_database, choose, collation)
    columns = ["id", "k", "s", "x", "d", "m", "t", "u", "c", "b"]
    options = {"url": plain_database.url, "table": "item", "capture": "poll"}
    run("postgresql", options, columns, choose, many)


@pytest.mark.parametrize("kind", ["sqlite", "sqlalchemy"])
def test_what_is_asked(tmp_path: Path, kind: str) -> None:
    path = sqlite_items(tmp_path, random.Random(1), "UTF-8")
    place = {"path": str(path)} if kind == "sqlite" else {"url": f"sqlite:///{path}"}
    with harken.connect(":memory:", settings={"allow_private_addresses": True}) as db:
        db.source("item", kind, mirror=False, table="item", **place)
        db.sql("CREATE TABLE stock (k BIGINT, s STRING); INSERT INTO stock VALUES (1, 'a')")
        db.sql("INSERT INTO stock VALUES (2, 'b'), (NULL, 'b')")

        def asked(query: str) -> str:
            ((line,), *_) = db.sql(f"EXPLAIN {query}")[-1].rows
            return str(line).replace('"', "").replace("item.", "")

        keys = asked("SELECT i.x FROM stock s LEFT JOIN item i ON i.k = s.k WHERE s.s = 'b'")
        assert keys.endswith("WHERE k IN (2)")
        assert asked("SELECT x FROM item WHERE id BETWEEN 2 AND 3").endswith(
            ("WHERE id >= 2 AND id <= 3", "WHERE (id >= 2) AND (id <= 3)")
        )
        first = asked("SELECT k FROM item WHERE k IN (1) ORDER BY id DESC LIMIT 2 OFFSET 1")
        assert first.startswith("item is asked for: SELECT id, k FROM item WHERE k IN (1) ORDER BY")
        assert "id DESC" in first
        assert first.endswith(("LIMIT 3", "LIMIT 3 OFFSET 0"))
        for query in (
            "SELECT x FROM item ORDER BY k LIMIT 2",  # ties are broken by a float
            "SELECT max(x) FROM item LIMIT 2",
            "SELECT i.x FROM stock s RIGHT JOIN item i ON i.k = s.k",
            "SELECT i.x FROM item i LEFT ANTI JOIN stock s ON i.k = s.k",
        ):
            assert asked(query).endswith("FROM item"), query
