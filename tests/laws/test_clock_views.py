"""Views over the clock. Two laws, over random data and random moves of the clock:

- what is followed equals what is computed anew, at every moment at which something is committed;
- between the last move of the clock and `next_due` no view changes, so a run at exactly `next_due`
  misses nothing.
"""

from __future__ import annotations

import datetime
from collections import Counter
from random import Random
from typing import Any

import pytest

import harken

START = datetime.datetime(2026, 1, 27, 22, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
TABLES = """
CREATE TABLE e (id INT, at TIMESTAMP, d INT, day DATE);
CREATE TABLE other (a INT, ts TIMESTAMP);
"""
QUERIES = (
    # both directions, with and without arithmetic on either side
    "SELECT id FROM e WHERE at < now() - INTERVAL 1 HOUR",
    "SELECT id, at FROM e WHERE at + INTERVAL 90 MINUTES <= now()",
    "SELECT DISTINCT id FROM e WHERE at > now()",
    "SELECT id FROM e WHERE now() >= at",
    "SELECT id FROM e WHERE at = now()",
    "SELECT id FROM e WHERE at <> now()",
    "SELECT id FROM e WHERE at BETWEEN now() - INTERVAL 2 HOURS AND now() + INTERVAL 1 DAY",
    "SELECT id FROM e WHERE at NOT BETWEEN now() - INTERVAL 2 HOURS AND now()",
    "SELECT id FROM e WHERE timestampadd(MINUTE, d, at) < now()",
    "SELECT id FROM e WHERE now() - at > 5400",
    "SELECT id FROM e WHERE timestampdiff(HOUR, at, now()) >= 2",
    "SELECT id FROM e WHERE timestampdiff(HOUR, at, now()) > -3",
    "SELECT id FROM e WHERE unix_timestamp(now()) - unix_timestamp(at) > 60",
    # inside conditions and values
    "SELECT id FROM e WHERE at < now() OR d = 1",
    "SELECT id FROM e WHERE NOT (at > now() AND d = 2)",
    "SELECT id, CASE WHEN at < now() THEN 'past' ELSE 'to come' END AS what FROM e",
    # the calendar
    "SELECT id FROM e WHERE CAST(at AS DATE) = current_date()",
    "SELECT id FROM e WHERE day < current_date() - 1",
    "SELECT id FROM e WHERE datediff(now(), at) > 1",
    "SELECT id FROM e WHERE at > now() - INTERVAL 1 MONTH",
    "SELECT id FROM e WHERE add_months(day, 1) <= current_date()",
    "SELECT id FROM e WHERE hour(now()) > d * 6",
    "SELECT id FROM e WHERE date_trunc('HOUR', at) = date_trunc('HOUR', now())",
    "SELECT id FROM e WHERE year(at) = year(now()) AND month(at) = month(now())",
    "SELECT id, dayofweek(now()) AS w FROM e WHERE d = 1",
    # joins, negation, aggregates, order, recursion
    "SELECT e.id, other.a FROM e JOIN other ON e.id = other.a WHERE e.at < now() AND ts >= now()",
    "SELECT id, a FROM e LEFT JOIN other ON a = id AND ts < now()",
    "SELECT id FROM e WHERE at < now() AND id NOT IN (SELECT a FROM other WHERE ts < now())",
    "SELECT id FROM e WHERE NOT EXISTS (SELECT 1 FROM other WHERE a = id AND ts > now())",
    "SELECT count(*) AS n, max(id) AS m FROM e WHERE at > now()",
    "SELECT id, count(*) AS n, sum(d) AS s FROM e WHERE at < now() GROUP BY id",
    "SELECT id FROM e GROUP BY id HAVING max(at) < now() - INTERVAL 30 MINUTES",
    "SELECT id, at FROM e WHERE at > now() ORDER BY at, id LIMIT 2",
    "SELECT d, (SELECT count(*) FROM other WHERE a = id AND ts < now()) AS n FROM e",
    """WITH RECURSIVE r (id, d) AS (
         SELECT id, d FROM e WHERE at < now()
         UNION SELECT e.id, e.d FROM e JOIN r ON e.id = r.d WHERE e.at < now() + INTERVAL 1 HOUR
       ) SELECT * FROM r""",
)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now


def moment(random: Random) -> str:
    """A moment near the start, often one of a few and often on the hour."""
    if random.random() < 0.08:
        return "NULL"
    at = START + datetime.timedelta(hours=random.randint(-60, 90))
    at += datetime.timedelta(minutes=random.choice((0, 0, 0, 1, 30)))
    at += MICROSECOND * random.choice((0, 0, 0, 1, -1))
    return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}'"


def change(random: Random) -> str:
    number, at, d = random.randint(1, 4), moment(random), random.randint(1, 3)
    day = f"DATE '{START + datetime.timedelta(days=random.randint(-40, 5)):%Y-%m-%d}'"
    return random.choice(
        (
            f"INSERT INTO e VALUES ({number}, {at}, {d}, {day})",
            f"INSERT INTO e VALUES ({number}, {at}, {d}, {day}), ({d}, {at}, {d}, NULL)",
            f"DELETE FROM e WHERE id = {number}",
            f"UPDATE e SET at = {at}, d = {d} WHERE id = {number}",
            f"INSERT INTO other VALUES ({number}, {at})",
            f"DELETE FROM other WHERE a = {number}",
        )
    )


def applied(copy: Counter[Any], changes: list[harken.Change]) -> Counter[Any]:
    for each in changes:
        assert not each.fresh
        copy.subtract(each.minus)
        copy.update(each.plus)
        assert all(count >= 0 for count in copy.values())
    return +copy


def check(query: str, strategy: str, seed: int, steps: int) -> None:
    random, clock = Random(f"{query} {seed}"), Clock()
    with harken.connect(clock=clock) as db:
        db.sql(TABLES)
        for _ in range(6):
            db.sql(change(random))
        db.sql(f"CREATE VIEW v AS {query}")
        db.sql(f"CREATE MATERIALIZED VIEW stored AS {query}")
        monitor = db.monitor("v", strategy=strategy)
        assert monitor.warnings == ()
        copy = Counter(monitor.rows())
        for _ in range(steps):
            clock.now += datetime.timedelta(minutes=random.choice((0, 7, 60, 300)))
            if random.random() < 0.05:
                clock.now -= datetime.timedelta(hours=30)
            with db.transaction():
                for _ in range(random.randint(1, 3)):
                    db.sql(change(random))
                db.sql("INSERT INTO e VALUES (9, NULL, 9, NULL)")  # so that it is looked at
                db.sql("INSERT INTO other VALUES (8, NULL)")
            if (db.next_due() or clock.now) < clock.now:
                assert "WHERE d = 1" in query  # no row that was changed concerned it
                db.run_due()
            copy = applied(copy, monitor.changes())
            assert copy == Counter(db.sql(query).rows), clock.now
            assert copy == Counter(db.sql("SELECT * FROM stored").rows), clock.now
            for _ in range(random.randint(0, 3)):
                copy = wait(db, clock, query, copy, random)
                if copy is None:
                    break
                copy = applied(copy, monitor.changes())
                assert copy == Counter(db.sql(query).rows), clock.now
                assert copy == Counter(db.sql("SELECT * FROM stored").rows), clock.now
            copy = Counter(monitor.rows()) if copy is None else copy


def wait(
    db: harken.Database, clock: Clock, query: str, copy: Counter[Any], random: Random
) -> Counter[Any] | None:
    """Let time pass until something is due; nothing changes until then."""
    due, began = db.next_due(), clock.now
    if due is None:
        clock.now += datetime.timedelta(days=random.choice((1, 40, 400)))
        assert copy == Counter(db.sql(query).rows), f"nothing was due at {clock.now}"
        clock.now = began
        return None
    assert due > began
    waited = (due - began) // MICROSECOND
    for between in (due - MICROSECOND, began + MICROSECOND * random.randrange(waited)):
        clock.now = between
        assert copy == Counter(db.sql(query).rows), f"{between} is before {due}"
    clock.now = due
    db.run_due()
    return copy


@pytest.mark.parametrize("query", QUERIES)
def test_views_over_the_clock_are_followed_and_miss_nothing(query: str) -> None:
    for seed, strategy in enumerate(("auto", "external")):
        check(query, strategy, seed, steps=5)


@pytest.mark.nightly
@pytest.mark.parametrize("query", QUERIES)
def test_long_searches(query: str) -> None:
    for seed in range(10, 40):
        for strategy in ("auto", "external", "counting", "naive"):
            check(query, strategy, seed, steps=25)
