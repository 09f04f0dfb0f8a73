"""Loops over the changes of a view: `for` and `async for`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Database, HarkenError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with harken.connect(path) as database:
        database.sql("CREATE TABLE item (name STRING PRIMARY KEY, quantity INT)")
        database.sql("CREATE VIEW low AS SELECT name FROM item WHERE quantity < 10")
        yield database


def insert(db: Database, *names: str) -> None:
    for name in names:
        db.sql("INSERT INTO item VALUES (?, 1)", [name])


def names(changes: list[harken.Change]) -> list[str]:
    return [row[0] for change in changes for row in change.plus]


def test_in_memory_a_loop_ends_with_the_last_change() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE item (name STRING PRIMARY KEY, quantity INT)")
        sub = db.monitor("item")
        insert(db, "a", "b")
        assert names(list(sub)) == ["a", "b"]
        assert list(sub) == []


def test_a_loop_waits_for_what_others_commit(db: Database, path: Path) -> None:
    sub = db.monitor("low")
    next(iter(sub.follow(0)), None)  # from here on it hears others
    insert(db, "a")

    def work() -> None:
        with harken.connect(path) as other:
            insert(other, "b", "c")

    found = []
    thread = threading.Thread(target=work)
    for change in sub:
        found.append(change)
        if len(found) == 1:
            thread.start()
        if len(found) == 3:
            break
    thread.join()
    assert names(found) == ["a", "b", "c"]


@pytest.mark.parametrize("how", [{}, {"keep": True}, {"durable": "d"}])
def test_what_a_loop_did_not_get_is_still_there(
    db: Database, path: Path, how: dict[str, object]
) -> None:
    sub = db.monitor("low", **how)
    next(iter(sub.follow(0)), None)
    with harken.connect(path) as other:
        insert(other, "a", "b", "c")
    for change in sub:
        assert names([change]) == ["a"]
        break
    insert(db, "d")
    assert names(list(sub.follow(timeout=0))) == ["b", "c", "d"]
    assert sub.changes() == []


def test_a_loop_ends_when_the_subscription_is_closed(db: Database) -> None:
    sub = db.monitor("low")
    insert(db, "a", "b")
    for change in sub:
        assert names([change]) == ["a"]
        sub.close()
    with pytest.raises(HarkenError, match="is closed"):
        list(sub.follow())


def test_async_loops_share_a_thread(db: Database, path: Path) -> None:
    async def first(sub: harken.Subscription) -> str:
        async for change in sub:
            return names([change])[0]
        return ""

    async def run() -> list[str]:
        subs = [db.monitor("low"), db.monitor("low", where={"name": "b"})]
        loops = [asyncio.create_task(first(sub)) for sub in subs]
        await asyncio.sleep(0)
        with harken.connect(path) as other:
            insert(other, "a", "b")
        return await asyncio.gather(*loops)

    assert asyncio.run(run()) == ["a", "b"]


def test_an_async_loop_waits_for_other_tasks_also_in_memory() -> None:
    async def run(db: Database) -> list[harken.Change]:
        sub, found = db.monitor("n"), []

        async def commits() -> None:
            for n in range(2):
                await asyncio.sleep(0)
                db.sql("INSERT INTO n VALUES (?)", [n])

        task = asyncio.create_task(commits())
        async for change in sub:
            found.append(change)
            if len(found) == 2:
                sub.close()
        await task
        return found

    with harken.connect() as db:
        db.sql("CREATE TABLE n (n INT PRIMARY KEY)")
        assert [change.plus for change in asyncio.run(run(db))] == [[(0,)], [(1,)]]


def test_an_open_transaction_cannot_be_followed(db: Database) -> None:
    sub = db.monitor("low")
    db.begin()
    with pytest.raises(HarkenError) as caught:
        next(iter(sub))
    assert caught.value.code == "transaction"
    db.rollback()
    with pytest.raises(HarkenError, match="the timeout"):
        sub.follow(-1)
