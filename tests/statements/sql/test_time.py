"""Materialized views that ask for the time: a commit that looks at one leaves just its rows."""

from __future__ import annotations

import datetime

import pytest

import harken

EVENTS = """
CREATE TABLE e (id INT PRIMARY KEY, ts TIMESTAMP NOT NULL);
INSERT INTO e VALUES (1, TIMESTAMP '2026-01-02 00:00:00'), (2, TIMESTAMP '2026-02-01 00:00:00'),
    (3, TIMESTAMP '2026-03-01 00:00:00');
"""
QUERIES = (
    "SELECT id FROM e WHERE ts > now()",
    "SELECT id FROM e WHERE ts > now() ORDER BY ts LIMIT 2",
    "SELECT count(*) AS n FROM e WHERE ts > current_timestamp()",
    "SELECT max(n) AS m FROM (SELECT count(*) AS n FROM e WHERE ts > NOW() GROUP BY ts) AS c",
)


@pytest.mark.parametrize("way", ["adaptive", "incremental", "naive"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_view_that_asks_for_the_time_has_the_rows_of_its_last_commit(
    query: str, way: str
) -> None:
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    with harken.connect(clock=lambda: now) as db:
        db.sql(EVENTS)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        db.monitoring(way)
        now = datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC)
        for text in (
            "INSERT INTO e VALUES (4, TIMESTAMP '2026-01-20 00:00:00')",
            "DELETE FROM e WHERE id = 1",
            "DELETE FROM e WHERE id = 4",
        ):
            db.sql(text)
            assert sorted(db.sql("SELECT * FROM v").rows) == sorted(db.sql(query).rows)
