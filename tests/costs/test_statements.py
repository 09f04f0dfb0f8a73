"""What a statement of SQL that was seen before costs: no parsing, no planning, one statement of
SQLite beside BEGIN and COMMIT."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken
from tests.harness.counting import cost


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as db:
        db.sql(
            "CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, amount DECIMAL(8, 2), day DATE)"
        )
        db.sql("INSERT INTO sale VALUES (1, 'Oslo', 2.50, '2024-05-06'), (2, 'Bonn', 3, NULL)")
        yield db


def run_by_sqlite(db: harken.Database, text: str, values: object = None) -> list[str]:
    found: list[str] = []
    raw = db.internals.connection.raw
    raw.trace_v2(1, lambda event: found.append(event["sql"].split()[0]))
    try:
        db.sql(text, values)
    finally:
        raw.trace_v2(0, None)
    return found


BY_KEY = (
    ("INSERT INTO sale VALUES ({}, 'Rome', 1.25, '2024-01-02')", "INSERT"),
    ("INSERT INTO sale (shop, id, day, amount) VALUES ('Rome', {}, NULL, 1.25)", "INSERT"),
    ("UPDATE sale SET shop = 'Lima' WHERE id = {}", "UPDATE"),
    ("UPDATE sale SET amount = amount + 1.25, shop = 'Lima' WHERE id = {}", "UPDATE"),
    ("DELETE FROM sale WHERE id = {}", "DELETE"),
    ("DELETE FROM sale WHERE id > {} AND day < '2020-01-01'", "DELETE"),
)


@pytest.mark.parametrize(("text", "verb"), BY_KEY)
def test_a_change_that_was_seen_is_one_statement(db: harken.Database, text: str, verb: str) -> None:
    for i in range(10, 13):
        db.sql(text.format(i))
        db.sql(text.format("?"), [i + 100])
    assert run_by_sqlite(db, text.format(14)) == ["BEGIN", verb, "COMMIT"]
    assert run_by_sqlite(db, text.format("?"), [114]) == ["BEGIN", verb, "COMMIT"]


def test_a_query_that_was_seen_is_one_statement(db: harken.Database) -> None:
    for i in range(3):
        db.sql(f"SELECT shop FROM sale WHERE id = {i}")
    assert run_by_sqlite(db, "SELECT shop FROM sale WHERE id = 9") == ["SELECT"]


def test_a_shape_is_planned_once(db: harken.Database) -> None:
    counts = db.internals.runtime.statement_counts
    texts = [*(text for text, _ in BY_KEY), "SELECT shop FROM sale WHERE id IN ({}, 7) LIMIT 5"]
    for number, text in enumerate(texts):
        db.sql(text.format(number + 1000))
    planned, known = counts.planned, counts.known
    for i in range(20):
        for number, text in enumerate(texts):
            db.sql(text.format(100 * i + number + 2000))
    assert counts.planned == planned
    assert counts.known == known + 20 * len(texts)


def test_only_changes_of_the_schema_that_concern_it_plan_a_statement_again(
    db: harken.Database,
) -> None:
    db.sql("CREATE VIEW cheap AS SELECT id FROM sale WHERE amount < 3")
    counts = db.internals.runtime.statement_counts
    queries = ["SELECT id FROM cheap WHERE id > 0", "UPDATE sale SET shop = 'Ulm' WHERE id = 1"]

    def planned_by_all() -> int:
        before = counts.planned
        for text in queries:
            db.sql(text)
        return counts.planned - before

    assert planned_by_all() == 2
    db.sql("CREATE TABLE other (a INT); CREATE VIEW twice AS SELECT a * 2 AS b FROM other")
    assert planned_by_all() == 0
    db.sql("CREATE OR REPLACE VIEW cheap AS SELECT id FROM sale WHERE amount < 2.75")
    assert planned_by_all() == 1
    assert db.sql(queries[0]).rows == [(1,)]
    db.sql("ALTER TABLE sale ADD COLUMN note STRING")
    assert planned_by_all() >= 1


def test_what_is_kept_is_bounded() -> None:
    """Of twenty shapes only the last three are still there."""
    with harken.connect(settings={"statement_cache": 3}) as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
        texts = [f"SELECT a + b AS c{number} FROM t WHERE a = 1" for number in range(20)]
        counts = db.internals.runtime.statement_counts
        for text in (*texts, *texts[::-1]):
            db.sql(text)
        assert counts.planned == 37


def test_a_statement_that_fails_costs_no_more_with_views_that_it_does_not_concern() -> None:
    costs = []
    for views in (1, 20):
        with harken.connect() as db:
            db.sql("CREATE TABLE sale (id INT PRIMARY KEY, n INT); INSERT INTO sale VALUES (1, 1)")
            for i in range(views):
                db.sql(f"CREATE TABLE t{i} (a INT, b INT)")
                db.sql(f"CREATE MATERIALIZED VIEW v{i} AS SELECT a, sum(b) FROM t{i} GROUP BY a")

            def fail(db: harken.Database = db) -> None:
                with pytest.raises(harken.HarkenError, match="already"):
                    db.sql("INSERT INTO sale VALUES (1, 5)")

            costs.append(cost(db, fail))
    assert costs[0].statements == costs[1].statements
