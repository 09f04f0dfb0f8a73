"""A process that dies between the file and the lake loses nothing and doubles nothing.

What is committed is in the file; the tables of the lake follow. Wherever that is cut off, the next
session has every row once, and the first flush makes the tables equal to it, in one version each.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database
from harken.engines import fetch_limits as limits
from harken.engines.delta.tables import LakeTable
from harken.engines.placement import placed_relation as placed_relation
from harken.engines.placement.lake_catalog import Pending, Places
from harken.engines.sqlite.connection import Connection
from tests.database.test_recovery import Writers
from tests.harness import consistency, lakes, ledger

SCHEMA = """
create type item;
create function quantity(item) -> integer;
create function tags(item) -> bag of charstring;
create function ordered(item) -> integer;
create rule order_more() as for each item i when quantity(i) < 3 do set ordered(i) = 10;
create item instances :a, :b, :c;
set quantity(:a) = 5; set quantity(:b) = 5; add tags(:a) = "x"; add tags(:a) = "x";
activate order_more();
commit;
"""
CHANGES = 'set quantity(:a) = 1; set quantity(:c) = 7; remove tags(:a) = "x"; add tags(:b) = "y";'
LATER = {
    "another change": "set quantity(:a) = 2; set quantity(:b) = 1;",
    "the change undone": 'set quantity(:a) = 5; remove quantity(:c) = 7; add tags(:a) = "x";'
    'remove tags(:b) = "y"; remove ordered(:a) = 10;',
    "an object deleted": "delete :a;",
    "nothing": "",
}


class Died(BaseException):
    """Not an error that anyone handles."""


FAILPOINTS: dict[str, tuple[type, str]] = {
    "the file's commit": (Connection, "commit"),
    "writing Parquet": (LakeTable, "add_file"),
    "the net changes": (LakeTable, "_write_changes"),
    "the entry in Delta's log": (LakeTable, "_enter"),
    "the lake's commit": (LakeTable, "commit"),
    "noting the version": (Places, "advance"),
    "clearing what is pending": (Pending, "clear"),
    "merging files": (LakeTable, "compact"),
    "removing versions": (LakeTable, "remove_old_versions"),
}


def dying(original: Callable[..., Any], countdown: list[int], after: bool) -> Callable[..., Any]:
    """Dies at the call that the countdown says, before or after it has worked."""

    def call(*arguments: Any, **named: Any) -> Any:
        countdown[0] -= 1
        if countdown[0] < 0 and not after:
            raise Died
        result = original(*arguments, **named)
        if countdown[0] < 0:
            raise Died
        return result

    return call


def state(db: Database) -> dict[str, Counter[Any]]:
    return lakes.state(db)


def versions(db: Database) -> dict[str, int]:
    return {
        name: LakeTable.open(lake_relation.place.path).version
        for name, lake_relation in lakes.lake_relations(db).items()
        if lake_relation.is_written
    }


def check_lake(db: Database) -> None:
    """All is in the lake after a flush, and a second one has nothing to do."""
    consistency.check(db)
    lakes.check_written(db)
    before = versions(db)
    db.flush()
    assert versions(db) == before


def expected(*texts: str) -> dict[str, Counter[Any]]:
    """The rows that these transactions lead to where nothing dies."""
    with harken.connect(engine="lake") as db:
        db.amosql(SCHEMA)
        for text in texts:
            db.amosql(text)
            db.commit()
        return state(db)


@pytest.fixture(scope="module")
def states() -> dict[str, dict[str, Counter[Any]]]:
    return {
        "before": expected(),
        "after": expected(CHANGES),
        **{name: expected(CHANGES, text) for name, text in LATER.items()},
    }


@pytest.fixture
def died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., bool]:
    """Run the changes and die on the way; true if it came to that. The file is left as it is."""
    monkeypatch.setattr(limits, "COMPACT_EVERY", 2)
    monkeypatch.setattr(placed_relation, "VERSIONS_KEPT", 1)

    def run(path: Path, where: str, calls: int, after: bool) -> bool:
        db = harken.connect(path, engine="lake")
        db.amosql(SCHEMA)
        db.amosql(CHANGES)
        owner, name = FAILPOINTS[where]
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), [calls], after))
            try:
                db.commit()
            except Died:
                return True
            finally:
                db.internals.connection.close()  # not `db.close()`, which would go on where it was
        return False

    return run


def reopened(path: Path) -> Database:
    db = harken.connect(path)
    for name, (thing,) in zip("abc", db.amosql("select i for each item i;").rows, strict=False):
        db.assign(name, thing)
    return db


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", FAILPOINTS)
def test_a_process_that_dies_loses_and_doubles_nothing(
    where: str,
    after: bool,
    died: Callable[..., bool],
    states: dict[str, dict[str, Counter[Any]]],
    tmp_path: Path,
) -> None:
    for calls, later in enumerate((*LATER, "another change")):
        path = tmp_path / f"{calls}.db"
        if not died(path, where, calls, after):
            assert calls > 0, "nothing ever passes here"
            return
        with reopened(path) as db:
            found = state(db)
            committed = (where, calls, after) != ("the file's commit", 0, False)
            assert found == states["after" if committed else "before"]
            lakes.check(db)
            if committed and LATER[later]:
                db.amosql(LATER[later])
                db.commit()
                assert state(db) == states[later]
            check_lake(db)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", ["the lake's commit", "noting the version", "the file's commit"])
def test_a_session_that_survives_continues(
    where: str,
    after: bool,
    states: dict[str, dict[str, Counter[Any]]],
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupt in the middle of writing to the lake: the session is not confused by it."""
    owner, name = FAILPOINTS[where]
    with harken.connect(path, engine="lake") as db:
        db.amosql(SCHEMA)
        db.amosql(CHANGES)
        first = 1 if where == "the file's commit" else 0
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), [first], after))
            with pytest.raises(Died):
                db.commit()
        assert state(db) == states["after"]
        lakes.check(db)
        db.amosql(LATER["another change"])
        db.commit()
        assert state(db) == states["another change"]
        check_lake(db)


# --- kill -9 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    started = Writers("lake")
    yield started
    started.stop()


def check_recovered(path: str) -> int:
    with harken.connect(path, engine="lake") as db:
        n = ledger.committed(db)
        if n >= 0:
            wanted = ledger.ledger_after(n).answers()
            assert ledger.answers(db) == wanted
            assert ledger.told(db) == Counter(
                db.amosql("select a, twice(a) for each account a;").rows
            )
            lakes.let_go(db)
            lakes.check(db)
            check_lake(db)
            lakes.let_go(db)
            assert ledger.answers(db) == wanted
    return n


def kill_and_check(writers: Writers, directory: Path, kills: int, chance: random.Random) -> None:
    before = -1
    for number in range(kills):
        if number % 8 == 0:
            before = -1
        path = str(directory / f"{number // 8}.db")
        # Most of the time goes into opening the database: some writers get past that.
        seconds, commits = chance.uniform(0, 0.5), chance.choice([0, 0, 1])
        reported = writers.run(path, seconds, commits)
        least = before if reported is None else reported
        found = check_recovered(path)
        assert least <= found <= least + 1
        assert found - before >= commits
        before = found


def test_a_killed_writer_leaves_the_lake_whole(writers: Writers, tmp_path: Path) -> None:
    kill_and_check(writers, tmp_path, kills=8, chance=random.Random(7))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_many_killed_writers_leave_the_lake_whole(
    writers: Writers, tmp_path: Path, seed: int
) -> None:
    kill_and_check(writers, tmp_path, kills=200, chance=random.Random(seed))
