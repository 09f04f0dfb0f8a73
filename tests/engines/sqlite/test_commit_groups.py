"""Commits that become durable together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harken.engines.sqlite.connection import Connection
from harken.errors import StorageError

FULL, NORMAL = 2, 1


@pytest.fixture
def synchronised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(os, "fsync", found.append)
    return found


def level(connection: Connection) -> int:
    return int(connection.value("PRAGMA synchronous"))


def test_the_disk_is_waited_for_once(tmp_path: Path, synchronised: list[int]) -> None:
    connection = Connection(str(tmp_path / "a.db"))
    connection.run("CREATE TABLE t (a)")
    with connection.commits_together():
        for number in range(3):
            assert level(connection) == NORMAL
            connection.begin()
            connection.run("INSERT INTO t VALUES (?)", (number,))
            connection.commit()
        assert not synchronised
    assert level(connection) == FULL
    assert len(synchronised) == 1
    connection.close()


def test_also_after_an_error(tmp_path: Path, synchronised: list[int]) -> None:
    connection = Connection(str(tmp_path / "a.db"))
    with pytest.raises(ZeroDivisionError), connection.commits_together():
        raise ZeroDivisionError
    assert level(connection) == FULL
    connection.run("CREATE TABLE t (a)")

    def write_and_fail() -> None:
        with connection.commits_together():
            connection.run("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert len(synchronised) >= 1
    assert connection.rows("SELECT a FROM t") == [(1,)]
    connection.close()


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(str(tmp_path / "a.db"))
    connection.run("CREATE TABLE t (a)")

    def fail(number: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="did not confirm"), connection.commits_together():
        connection.run("INSERT INTO t VALUES (1)")
    assert level(connection) == FULL
    connection.close()


@pytest.mark.parametrize("in_transaction", [False, True])
def test_nothing_to_wait_for(synchronised: list[int], in_transaction: bool) -> None:
    connection = Connection(":memory:")
    if in_transaction:
        connection.begin()
    with connection.commits_together():
        connection.run("CREATE TABLE t (a)")
    assert not synchronised
    connection.close()
