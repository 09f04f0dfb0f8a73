"""Functions in the lake, as a user meets them: where their files are, who else may touch them, and
what is said when something is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import harken
from harken import Database, EngineError, HarkenError, StorageError
from harken.engines import fetch_limits as limits
from harken.engines.delta import data_files
from harken.engines.delta.tables import LakeTable
from harken.engines.placement.at_hand import RowsAtHand
from harken.engines.placement.cache import Cache
from harken.engines.placement.exchange import Exchange
from tests.harness import lakes
from tests.harness.peer import Peer

SCHEMA = """
create type item;
create function quantity(item) -> integer stored in lake;
create function price(integer) -> integer stored in lake;
create item instances :a, :b;
set quantity(:a) = 1; set price(1) = 10; set price(2) = 20;
commit;
"""
Connect = Callable[..., Database]


@pytest.fixture
def lake(path: str) -> Path:
    """The directory of the tables."""
    return Path(path).with_suffix(".lake")


@pytest.fixture
def shop(connect: Connect) -> Database:
    db = connect()
    db.amosql(SCHEMA)
    return db


def prices(db: Database) -> list[tuple[int, int]]:
    return sorted(db.function("price").items())


# --- two processes -----------------------------------------------------------------------------


@pytest.fixture(params=[20_000, -1], ids=["whole", "by key"])
def _brought(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL", request.param)


@pytest.mark.usefixtures("_brought")
def test_another_process_sees_what_is_committed(
    shop: Database, path: str, peers: Callable[[int], list[Peer]]
) -> None:
    (peer,) = peers(1)
    peer("open", path)
    for price in range(3):
        shop.amosql(f"set price(1) = {price}; commit;")
        assert peer.amosql("price(1);") == [[price]]
        assert peer.amosql("select p for each integer p where price(2) = p;") == [[20]]
    peer.amosql("set price(1) = 99; set price(3) = 30; remove price(2) = 20;")
    assert shop.amosql("price(1);").rows == [(2,)]
    peer("commit")
    assert shop.amosql("price(1);").rows == [(99,)]
    assert prices(shop) == [(1, 99), (3, 30)]
    shop.amosql("set price(3) = price(3) + price(1); commit;")
    assert peer.amosql("price(3);") == [[129]]
    lakes.check(shop)
    lakes.check_written(shop)


@pytest.mark.usefixtures("_brought")
def test_what_another_process_has_committed_and_not_written_is_seen(
    shop: Database, path: str, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    other = connect()
    with monkeypatch.context() as patch:
        lakes.write_later(patch)
        shop.amosql("set price(1) = 11; commit;")
    assert other.amosql("price(1);").rows == [(11,)]
    other.flush()
    assert shop.amosql("price(1);").rows == [(11,)]
    shop.amosql("set price(1) = 12; commit;")
    assert other.amosql("price(1);").rows == [(12,)]
    lakes.check_written(other)


def test_what_changes_while_rows_are_brought_is_not_mixed(
    shop: Database, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    """The other process commits and flushes between two reads of one statement."""
    monkeypatch.setattr(limits, "SMALL", -1)
    other = connect()
    assert other.amosql("price(1);").rows == [(10,)]
    bring = RowsAtHand.bring
    interrupted = []

    def bring_slowly(self: Any, *arguments: Any) -> None:
        if self is other.internals.engine.at_hand and not interrupted:
            interrupted.append(True)
            shop.amosql("set price(1) = 11; set price(2) = 21; commit;")
        bring(self, *arguments)

    monkeypatch.setattr(RowsAtHand, "bring", bring_slowly)
    assert other.amosql("select price(1), price(2);").rows in ([(10, 20)], [(11, 21)])
    assert interrupted
    assert other.amosql("select price(1), price(2);").rows == [(11, 21)]


def test_a_writer_does_not_fail_because_another_is_writing(
    shop: Database, path: str, peers: Callable[[int], list[Peer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done; that the lake has to wait for it is no error."""
    (peer,) = peers(1)
    peer("open", path)
    flush = Exchange.flush

    def flush_later(self: Any, **options: Any) -> None:
        peer.amosql("set price(2) = 22;")  # and it holds the lock
        shop.internals.connection.raw.set_busy_timeout(0)
        flush(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "flush", flush_later)
        shop.amosql("set price(1) = 11; commit;")
    peer("commit")
    assert prices(shop) == [(1, 11), (2, 22)]
    lakes.check_written(shop)


# --- where the files are -----------------------------------------------------------------------


def test_tables_lie_beside_the_file(shop: Database, lake: Path) -> None:
    assert sorted(each.name for each in lake.iterdir()) == ["price", "quantity"]
    found = pa.table(DeltaTable(lake / "price").to_pyarrow_dataset().to_table())
    assert sorted(found.to_pylist(), key=str) == [
        {"integer": 1, "integer_2": 10},
        {"integer": 2, "integer_2": 20},
    ]


def test_a_database_and_its_lake_can_be_moved_together(
    shop: Database, path: str, lake: Path, tmp_path: Path
) -> None:
    shop.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(path, elsewhere / "store.db")
    shutil.move(lake, elsewhere / "store.lake")
    with harken.connect(elsewhere / "store.db") as db:
        assert prices(db) == [(1, 10), (2, 20)]
        db.amosql("set price(3) = 30; commit;")
        lakes.check_written(db)
    assert not lake.exists()


def test_a_copy_without_its_lake_is_refused_not_shared(
    shop: Database, path: str, tmp_path: Path
) -> None:
    shop.close()
    shutil.copy(path, tmp_path / "copy.db")
    db = harken.connect(tmp_path / "copy.db")
    with pytest.raises(StorageError) as caught:
        db.amosql("price(1);")
    assert caught.value.code == "no-lake-table"
    assert "copy.lake" in caught.value.message
    assert ".lake" in caught.value.hint
    db.internals.connection.close()


# --- deleting ----------------------------------------------------------------------------------


def test_a_deleted_function_takes_its_directory_along(shop: Database, lake: Path) -> None:
    shop.amosql("delete function price;")
    assert (lake / "price").exists()
    shop.rollback()
    assert prices(shop) == [(1, 10), (2, 20)]
    shop.amosql("delete function price; commit;")
    assert not (lake / "price").exists()


def test_a_function_of_the_same_name_starts_over(shop: Database, lake: Path) -> None:
    shop.amosql("delete function price; create function price(integer) -> integer stored in lake;")
    shop.amosql("set price(7) = 70;")
    assert prices(shop) == [(7, 70)]
    shop.rollback()
    assert prices(shop) == [(1, 10), (2, 20)]
    shop.amosql("delete function price; create function price(integer) -> integer stored in lake;")
    shop.amosql("set price(7) = 70; commit;")
    assert prices(shop) == [(7, 70)]
    assert sorted(each.name for each in lake.iterdir()) == ["price-2", "quantity"]
    lakes.check_written(shop)


def test_a_function_can_come_out_of_the_lake_and_go_back(shop: Database, connect: Connect) -> None:
    other = connect()
    assert prices(other) == [(1, 10), (2, 20)]
    for where in ("", " stored in lake", ""):
        shop.amosql(f"delete function price; create function price(integer) -> integer{where};")
        shop.amosql("set price(7) = 70; commit;")
        assert prices(shop) == prices(other) == [(7, 70)]
        other.amosql("set price(8) = 80; commit;")
        assert prices(shop) == prices(other) == [(7, 70), (8, 80)]


def test_a_deleted_type_takes_its_functions_along(connect: Connect, lake: Path) -> None:
    db = connect(engine="lake")
    db.amosql("create type book properties (title charstring); commit;")
    db.amosql('create book(title) instances :b("Dune"); commit;')
    assert (lake / "title").exists()
    db.amosql("delete :b; delete type book; commit;")
    assert not (lake / "title").exists()
    assert lakes.lake_relations(db) == {}


# --- what is wrong with the files --------------------------------------------------------------


def fails(db: Database, text: str) -> HarkenError:
    lakes.let_go(db)
    with pytest.raises(HarkenError) as caught:
        db.amosql(text)
    assert caught.value.hint
    assert "price" in caught.value.message
    return caught.value


def test_a_lake_that_is_gone(shop: Database, lake: Path, connect: Connect) -> None:
    shutil.rmtree(lake / "price")
    other = connect()
    for db in (other, shop):
        assert fails(db, "price(1);").code == "no-lake-table"
        assert db.amosql("quantity(:a);" if db is shop else "select 1;").rows == [(1,)]
    assert not (lake / "price").exists(), "an empty table would pass for the lost one"
    shutil.rmtree(lake)


def test_a_file_that_is_damaged(shop: Database, lake: Path, connect: Connect) -> None:
    for file in (lake / "price").glob("*.parquet"):
        file.write_bytes(b"not parquet")
    assert fails(connect(), "price(1);").code == "lake-damaged"
    for file in (lake / "price").glob("*.parquet"):
        file.unlink()
    assert fails(connect(), "price(1);").code == "no-lake-table"


def test_a_log_that_is_damaged(shop: Database, lake: Path, connect: Connect) -> None:
    for file in (lake / "price" / "_delta_log").glob("*.json"):
        file.write_text("not json")
    error = fails(connect(), "price(1);")
    assert isinstance(error, StorageError)


def check_written_later(db: Database) -> None:
    """The commit has happened, and the lake gets it when it can be written again."""
    assert prices(db) == [(1, 10), (2, 20), (3, 30)]
    db.amosql("set price(4) = 40; commit;")
    assert prices(db) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    lakes.check_written(db)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_lake_that_may_not_be_written(shop: Database, lake: Path) -> None:
    (lake / "price").chmod(0o500)
    error = fails(shop, "set price(3) = 30; commit;")
    assert error.code == "not-permitted"
    (lake / "price").chmod(0o700)
    check_written_later(shop)


@pytest.mark.parametrize(
    ("number", "code"), [(28, "disk-full"), (13, "not-permitted"), (5, "lake-damaged")]
)
def test_a_disk_that_refuses(
    number: int, code: str, shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(data_files.pq, "write_table", refuse)
        error = fails(shop, "set price(3) = 30; commit;")
    assert error.code == code
    assert error.message.startswith("committed, but not yet in the lake: ")
    check_written_later(shop)


def test_a_table_that_someone_else_has_changed(shop: Database, lake: Path) -> None:
    table = LakeTable.open(lake / "price")
    more = pa.table({"integer": [5], "integer_2": [50]})
    table.commit(more, more.slice(0, 0), expected_version=table.version)
    assert prices(shop) == [(1, 10), (2, 20)], "the database stands on its version"
    shop.amosql("set price(3) = 30; commit;")
    with pytest.raises(HarkenError) as caught:
        shop.flush()
    assert caught.value.code == "lake-conflict"
    assert "db.step()" in caught.value.hint
    assert prices(shop) == [(1, 10), (2, 20), (3, 30)]
    shop.step()
    assert prices(shop) == [(1, 10), (2, 20), (3, 30), (5, 50)]
    lakes.check_written(shop)


@pytest.mark.parametrize("small", [20_000, -1], ids=["whole", "by key"])
def test_an_interrupt_while_rows_are_brought(
    small: int, shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL", small)
    lakes.let_go(shop)
    put = Cache.put

    def interrupted(self: Cache, rows: Any) -> None:
        put(self, rows)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shop.amosql("price(1);")
    lakes.check(shop)
    assert shop.amosql("price(1);").rows == [(10,)]
    lakes.check(shop)


# --- what needs Spark, or may not write --------------------------------------------------------


def test_too_many_rows_for_one_process(shop: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL", -1)
    monkeypatch.setattr(limits, "MOST_ROWS", 1)
    lakes.let_go(shop)
    assert shop.amosql("price(1);").rows == [(10,)]
    with pytest.raises(EngineError) as caught:
        shop.amosql("select sum(select price(i) for each integer i);")
    assert caught.value.code == "no-spark"
    assert "spark=session" in caught.value.hint


def test_a_database_that_is_only_read(
    shop: Database, connect: Connect, monkeypatch: pytest.MonkeyPatch, lake: Path
) -> None:
    lakes.write_later(monkeypatch)
    shop.amosql("set price(3) = 30; commit;")
    reader = connect(read_only=True)
    assert prices(reader) == [(1, 10), (2, 20), (3, 30)]
    assert reader.amosql("price(3);").rows == [(30,)]
    with pytest.raises(HarkenError) as caught:
        reader.amosql("set price(3) = 31;")
    assert caught.value.code == "read-only"
    reader.rollback()
    before = LakeTable.open(lake / "price").version
    reader.flush()
    assert LakeTable.open(lake / "price").version == before
    shop.amosql("set price(3) = 32; commit;")
    assert reader.amosql("price(3);").rows == [(32,)]


def test_flush_is_refused_in_a_transaction(shop: Database) -> None:
    shop.amosql("set price(3) = 30;")
    with pytest.raises(HarkenError) as caught:
        shop.flush()
    assert caught.value.code == "transaction"


def test_a_step_that_a_rule_undoes_is_taken_again(shop: Database, lake: Path) -> None:
    shop.amosql("""
        create function limit() -> integer; set limit() = 40;
        create rule cheap() as for each integer i when price(i) > limit() do rollback;
        activate cheap(); commit;
    """)
    table = LakeTable.open(lake / "price")
    more = pa.table({"integer": [5], "integer_2": [50]})
    table.commit(more, more.slice(0, 0), expected_version=table.version)
    for _ in range(2):
        with pytest.raises(HarkenError):
            shop.step()
        assert prices(shop) == [(1, 10), (2, 20)]
    shop.amosql("set limit() = 60; commit;")
    assert shop.step().taken == {"price": 1}
    assert prices(shop) == [(1, 10), (2, 20), (5, 50)]
    assert shop.step().taken == {}
