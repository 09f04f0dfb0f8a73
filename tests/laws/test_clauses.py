"""The law of the calculus on clauses of any shape, not only those that AMOSQL translates to.

Sets and bags are mixed at will, stored relations are negated and aggregated where they stand,
clauses repeat variables and constants in heads and bodies, and relations may be recursive.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken import HarkenError
from tests.generators.choices import Choices
from tests.harness.facts import Facts
from tests.harness.watching import size

STORED = {"q": 1, "r": 2, "s": 2}
VARIABLES = ("X", "Y", "Z")
AGGREGATES = ("count", "sum", "min", "max", "some", "notany")
SIGNS = ("=", "<", ">=", "!=", ">", "<=")


class Clauses(Choices):
    """Writes clauses over relations of which it knows the arities."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.arities = dict(STORED)
        self.derived: list[str] = []

    def definition(self, name: str, bag: bool) -> list[str]:
        arity = 1 + self.below(2)
        recursive = not bag and self.one_in(6)
        clauses = [self.clause(name, arity) for _ in range(self.choose((1, 1, 2)))]
        if recursive:
            clauses.append(self.recursive_clause(name, arity))
        self.arities[name] = arity
        self.derived.append(name)
        return clauses

    def clause(self, name: str, arity: int) -> str:
        body = [self.atom() for _ in range(self.choose((1, 1, 1, 2, 2, 3)))]
        bound = [variable for variable in VARIABLES if any(variable in each for each in body)]
        if not bound:
            return self.clause(name, arity)
        for _ in range(self.choose((0, 1, 1, 1, 2))):
            extra, variable = self.choose(
                (self.negation, self.negation, self.comparison, self.computation, self.aggregate)
            )(bound)
            body.append(extra)
            if variable:
                bound.append(variable)
        self.random.shuffle(body)
        head = ", ".join(self.choose([*bound, *bound, "1"]) for _ in range(arity))
        return f"{name}({head}) ← {' ∧ '.join(body)}"

    def recursive_clause(self, name: str, arity: int) -> str:
        """No arithmetic, which could go on for ever."""
        inner = ", ".join(VARIABLES[:arity])
        step = f"r({VARIABLES[arity - 1]}, Z)"
        head = ", ".join((*VARIABLES[: arity - 1], "Z"))
        return f"{name}({head}) ← {name}({inner}) ∧ {step}"

    def atom(self) -> str:
        name = self.choose(list(self.arities))
        terms = (self.choose((*VARIABLES * 2, "1", "2")) for _ in range(self.arities[name]))
        return f"{name}({', '.join(terms)})"

    def negation(self, bound: list[str]) -> tuple[str, str | None]:
        name = self.choose(list(self.arities))
        terms = (self.choose([*bound, *bound, "1"]) for _ in range(self.arities[name]))
        return f"¬{name}({', '.join(terms)})", None

    def comparison(self, bound: list[str]) -> tuple[str, str | None]:
        return f"{self.choose(bound)} {self.choose(SIGNS)} {self.choose([*bound, '2'])}", None

    def computation(self, bound: list[str]) -> tuple[str, str | None]:
        result = self.fresh("A")
        return f"{result} = {self.choose(bound)} {self.choose('+-*')} {self.choose(bound)}", result

    def aggregate(self, bound: list[str]) -> tuple[str, str | None]:
        """Over a derived relation: a stored one gets a name of its own first."""
        if not self.derived:
            return self.negation(bound)
        name, aggregate = self.choose(self.derived), self.choose(AGGREGATES)
        result, value = self.fresh("N"), self.fresh("V")
        terms = [value]
        if self.arities[name] > 1:
            terms.insert(self.below(2), self.choose([*bound, "1", self.fresh("U")]))
        if aggregate in ("some", "notany"):
            return f"1 = {aggregate}( : {name}({', '.join(terms)}))", None
        inner = "" if aggregate == "count" else value
        return f"{result} = {aggregate}({inner} : {name}({', '.join(terms)}))", result

    def change(self) -> str:
        parts = []
        for _ in range(1 + self.below(4)):
            name = self.choose(list(STORED))
            row = ", ".join(str(1 + self.below(3)) for _ in range(STORED[name]))
            parts.append(f"{self.choose('+-')}{name}({row})")
        return " ".join(parts)


def search(examples: int, transactions: int, largest: int) -> Counter[str]:
    counts: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def law(random: Random) -> None:
        script: list[str] = []
        try:
            try_out(random, script)
        except (AssertionError, HarkenError) as error:
            raise AssertionError("\n".join([*script, str(error)])) from error

    def try_out(random: Random, script: list[str]) -> None:
        maker, facts = Clauses(random), Facts()
        for name, arity in STORED.items():
            bag = maker.one_in(2)
            script.append(f"{name}: {'bag' if bag else 'set'}")
            facts.create(name, arity, bag)
        for _ in range(6):
            facts.change(maker.change().replace("-", "+"))
        script += [f"{name}: {dict(facts.rows(name))}" for name in STORED]
        for name in ("d", "e", "f"):
            bag = maker.one_in(2)
            clauses = maker.definition(name, bag)
            script.append(f"{name}: {'bag' if bag else 'set'}; {'; '.join(clauses)}")
            watch = facts.define(*clauses, bag=bag)
            if size(watch.program) > largest:
                del facts.watching.watches[name]
        for _ in range(transactions):
            script.append(maker.change())
            facts.change(script[-1])
            counts["pairs"] += 1
            for name, change in facts.check().items():
                counts["changes"] += 1
                counts["changes of bags"] += facts.watching.watches[name].is_bag
                counts["with rows"] += bool(change)
        facts.db.close()

    law()
    return counts


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("examples", "pairs"), [(25, 500), pytest.param(50, 1_000, marks=pytest.mark.nightly)]
)
def test_every_change_of_any_clauses_is_the_difference_of_the_states(
    examples: int, pairs: int
) -> None:
    counts = search(examples=examples, transactions=20, largest=4)
    assert counts["pairs"] >= pairs, counts


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_change_of_any_clauses_is_the_difference_of_the_states_all_night() -> None:
    counts = search(examples=1_000, transactions=20, largest=6)
    print(counts)
    assert counts["pairs"] >= 20_000, counts
