"""Law: where the facts of a recursive view lie changes nothing: whatever the strategy, and wherever
it is given up because too much would have to come here, what is told is the difference of two
recomputations; and what is at hand is what the relations have."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

import harken
from harken.engines import fetch_limits as limits
from harken.engines.placement.at_hand import RowsAtHand
from harken.engines.placement.placed_relation import PlacedRelation
from harken.engines.protocol import TooManyRows
from harken.maintenance.recursive_nodes import RecursiveNode
from tests.generators.datalog_programs import text_of
from tests.harness import lakes
from tests.laws.test_recursive_views import Client, follow, question, small_program
from tests.models.datalog_interpreter import World, meaning

pytestmark = pytest.mark.timeout(600)

PROGRAMS, GIVEN_UP, TRANSACTIONS = 5, 3, 3
STRATEGIES = ("external", "materialized", "naive", "auto")
NIGHTLY = 400
NIGHTLY_ON_SPARK = 12


@pytest.fixture(autouse=True)
def rows_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often rows are sought, and however few there are, they are sought by key."""
    lakes.seek_by_key(monkeypatch)
    monkeypatch.setattr(limits, "SEEK", 0)


class LakeClient(Client):
    """Someone whose facts are in the lake; now and then cached rows are dropped and written."""

    def __init__(
        self, text: str, strategy: str, views: list[str], world: World, random: Random, spark: Any
    ) -> None:
        self.random = random
        super().__init__(text, strategy, views, world, harken.connect(engine="lake", spark=spark))
        self.db.flush()
        lakes.let_go(self.db)

    def follow(self, script: str, world: World, told_by: str) -> None:
        chance = self.random.random()
        if chance < 0.4:
            lakes.let_go(self.db)
        elif chance < 0.6:
            self.db.flush()
        super().follow(script, world, told_by)
        lakes.check(self.db)


def compare(
    seed: int, transactions: int, spark: Any = None, strategies: tuple[str, ...] = STRATEGIES
) -> int:
    program, random = small_program(seed)
    text = text_of(program, random)
    world = meaning(program)
    views = program.derived[-2:]
    clients = [LakeClient(text, each, views, world, random, spark) for each in strategies]
    follow(clients, program, random, text, transactions)
    asked = sum(client.db.internals.engine.tally.queries for client in clients)
    for client in clients:
        lakes.check_written(client.db)
        client.db.close()
    return asked


def no_spark() -> Any:
    """There is a session for what is too much; but nothing is."""
    pytest.fail("Spark was asked")


@pytest.mark.parametrize("seed", range(3_000, 3_000 + PROGRAMS))
def test_all_strategies_tell_the_same_of_facts_in_the_lake(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes.write_later(monkeypatch)
    compare(seed, TRANSACTIONS)


def give_up(monkeypatch: pytest.MonkeyPatch, random: Random, chance: float) -> list[str]:
    """Now and then a way is given up, in its first round or in the middle; which of them were."""
    going: list[str] = []
    given_up: list[str] = []

    def is_full(engine: RowsAtHand, lake_relation: PlacedRelation) -> bool:
        if not going or random.random() >= chance:
            return False
        given_up.append(going[-1])
        return True

    for name in ("rederive", "maintain", "recompute"):

        def gone(node: RecursiveNode, *given: Any, way: str = name, go: Any = None) -> None:
            going.append(way)
            try:
                if way == "recompute" and random.random() < chance:
                    given_up.append(way)
                    raise TooManyRows
                go(node, *given)
            finally:
                going.pop()

        go = partial(gone, go=getattr(RecursiveNode, name))
        monkeypatch.setattr(RecursiveNode, name, lambda self, *given, go=go: go(self, *given))
    monkeypatch.setattr(RowsAtHand, "_is_full", is_full)
    return given_up


def test_an_abandoned_strategy_has_reported_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = give_up(monkeypatch, Random(4_000), 0.2)
    for seed in range(4_000, 4_000 + GIVEN_UP):
        compare(seed, TRANSACTIONS, no_spark, ("external", "materialized", "auto"))
    assert {"rederive", "maintain", "recompute"} <= set(given_up)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_many_programs_over_facts_in_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.write_later(monkeypatch)
    give_up(monkeypatch, Random(5_000), 0.1)
    for seed in range(5_000, 5_000 + NIGHTLY):
        compare(seed, 8, no_spark if seed % 2 else None)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_many_programs_that_are_too_much(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    for seed in range(6_000, 6_000 + NIGHTLY_ON_SPARK):
        monkeypatch.setattr(limits, "MOST_KEYS", 1 + seed % 3)
        monkeypatch.setattr(limits, "MOST_ROWS", seed % 5)
        asked += compare(seed, 2, spark)
    assert asked > NIGHTLY_ON_SPARK


def test_a_query_with_constants_over_facts_in_the_lake() -> None:
    for seed in range(7_000, 7_008):
        program, random = small_program(seed)
        world = meaning(program)
        with harken.connect(engine="lake") as db:
            db.datalog(text_of(program, random))
            db.flush()
            for name in program.derived:
                lakes.let_go(db)
                query, wanted = question(program, name, world, random)
                assert sorted(db.datalog(f"?- {query}.")[-1].rows) == sorted(wanted)
                lakes.check(db)
