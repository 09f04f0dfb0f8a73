"""What subscriptions of one shape cost those whom they do not concern: counted, not timed.

Law: a transaction, and the beginning of one more subscription, take as many statements of SQLite,
steps of its virtual machine and calls of Python with 300 subscriptions as with 3.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import harken
from harken import Database, Subscription
from harken.consumers.monitors.log import Logs

FEW, MANY = 3, 300
SCHEMA = """
CREATE TABLE t (id INT PRIMARY KEY, city STRING, qty INT);
CREATE TABLE w (city STRING PRIMARY KEY);
CREATE VIEW v AS SELECT id, city, qty FROM t WHERE qty > 0;
INSERT INTO t VALUES (1, 'c1', 5), (2, 'c2', 6);
"""


def counted(db: Database, work: Callable[[], object]) -> Counter[str]:
    """How many statements, steps of SQLite's machine and calls of Python the work takes."""
    found: Counter[str] = Counter()

    def traced(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_PROFILE:
            found["statements"] += 1
            found["steps"] += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def profiled(frame: FrameType, event: str, _: object) -> None:
        found["calls"] += event == "call"

    raw = db.internals.connection.raw
    raw.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, traced)
    before = sys.getprofile()
    sys.setprofile(profiled)
    try:
        work()
    finally:
        sys.setprofile(before)
        raw.trace_v2(0, None)
    return found


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with harken.connect(str(tmp_path / "x.db")) as database:
        database.sql(SCHEMA)
        database.monitoring("incremental")  # else now and then the other way is timed
        yield database


def change(db: Database) -> None:
    """A row comes and goes that no subscription wants."""
    db.sql("INSERT INTO t VALUES (-1, 'nowhere', 3)")
    db.sql("DELETE FROM t WHERE id = -1")


def cost_of_change(db: Database) -> Counter[str]:
    for _ in range(5):  # plans are made, and choices settle
        change(db)
    return min((counted(db, lambda: change(db)) for _ in range(3)), key=Counter.total)


def watch(db: Database, subs: list[Subscription], shape: str, until: int, keep: bool) -> None:
    for i in range(len(subs), until):
        subs.append(db.monitor("v", where=shape.format(i), keep=keep or None))


@pytest.mark.parametrize("keep", [False, True], ids=["in memory", "kept"])
@pytest.mark.parametrize(
    "shape",
    [
        "city = 'c{0}' AND qty > {0}",
        "qty > 1{0}",
        "city = 'c{0}' AND city NOT IN (SELECT city FROM w)",
    ],
)
def test_a_transaction_costs_the_same(db: Database, shape: str, keep: bool) -> None:
    subs: list[Subscription] = []
    watch(db, subs, shape, FEW, keep)
    few = cost_of_change(db)
    watch(db, subs, shape, MANY, keep)
    assert cost_of_change(db) == few
    assert len(list(db.internals.network.graph.views())) == 1


def test_one_more_subscription_costs_the_same(db: Database) -> None:
    shape, found = "city = 'c{0}' AND qty > {0}", []
    subs: list[Subscription] = []
    for count in (FEW, MANY - 1):
        watch(db, subs, shape, count, keep=True)
        found.append(counted(db, lambda: watch(db, subs, shape, len(subs) + 1, keep=True)))
    few, many = found
    assert many["statements"] == few["statements"] < 40
    assert many["calls"] <= few["calls"] * 1.02  # conditions are longer by a digit or two


def test_another_session_follows_with_as_many_statements(db: Database, tmp_path: Path) -> None:
    """It looks once at what is watched, when it next begins to write."""
    found = []
    subs: list[Subscription] = []
    with harken.connect(str(tmp_path / "x.db")) as writer:
        writer.monitoring("incremental")
        change(writer)
        for count in (FEW, MANY):
            watch(db, subs, "city = 'c{0}'", count, keep=True)
            change(writer)
            found.append(cost_of_change(writer))
    assert found[0] == found[1]


def test_news_of_all_logs_is_read_at_once(db: Database) -> None:
    logs, found = Logs(db.internals.connection), []
    subs: list[Subscription] = []
    for count in (FEW, MANY):
        watch(db, subs, "city = 'c{0}'", count, keep=True)
        found.append(counted(db, lambda: logs.news(logs.position())))
    assert found[0]["statements"] == found[1]["statements"] < 10


def test_rows_for_other_constants_are_read_by_the_same_plan(db: Database) -> None:
    def read(number: int) -> None:
        db.snapshot("v", where=f"city = 'c{number}' AND qty > {number}")

    texts: list[set[str]] = [set(), set()]
    for number in range(6):
        seen = texts[number > 2]
        db.internals.connection.raw.trace_v2(
            apsw.SQLITE_TRACE_STMT, lambda e, seen=seen: seen.add(e["sql"])
        )
        read(number)
    db.internals.connection.raw.trace_v2(0, None)
    assert texts[1] <= texts[0]
