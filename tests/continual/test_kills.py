"""A process that dies at any commit loses no execution and no message, and doubles none.

At each commit of a run the files are copied, just before it and just after: that is what a killed
process leaves behind. Whoever opens a copy does what is due, and ends where the run ended.
"""

import datetime
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from tests.continual.conftest import Clock

Executions = list[tuple[Any, ...]]


def install(db: harken.Database, out: str) -> None:
    db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)")
    db.sql(
        f"CREATE CONTINUAL QUERY a AS SELECT k, v FROM t TRIGGER EVERY HOUR NOTIFY FILE '{out}';"
        f"CREATE CONTINUAL QUERY b AS SELECT k FROM t WHERE v > 1 TRIGGER AFTER EXECUTION OF a "
        f"STRATEGY naive NOTIFY FILE '{out}';"
        f"CREATE CONTINUAL QUERY c AS SELECT 6 / v AS x FROM t TRIGGER EVERY HOUR "
        f"STOP AFTER 3 EXECUTIONS NOTIFY FILE '{out}'"
    )
    db.sql("INSERT INTO t VALUES (3, 3); UPDATE t SET v = 5 WHERE k = 1")


def outcome(db: harken.Database, out: Path) -> tuple[Executions, list[str], Executions]:
    """The executions, the messages that were written, each once, and what there is afterwards."""
    executions = db.sql(
        "SELECT query, execution, at, outcome, result FROM continual_execution "
        "ORDER BY query, execution"
    ).rows
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    messages = {line.pop("id"): json.dumps(line) for line in lines}
    queries = db.sql("SELECT name, state, executions, evaluated FROM continual_query").rows
    return executions, sorted(messages.values()), sorted(queries)


def test_a_kill_at_every_commit_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, first = Clock(), tmp_path / "first"
    first.mkdir()
    monkeypatch.chdir(first)
    db = harken.connect("cq.db", clock=clock)
    install(db, "out.jsonl")
    clock.move(hours=1)
    copies: list[Path] = []

    def keep() -> None:
        copies.append(tmp_path / f"copy {len(copies)}")
        shutil.copytree(first, copies[-1])

    connection = type(db.internals.connection)
    commit: Callable[[Any], None] = connection.commit

    def copying(self: Any) -> None:
        keep()
        commit(self)
        keep()

    with monkeypatch.context() as patched:
        patched.setattr(connection, "commit", copying)
        db.run_due()
    clock.move(hours=1)
    db.run_due()
    expected = outcome(db, first / "out.jsonl")
    db.close()
    assert len(copies) > 10
    assert [row[1:3] for row in expected[2]] == [("active", 3), ("active", 3), ("stopped", 3)]
    clock.move(hours=-1)
    for copy in copies:
        again = Clock()
        again.now = clock.now
        monkeypatch.chdir(copy)
        with harken.connect("cq.db", clock=again) as other:
            other.run_due()
            again.now += datetime.timedelta(minutes=6)  # the lease of the killed process is over
            other.run_due()
            again.now = clock.now + datetime.timedelta(hours=1)
            other.run_due()
            assert outcome(other, copy / "out.jsonl") == expected
