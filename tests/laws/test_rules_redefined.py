"""The law of redefinition for rules: whatever makes a condition true, data or definitions, a rule
acts on what holds at the end of a check and did not hold at its beginning.

The interpreter keeps the quantities and the present definition; a rule that is deactivated and
activated again acts on all that holds.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import harken

as_found = [Phase.explicit, Phase.reuse, Phase.generate]
some = settings(max_examples=6, deadline=None, phases=as_found)
many = settings(max_examples=500, deadline=None)

ITEMS = range(3)
DEFINITIONS = {
    "select 3 where quantity(i) >= 0": lambda q, i: 3,
    "select 6 where quantity(i) >= 0": lambda q, i: 6,
    "select quantity(j) for each item j where next(i) = j": lambda q, i: q[(i + 1) % 3],
    "select max(select quantity(j) for each item j) where quantity(i) > 1": lambda q, i: (
        max(q) if q[i] > 1 else None
    ),
}


class Trial:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.db = harken.connect(":memory:")
        self.quantity = [random.randint(0, 7) for _ in ITEMS]
        self.text = next(iter(DEFINITIONS))
        given = ", ".join(f":i{i}({i}, {self.quantity[i]})" for i in ITEMS)
        self.db.amosql(f"""
            create type item properties (no integer, quantity integer);
            create function next(item) -> item;
            create item(no, quantity) instances {given};
            set next(:i0) = :i1; set next(:i1) = :i2; set next(:i2) = :i0;
            create function bound(item i) -> integer as {self.text};
            create function scarce(item i) -> boolean as select true where quantity(i) < bound(i);
            create rule low() as for each item i when scarce(i) do print("low", no(i));
            create rule at_once() immediate as for each item i when scarce(i)
                do print("at once", no(i));
            activate low(); activate at_once(); commit;
        """)

    def holds(self) -> set[int]:
        bounds = {i: DEFINITIONS[self.text](self.quantity, i) for i in ITEMS}
        return {i for i, bound in bounds.items() if bound is not None and self.quantity[i] < bound}

    def told(self, text: str) -> list[tuple[object, ...]]:
        return sorted(each.rows[0] for each in self.db.amosql(text))  # type: ignore[type-var]

    def step(self) -> str:
        kind = self.random.choice(("set", "set", "define", "again"))
        if kind == "set":
            i, n = self.random.choice(ITEMS), self.random.randint(0, 7)
            self.quantity[i] = n
            return f"set quantity(:i{i}) = {n};"
        if kind == "define":
            self.text = self.random.choice(list(DEFINITIONS))
            return f"create function bound(item i) -> integer as {self.text};"
        return "deactivate low(); activate low();"

    def transaction(self) -> None:
        start, quantity, text = self.holds(), list(self.quantity), self.text
        again = False
        for _ in range(self.random.randint(1, 4)):
            before = self.holds()
            statement = self.step()
            again |= statement.startswith("deactivate")
            expected = [("at once", i) for i in sorted(self.holds() - before)]
            assert self.told(statement) == expected, statement
        if self.random.random() < 0.2:
            self.db.amosql("rollback;")
            self.quantity, self.text = quantity, text
            return
        gained = self.holds() if again else self.holds() - start
        assert self.told("commit;") == [("low", i) for i in sorted(gained)]


def check(seed: int) -> None:
    trial = Trial(Random(seed))
    with trial.db:
        for _ in range(8):
            trial.transaction()


@some
@given(st.integers(0, 10**9))
def test_rules_act_on_what_data_and_definitions_make_true(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
@many
@given(st.integers(0, 10**9))
def test_rules_act_on_what_data_and_definitions_make_true_at_length(seed: int) -> None:
    check(seed)
