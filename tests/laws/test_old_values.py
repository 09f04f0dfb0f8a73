"""The law of old values: a rule over `old(...)` acts on what became true against the state in which
the transaction, or for an immediate rule the statement, began.

Conditions are pairs of a text and a function of two plain states that says for which items it
holds. A plain interpreter needs nothing else: with `then` the state at the beginning,

    acts = holds(now, then) − holds(then, then)

and `delta_plus(f)` and `delta_minus(f)` are the differences of the rows of f in the two states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import harken
from harken import Database

as_found = [Phase.explicit, Phase.reuse, Phase.generate]
some = settings(max_examples=8, deadline=None, phases=as_found)
many = settings(max_examples=600, deadline=None)

SCHEMA = """
create type item properties (quantity integer, stock integer);
create function next(item) -> item;
create function tags(item) -> bag of integer;
create function worth(item i) -> integer as select quantity(i) * 2;
create function beside(item i) -> integer as select quantity(next(i));
create function total() -> integer as select sum(select quantity(i) for each item i);
create function low(item i) -> boolean as select true where quantity(i) < stock(i);
create function drop_of(item i) -> integer as select old(quantity(i)) - quantity(i);
create item instances :i0, :i1, :i2;
"""
ITEMS = range(3)


@dataclass
class State:
    quantity: dict[int, int] = field(default_factory=dict)
    stock: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    tags: Counter[tuple[int, int]] = field(default_factory=Counter)

    def beside(self, i: int) -> int | None:
        return self.quantity.get(self.next.get(i, -1))

    def low(self, i: int) -> bool:
        return i in self.quantity and i in self.stock and self.quantity[i] < self.stock[i]

    def total(self) -> int | None:
        return sum(self.quantity.values()) if self.quantity else None

    def copies(self, i: int) -> int:
        return sum(n for (item, _), n in self.tags.items() if item == i)

    def reached(self, i: int) -> set[int]:
        found, at = set[int](), self.next.get(i)
        while at is not None and at not in found:
            found.add(at)
            at = self.next.get(at)
        return found


def less(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


Holds = Callable[[State, State, int], bool]
CONDITIONS: list[tuple[str, Holds]] = [
    ("quantity(i) < old(quantity(i))", lambda n, t, i: less(n.quantity.get(i), t.quantity.get(i))),
    ("worth(i) > old(worth(i))", lambda n, t, i: less(t.quantity.get(i), n.quantity.get(i))),
    ("beside(i) < old(beside(i))", lambda n, t, i: less(n.beside(i), t.beside(i))),
    ("low(i) and not old(low(i))", lambda n, t, i: n.low(i) and not t.low(i)),
    ("old(low(i)) and not low(i)", lambda n, t, i: t.low(i) and not n.low(i)),
    ("not some(old(quantity(i))) and quantity(i) > 1",
     lambda n, t, i: i not in t.quantity and n.quantity.get(i, 0) > 1),
    ("count(tags(i)) > old(count(tags(i)))", lambda n, t, i: n.copies(i) > t.copies(i)),
    ("count(old(tags(i))) > count(tags(i))", lambda n, t, i: n.copies(i) < t.copies(i)),
    ("total() < old(total()) and quantity(i) < 9",
     lambda n, t, i: less(n.total(), t.total()) and n.quantity.get(i, 9) < 9),
    ("drop_of(i) > 1",
     lambda n, t, i: i in t.quantity and less(n.quantity.get(i), t.quantity[i] - 1)),
    ("old(next(i)) != next(i)",
     lambda n, t, i: i in n.next and i in t.next and n.next[i] != t.next[i]),
    ("count(tclose(next, i)) < count(old(tclose(next, i)))",
     lambda n, t, i: len(n.reached(i)) < len(t.reached(i))),
    ("count(select q for each integer q where delta_minus(quantity) = <i, q>) > 0",
     lambda n, t, i: i in t.quantity and n.quantity.get(i) != t.quantity[i]),
    ("count(delta_plus(tags)) > 1 and quantity(i) < 9",
     lambda n, t, i: (n.tags - t.tags).total() > 1 and i in n.quantity),
    ("count(select q for each integer q where delta_plus(beside) = <i, q>) > 0",
     lambda n, t, i: n.beside(i) is not None and n.beside(i) != t.beside(i)),
]  # fmt: skip


def change(state: State, random: Random) -> str:
    """One random statement, done to the state as well."""
    i, n = random.choice(ITEMS), random.randint(0, 5)
    kind = random.choice(("quantity", "quantity", "stock", "next", "unset", "add", "take"))
    match kind:
        case "quantity" | "stock":
            getattr(state, kind)[i] = n
            return f"set {kind}(:i{i}) = {n};"
        case "next":
            j = random.choice(ITEMS)
            state.next[i] = j
            return f"set next(:i{i}) = :i{j};"
        case "unset":
            if i not in state.quantity:
                return f"remove quantity(:i{i}) = 99;"
            return f"remove quantity(:i{i}) = {state.quantity.pop(i)};"
        case "add":
            state.tags[i, n % 2] += 1
            return f"add tags(:i{i}) = {n % 2};"
    state.tags = state.tags - Counter({(i, n % 2): 1})
    return f"remove tags(:i{i}) = {n % 2};"


class Trial:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.chosen = random.sample(CONDITIONS, 4)
        self.db: Database = harken.connect(":memory:")
        self.db.amosql(SCHEMA)
        self.names = {self.db.variables[f"i{i}"]: i for i in ITEMS}
        self.now = State()
        self.run([change(self.now, random) for _ in range(6)])
        self.db.amosql("commit;")
        for number, (text, _) in enumerate(self.chosen):
            for coupling in ("deferred", "immediate"):
                self.db.amosql(
                    f"create rule r{number}_{coupling}() {coupling} as for each item i "
                    f"when {text} do print('{number} {coupling}', i);"
                    f"activate r{number}_{coupling}();"
                )
        self.db.amosql("""
            create rule totals() on updated(quantity), added(tags), removed(tags) as do begin
                for each item i, integer q where delta_plus(quantity) = <i, q> print('+q', i, q);
                for each item i, integer q where delta_minus(quantity) = <i, q> print('-q', i, q);
                for each item i, integer q where delta_plus(beside) = <i, q> print('+b', i, q);
                for each item i, integer q where delta_minus(beside) = <i, q> print('-b', i, q);
            end;
            activate totals(); commit;
        """)

    def run(self, texts: list[str]) -> list[tuple[Any, ...]]:
        printed = []
        for text in texts:
            for result in self.db.amosql(text):
                assert result.kind == "print", result
                printed.append(tuple(self.names.get(value, value) for value in result.rows[0]))
        return printed

    def expected(self, coupling: str, then: State) -> list[tuple[Any, ...]]:
        return [
            (f"{number} {coupling}", i)
            for number, (_, holds) in enumerate(self.chosen)
            for i in ITEMS
            if holds(self.now, then, i) and not holds(then, then, i)
        ]

    def transaction(self) -> None:
        start = deepcopy(self.now)
        for _ in range(self.random.randint(1, 4)):
            then = deepcopy(self.now)
            text = change(self.now, self.random)
            told = self.run([text])
            assert sorted(told) == sorted(self.expected("immediate", then)), self.why(text, then)
        if self.random.random() < 0.2:
            self.db.amosql("rollback;")
            self.now = start
            return
        told = self.run(["commit;"])
        rows = [each for each in told if each[0][0] in "+-"]
        acts = [each for each in told if each not in rows]
        assert sorted(acts) == sorted(self.expected("deferred", start)), self.why("", start)
        if any(row[0] == "+q" for row in rows):
            assert sorted(rows) == sorted(self.deltas(start)), self.why("", start)

    def why(self, text: str, then: State) -> str:
        return f"{[each for each, _ in self.chosen]}\n{then}\n{text}\n{self.now}"

    def deltas(self, start: State) -> list[tuple[Any, ...]]:
        found = []
        for name, of in (("q", lambda s: s.quantity), ("b", lambda s: besides(s))):
            now, then = set(of(self.now).items()), set(of(start).items())
            found += [(f"+{name}", i, n) for i, n in now - then]
            found += [(f"-{name}", i, n) for i, n in then - now]
        return found


def besides(state: State) -> dict[int, int]:
    found = {i: state.beside(i) for i in ITEMS}
    return {i: n for i, n in found.items() if n is not None}


def check(seed: int) -> None:
    trial = Trial(Random(seed))
    with trial.db:
        for _ in range(5):
            trial.transaction()


@some
@given(st.integers(0, 10**9))
def test_rules_act_on_what_became_true_against_the_old_values(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
@many
@given(st.integers(0, 10**9))
def test_rules_act_on_what_became_true_against_the_old_values_at_length(seed: int) -> None:
    check(seed)
