"""The columns of a source change: new ones are offered, lost and retyped ones stop that source."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from tests.harness.toy_sources import Clock, ToyKind, ToyTable

INTEGER, TEXT, NUMBER = pa.int64(), pa.string(), pa.float64()


@pytest.fixture
def table(toy: ToyKind) -> ToyTable:
    made = toy.table("item", [(1, "pen"), (2, "ink")])
    made.has_position = False
    return made


@pytest.fixture
def db(table: ToyTable, clock: Clock) -> harken.Database:
    db = harken.connect(":memory:", clock=clock)
    db.sql("CREATE SOURCE item USING toy OPTIONS (table 'item') KEY (id) POLL EVERY 1 MINUTE")
    return db


def reshape(table: ToyTable, rows: list[tuple[object, ...]], **columns: pa.DataType) -> None:
    table.columns, table.rows = pa.schema(list(columns.items())), rows


def described(db: harken.Database) -> dict[str, str]:
    return {name: str(value) for name, value in db.sources.describe("item").items()}


def refused(db: harken.Database, text: str) -> harken.HarkenError:
    with pytest.raises(harken.HarkenError) as found:
        db.sql(text)
    return found.value


def test_an_offered_column_is_taken_in(db: harken.Database, table: ToyTable) -> None:
    db.sql("CREATE VIEW named AS SELECT name FROM item")
    db.sql("CREATE MATERIALIZED VIEW counted AS SELECT name, count(*) AS n FROM item GROUP BY name")
    named, items = db.monitor("named"), db.monitor("item")
    reshape(table, [(1, "pen", 5), (3, "cap", None)], id=INTEGER, name=TEXT, price=INTEGER)
    db.sources.refresh("item")
    assert (db.sql("SELECT * FROM item").columns, len(named.changes())) == (("id", "name"), 1)
    assert described(db)["new columns"].endswith("ALTER SOURCE item ADD COLUMN price")
    items.changes()
    db.sql("ALTER SOURCE item ADD COLUMN price")
    assert db.sql("SELECT * FROM item").rows == [(1, "pen", 5), (3, "cap", None)]
    assert (named.changes(), "new columns" in described(db)) == ([], False)
    (change,) = items.changes()
    assert change.plus == [(1, "pen", 5), (3, "cap", None)]
    assert sorted(db.sql("SELECT * FROM counted").rows) == [("cap", 1), ("pen", 1)]
    table.rows = [(3, "cap", 9)]
    db.sources.refresh("item")
    assert db.sql("SELECT * FROM item").rows == [(3, "cap", 9)]
    assert [each.minus for each in named.changes()] == [[("pen",)]]


def test_a_lost_column_stops_only_that_source(
    db: harken.Database, table: ToyTable, toy: ToyKind, clock: Clock
) -> None:
    other = toy.table("other", [(1, "a")])
    db.sql("CREATE SOURCE other USING toy OPTIONS (table 'other') POLL EVERY 1 MINUTE")
    db.sql("CREATE VIEW named AS SELECT name FROM item")
    reshape(table, [(1,)], id=INTEGER)
    other.rows = [(1, "b")]
    clock.forward(60)
    db.run_due()
    states = {each.name: (each.state, each.what_to_do) for each in db.sources.list()}
    assert states["other"][0] == "ok"
    assert states["item"][0] == "schema changed"
    assert "ALTER SOURCE item DROP COLUMN name" in states["item"][1]
    assert db.sql("SELECT * FROM named").rows == [("pen",), ("ink",)]
    assert "named" in refused(db, "ALTER SOURCE item DROP COLUMN name").message
    db.sql("DROP VIEW named")
    db.sql("ALTER SOURCE item DROP COLUMN name")
    assert db.sql("SELECT * FROM item").rows == [(1,)]
    assert (described(db)["state"], "take" in described(db)["statement"]) == ("ok", False)


def test_a_retyped_column_is_renewed(db: harken.Database, table: ToyTable) -> None:
    db.sql("CREATE VIEW named AS SELECT id, name FROM item")
    reshape(table, [(1, 7)], id=INTEGER, name=INTEGER)
    error = refused(db, "REFRESH SOURCE item")
    assert (error.code, "RENEW COLUMNS" in str(error.hint)) == ("source-changed", True)
    db.sql("ALTER SOURCE item RENEW COLUMNS")
    assert db.sql("SELECT * FROM named").rows == [(1, 7)]
    assert "name BIGINT" in described(db)["columns"]


def test_take_can_be_altered(db: harken.Database, table: ToyTable) -> None:
    reshape(table, [(1, "pen", 2.5)], id=INTEGER, name=TEXT, price=NUMBER)
    db.sql("ALTER SOURCE item SET (take 'id, price')")
    assert db.sql("SELECT * FROM item").rows == [(1, 2.5)]
    assert "take 'id, price'" in described(db)["statement"]
    db.sql("ALTER SOURCE item ADD COLUMN name")
    assert "take 'id, price, name'" in described(db)["statement"]
    db.sql("ALTER SOURCE item SET (take DEFAULT)")
    assert db.sql("SELECT * FROM item").rows == [(1, "pen", 2.5)]
    db.sql("ALTER SOURCE item DROP COLUMN price")
    assert "new columns" not in described(db)
    assert "take 'id, name'" in described(db)["statement"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ALTER SOURCE item ADD COLUMN colour", "unknown-column"),
        ("ALTER SOURCE item ADD COLUMN name", "exists"),
        ("ALTER SOURCE item DROP COLUMN nam", "unknown-column"),
        ("ALTER SOURCE item DROP COLUMN id", "in-use"),
        ("ALTER SOURCE item DROP COLUMN id, name", "bad-option"),
        ("ALTER SOURCE item SET (take 'nothing')", "unknown-column"),
        ("ALTER SOURCE item ADD", "syntax"),
        ("ALTER SOURCE item RENEW", "syntax"),
        ("ALTER SOURCE nothing RENEW COLUMNS", "unknown-source"),
    ],
)
def test_what_cannot_be_is_refused(db: harken.Database, text: str, code: str) -> None:
    before = db.sql("SELECT * FROM item").rows
    assert refused(db, text).code == code
    assert db.sql("SELECT * FROM item").rows == before


def test_a_rollback_undoes_it(db: harken.Database, table: ToyTable) -> None:
    db.sql("BEGIN; ALTER SOURCE item DROP COLUMN name; ROLLBACK")
    assert db.sql("SELECT * FROM item").rows == [(1, "pen"), (2, "ink")]
    table.rows = [(2, "rum")]
    db.sources.refresh("item")
    assert db.sql("SELECT * FROM item").rows == [(2, "rum")]


def test_grants_stay(db: harken.Database, table: ToyTable) -> None:
    db.sql("GRANT SELECT ON item TO ann")
    before = db.sql("SHOW GRANTS").rows
    reshape(table, [(1, "pen", 5)], id=INTEGER, name=TEXT, price=INTEGER)
    db.sources.add_columns("item", "price")
    db.sources.drop_columns("item", "name")
    db.sources.renew_columns("item")
    assert (before, db.sql("SELECT * FROM item").rows) == (db.sql("SHOW GRANTS").rows, [(1, 5)])


def test_a_source_without_a_mirror_has_other_columns_too(
    db: harken.Database, table: ToyTable
) -> None:
    db.sql("CREATE SOURCE now USING toy OPTIONS (table 'item') MIRROR none")
    reshape(table, [(1, "pen", 5)], id=INTEGER, name=TEXT, price=INTEGER)
    db.sql("ALTER SOURCE now ADD COLUMN price")
    assert db.sql("SELECT * FROM now").rows == [(1, "pen", 5)]
    db.sql("ALTER SOURCE now SET (take 'price')")
    assert db.sql("SELECT * FROM now").rows == [(5,)]


CHANGES = st.sampled_from(["add", "drop", "renew", "take"])


@settings(max_examples=15)
@given(st.lists(st.tuples(CHANGES, st.sampled_from("abc"), st.integers(0, 3)), max_size=8))
def test_the_mirror_is_the_source_whatever_columns_come_and_go(
    edits: list[tuple[str, str, int]],
) -> None:
    """Law: after each statement that succeeds the mirror has the columns that it says, and the
    rows of the source in them."""
    from harken.sources.kinds import OF_USERS, register_kind

    kind = ToyKind()
    register_kind(kind)
    try:
        table = kind.table("t", [(1,)], id=INTEGER)
        table.has_position = False
        db = harken.connect(":memory:", clock=Clock())
        db.sql("CREATE SOURCE t USING toy OPTIONS (table 't') KEY (id)")
        for change, name, value in edits:
            here = set(db.sql("SELECT * FROM t").columns)
            there = [each for each in table.columns.names if each != "id"]
            wanted = sorted({name} ^ set(there))
            reshape(
                table,
                [(i, *(value + i for _ in wanted)) for i in range(2)],
                id=INTEGER,
                **dict.fromkeys(wanted, INTEGER),
            )
            text = {
                "add": f"ADD COLUMN {name}",
                "drop": f"DROP COLUMN {name}",
                "renew": "RENEW COLUMNS",
                "take": "SET (take DEFAULT)",
            }[change]
            try:
                db.sql(f"ALTER SOURCE t {text}")
            except harken.HarkenError:
                assert set(db.sql("SELECT * FROM t").columns) == here
                continue
            columns = db.sql("SELECT * FROM t").columns
            expected = {(i, *(value + i for _ in columns[1:])) for i in range(2)}
            assert set(db.sql("SELECT * FROM t").rows) == expected
            if change == "renew" and "take" not in str(db.sources.describe("t")["statement"]):
                assert set(columns) == {"id", *wanted}
    finally:
        OF_USERS.pop(kind.name)
