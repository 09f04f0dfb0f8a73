"""A step that dies anywhere has not happened: the next takes the same changes in, once.

The twin is a database over the same inputs that nobody disturbs. It steps when the other one has
stepped, and then everything that can be seen of the two is equal: rows, orders that the rule gave,
how often it fired, what the durable monitor recorded, and the numbers of the transactions.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database
from harken.consumers.monitors.outbox import Outbox
from harken.consumers.rules.acting import Acting
from harken.engines.delta.tables import LakeTable
from harken.engines.placement.exchange import Exchange
from harken.engines.placement.lake_catalog import Pending, Places
from harken.engines.sqlite.connection import Connection
from harken.propagation.network import Network
from harken.sources.directory import DirectoryInput
from tests.database.test_recovery import Writers
from tests.engines.placement.test_lake_crash import Died, dying
from tests.harness import consistency, lakes, stepping

FAILPOINTS: dict[str, tuple[type, str]] = {
    "reading a directory": (DirectoryInput, "capture"),
    "writing Parquet": (LakeTable, "add_file"),
    "the entry in Delta's log": (LakeTable, "_enter"),
    "taking an input in": (Exchange, "take_in"),
    "noting the version": (Places, "advance"),
    "propagating": (Network, "propagate"),
    "the action": (Acting, "act"),
    "the outbox": (Outbox, "write"),
    "the file's commit": (Connection, "commit"),
    "clearing what is pending": (Pending, "clear"),
}


@dataclass(frozen=True)
class Shop:
    """A database whose inputs have changed, and what is to be seen before and after the step."""

    directory: Path
    before: dict[str, Any]
    after: dict[str, Any]

    def copy(self, directory: Path) -> Path:
        return Path(shutil.copytree(self.directory, directory)) / "shop.db"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    directory = tmp_path_factory.mktemp("step")
    inputs = stepping.Inputs(directory, random.Random(1))
    original = directory / "original"
    original.mkdir()
    with harken.connect(original / "shop.db") as db:
        stepping.prepare(db, inputs)
        inputs.change()
        db.step()
        before = stepping.seen(db)
    inputs.change()
    shutil.copytree(original, directory / "undisturbed")
    with harken.connect(directory / "undisturbed" / "shop.db") as db:
        assert db.step().fired
        after = stepping.seen(db)
    assert len(after["told"]) > len(before["told"]) > 0
    return Shop(original, before, after)


def check(db: Database) -> None:
    """The orders are what became low, once each; the changes add up to what is low now."""
    seen = stepping.seen(db)
    became, total = Counter(), Counter()
    for _, plus, minus in seen["told"]:
        became.update(plus)
        total.update(plus)
        total.subtract(minus)
    began = seen["low"].copy()
    began.subtract(total)
    assert set(began.values()) <= {0, 1}
    assert seen["ordered"] == +began + became
    assert seen["fired"] == [("order_more", seen["ordered"].total())]
    assert sum(seen["times"].values()) == seen["ordered"].total()
    transactions = [number for number, _, _ in seen["told"]]
    assert transactions == sorted(set(transactions))
    consistency.check(db)
    lakes.check(db)
    lakes.check_written(db)


@pytest.mark.parametrize("goes_on", [False, True], ids=["a process", "a session that goes on"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", FAILPOINTS)
def test_a_step_that_dies_is_repeated_with_the_same_result(
    where: str,
    after: bool,
    goes_on: bool,
    shop: Shop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, name = FAILPOINTS[where]
    for calls in range(100):
        path = shop.copy(tmp_path / str(calls))
        db = harken.connect(path)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), [calls], after))
            try:
                db.step()
            except Died:
                pass
            else:
                assert calls > 0, "nothing ever passes here"
                db.close()
                return
        if not goes_on:
            db.internals.connection.close()  # not `db.close()`, which would go on where it was
            db = harken.connect(path)
        with db:
            assert stepping.seen(db) in (shop.before, shop.after)
            db.step()
            assert stepping.seen(db) == shop.after
            assert db.step().taken == {}
            check(db)


# --- kill -9 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pipelines() -> Iterator[Writers]:
    started = Writers("lake", stepping.__name__)
    yield started
    started.stop()


def kill_and_check(pipelines: Writers, directory: Path, kills: int, chance: random.Random) -> int:
    """The number of steps that were taken in spite of it."""
    inputs = stepping.Inputs(directory, chance)
    path, steps = directory / "killed.db", 0
    with harken.connect(directory / "twin.db") as twin:
        stepping.prepare(twin, inputs)
        with harken.connect(path) as db:
            stepping.prepare(db, inputs)
        for number in range(kills):
            inputs.change()
            # Most are killed in their first step, some while they open and some after it.
            reports = (1, 0, 1, 2, 1)[number % 5]
            last = pipelines.run(str(path), chance.uniform(0, 0.4), reports)
            # One who only reads mends nothing: that is left to the next pipeline.
            with harken.connect(path, read_only=True) as db:
                if stepping.state(db) == inputs.state:
                    twin.step()
                    steps += 1
                else:
                    assert not last
                assert stepping.seen(db) == stepping.seen(twin)
        inputs.change()
        with harken.connect(path) as db:
            assert db.step().taken == twin.step().taken
            assert stepping.seen(db) == stepping.seen(twin)
            check(db)
    return steps


def test_a_killed_pipeline_takes_each_change_in_once(pipelines: Writers, tmp_path: Path) -> None:
    assert kill_and_check(pipelines, tmp_path, kills=10, chance=random.Random(5)) >= 2


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_many_killed_pipelines_take_each_change_in_once(
    pipelines: Writers, tmp_path: Path, seed: int
) -> None:
    kill_and_check(pipelines, tmp_path, kills=100, chance=random.Random(seed))
