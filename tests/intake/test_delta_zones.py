"""The active delta zone: what is kept of a source's past, and for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken.consumers.monitors.log import CHANGES, Keep
from harken.consumers.monitors.outbox import OUTBOX
from harken.continual.answer_records import KEPT
from tests.harness.toy_sources import Clock, ToyKind, ToyTable

DAY = 86_400.0


@pytest.fixture
def table(toy: ToyKind) -> ToyTable:
    made = toy.table("item", [(1, "pen")])
    made.has_position = False
    return made


@pytest.fixture
def db(table: ToyTable, clock: Clock, path: str) -> harken.Database:
    db = harken.connect(path, clock=clock)
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item', retain '2 DAYS') KEY (id)")
    db.sql("CREATE VIEW named AS SELECT name FROM item")
    return db


def described(db: harken.Database) -> dict[str, str]:
    return {k: str(v) for k, v in db.sources.describe("item").items()}


def change(db: harken.Database, table: ToyTable, name: str) -> None:
    table.rows = [(1, name)]
    db.sources.refresh("item")


def test_the_zone_shows_its_size_and_who_holds_it(db: harken.Database, table: ToyTable) -> None:
    reports = db.monitor("named", durable="reports")
    assert described(db)["delta zone"].startswith("empty")
    assert described(db)["retain"] == "2 days"
    change(db, table, "ink")
    zone = described(db)
    assert zone["delta zone"].startswith("1 change in ")
    assert zone["delta zone"].endswith(" since 2026-05-01 12:00:00 UTC")
    held = zone["held by the monitor reports of named"]
    assert held.endswith("until 2026-05-03 12:00:00 UTC")
    reports.changes()
    reports.acknowledge()
    assert described(db)["delta zone"].startswith("empty")


def test_who_stopped_long_ago_gets_the_complete_answer(
    db: harken.Database, table: ToyTable, clock: Clock, path: str
) -> None:
    gone, there = (db.monitor("named", durable=name) for name in ("gone", "there"))
    gone.close()
    for day in range(4):
        change(db, table, f"ink {day}")
        assert [each.plus for each in there.changes()] == [[(f"ink {day}",)]]
        there.acknowledge()
        clock.forward(DAY)
    assert "held by the monitor gone of named" not in described(db)
    (fresh,) = db.monitor("named", durable="gone").changes()
    assert (fresh.fresh, fresh.plus) == (True, [("ink 3",)])


def test_a_paused_query_loses_its_claim_and_an_active_one_does_not(
    db: harken.Database, table: ToyTable, clock: Clock, tmp_path: Path
) -> None:
    for name in ("paused", "active"):
        out = tmp_path / f"{name}.jsonl"
        db.sql(
            f"CREATE CONTINUAL QUERY {name} AS SELECT name FROM item TRIGGER ON REQUEST "
            f"DELIVER INSERTED NOTIFY FILE '{out}'"
        )
    db.sql("ALTER CONTINUAL QUERY paused PAUSE")
    table.rows = [(1, "ink"), (2, "cap")]
    db.sources.refresh("item")
    assert "held by the continual query paused" in described(db)
    clock.forward(3 * DAY)
    change(db, table, "rum")
    zone = described(db)
    assert "held by the continual query paused" not in zone
    assert "until" not in zone["held by the continual query active"]
    db.sql("ALTER CONTINUAL QUERY paused RESUME")
    complete = db.continual("paused").run()
    assert (complete.inserted, complete.rows) == ([("rum",)], 1)


def test_logs_forget_what_is_older(db: harken.Database, table: ToyTable, clock: Clock) -> None:
    db.monitor("named", keep=Keep(seconds=30 * DAY))
    for day in range(5):
        change(db, table, f"ink {day}")
        clock.forward(DAY)
    change(db, table, "rum")
    kept = db.internals.connection.records.find(CHANGES)
    assert len(kept) <= 4
    assert "held by the log of named" in described(db)


def test_the_zone_of_a_long_run_stays_bounded(
    db: harken.Database, table: ToyTable, clock: Clock
) -> None:
    """Twenty days in which nobody comes back, except one monitor."""
    db.monitor("named", durable="gone").close()
    db.monitor("item", durable="gone too").close()
    there = db.monitor("named", durable="there")
    db.sql("CREATE CONTINUAL QUERY q AS SELECT * FROM item TRIGGER ON REQUEST")
    db.sql("ALTER CONTINUAL QUERY q PAUSE")
    records, most = db.internals.connection.records, 0
    seen: list[str] = []
    for hour in range(80):
        table.rows = [(1, f"ink {hour}")]
        clock.forward(6 * 3_600)
        db.run_due()
        for each in there.changes():
            seen += [name for (name,) in each.plus]
        there.acknowledge()
        kept = sum(len(records.find(kind)) for kind in (OUTBOX, KEPT) if records.exist(kind))
        most = max(most, kept)
    assert seen == [f"ink {hour}" for hour in range(80)]
    assert most <= 2 * 10 + 2
