"""Tables of others as functions: every kind of input, and the steps that take their changes in."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import harken
from harken import Database, HarkenError
from harken.engines.placement.lake_catalog import Pending
from tests.harness import lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = pa.schema([("item", pa.string()), ("quantity", pa.int64())])
ALL = "select i, q for each charstring i, integer q where stock(i) = q;"
RULE = """
create function ordered(charstring item) -> number quantity;
create rule order_more() as
    when for each charstring i, integer q where stock(i) = q and q < 10
    do set ordered(i) = 100 / q;
activate order_more();
commit;
"""
ORDERED = "select i, q for each charstring i, number q where ordered(i) = q;"

Connect = Callable[..., Database]
Rows = dict[str, int | None]


def stock(rows: Rows) -> pa.Table:
    return pa.table([list(rows), list(rows.values())], schema=STOCK)


def found(db: Database, query: str = ALL) -> Rows:
    return dict(db.amosql(query).rows)


def refused(code: str, act: Callable[[], Any]) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        act()
    assert caught.value.code == code, caught.value.report()
    assert caught.value.hint
    return caught.value


# --- each kind of input --------------------------------------------------------------------


class DeltaSource:
    def __init__(self, path: Path, feed: bool) -> None:
        self.source = path / "delta"
        settings = {"delta.enableChangeDataFeed": "true"} if feed else {}
        write_deltalake(self.source, stock({}), configuration=settings)

    def become(self, rows: Rows) -> None:
        write_deltalake(self.source, stock(rows), mode="overwrite")


class DirectorySource:
    """One file, written anew; a real one would rather get others beside it."""

    def __init__(self, path: Path, format: str) -> None:
        self.source = path / "files"
        self.source.mkdir()
        self._format = format
        self._number = 0

    def become(self, rows: Rows) -> None:
        for file in self.source.iterdir():
            file.unlink()
        self._number += 1
        draft = self.source / f".{self._number}"
        if self._format == "parquet":
            pq.write_table(stock(rows), draft)
        elif self._format == "csv":
            lines = [f"{item},{'' if q is None else q}\n" for item, q in rows.items()]
            draft.write_text("item,quantity\n" + "".join(lines))
        else:
            lines = [json.dumps({"item": i, "quantity": q}) + "\n" for i, q in rows.items()]
            draft.write_text("".join(lines))
        draft.rename(self.source / f"{self._number}.{self._format}")


KINDS: dict[str, Callable[[Path], Any]] = {
    "delta with a change feed": lambda path: DeltaSource(path, feed=True),
    "delta without one": lambda path: DeltaSource(path, feed=False),
    "parquet": lambda path: DirectorySource(path, "parquet"),
    "csv": lambda path: DirectorySource(path, "csv"),
    "json": lambda path: DirectorySource(path, "json"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_is_followed(kind: str, connect: Connect, tmp_path: Path) -> None:
    source = KINDS[kind](tmp_path)
    source.become({"pen": 20, "ink": 30, "nib": None})
    db = connect()
    with pytest.warns(harken.LakeWarning, match="1 of 3 rows is left out"):
        db.lake("stock", source.source, key=["item"])
    db.amosql(RULE)
    assert found(db) == {"pen": 20, "ink": 30}
    source.become({"pen": 5, "blotter": 50, "nib": 2})
    assert found(db) == {"pen": 20, "ink": 30}, "not before the step"
    step = db.step()
    assert (step.taken, step.fired) == ({"stock": 5}, {"order_more": 2})
    assert "order_more" in step.views
    assert 0 <= step.lag["stock"] < 1000
    assert found(db) == {"pen": 5, "blotter": 50, "nib": 2}
    assert found(db, ORDERED) == {"pen": 20, "nib": 50}
    assert (db.step().taken, db.step().fired) == ({}, {})
    db.close()
    source.become({"pen": 4})
    again = connect()
    again.lake("stock", source.source, key=["item"])  # it is already: nothing happens
    assert found(again) == {"pen": 5, "blotter": 50, "nib": 2}
    assert again.step().taken == {"stock": 4}
    assert found(again) == {"pen": 4}
    assert found(again, ORDERED) == {"pen": 25, "nib": 50}


@pytest.mark.filterwarnings("ignore::harken.LakeWarning")
def test_a_data_frame_is_followed(spark: SparkSession, connect: Connect) -> None:
    def frame(rows: Rows) -> Any:
        return spark.createDataFrame(list(rows.items()), "item string, quantity bigint")

    spark.sql("DROP VIEW IF EXISTS changing")
    frame({"pen": 20, "ink": 30, "nib": None}).createOrReplaceTempView("changing")
    db = connect(spark=spark)
    db.lake("stock", spark.table("changing"), key=["item"])
    db.amosql(RULE)
    assert found(db) == {"pen": 20, "ink": 30}
    db.close()
    again = connect(spark=spark)
    assert again.step().taken == {}
    assert found(again) == {"pen": 20, "ink": 30}, "until it is given again"
    again.lake("stock", frame({"pen": 5, "blotter": 50}), key=["item"])
    assert again.step().taken == {"stock": 4}
    assert found(again) == {"pen": 5, "blotter": 50}
    assert found(again, ORDERED) == {"pen": 20}


def test_an_arrow_table_becomes_ours(connect: Connect, tmp_path: Path) -> None:
    db = connect()
    db.lake("stock", stock({"pen": 20, "ink": 30}), key=["item"])
    db.amosql(RULE + 'set stock("pen") = 4; commit;')
    db.close()
    again = connect()
    assert found(again) == {"pen": 4, "ink": 30}
    assert found(again, ORDERED) == {"pen": 25}
    ours = pa.table(DeltaTable(tmp_path / "shop.lake/stock").scan())
    assert dict(zip(*ours.to_pydict().values(), strict=True)) == {"pen": 4, "ink": 30}


@pytest.mark.filterwarnings("ignore::harken.LakeWarning")
def test_only_the_chosen_columns_of_an_arrow_table_become_ours(connect: Connect) -> None:
    db = connect()
    given = pa.table(
        {
            "more": ["a", None, "c"],
            "quantity": pa.array([1, 2, None], pa.int8()),
            "item": ["pen", "ink", "nib"],
        }
    )
    db.lake("stock", given, key=["item"], columns=["quantity"])
    assert found(db) == {"pen": 1, "ink": 2}
    db.amosql('set stock("pen") = 1000; set stock("nib") = 3; commit;')
    db.close()
    assert found(connect()) == {"pen": 1000, "ink": 2, "nib": 3}


def test_types_and_columns(connect: Connect, tmp_path: Path) -> None:
    day = datetime.date(2026, 11, 15)
    moment = datetime.datetime(2026, 11, 15, 12, 30, 1, 5, datetime.UTC)
    everything = pa.table(
        {
            "Item No": pa.array([1], pa.int16()),
            "name": pa.array(["é"], pa.large_string()),
            "price": pa.array([1.5], pa.float32()),
            "sold": pa.array([True]),
            "since": pa.array([day]),
            "seen": pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
            "picture": pa.array([b"\0"]),
            "huge": pa.array([1], pa.uint64()),
        }
    )
    directory = tmp_path / "items"
    directory.mkdir()
    pq.write_table(everything, directory / "x.parquet")
    db = connect()
    fault = refused("type-mismatch", lambda: db.lake("item", directory, key=["Item No"]))
    assert "columns=" in str(fault.hint)
    columns = ["name", "price", "sold", "since", "seen"]
    db.lake("item", directory, key=["Item No"], columns=columns, format="parquet")
    assert db.amosql("select item(1);").rows == [("é", 1.5, True, day, moment)]
    assert db.function("item")[1] == ("é", 1.5, True, day, moment)


def test_several_rows_of_a_key(connect: Connect, tmp_path: Path) -> None:
    sales = pa.table({"item": ["pen", "pen", "ink"], "price": [1, 1, 2]})
    write_deltalake(tmp_path / "sales", sales)
    db = connect()
    fault = refused("not-unique", lambda: db.lake("sales", tmp_path / "sales", key=["item"]))
    assert "'pen'" in fault.message
    db.lake("sales", tmp_path / "sales", key=["item"], unique=False)
    assert db.amosql('select sum(sales("pen"));').rows == [(2,)]
    write_deltalake(tmp_path / "sales", sales, mode="append")
    db.step()
    assert db.amosql('select sum(sales("pen")), count(sales("ink"));').rows == [(4, 2)]


# --- steps ---------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> DeltaSource:
    source = DeltaSource(tmp_path, feed=True)
    source.become({"pen": 20})
    return source


@pytest.fixture
def shop(connect: Connect, source: DeltaSource) -> Database:
    db = connect()
    db.lake("stock", source.source, key=["item"])
    db.amosql(RULE)
    return db


def test_a_step_that_fails_is_taken_again(shop: Database, source: DeltaSource) -> None:
    """The action divides by the quantity."""
    source.become({"pen": 5, "ink": 0})
    for _ in range(2):
        refused("division-by-zero", shop.step)
        assert found(shop) == {"pen": 20}
        assert found(shop, ORDERED) == {}
    source.become({"pen": 5, "ink": 1})
    assert shop.step().taken == {"stock": 3}
    assert found(shop, ORDERED) == {"pen": 20, "ink": 100}


def test_a_step_is_a_transaction_of_its_own(shop: Database) -> None:
    shop.amosql('set ordered("ink") = 1;')
    refused("transaction", shop.step)
    refused("transaction", shop.flush)
    shop.commit()
    assert shop.step().taken == {}


def test_two_sessions_take_it_in_once(
    shop: Database, source: DeltaSource, connect: Connect
) -> None:
    other = connect()
    source.become({"pen": 5})
    assert other.step().fired == {"order_more": 1}
    assert (shop.step().taken, shop.step().fired) == ({}, {})
    assert found(shop) == {"pen": 5}


def test_an_input_joins_with_resident_and_own_functions(shop: Database) -> None:
    shop.amosql("""
        create type item properties (name charstring);
        create function shelf(charstring item) -> integer number stored in lake;
        create item(name) instances :pen("pen"), :ink("ink");
        set shelf("pen") = 3;
        create function in_stock(item i) -> <integer, integer> as
            select stock(name(i)), shelf(name(i));
        commit;
    """)
    assert shop.amosql("select in_stock(:pen);").rows == [(20, 3)]
    assert shop.amosql("select in_stock(:ink);").rows == []


# --- what is refused -----------------------------------------------------------------------


def test_what_cannot_be_an_input(db: Database, tmp_path: Path, source: DeltaSource) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    path = source.source
    refused("no-lake-table", lambda: db.lake("stock", tmp_path / "nowhere", key=["item"]))
    refused("unknown-format", lambda: db.lake("stock", empty, key=["item"]))
    refused("unknown-format", lambda: db.lake("stock", empty, key=["item"], format="csv"))
    refused("arity", lambda: db.lake("stock", path, key="item"))
    refused("arity", lambda: db.lake("stock", path, key=[]))
    refused("arity", lambda: db.lake("stock", path, key=["article"]))
    refused("arity", lambda: db.lake("stock", path, key=["item"], columns=["amount"]))
    refused("bad-name", lambda: db.lake("the stock", path, key=["item"]))
    refused("bad-value", lambda: db.lake("stock", {"item": 1}, key=["item"]))
    assert not db.amosql('select name(f) for each function f where name(f) = "stock";').rows
    db.lake("stock", path, key=["item"])
    refused("exists", lambda: db.lake("stock", empty, key=["item"]))


def test_an_input_is_only_read(shop: Database) -> None:
    for update in ('set stock("pen") = 1;', 'remove stock("pen") = 20;', 'add stock("x") = 1;'):
        refused("read-only", lambda: shop.amosql(update))  # noqa: B023
    assert found(shop) == {"pen": 20}


def test_an_input_that_is_gone(
    shop: Database, source: DeltaSource, connect: Connect, tmp_path: Path
) -> None:
    shop.close()
    source.source.rename(tmp_path / "elsewhere")
    again = connect()
    assert found(again, ORDERED) == {}
    refused("no-lake-table", again.step)
    refused("no-lake-table", lambda: found(again))


def test_what_takes_spark_says_so(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("SMALL", "MOST_ROWS"):
        monkeypatch.setattr(f"harken.engines.fetch_limits.{limit}", 1)
    db.lake("stock", stock({"pen": 20, "ink": 30}), key=["item"])
    assert db.amosql('select stock("pen");').rows == [(20,)]
    refused("no-spark", lambda: found(db))


# --- deleting ------------------------------------------------------------------------------


def test_a_deleted_function_takes_its_own_files_with_it(
    connect: Connect, source: DeltaSource, tmp_path: Path
) -> None:
    db = connect()
    db.lake("stock", source.source, key=["item"])
    db.lake("ours", stock({"pen": 1}), key=["item"])
    assert (tmp_path / "shop.lake/ours").is_dir()
    db.amosql("delete function stock; delete function ours; rollback;")
    assert found(db) == {"pen": 20}
    db.amosql("delete function stock; delete function ours; commit;")
    assert not (tmp_path / "shop.lake/ours").exists()
    assert (source.source / "_delta_log").is_dir()


# --- many tuples ---------------------------------------------------------------------------


CHANGE = "set seen(i) = shelf(i) + bought(i)"
MANY = "charstring i, integer q where bought(i) = q and q > 0"
FOR_MANY = {
    "an action": f"create rule buy() as when for each {MANY} do {CHANGE}; activate buy(); commit;",
    "a loop": f"for each {MANY} {CHANGE}; commit;",
    "a loop with a variable": f"for each {MANY} do begin declare integer n; set n = shelf(i); "
    "set seen(i) = n + q; end; commit;",
}


@pytest.mark.parametrize("how", FOR_MANY)
def test_what_many_tuples_need_is_fetched_at_once(
    how: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harken.engines.fetch_limits.SMALL", 1)
    items = [f"item{number}" for number in range(50)]
    db.lake("shelf", stock({item: number for number, item in enumerate(items)}), key=["item"])
    db.lake("seen", stock(dict.fromkeys(items, 0)), key=["item"])
    db.amosql("create function bought(charstring item) -> integer; commit;")
    with db.transaction():
        db.function("bought").update(dict.fromkeys(items[:40], 100))
    tally = db.internals.engine.tally
    before = tally.seeks
    db.amosql(FOR_MANY[how])
    assert tally.seeks - before < 10
    assert found(db, ALL.replace("stock", "seen")) == {
        item: number + 100 if number < 40 else 0 for number, item in enumerate(items)
    }


# --- looking inside ------------------------------------------------------------------------


@pytest.fixture
def large(db: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr("harken.engines.fetch_limits.SMALL", 1)
    db.lake("stock", stock({"pen": 20, "ink": 30}), key=["item"])
    db.amosql(RULE + f"create function all_stock() -> <charstring, integer> as {ALL} commit;")
    return db


def test_explain_says_how_rows_in_the_lake_are_reached(
    large: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "stock(charstring), 2 rows: fetched by item, with the values given" in str(
        large.explain("stock", verbose=True)
    )
    assert "2 rows: all of them are needed, and brought here" in str(
        large.explain("all_stock", verbose=True)
    )
    explained = large.explain("order_more", verbose=True).as_json()["influents"]
    assert isinstance(explained, list)
    (reached,) = [each["lake"][0] for each in explained if each["relation"] == "stock(charstring)"]
    assert reached["how"] == "keys"
    assert reached["columns"][0] == "item"
    assert reached["sources"][0] == "Δstock(charstring)"
    assert reached["keys"].startswith("need_charstring,integer(V1, V2)")
    monkeypatch.setattr("harken.engines.fetch_limits.MOST_ROWS", 1)
    assert "Spark answers" in str(large.explain("all_stock", verbose=True))


def test_explain_without_a_lake_says_nothing_of_it(db: Database) -> None:
    db.amosql("create function f(integer) -> integer;")
    explained = db.explain("f", verbose=True)
    assert "lake" not in str(explained)
    assert explained.as_json()["lake"] == ()


def test_in_memory_the_lake_is_temporary() -> None:
    with harken.connect() as db:
        db.lake("stock", stock({"pen": 1}), key=["item"])
        directory = db.internals.engine.lake.directory
        assert directory.is_dir()
    assert not directory.exists()


# --- what is at hand -----------------------------------------------------------------------


def test_what_was_broken_off_brings_no_row_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.seek_by_key(monkeypatch)
    lakes.write_later(monkeypatch)
    with harken.connect(engine="lake") as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        db.load("t", [(i, i) for i in range(100)])
        lakes.let_go(db)
        (lake_relation,) = lakes.lake_relations(db).values()
        assert len(lakes.pending(lake_relation)) == 100

        def bring(keys: range) -> None:
            db.internals.engine.at_hand.bring(
                lake_relation.relation, (0,), {(key,) for key in keys}
            )

        with monkeypatch.context() as patch:
            patch.setattr(Pending, "_all", lambda self, where: "SELECT broken off")
            with pytest.raises(HarkenError):
                bring(range(50))
        bring(range(50, 100))
        lakes.check(db)
        bring(range(100))
        lakes.check(db)
