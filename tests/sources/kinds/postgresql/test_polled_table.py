"""Tables of PostgreSQL that are read again: values of every type, odd names, and what is pushed."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from harken.errors import SourceFault
from harken.sources.outside import Answering, Condition, Polled
from tests.harness.outside_models import batch_rows, opened, polled_rows
from tests.harness.servers import PostgresDatabase

UTC = datetime.UTC
TYPES: tuple[tuple[str, str, Any], ...] = (
    ("smallint", "'-7'", -7),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("oid", "4000000000", 4_000_000_000),
    ("real", "0.1", 0.1),
    ("double precision", "1e300", 1e300),
    ("double precision", "'NaN'", None),
    ("real", "'-Infinity'", None),
    ("numeric(10,2)", "1.5", decimal.Decimal("1.50")),
    ("numeric(10,2)", "'NaN'", None),
    ("numeric(3,-2)", "1234", decimal.Decimal("1200")),
    ("numeric(2,4)", "0.0012", decimal.Decimal("0.0012")),
    ("numeric", "2.5", 2.5),
    ("numeric", "'NaN'", None),
    ("numeric(60,2)", "2.5", 2.5),
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("date", "'2024-02-29'", datetime.date(2024, 2, 29)),
    ("date", "'infinity'", None),
    ("date", "'0044-03-15 BC'", None),
    ("date", "'10000-01-01'", None),
    ("timestamp", "'2024-01-01 10:00:00.5'", datetime.datetime(2024, 1, 1, 10, 0, 0, 500_000)),
    ("timestamp", "'-infinity'", None),
    ("timestamp", "'20240-01-01'", None),
    ("timestamptz", "'2024-01-01 10:00+02'", datetime.datetime(2024, 1, 1, 8, tzinfo=UTC)),
    ("timestamptz", "'infinity'", None),
    ("text", "''", ""),
    ("text", "'NULL'", "NULL"),
    ("text", "E'a\\r\\nb\\t\",\\\\'", 'a\r\nb\t",\\'),
    ("varchar(9)", "'Ångström'", "Ångström"),
    ("char(4)", "'ab'", "ab  "),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", """'{"a":  1}'""", '{"a":  1}'),
    ("jsonb", """'{"a":  1}'""", '{"a": 1}'),
    ("int[]", "'{1,NULL,3}'", "[1, null, 3]"),
    ("boolean[]", "'{t,f}'", "[true, false]"),
    ("float8[]", "'{0.5,NaN}'", "[0.5, null]"),
    ("text[]", """'{a,"b,\\"c","NULL",NULL,""}'""", '["a", "b,\\"c", "NULL", null, ""]'),
    ("text[]", "'{{a,b},{c,d}}'", '[["a", "b"], ["c", "d"]]'),
    ("mood", "'ok'", "ok"),
    ("mood[]", "'{ok,sad}'", '["ok", "sad"]'),
    ("whole", "5", 5),
    ("whole[]", "'{5,6}'", "[5, 6]"),
    ("bytea", "'\\x01ff'", "\\x01ff"),
    ("interval", "'1 day 02:00'", "P1DT2H"),
    ("time", "'10:20'", "10:20:00"),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("box[]", "'{(1,1),(0,0);(3,3),(2,2)}'", '["(1,1),(0,0)", "(3,3),(2,2)"]'),
    ("int2vector", "'1 2'", "1 2"),
)
DEFINITIONS = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN whole AS int NOT NULL CHECK (VALUE > 0)"
)


def polled(database: PostgresDatabase, table: str, **options: Any) -> Polled:
    found = opened("postgresql", {"url": database.url, "table": table, **options}, "poll").polled
    assert found is not None
    return found


def asked(
    source: Polled, columns: Sequence[str], *conditions: Condition, limit: int | None = None
) -> Any:
    assert isinstance(source, Answering)
    return source.question(columns, conditions, limit)


def test_each_type_has_values_of_ours(plain_database: PostgresDatabase) -> None:
    plain_database.run(DEFINITIONS)
    columns = ", ".join(f"c{i} {type}" for i, (type, _, _) in enumerate(TYPES))
    plain_database.run(f"CREATE TABLE every ({columns})")
    plain_database.run(f"INSERT INTO every VALUES ({', '.join(text for _, text, _ in TYPES)})")
    source = polled(plain_database, "every")
    snapshot = source.snapshot()
    assert snapshot is not None
    (row,) = batch_rows(snapshot.batches)
    assert dict(enumerate(row)) == {i: value for i, (_, _, value) in enumerate(TYPES)}
    assert snapshot.schema == source.schema()
    source.close()


def test_an_odd_value_is_refused_if_that_is_asked_for(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t (d date, f float8)")
    source = polled(plain_database, "t", odd_values="refuse")
    for value in ("('infinity', 1)", "('2024-01-01', 'NaN')"):
        plain_database.run(f"TRUNCATE t; INSERT INTO t VALUES {value}")
        snapshot = source.snapshot()
        assert snapshot is not None
        with pytest.raises(SourceFault, match="which no type of Harken holds"):
            batch_rows(snapshot.batches)
    source.close()


def test_names_are_as_in_a_statement(plain_database: PostgresDatabase) -> None:
    plain_database.run(
        'CREATE SCHEMA "Odd, s"; CREATE TABLE "Odd, s"."T.""x%s" ("A b" int PRIMARY KEY, "%" text);'
        """INSERT INTO "Odd, s"."T.""x%s" VALUES (1, '%s')"""
    )
    source = opened(
        "postgresql", {"url": plain_database.url, "table": '"Odd, s"."T.""x%s"'}, "poll"
    )
    assert source.polled is not None
    assert source.polled.schema().key == ("A b",)
    assert polled_rows(source) == [(1, "%s")]
    source.polled.close()


@pytest.mark.parametrize(
    ("definition", "key"),
    [
        ("a int, b int, PRIMARY KEY (b, a)", ("b", "a")),
        ("a int, b int", ()),
        ("a int UNIQUE, b int", ()),
        ("a int NOT NULL UNIQUE, b int", ("a",)),
        ("a int NOT NULL UNIQUE DEFERRABLE, b int NOT NULL UNIQUE", ("b",)),
        ("a int PRIMARY KEY, b int NOT NULL UNIQUE", ("a",)),
    ],
)
def test_the_key_is_the_tables_own(
    plain_database: PostgresDatabase, definition: str, key: tuple[str, ...]
) -> None:
    plain_database.run(f"CREATE TABLE t ({definition})")
    source = polled(plain_database, "t")
    assert source.schema().key == key
    source.close()


@pytest.mark.parametrize("value", [None, "", "x"])
def test_one_column(plain_database: PostgresDatabase, value: str | None) -> None:
    plain_database.run("CREATE TABLE t (a text)")
    plain_database.run("INSERT INTO t VALUES (%s)", [value])
    source = opened("postgresql", {"url": plain_database.url, "table": "t"}, "poll")
    assert polled_rows(source) == [(value,)]
    source.polled.close()  # type: ignore[union-attr]


def test_a_cheap_query_says_that_nothing_changed(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    source = polled(plain_database, "t", changed_when="SELECT count(*), max(a) FROM t")
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None
    plain_database.run("INSERT INTO t VALUES (2)")
    second = source.snapshot(first.position)
    assert second is not None
    assert batch_rows(second.batches) == [(1,), (2,)]
    source.close()


@pytest.mark.parametrize("query", ["SELECT 1; DROP TABLE t", "TRUNCATE t", "SELECT a FROM t"])
def test_the_cheap_query_only_reads_one_row(plain_database: PostgresDatabase, query: str) -> None:
    plain_database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")
    with pytest.raises(SourceFault):
        polled(plain_database, "t", changed_when=query).snapshot()
    assert plain_database.run("SELECT count(*) FROM t") == [(2,)]


def test_what_is_missing_is_said(plain_database: PostgresDatabase) -> None:
    with pytest.raises(SourceFault, match="no table nothing") as error:
        polled(plain_database, "nothing").schema()
    assert error.value.code == "source-changed"
    plain_database.run("CREATE TABLE t (a int); CREATE ROLE poor LOGIN")
    poor = opened(
        "postgresql", {"url": plain_database.server.url(plain_database.name, "poor"), "table": "t"}
    )
    with pytest.raises(SourceFault, match="may not read") as error:
        polled_rows(poor)
    assert error.value.code == "not-allowed"
    plain_database.run("DROP ROLE poor")


def test_a_wrong_url_or_name_says_what_to_check(plain_database: PostgresDatabase) -> None:
    for options, words in (
        ({"url": plain_database.url, "table": "Odd name"}, '"Odd name"'),
        ({"url": plain_database.server.url("nowhere"), "table": "t"}, "database in the option url"),
        ({"url": plain_database.server.url(user="nobody"), "table": "t"}, "user"),
    ):
        with pytest.raises(SourceFault) as error:
            opened("postgresql", options, "poll").polled.schema()
        assert words in str(error.value.hint)


def test_a_private_address_must_be_allowed(plain_database: PostgresDatabase) -> None:
    options = {"url": plain_database.url, "table": "t"}
    source = opened("postgresql", options, "poll", allow_private_addresses=False).polled
    assert source is not None
    with pytest.raises(SourceFault, match="loopback") as error:
        source.schema()
    assert error.value.code == "not-allowed"
    for url in ("postgresql:///x", "host=/var/run dbname=x"):
        source = opened(
            "postgresql", {"url": url, "table": "t"}, "poll", allow_private_addresses=False
        ).polled
        assert source is not None
        with pytest.raises(SourceFault, match="on this machine"):
            source.schema()


def test_nobody_sees_the_password() -> None:
    with pytest.raises(SourceFault) as error:
        opened("postgresql", {"url": "postgresql://a:hidden@[/x", "table": "t"}, "poll")
    assert "hidden" not in error.value.report()
    with pytest.raises(SourceFault, match="passfile"):
        opened("postgresql", {"url": "host=h passfile=/etc/shadow", "table": "t"}, "poll")


TEXTS = ("", "a", "B", "ä", "Z", "a'b", "\\", "é", "e\u0301", "𝒳", "\uffff")
NUMBERS = (None, -1, 0, 5)
EXACT = (decimal.Decimal("1.5"), decimal.Decimal(-2), None, decimal.Decimal("NaN"))


def test_what_is_pushed_keeps_every_row(plain_database: PostgresDatabase) -> None:
    """For conditions of every operator, the answer has the rows that Python finds, and with a limit
    no others."""
    plain_database.run(
        "CREATE TABLE t (n int, s text, m numeric(8,2), f float8, d date, b boolean, z timestamptz)"
    )
    with psycopg.connect(plain_database.server.place(plain_database.name)) as connection:
        for i, text in enumerate((*TEXTS, None)):
            connection.execute(
                "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [
                    NUMBERS[i % 4],
                    text,
                    [decimal.Decimal("1.5"), decimal.Decimal("-2"), None, decimal.Decimal("NaN")][
                        i % 4
                    ],
                    [0.1, float("nan"), None][i % 3],
                    ["2024-01-01", "infinity", None, "2023-01-01"][i % 4],
                    [True, False, None][i % 3],
                    ["2024-01-01 00:00+00", "-infinity", None][i % 3],
                ],
            )
    source = polled(plain_database, "t")
    snapshot = source.snapshot()
    assert snapshot is not None
    rows = batch_rows(snapshot.batches)
    names = snapshot.schema.columns.names
    for condition in conditions():
        place = names.index(condition.column)
        right = [row for row in rows if holds(condition, row[place])]
        for limit in (None, 2):
            question = asked(source, names, condition, limit=limit)
            answer = batch_rows(question.batches())
            found = [row for row in answer if holds(condition, row[place])]
            if question.limited:
                assert found == answer
                assert len(found) == min(len(right), 2)
            else:
                assert sorted(found, key=repr) == sorted(right, key=repr), question.text
    source.close()


def conditions() -> list[Condition]:
    values: dict[str, list[Any]] = {
        "n": [0, 2**70, 0.5],
        "s": [*TEXTS, "nothing", "\0", "\ud800"],
        "m": [decimal.Decimal("1.50"), 0, decimal.Decimal("NaN")],
        "f": [0.1],
        "d": [datetime.date(2024, 1, 1)],
        "b": [True],
        "z": [datetime.datetime(2024, 1, 1, tzinfo=UTC)],
    }
    found = []
    for column, given in values.items():
        for operator in ("=", "<>", "<", "<=", ">", ">="):
            found += [Condition(column, operator, (value,)) for value in given]  # type: ignore[arg-type]
        found += [Condition(column, "in", tuple(given)), Condition(column, "in", ())]
        found += [Condition(column, "is null"), Condition(column, "is not null")]
    return found


def holds(condition: Condition, value: Any) -> bool:
    if condition.operator in ("is null", "is not null"):
        return (value is None) == (condition.operator == "is null")
    if value is None:
        return False
    if condition.operator == "in":
        return value in condition.values
    other = condition.values[0]
    if isinstance(other, decimal.Decimal) and not other.is_finite():
        return condition.operator == "<>"
    return {
        "=": value == other,
        "<>": value != other,
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
    }[condition.operator]


def test_only_what_is_asked_for_travels(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t (a int PRIMARY KEY, b text, c text)")
    source = polled(plain_database, "t")
    question = asked(
        source, ["b"], Condition("a", "in", (1, 2)), Condition("c", ">", ("x",)), limit=3
    )
    assert question.text == (
        'SELECT "b" FROM "public"."t" WHERE "a" IN (1, 2) AND "c" COLLATE "C" > \'x\' LIMIT 3'
    )
    assert question.limited
    with pytest.raises(SourceFault, match="no column z"):
        asked(source, ["z"])
    source.close()


def test_several_questions_are_read_at_once(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t AS SELECT i FROM generate_series(1, 3) i")
    source = polled(plain_database, "t")
    first, second = (asked(source, ["i"]).batches() for _ in range(2))
    assert batch_rows(iter([next(first)])) == batch_rows(second)
    first.close()
    source.snapshot()  # its rows are never read
    source.close()
