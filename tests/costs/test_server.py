"""What the service reads after a commit does not grow with what its clients do not follow.

The reading thread of `harken serve` is asked to look once, by hand, and what it asks of the file is
counted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

import harken
from harken import Database
from harken.server.feeds import Feed, Tail
from tests.harness.counting import Cost, cost, growth

FEW, MANY = 3, 23


def feed(db: Database, view: str) -> Feed:
    return Feed(db.monitor(view, keep=True), view)


async def look(path: str, clients: int, others: int) -> Cost:
    """What the thread asks of the file after a change of a view that so many clients follow, beside
    so many other views that somebody follows."""
    with harken.connect(path) as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT); CREATE TABLE u (k INT, v INT)")
        db.sql("INSERT INTO t VALUES (1, 1); CREATE VIEW followed AS SELECT k, v FROM t")
        feeds = [feed(db, "followed")]
        feeds[0].clients = clients
        for n in range(others):
            db.sql(f"CREATE VIEW other{n} AS SELECT v FROM u WHERE k = {n}")
            feeds.append(feed(db, f"other{n}"))
        tail = Tail(path, lambda: feeds, asyncio.get_running_loop(), 0.0)

        def work() -> None:
            db.sql("UPDATE t SET v = v + 1")
            tail.publish_new()

        found = cost(SimpleNamespace(internals=SimpleNamespace(connection=tail.connection)), work)  # type: ignore[arg-type]
        tail.connection.close()
        await asyncio.sleep(0)
    return found


def test_many_clients_of_one_view(tmp_path: Path) -> None:
    few = asyncio.run(look(str(tmp_path / "few.db"), FEW, 1))
    many = asyncio.run(look(str(tmp_path / "many.db"), MANY, 1))
    assert not growth({"look": few}, {"look": many})


@pytest.mark.xfail(
    reason="Tail.publish_new asks the log of each feed after each commit, also where the view did "
    "not change: the changes in the file are found by log, not by position"
)
def test_other_views_that_are_followed(tmp_path: Path) -> None:
    few = asyncio.run(look(str(tmp_path / "few.db"), 1, FEW))
    many = asyncio.run(look(str(tmp_path / "many.db"), 1, MANY))
    assert not growth({"look": few}, {"look": many})
