"""Databases for the tests of the database: in memory, in a file, and in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import harken
from harken import Database
from tests.harness.peer import Peer


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as database:
        yield database


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


@pytest.fixture
def connect(path: str) -> Iterator[Callable[..., Database]]:
    """Open the database of this test, as often as wanted; all are closed at its end."""
    opened: list[Database] = []

    def open_one(**options: object) -> Database:
        opened.append(harken.connect(path, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for database in opened:
        if database.in_transaction:
            database.rollback()
        database.close()


@pytest.fixture(scope="session")
def _peers() -> Iterator[list[Peer]]:
    """Starting a process takes a second, so a few serve all the tests."""
    peers: list[Peer] = []
    yield peers
    for peer in peers:
        peer.stop()


@pytest.fixture
def peers(_peers: list[Peer]) -> Iterator[Callable[[int], list[Peer]]]:
    def start(how_many: int) -> list[Peer]:
        while len(_peers) < how_many:
            _peers.append(Peer())
        return _peers[:how_many]

    yield start
    for peer in _peers:
        peer.reset()
