"""Evaluation on demand and as a whole, in turns: whoever ends first answers."""

from __future__ import annotations

import pytest

import harken
from harken.engines.sqlite import race
from harken.errors import HarkenError

CHAIN = ".decl edge(x: number, y: number, w: number)\n.decl path(x: number, y: number)\n"
RULES = "path(x, y) :- edge(x, y, _).\npath(x, z) :- path(x, y), edge(y, z, w), 100 / w > 0.\n"
LENGTH = 400


def _chain(db: harken.Database, others: str) -> None:
    db.datalog(f"{CHAIN}{RULES}")
    db.datalog(" ".join(f"edge({x}, {x + 1}, 1)." for x in range(LENGTH)))
    db.datalog(others)


def test_an_error_of_rows_that_nobody_asks_for_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(race, "HEAD_START", 2)
    with harken.connect() as db:
        _chain(db, "edge(-2, -1, 1). edge(-1, -1, 0).")
        assert len(db.datalog("?- path(0, y).")[0].rows) == LENGTH
        with pytest.raises(HarkenError):
            db.datalog("?- path(-2, y).")


def test_a_way_that_never_ends_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "HEAD_START", 2)
    with harken.connect() as db:
        _chain(db, "path(-1, x) :- path(-1, y), x = y - 1. edge(-1, -1, 1).")
        assert len(db.datalog("?- path(0, y).")[0].rows) == LENGTH


def test_a_faster_way_is_remembered() -> None:
    rival = race.Rival(lambda: pytest.fail("compiled"))
    assert rival.head_start() == race.HEAD_START
    rival.work = 16
    assert rival.head_start() == 16 // race.SHORT_START
