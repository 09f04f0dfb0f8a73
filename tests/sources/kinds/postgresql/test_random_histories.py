"""Random histories of a server that is followed, with crashes of ours at any point: in the end the
mirror is the table, whichever way the changes are captured."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.harness.outside_models import MirrorModel, opened
from tests.harness.servers import PostgresDatabase

DEFINITIONS = """
    CREATE TABLE t (id int PRIMARY KEY, n int, long text);
    ALTER TABLE t ALTER long SET STORAGE EXTERNAL;
    CREATE TABLE b (n int); ALTER TABLE b REPLICA IDENTITY FULL
"""
STEPS = 80


@pytest.mark.parametrize("capture", ["logical", "triggers"])
@pytest.mark.parametrize("seed", range(3))
def test_interleaved_transactions_and_crashes(
    logical_database: PostgresDatabase, seed: int, capture: str
) -> None:
    run_history(logical_database, capture, seed, STEPS)


@pytest.mark.nightly
@pytest.mark.parametrize("capture", ["logical", "triggers"])
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_histories(logical_database: PostgresDatabase, seed: int, capture: str) -> None:
    run_history(logical_database, capture, seed, 300)


def run_history(database: PostgresDatabase, capture: str, seed: int, steps: int) -> None:
    choose = random.Random(seed)
    database.run(DEFINITIONS)
    sessions = [database.connect(autocommit=False) for _ in range(3)]
    server = opened("postgresql", {"url": database.url, "table": "t"}, capture).followed
    assert server is not None
    kept = MirrorModel(["t", "b"])
    kept.start(server)
    mirror = kept.saved()
    for _ in range(steps):
        number = choose.randrange(3)
        act(choose, sessions[number], number)
        event = choose.random()
        if event < 0.25:
            mirror.take_in(server, choose.choice([1, 2, 10_000]), choose.choice([1, 2, 1000]))
        elif event < 0.35:  # a crash
            mirror = kept.saved()
            if choose.random() < 0.5:
                server.close()
                server = opened("postgresql", {"url": database.url, "table": "t"}, capture).followed
                assert server is not None
                kept.expect(server)
        elif event < 0.5:
            kept = mirror.saved()
            if kept.taken:
                server.release(kept.taken[-1].position)
    for each in sessions:
        each.commit()
    while mirror.take_in(server, limit=3):
        pass
    for name in mirror.tables:
        assert mirror.rows[name] == Counter(database.run(f"SELECT * FROM {name}")), name
    assert mirror.altered == {}
    for name in mirror.tables:
        server.stop(name)
    server.close()


def act(choose: random.Random, session: Any, number: int) -> None:
    """Each session has rows of its own, so that none waits for another."""
    own = choose.randrange(4) * 3 + number
    other = choose.randrange(4) * 3 + number
    session.execute(
        choose.choice(
            [
                f"INSERT INTO t VALUES ({own}, 0, repeat('x', 3000)) "
                "ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
                f"DELETE FROM t WHERE id = {own}",
                f"UPDATE t SET id = {other} WHERE id = {own} "
                f"AND NOT EXISTS (SELECT FROM t WHERE id = {other})",
                f"INSERT INTO b VALUES ({number})",
                f"DELETE FROM b WHERE ctid = (SELECT min(ctid) FROM b WHERE n = {number})",
                f"UPDATE b SET n = n WHERE n = {number}",
            ]
        )
    )
    if choose.random() < 0.4:
        session.commit() if choose.random() < 0.8 else session.rollback()
    elif choose.random() < 0.05:
        session.commit()
