"""The file of an open database is removed or replaced: commits are refused, never lost in silence.

SQLite itself would go on writing to the file that it opened, which no path leads to any more.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken import Database, StorageError

Connect = Callable[..., Database]

TABLE = "CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)"

Lose = Callable[[Path], object]


def remove(path: Path) -> None:
    path.unlink()


def remove_all(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def remove_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def replace(path: Path) -> None:
    """As restoring a copy does."""
    with harken.connect(path.with_name("other.db")) as other:
        other.sql("CREATE TABLE mine (x INT)")
    path.with_name("other.db").replace(path)


def replace_log(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    shutil.copy(log, path.with_name("copy"))
    path.with_name("copy").replace(log)


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def move_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


LOSSES = (remove, remove_all, remove_log, replace, replace_log, move_away, move_directory)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "shop.db"


def code_of(attempt: Callable[[], object]) -> str:
    with pytest.raises(StorageError) as caught:
        attempt()
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("lose", LOSSES)
def test_commits_are_refused_once_the_file_is_lost(place: Path, lose: Lose) -> None:
    db = harken.connect(place)
    db.sql(TABLE)
    db.amosql("create function f(integer) -> integer; commit;")
    lose(place)
    for attempt in (
        lambda: db.sql("INSERT INTO t VALUES (2, 20)"),
        lambda: db.amosql("set f(1) = 1; commit;"),
        lambda: db.function("f").__setitem__(1, 1),
        lambda: db.load("t", [(3, 30)]),
    ):
        assert code_of(attempt) == "file-lost"
        assert not db.in_transaction
    db.close()


def test_a_transaction_that_was_open_is_undone(place: Path) -> None:
    db = harken.connect(place)
    db.sql(TABLE)
    db.sql("BEGIN; INSERT INTO t VALUES (2, 20)")
    remove(place)
    assert code_of(db.commit) == "file-lost"
    assert db.sql("SELECT k FROM t").rows == [(1,)]
    db.close()


def test_a_file_that_is_put_back_takes_commits_again(place: Path) -> None:
    db = harken.connect(place)
    db.sql(TABLE)
    move_away(place)
    assert code_of(lambda: db.sql("INSERT INTO t VALUES (2, 20)")) == "file-lost"
    place.with_name("elsewhere.db").rename(place)
    db.sql("INSERT INTO t VALUES (3, 30)")
    db.close()
    with harken.connect(place) as again:
        assert again.sql("SELECT k FROM t ORDER BY k").rows == [(1,), (3,)]


def test_closing_leaves_the_database_alone_that_took_its_place(place: Path) -> None:
    """The last connection to a file removes the log beside it, which here belongs to another."""
    old = harken.connect(place)
    old.sql(TABLE)
    remove_all(place)
    new = harken.connect(place)
    new.sql("CREATE TABLE mine (x INT); INSERT INTO mine VALUES (1)")
    old.close()
    new.sql("INSERT INTO mine VALUES (2)")
    with harken.connect(place) as reader:
        assert reader.sql("SELECT x FROM mine ORDER BY x").rows == [(1,), (2,)]
    new.close()


def test_another_working_directory_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with harken.connect("shop.db") as db:
        db.sql(TABLE)
        (tmp_path / "below").mkdir()
        os.chdir(tmp_path / "below")
        db.sql("INSERT INTO t VALUES (2, 20)")
        assert db.sql("SELECT count(*) FROM t").rows == [(2,)]


def test_checkpoints_and_other_sessions_are_no_loss(connect: Connect) -> None:
    db = connect()
    db.sql(TABLE)
    for number in range(2, 6):
        with connect() as other:
            other.sql(f"INSERT INTO t VALUES ({number}, 0)")
        db.internals.connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.sql(f"UPDATE t SET v = {number} WHERE k = {number}")
    assert db.sql("SELECT v FROM t ORDER BY k").rows == [(10,), (2,), (3,), (4,), (5,)]
