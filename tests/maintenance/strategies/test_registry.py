"""A new strategy is one class and one line in the registry: nothing else has to know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

import harken
from harken import Database
from harken.engines.protocol import Query
from harken.ir.relations import Relation
from harken.maintenance.nodes import Monitored, Node, ViewNode, difference
from harken.maintenance.strategies.base import Found, Job, MaintenanceStrategy
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.registry import STRATEGIES


class Remembered(MaintenanceStrategy):
    """Remembers all rows of a view in Python, and compares."""

    name: ClassVar[Strategy] = Strategy("remembered", "compared with rows remembered in Python")
    seconds = 0.0

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {}

    def applies(self, node: Node) -> bool:
        return isinstance(node, ViewNode) and "dear" in node.view.name

    def influents(self, node: Monitored) -> Mapping[str, Relation]:
        return node.part.stored

    def estimate(self, node: Node, wave: object) -> float | None:
        return self.seconds

    def cost(self, node: Node, sizes: Mapping[str, int], chooser: object) -> float:
        return self.seconds

    def queries(self, job: Job) -> tuple[Query, ...]:
        return (job.node.whole(job.planning),)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        before = self.rows.get(job.node.id, [])
        self.rows[job.node.id] = queries[0].rows(())
        return difference(self.rows[job.node.id], before)


@pytest.fixture
def toy() -> Iterator[Remembered]:
    made = Remembered()
    STRATEGIES.insert(0, made)
    yield made
    STRATEGIES.remove(made)


@pytest.fixture
def db(toy: Remembered) -> Iterator[Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, amount INT NOT NULL)")
        db.sql("CREATE VIEW dear AS SELECT id, amount FROM sale WHERE amount > 100")
        db.sql("CREATE VIEW cheap AS SELECT id, amount FROM sale WHERE amount <= 100")
        yield db


def test_a_new_strategy_is_chosen_where_it_applies(db: Database, toy: Remembered) -> None:
    told: Counter[Any] = Counter()
    dear, cheap = db.monitor("dear"), db.monitor("cheap")
    for amount in (50, 150, 250, 90):
        db.sql("INSERT INTO sale VALUES (?, ?)", (amount, amount))
        db.sql("UPDATE sale SET amount = amount + 10 WHERE amount > 60")
        for change in dear.changes():
            told.update(change.plus)
            told.subtract(change.minus)
    assert +told == Counter(db.sql("SELECT * FROM dear").rows)
    assert toy.rows
    chooser = db.internals.network.chooser
    assert {each.decision.strategy for each in chooser.decisions("condition monitor dear()")} == {
        toy.name
    }
    assert cheap.changes()
    assert toy.name not in {
        each.decision.strategy for each in chooser.decisions("condition monitor cheap()")
    }
    assert "compared with rows remembered in Python" in str(db.explain("dear"))


def test_every_strategy_has_a_name_and_words() -> None:
    names = [each.name for each in STRATEGIES]
    assert all(each.words for each in names)
    assert len(set(names)) == len(names) - 1  # recomputing a recursion is naive, too


def test_a_bulk_change_is_recomputed_if_the_new_strategy_costs_more(
    db: Database, toy: Remembered
) -> None:
    toy.seconds = 1e9
    db.monitor("dear")
    db.load("sale", [(n, n) for n in range(5000)])
    taken = db.internals.network.chooser.decisions("condition monitor dear()")
    assert taken[-1].decision.strategy == Strategy.NAIVE
