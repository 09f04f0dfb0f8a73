"""CREATE, REFRESH, ALTER, DROP, SHOW and DESCRIBE of sources, as users write them."""

import datetime
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import harken
from harken.errors import SourceFault
from harken.settings import Settings
from tests.harness.toy_sources import START, Clock, ToyKind

ITEM = "CREATE SOURCE item USING toy OPTIONS (table 'item') KEY (id) POLL EVERY 30 SECONDS"


@pytest.fixture
def db(toy: ToyKind, clock: Clock) -> harken.Database:
    return harken.connect(":memory:", clock=clock)


def rows(db: harken.Database, query: str) -> list[tuple[object, ...]]:
    return db.sql(query).rows


def failed(db: harken.Database, text: str) -> harken.HarkenError:
    with pytest.raises(harken.HarkenError) as found:
        db.sql(text)
    return found.value


def test_a_source_is_a_relation_whose_changes_reach_views(
    db: harken.Database, toy: ToyKind
) -> None:
    table = toy.table("item", [(1, "pen"), (2, "ink"), (3, None)])
    db.sql(ITEM)
    db.sql("CREATE MATERIALIZED VIEW long AS SELECT id FROM item WHERE length(name) > 2")
    changes = db.monitor("long")
    assert rows(db, "SELECT * FROM item ORDER BY id") == table.rows
    table.rows = [(1, "pencil"), (2, "in"), (4, "cap")]
    db.sql("REFRESH SOURCE item")
    assert rows(db, "SELECT * FROM item ORDER BY id") == table.rows
    (change,) = changes.changes()
    assert (sorted(change.plus), change.minus) == ([(4,)], [(2,)])


def test_without_a_key_equal_rows_are_counted(db: harken.Database, toy: ToyKind) -> None:
    table = toy.table("item", [(1, "a"), (1, "a"), (None, None)])
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item')")
    db.sql("CREATE VIEW often AS SELECT id, count(*) n FROM item GROUP BY id")
    assert sorted(rows(db, "SELECT * FROM often"), key=str) == [(1, 2), (None, 1)]
    changes = db.monitor("often")
    table.rows = [(1, "a"), (None, None), (None, None), (1, "a"), (1, "a")]
    db.sql("REFRESH SOURCE item")
    (change,) = changes.changes()
    assert sorted(change.plus, key=str) == [(1, 3), (None, 2)]


def test_the_key_of_the_source_is_the_key(db: harken.Database, toy: ToyKind) -> None:
    toy.table("item", [(1, "a")]).key = ("id",)
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item')")
    assert db.describe_table("item").primary_key == ("id",)
    assert db.describe_table("item").kind == "source"


def test_all_types_keep_their_values(db: harken.Database, toy: ToyKind) -> None:
    types = {
        "i": pa.int32(),
        "d": pa.decimal128(8, 2),
        "f": pa.float32(),
        "b": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("ms", "UTC"),
        "t": pa.large_string(),
    }
    import decimal

    row = (
        7,
        decimal.Decimal("1.50"),
        0.5,
        True,
        datetime.date(2026, 1, 2),
        START,
        "é",
    )
    table = toy.table("all", [row], **types)
    db.sql("CREATE SOURCE every USING toy OPTIONS (table 'all') KEY (i)")
    assert rows(db, "SELECT * FROM every") == [row]
    table.rows = [(7, *[None] * 6)]
    db.sql("REFRESH SOURCE every")
    assert rows(db, "SELECT * FROM every") == table.rows


def test_show_and_describe(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    toy.table("item", [(1, "pen")])
    db.sql(ITEM)
    clock.forward(10)
    (shown,) = rows(db, "SHOW SOURCES")
    assert shown[:5] == ("item", "toy", "ok", START, 1)
    assert shown[5:] == (START, START, START + datetime.timedelta(seconds=30), "", "poll")
    described = dict(rows(db, "DESCRIBE SOURCE item"))
    assert described["statement"] == ITEM
    assert described["columns"] == "id BIGINT, name STRING"
    assert described["capture"] == "poll: it is a toy"
    assert ("item", "source") in rows(db, "SHOW TABLES")


def test_a_source_survives_the_session(
    toy: ToyKind, clock: Clock, connect: Callable[..., harken.Database]
) -> None:
    table = toy.table("item", [(1, "pen")])
    with connect(clock=clock) as db:
        db.sql(ITEM)
    table.rows = [(1, "pen"), (2, "ink")]
    with connect(clock=clock) as db:
        assert rows(db, "SELECT count(*) FROM item") == [(1,)]
        assert ITEM in [each.text for each in db.definitions()]
        db.sql("REFRESH SOURCE item")
        assert rows(db, "SELECT count(*) FROM item") == [(2,)]
        context = toy.contexts[-1]
        assert context.known is not None
        assert context.known.columns.names == ["id", "name"]


def test_only_the_source_changes_its_rows(db: harken.Database, toy: ToyKind) -> None:
    table = toy.table("item", [(1, "pen")])
    db.sql(ITEM)
    for text in (
        "INSERT INTO item VALUES (2, 'ink')",
        "DELETE FROM item",
        "DELETE FROM item WHERE id = 1",
        "UPDATE item SET name = 'x' WHERE id = 1",
        "TRUNCATE TABLE item",
        "MERGE INTO item USING (SELECT 1 AS id) s ON item.id = s.id WHEN MATCHED THEN DELETE",
        "DELETE FROM source_update",
        "INSERT INTO source_state VALUES ('a', 'b', now(), '')",
    ):
        assert failed(db, text).code == "not-updatable", text
    changes: list[Callable[[], object]] = [
        lambda: db.insert("item", [(2, "ink")]),
        lambda: db.upsert("item", [(1, "ink")]),
        lambda: db.delete("item", [1]),
        lambda: db.load("item", [(2, "ink")]),
        lambda: db.function("item").__setitem__(1, "x"),
        lambda: db.function("item").__delitem__(1),
        lambda: db.amosql('set item(1) = "x"; commit;'),
    ]
    for change in changes:
        with pytest.raises(harken.HarkenError) as found:
            change()
        assert found.value.code == "not-updatable"
        db.rollback()
    for text in (
        "DROP TABLE item",
        "DROP VIEW item",
        "ALTER TABLE item ADD COLUMN n INT",
        "CREATE OR REPLACE TABLE item (id INT)",
        "CREATE OR ALTER TABLE item (id INT)",
        "CREATE OR REPLACE VIEW item AS SELECT 1 AS id",
    ):
        assert "source" in failed(db, text).message, text
    with pytest.raises(harken.HarkenError):
        db.amosql("delete function item;")
    db.rollback()
    assert rows(db, "SELECT * FROM item") == table.rows


def test_dropping(db: harken.Database, toy: ToyKind) -> None:
    toy.table("item", [(1, "pen")])
    db.sql(ITEM)
    db.sql("CREATE VIEW v AS SELECT id FROM item")
    assert failed(db, "DROP SOURCE item").code == "in-use"
    db.sql("DROP SOURCE item CASCADE")
    assert rows(db, "SHOW SOURCES") == []
    assert rows(db, "SELECT * FROM source_update") == rows(db, "SELECT * FROM source_state") == []
    assert failed(db, "SELECT * FROM v").code == "unknown-table"
    db.sql("DROP SOURCE IF EXISTS item")
    assert failed(db, "DROP SOURCE item").code == "unknown-source"
    db.sql(ITEM)
    assert rows(db, "SELECT count(*) FROM item") == [(1,)]


def test_a_transaction_that_is_rolled_back_made_no_source(
    db: harken.Database, toy: ToyKind
) -> None:
    toy.table("item", [(1, "pen")])
    db.sql("BEGIN")
    db.sql(ITEM)
    assert rows(db, "SELECT count(*) FROM item") == [(1,)]
    db.sql("ROLLBACK")
    assert rows(db, "SHOW SOURCES") == []
    assert failed(db, "SELECT * FROM item").code == "unknown-table"
    db.sql(ITEM)


def test_what_is_refused_says_why(db: harken.Database, toy: ToyKind) -> None:
    toy.table("item", [(1, "pen"), (1, "ink"), (None, "cap")])
    db.sql("CREATE TABLE taken (id INT)")
    refused = {
        "CREATE SOURCE item USING tyo OPTIONS (table 'item')": ("unknown-kind", "toy"),
        "CREATE SOURCE item USING toy": ("bad-option", "table"),
        "CREATE SOURCE item USING toy OPTIONS (table 'item', size 100)": ("bad-option", "99"),
        "CREATE SOURCE item USING toy OPTIONS (tabel 'item')": ("bad-option", "table"),
        "CREATE SOURCE item USING toy OPTIONS (table 'item') CAPTURE logical": (
            "bad-option",
            "poll",
        ),
        "CREATE SOURCE item USING toy OPTIONS (table 'item') KEY (nmae)": (
            "unknown-column",
            "name",
        ),
        "CREATE SOURCE item USING toy OPTIONS (table 'item') KEY (id)": (
            "source-suspect",
            "KEY",
        ),
        "CREATE SOURCE item USING toy OPTIONS (table 'item', password 'x1y2z3')": (
            "bad-option",
            "secret:",
        ),
        "CREATE SOURCE item USING toy OPTIONS (table 'item', password 'secret:none')": (
            "missing-secret",
            "HARKEN_SECRET_NONE",
        ),
        "CREATE SOURCE taken USING toy OPTIONS (table 'item')": ("exists", "table"),
        "REFRESH SOURCE itme": ("unknown-source", "itme"),
        "ALTER SOURCE item PAUSE": ("unknown-source", "item"),
        "DESCRIBE SOURCE item": ("unknown-source", "item"),
    }
    for text, (code, word) in refused.items():
        error = failed(db, text)
        assert error.code == code, error.report()
        assert word in error.report(), error.report()
        assert "x1y2z3" not in error.message
    assert rows(db, "SHOW SOURCES") == []


def test_take_keeps_some_columns(db: harken.Database, toy: ToyKind) -> None:
    toy.table("item", [(1, "pen")])
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item', take 'name')")
    assert rows(db, "SELECT * FROM item") == [("pen",)]


def test_alter_pause_and_resume(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    table = toy.table("item", [(1, "pen")])
    toy.table("other", [(2, "ink")])
    db.sql(ITEM)
    db.sql("ALTER SOURCE item PAUSE")
    assert rows(db, "SHOW SOURCES")[0][2] == "paused"
    assert db.next_due() is None
    table.rows = []
    db.sql("ALTER SOURCE item RESUME")
    assert db.next_due() == clock()
    db.run_due()
    assert rows(db, "SELECT * FROM item") == []
    db.sql("ALTER SOURCE item SET (table 'other', size 5)")
    db.sql("ALTER SOURCE item POLL EVERY 2 MINUTES")
    db.run_due()
    assert rows(db, "SELECT * FROM item") == [(2, "ink")]
    assert dict(rows(db, "DESCRIBE SOURCE item"))["statement"] == (
        "CREATE SOURCE item USING toy OPTIONS (table 'other', size 5) KEY (id) POLL EVERY 2 MINUTES"
    )
    assert failed(db, "ALTER SOURCE item SET (size 500)").code == "bad-option"
    assert db.next_due() == clock() + datetime.timedelta(minutes=2)


def test_a_paused_source_that_is_refreshed_stays_paused(
    db: harken.Database, toy: ToyKind, clock: Clock
) -> None:
    table = toy.table("item", [(1, "pen")])
    db.sql(ITEM)
    clock.forward(60)
    db.sql("ALTER SOURCE item PAUSE")
    ((state, since),) = rows(db, "SELECT state, since FROM source_state")
    assert (state, since) == ("paused", clock())
    table.rows = [(2, "ink")]
    for _ in range(2):  # what changed, and nothing
        db.sql("REFRESH SOURCE item")
        assert rows(db, "SELECT * FROM item") == [(2, "ink")]
        assert rows(db, "SELECT state, since FROM source_state") == [("paused", since)]
    clock.forward(3600)
    table.rows = []
    db.run_due()
    assert rows(db, "SELECT * FROM item") == [(2, "ink")]
    db.sql("ALTER SOURCE item RESUME")
    db.run_due()
    assert rows(db, "SELECT * FROM item") == []
    db.sql("ALTER SOURCE item RESUME")
    assert rows(db, "SELECT state FROM source_state") == [("ok",)]


def test_secrets_are_resolved_and_never_shown(
    db: harken.Database, toy: ToyKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARKEN_SECRET_TOY_WORD", "hushhush")
    table = toy.table("item", [(1, "pen")])
    db.sql(
        "CREATE SOURCE item USING toy OPTIONS (table 'item', password 'secret:toy_word') KEY (id)"
    )
    assert toy.given[-1]["password"] == "hushhush"
    table.fault = SourceFault("no entry for hushhush", code="source-down")
    assert "hushhush" not in failed(db, "REFRESH SOURCE item").report()
    shown = repr(rows(db, "SHOW SOURCES")) + repr(rows(db, "DESCRIBE SOURCE item"))
    assert "hushhush" not in shown
    assert "no entry for ***" in shown


def test_the_update_board_says_when(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    table = toy.table("item", [(1, "pen")])
    db.sql(ITEM)
    board = db.monitor("source_update")
    db.sql("REFRESH SOURCE item")
    assert board.changes() == []
    clock.forward(60)
    table.rows = [(1, "ink")]
    db.sql("REFRESH SOURCE item")
    assert board.changes().pop().plus == [("item", "item", clock())]


def test_python_does_the_same(db: harken.Database, toy: ToyKind, clock: Clock) -> None:
    table = toy.table("item", [(1, "pen"), (2, "ink")])
    made = db.source("item", "toy", table="item", key="id", every=30)
    assert made.statement == ITEM
    assert (made.state, made.rows, made.key) == ("ok", 2, ("id",))
    table.rows = [(2, "inc")]
    done = db.sources.refresh("item")
    assert (done.plus, done.minus, done.state) == (1, 2, "ok")
    db.sources.alter("item", {"size": 7}, every=datetime.timedelta(minutes=1))
    db.sources.pause("item")
    assert [each.state for each in db.sources.list()] == ["paused"]
    db.sources.resume("item")
    assert "size 7" in db.sources.describe("item")["statement"]
    db.sources.drop("item")
    assert db.sources.list() == []


def test_checking_installs_nothing(db: harken.Database, toy: ToyKind) -> None:
    toy.table("item", [(i, "a") for i in range(12)])
    found = db.sources.check("toy", table="item")
    assert [(each.name, each.type) for each in found.columns] == [
        ("id", "BIGINT"),
        ("name", "STRING"),
    ]
    assert (found.key, found.key_candidates) == ((), (("id",),))
    assert (found.count, len(found.rows), found.capture) == (12, 10, "poll")
    assert db.sql("SHOW SOURCES").rows == []
    assert db.definitions() == []


def test_private_addresses_are_the_operators_decision(toy: ToyKind) -> None:
    toy.table("item", [(1, "pen")])
    with harken.connect(":memory:", settings=Settings({"allow_private_addresses": True})) as db:
        db.sql(ITEM)
    with harken.connect(":memory:") as db:
        db.sql(ITEM)
    assert [each.allow_private_addresses for each in toy.contexts] == [True, False]


def test_a_mirror_can_be_in_the_lake(toy: ToyKind, clock: Clock, path: str) -> None:
    table = toy.table("item", [(i, "a") for i in range(20)])
    with harken.connect(path, clock=clock) as db:
        db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item') KEY (id) IN lake")
        db.sql("CREATE VIEW b AS SELECT id FROM item WHERE name = 'b'")
        changes = db.monitor("b")
        table.rows = [(i, "b" if i == 3 else "a") for i in range(19)]
        db.sql("REFRESH SOURCE item")
        assert changes.changes()[0].plus == [(3,)]
        assert dict(rows(db, "DESCRIBE SOURCE item"))["mirror"] == "in the lake"
    with harken.connect(path, clock=clock) as db:
        assert sorted(rows(db, "SELECT id, name FROM item")) == table.rows
        db.settings.source_lake_rows = 10
        db.source("large", "toy", table="item")
        assert db.sources.describe("large")["mirror"] == "in the lake"


def test_inputs_of_the_lake_are_listed(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "in" / "a.parquet")
    with harken.connect(path) as db:
        db.lake("given", tmp_path / "in", key=["id"])
        ((name, kind, state, *_),) = rows(db, "SHOW SOURCES")
        assert (name, kind, state) == ("given", "directory", "ok")
