"""The laws of the difference calculus, over random schemas, functions, data and transactions.

- the Δ computed by differentials is the difference of the two recomputed states, exactly, for
  every combination of changed relations, and `recompute` finds the same;
- the Δ of a batch is the net of the Δs of its parts;
- a transaction and its inverse together change nothing, one after the other they cancel out;
- what a nervous rule sees holds now, and lacks nothing that is new;
- the first state and the last are what the reference interpreter, which knows no differences, says
  of them, and all Δs together are the difference of the two.

A pair is one schema with one transaction. A failure shows the script that leads to it.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken import HarkenError, Object
from harken.engines.sqlite import change_capture
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from tests.generators.changes import Scenario
from tests.harness.watching import Row, Watch, Watching, Weights, difference, program_of, size
from tests.models import interpreter
from tests.models.candidates import parameter_values
from tests.models.interpreter import TooLong, World
from tests.models.meanings import LITERAL_TYPES, Failure
from tests.models.statics import Function, Refused


class Trial:
    """One schema, and one transaction after another."""

    def __init__(self, random: Random, counts: Counter[str], largest: int) -> None:
        """`largest` says how many relations a function may join; more takes long to compile."""
        self.scenario = Scenario(random)
        self.counts = counts
        self.largest = largest
        self.scenario.build(derived=3)
        self.maker = self.scenario.maker
        self.watching = Watching(self.scenario.db)
        for relation in self.scenario.relations():
            self.watching.capture(relation)
        expanded = bool(self.maker.below(3))
        for name in self.scenario.derived:
            self._watch(name, expanded)
        self.sums: dict[str, Weights] = {name: {} for name in self.watching.watches}

    def _watch(self, name: str, expanded: bool) -> None:
        program = program_of(self.scenario.db, name, expanded)
        if size(program) > self.largest - (not program.goal.is_set):
            self.counts["too large"] += 1
            return
        try:
            self.watching.watch(Watch(self.scenario.db, name, program))
        except HarkenError as error:
            self.counts[f"cannot be evaluated alone: {error.code}"] += 1

    # --- transactions ----------------------------------------------------------------------

    def run(self, transactions: int) -> None:
        first = self.model()
        for _ in range(transactions // 4):
            self.batch(1 + self.maker.below(3))
            self.and_back()
        for name, wanted in self.model().items():
            if name in first:
                self.counts["interpreted"] += 1
                found = {row: weight for row, weight in self.sums[name].items() if weight}
                assert normal(found) == difference(wanted, first[name]), name

    def batch(self, parts: int) -> None:
        """Some transactions; then what their Δ-sets add up to, as if they had been one."""
        before = {name: watch.before for name, watch in self.watching.watches.items()}
        changes: dict[str, Weights] = {name: {} for name in self.watching.watches}
        deltas: dict[str, Weights] = {}
        for _ in range(parts):
            self.scenario.transaction()
            for name, delta in self.watching.deltas().items():
                deltas[name] = added(deltas.get(name, {}), delta)
            for name, change in self.check().items():
                changes[name] = added(changes[name], change)
            self.watching.forget()
        if parts > 1:
            self.watching.put(deltas)
            for name, watch in self.watching.watches.items():
                watch.before = before[name]
                changed = {each for each, delta in deltas.items() if delta}
                found = self.watching.check_one(watch, changed.intersection(watch.influents))
                assert found == changes[name], f"Δ{name} of the batch is not that of its parts"
            self.counts["batches"] += 1
            self.watching.forget()

    def and_back(self) -> None:
        """A transaction and its inverse, in one transaction or in two."""
        relations = {name: each.relation for name, each in self.watching.delta_sets.items()}
        together = self.maker.one_in(2)
        self.scenario.transaction()
        deltas = self.watching.deltas()
        there = {} if together else self.check()
        if not together:
            self.watching.forget()
        self.scenario.undo(deltas, relations)
        back = self.check(touched=together)
        for name, change in back.items():
            assert change == {row: -w for row, w in there.get(name, {}).items()}, name
        self.watching.forget()
        self.counts["inverses"] += 1

    # --- the law ---------------------------------------------------------------------------

    def check(self, touched: bool = False) -> dict[str, Weights]:
        """The changes of all functions; `touched` also names relations that are as they were."""
        self.counts["pairs"] += 1
        found = self.watching.check()
        marked = {
            name
            for name, _ in self.scenario.db.internals.connection.rows(change_capture.READ_MARKS)
        }
        for name, watch in self.watching.watches.items():
            self.counts["changes"] += 1
            self.counts["changes of bags"] += watch.is_bag
            self.counts["with rows"] += bool(found[name])
            self.sums[name] = added(self.sums[name], found[name])
            if touched:
                self.watching.check_one(watch, marked.intersection(watch.influents))
            elif self.maker.one_in(4):
                self.check_over_derived(watch, found)
            elif self.maker.one_in(8) and not watch.is_bag:
                self.check_nervous(watch, found[name])
        self.scenario.db.internals.connection.run(change_capture.CLEAR_MARKS)
        return found

    def check_nervous(self, watch: Watch, change: Weights) -> None:
        seen = set(watch.candidates(watch.influents))
        assert seen <= set(watch.state()), f"a nervous {watch.name} sees what does not hold"
        plus = {row for row, weight in change.items() if weight > 0}
        assert plus <= seen, f"a nervous {watch.name} misses {plus - seen}"

    def check_over_derived(self, watch: Watch, found: dict[str, Weights]) -> None:
        """The same change from the changes of the derived functions that it calls."""
        deltas = self.watching.deltas()
        changed = set(deltas).intersection(watch.influents)
        inner = {
            each.program.goal.id: each
            for each in self.watching.watches.values()
            if each is not watch and each.program.goal.id in watch.program.definitions
        }
        if changed and inner:
            for each in inner.values():
                self.watching.give(each.program.goal, found[each.name])
            self.counts["over derived"] += 1
            assert watch.change({*changed, *inner}) == found[watch.name], (
                f"Δ{watch.name} over {inner}"
            )

    # --- the model -------------------------------------------------------------------------

    def model(self) -> dict[str, Counter[Row]]:
        """What the reference interpreter says of each function, as far as it has the patience,
        and the database says too."""
        world = world_of(self.scenario)
        found = {}
        for functions in world.functions.values():
            for function in functions.values():
                name = f"{function.takes[0]}.{function.name}" if function.takes else function.name
                if name in self.watching.watches:
                    rows = interpreted(world, function)
                    if rows is not None:
                        found[name] = normal(rows)
                        state = normal(self.watching.watches[name].state())
                        assert state == found[name], f"{name} is not what its text says"
        return found


def added(one: Weights, other: Weights) -> Weights:
    return difference(one, {row: -weight for row, weight in other.items()})


def normal(rows: dict[Row, int]) -> Counter[Row]:
    """Rows with objects as their numbers and numbers to nine digits, as both sides have them."""

    def value(each: Any) -> Any:
        if isinstance(each, Object):
            return each.oid
        return round(each, 9) if isinstance(each, float) else each

    total: Counter[Row] = Counter()
    for row, times in rows.items():
        total[tuple(map(value, row))] += times
    return total


def world_of(scenario: Scenario) -> World:
    """The reference interpreter with the schema of a scenario, and its data as they are now."""
    world = World()
    for text in scenario.script:
        if text.startswith(("create type", "create function")):
            node = parse_statement(text)
            if isinstance(node, syntax.CreateType):
                world.supertypes[node.name] = node.supertypes or ("object",)
            elif isinstance(node, syntax.CreateFunction):
                world.define(node)
    world.objects = {thing: {*types, "object"} for thing, types in scenario.objects().items()}
    for function in scenario.stored():
        world.functions[function.name][function.id].rows = [
            tuple(scenario.db.variables[v[1:]] if str(v).startswith(":") else v for v in row)
            for row in scenario.rows(function)
        ]
    return world


def interpreted(world: World, function: Function) -> Counter[Row] | None:
    world.tried = interpreter.PATIENCE - 5_000
    rows: list[Any] = []
    try:
        ranges = [
            [v for v in parameter_values(world, function, position) if not isinstance(v, Failure)]
            if type_ in LITERAL_TYPES
            else world.extent(type_)
            for position, type_ in enumerate(function.takes)
        ]
        for arguments in product(*ranges):
            found = world.call(function, arguments)
            if any(isinstance(row, Failure) for row in found):
                return None
            rows += [arguments + row for row in found]
    except (Refused, TooLong):
        return None
    return Counter(rows)


def search(examples: int, transactions: int, largest: int) -> Counter[str]:
    counts: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.randoms(use_true_random=False))
    def laws(random: Random) -> None:
        trial = Trial(random, counts, largest)
        try:
            trial.run(transactions)
        except (AssertionError, HarkenError) as error:
            script = ";\n".join(trial.scenario.script)
            raise AssertionError(f"{script};\n/* {error} */") from error
        finally:
            trial.scenario.db.close()

    laws()
    return counts


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("examples", "pairs"), [(10, 900), pytest.param(52, 5_000, marks=pytest.mark.nightly)]
)
def test_every_change_is_the_difference_of_the_states(examples: int, pairs: int) -> None:
    counts = search(examples=examples, transactions=116, largest=5)
    assert counts["pairs"] >= pairs, counts


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_change_is_the_difference_of_the_states_all_night() -> None:
    counts = search(examples=4_000, transactions=32, largest=7)
    print(counts)
    assert counts["pairs"] >= 100_000, counts
