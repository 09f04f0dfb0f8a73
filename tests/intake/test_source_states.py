"""A source that fails keeps its rows and says why; what is doubtful is kept out until confirmed."""

import datetime
from itertools import pairwise

import pyarrow as pa
import pytest

import harken
from harken.errors import SourceFault
from tests.harness.toy_sources import Clock, ToyKind

POLL = 60
DOWN = SourceFault("the page is away", code="source-down", hint="wait")


@pytest.fixture
def db(toy: ToyKind, clock: Clock) -> harken.Database:
    toy.table("item", [(i, "a") for i in range(10)])
    db = harken.connect(":memory:", clock=clock)
    db.source("item", "toy", table="item", key="id", every=POLL)
    return db


def poll(db: harken.Database, clock: Clock) -> str:
    due = db.next_due()
    assert due is not None
    clock.moment = max(due, clock())
    db.run_due()
    return db.sources.list()[0].state


def ids(db: harken.Database) -> list[int]:
    return [row[0] for row in db.sql("SELECT id FROM item ORDER BY id").rows]


def test_rows_stay_while_a_source_fails_and_it_recovers(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    table = toy.tables["item"]
    states = db.monitor("source_state")
    table.fault = DOWN
    waits = []
    for _ in range(6):
        assert poll(db, clock) == "failing"
        status = db.sources.list()[0]
        assert status.next_try is not None
        waits.append((status.next_try - clock()).total_seconds())
    assert (status.why, status.what_to_do) == ("the page is away", "wait")
    assert all(1.3 * a < b for a, b in pairwise(waits[:5]))
    assert waits[0] < POLL
    assert ids(db) == list(range(10))
    (told,) = states.changes()
    assert told.plus[0][:2] == ("item", "failing")
    since = told.plus[0][2]
    table.fault = SourceFault("the door is shut", code="source-down")
    assert poll(db, clock) == "failing"
    (told,) = states.changes()
    assert told.plus == [("item", "failing", since, "the door is shut")]
    table.fault, table.rows = None, [*table.rows, (10, "b")]
    assert poll(db, clock) == "ok"
    assert ids(db) == list(range(11))
    assert db.sources.list()[0].why == ""
    assert states.changes()[-1].plus[0][:2] == ("item", "ok")


def test_a_source_says_when_to_come_back(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    fault = SourceFault("too many requests", code="source-down")
    fault.retry_after = 500.0
    toy.tables["item"].fault = fault
    poll(db, clock)
    assert db.next_due() == clock() + datetime.timedelta(seconds=500)


def test_an_idle_source_is_unchanged(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    changes = db.monitor("item")
    assert poll(db, clock) == "unchanged"
    toy.tables["item"].has_position = False
    assert poll(db, clock) == "unchanged"
    assert changes.changes() == []
    assert toy.tables["item"].counted == 3


def test_a_source_that_nobody_reads_is_stale(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    clock.forward(3 * POLL + 1)
    assert db.sources.list()[0].state == "stale"
    assert poll(db, clock) == "unchanged"


def test_a_collapse_is_doubted_until_it_is_confirmed(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    table = toy.tables["item"]
    table.rows = [(1, "a"), (2, "a")]
    assert poll(db, clock) == "suspect"
    assert ids(db) == list(range(10))
    assert "CONFIRM" in db.sources.list()[0].what_to_do
    with pytest.raises(SourceFault, match="missing"):
        db.sources.refresh("item")
    db.sql("REFRESH SOURCE item CONFIRM")
    assert ids(db) == [1, 2]
    table.rows = [(1, "a")]
    assert poll(db, clock) == "ok"


def test_rows_that_come_back_need_no_confirmation(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    table = toy.tables["item"]
    before, table.rows = table.rows, []
    assert poll(db, clock) == "suspect"
    table.rows = before
    assert poll(db, clock) == "unchanged"


def test_how_much_is_doubted_can_be_set(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    db.sources.alter("item", {"suspect_share": 1})
    toy.tables["item"].rows = []
    assert poll(db, clock) == "ok"
    assert ids(db) == []


def test_whole_readings_are_not_doubted(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    toy.is_whole = True
    toy.tables["item"].rows = []
    assert poll(db, clock) == "ok"
    assert ids(db) == []


def test_rows_of_parts_that_were_set_aside_stay(toy: ToyKind, clock: Clock) -> None:
    columns = {"id": pa.int64(), "_file": pa.string()}
    table = toy.table("part", [(1, "a"), (2, "a"), (3, "b")], **columns)
    with harken.connect(":memory:", clock=clock) as db:
        db.source("part", "toy", table="part")
        table.rows = [(3, "b"), (4, "b")]
        table.set_aside, table.part_column = {"a": "cannot be read"}, "_file"
        db.sql("REFRESH SOURCE part")
        assert sorted(db.sql("SELECT id FROM part").rows) == [(1,), (2,), (3,), (4,)]
        assert db.sources.list()[0].set_aside == {"a": "cannot be read"}
        table.set_aside = {}
        db.sql("REFRESH SOURCE part")
        assert sorted(db.sql("SELECT id FROM part").rows) == [(3,), (4,)]


@pytest.mark.parametrize("key", [None, "id"])
def test_without_the_names_of_parts_nothing_is_deleted(
    toy: ToyKind, clock: Clock, key: str | None
) -> None:
    table = toy.table("part", [(1, "a"), (2, "b")])
    with harken.connect(":memory:", clock=clock) as db:
        db.source("part", "toy", table="part", key=key)
        table.rows, table.set_aside = [(2, "c"), (3, "d")], {"somewhere": "unreadable"}
        db.sql("REFRESH SOURCE part")
        expected = {(1, "a"), (2, "c"), (3, "d")} | ({(2, "b")} if key is None else set())
        assert set(db.sql("SELECT * FROM part").rows) == expected


def test_a_new_column_is_offered(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    table = toy.tables["item"]
    table.columns = table.columns.append(pa.field("price", pa.float64()))
    table.rows = [(*row, 1.0) for row in table.rows]
    assert poll(db, clock) == "unchanged"
    assert db.sources.list()[0].offered == ("price",)
    assert "ALTER SOURCE item ADD COLUMN price" in db.sources.describe("item")["new columns"]


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"id": pa.int64(), "title": pa.string()}, "no column name"),
        ({"id": pa.int64(), "name": pa.date32()}, "was string"),
    ],
)
def test_a_lost_or_retyped_column_stops_the_source(
    db: harken.Database,
    toy: ToyKind,
    clock: Clock,
    columns: dict[str, pa.DataType],
    word: str,
) -> None:
    toy.is_whole = True
    before, rows = toy.tables["item"], ids(db)
    toy.table("item", [(1, None)], **columns)
    db.sources.alter("item", {"size": 5})
    assert poll(db, clock) == "schema changed"
    status = db.sources.list()[0]
    assert word in status.why
    assert "ALTER SOURCE item" in status.what_to_do
    assert status.next_try is None
    assert ids(db) == rows
    toy.tables["item"] = before
    db.sources.alter("item", {"size": 6})
    db.sql("REFRESH SOURCE item")
    assert db.sources.list()[0].state == "unchanged"


def test_a_wider_type_of_arrow_is_no_change(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    toy.table("item", [(i, "a") for i in range(10)], id=pa.int32(), name=pa.large_string())
    db.sources.alter("item", {"size": 5})
    assert poll(db, clock) == "unchanged"


def test_an_unknown_error_of_a_kind_is_told(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    toy.tables["item"].fault = ZeroDivisionError("oh")
    assert poll(db, clock) == "failing"
    assert "ZeroDivisionError: oh" in db.sources.list()[0].why


def test_one_failing_source_does_not_keep_others_from_being_read(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    other = toy.table("other", [(1, "a")])
    db.source("other", "toy", table="other", every=POLL)
    toy.tables["item"].fault = DOWN
    other.rows = [(2, "b")]
    poll(db, clock)
    assert {each.name: each.state for each in db.sources.list()} == {
        "item": "failing",
        "other": "ok",
    }
    other.rows = [(3, "c")]
    step = db.step()
    assert step.sources["other"].plus == 1
    assert step.sources["item"].state == "failing"
    assert db.sql("SELECT * FROM other").rows == [(3, "c")]


def test_a_part_that_is_set_aside_is_named_and_told_once(
    toy: ToyKind, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    table = toy.table("item", [(1, "pen")])
    table.has_position = False
    with harken.connect(":memory:", clock=clock) as db:
        db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item') POLL EVERY 1 MINUTE")
        table.set_aside = {"2.csv": "no number"}
        for _ in range(3):
            clock.forward(60)
            db.run_due()
        assert [each.why for each in db.sources.news()] == ["set aside: 2.csv", "", ""]
        assert len([each for each in caplog.messages if "2.csv" in each]) == 1
        (found,) = db.sources.list()
        assert (found.state, found.why) == ("unchanged", "set aside: 2.csv")
        table.set_aside = {}
        clock.forward(60)
        db.run_due()
        assert db.sources.list()[0].why == ""
