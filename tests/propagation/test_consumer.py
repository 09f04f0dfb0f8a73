"""A new consumer is one class: nothing else in Harken has to know it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harken
import harken.propagation
from harken.ir.assemble import assemble
from harken.maintenance.watched import WatchedView
from harken.propagation.consumer import Consumer
from harken.propagation.wave import ViewChange


class Followed(WatchedView):
    @property
    def name(self) -> str:
        return "toy"

    @property
    def title(self) -> str:
        return "the toy view"

    @property
    def needs_losses(self) -> bool:
        return True


class Toy(Consumer):
    """Keeps the rows of one view, and forgets what was rolled back."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self._open: list[ViewChange] = []

    def receive(self, change: ViewChange) -> None:
        self._open.append(change)

    def snapshot(self) -> object:
        return len(self._open)

    def restore(self, state: object) -> None:
        assert isinstance(state, int)
        del self._open[state:]

    def after_commit(self) -> None:
        for change in self._open:
            self.rows.update(change.plus)
            self.rows.subtract(change.minus)

    def forget(self) -> None:
        self._open.clear()


def test_a_consumer_follows_a_view_through_commits_failures_and_rollbacks() -> None:
    db, toy = harken.connect(), Toy()
    db.sql("CREATE TABLE t (a INT, b INT)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT a, sum(b) AS total FROM t GROUP BY a")
    db.sql("CREATE VIEW v AS SELECT a FROM m WHERE total > 2")
    catalog, (function,) = db.internals.catalog, db.internals.catalog.overloads("v")
    assert function.relation is not None
    program = assemble(function.relation, catalog.definitions(function.relation), catalog)
    db.internals.reactions.register(toy)
    db.internals.network.graph.insert(Followed(program=program), toy)

    def check() -> None:
        rows = Counter(db.sql("SELECT * FROM v").rows)
        assert +toy.rows == rows

    db.sql("INSERT INTO t VALUES (1, 3), (2, 1), (3, 5)")
    check()
    assert sum(toy.rows.values()) == 2
    db.sql("BEGIN; DELETE FROM t WHERE a = 1; UPDATE t SET b = 4 WHERE a = 2; ROLLBACK")
    check()
    db.sql("BEGIN; UPDATE t SET b = 4 WHERE a = 2")
    with pytest.raises(harken.HarkenError):
        db.sql("INSERT INTO t VALUES (9, 1 / 0)")
    db.sql("COMMIT")
    check()
    assert toy.rows[(2,)] == 1
    db.sql("DELETE FROM t")
    check()


def test_propagation_never_asks_what_kind_of_consumer_it_has() -> None:
    folder = Path(harken.propagation.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                assert "Consumer" not in ast.unparse(node.args[1]), path
