"""The law of joined events: rules act on the items that a plain interpreter names.

Events are updates of three functions of an item. The interpreter keeps, for each item, when things
last happened; its definitions are those of docs/rules.md. Transactions, statements and the passing
of time are random.
"""

from __future__ import annotations

import datetime
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import harken

as_found = [Phase.explicit, Phase.reuse, Phase.generate]
some = settings(max_examples=6, deadline=None, phases=as_found)
many = settings(max_examples=500, deadline=None)

START = datetime.datetime(2026, 3, 2, 7, 0, tzinfo=datetime.UTC)
INTERVAL = datetime.timedelta(minutes=5)
NAMES = ("f", "g", "h")
ITEMS = range(2)
FORMS = (
    "updated({0}) and updated({1})",
    "updated({0}) and not updated({1})",
    "(updated({0}) or updated({1})) and updated({2})",
    "updated({0}) then updated({1})",
    "updated({0}) then updated({1}) within 5 minutes",
    "updated({0}) and updated({1}) within 5 minutes",
    "updated({0}) then not updated({1}) within 5 minutes",
    "5 minutes after updated({0})",
)


class Rule:
    """What the interpreter knows of one rule and one item."""

    def __init__(self, form: int, functions: tuple[str, ...]) -> None:
        self.form, self.functions = form, functions
        self.first: datetime.datetime | None = None
        self.second: datetime.datetime | None = None
        self.due: list[datetime.datetime] = []

    def look(self, changed: set[str], now: datetime.datetime) -> bool:
        a, b, c = (name in changed for name in self.functions)
        match self.form:
            case 0:
                return a and b
            case 1:
                return a and not b
            case 2:
                return (a or b) and c
            case 3 | 4:
                return self.in_order(a, b, now)
            case 5:
                return self.together(a, b, now)
        return self.absent(a, b and self.form == 6, now)

    def in_order(self, a: bool, b: bool, now: datetime.datetime) -> bool:
        recent = self.first is not None and (self.form == 3 or now - self.first <= INTERVAL)
        found = b and recent
        self.first = now if a else None if found else self.first
        return found

    def together(self, a: bool, b: bool, now: datetime.datetime) -> bool:
        self.first, self.second = (now if a else self.first), (now if b else self.second)
        times = (self.first, self.second)
        found = (a or b) and all(t is not None and now - t <= INTERVAL for t in times)
        if found:
            self.first = self.second = None
        return found

    def absent(self, a: bool, b: bool, now: datetime.datetime) -> bool:
        found = any(due <= now for due in self.due)
        self.due = [] if b else [due for due in self.due if due > now]
        self.due += [now + INTERVAL] if a else []
        return found


class Trial:
    def __init__(self, random: Random, coupling: str) -> None:
        self.random, self.now, self.coupling = random, START, coupling
        self.db = harken.connect(":memory:", clock=lambda: self.now)
        properties = ", ".join(f"{name} integer" for name in NAMES)
        self.db.amosql(f"create type item properties (no integer, {properties});")
        self.db.amosql("create function told() -> bag of charstring;")
        values = ", ".join(f":i{i}({i}, 0, 0, 0)" for i in ITEMS)
        self.db.amosql(f"create item(no, f, g, h) instances {values}; commit;")
        self.value = 0
        self.rules: list[dict[int, Rule]] = []
        for form, text in enumerate(FORMS):
            functions = tuple(random.sample(NAMES, 3))
            self.rules.append({i: Rule(form, functions) for i in ITEMS})
            self.db.amosql(
                f"create rule r{form}() {coupling} on {text.format(*functions)} as for each item i "
                f"do add told() = '{form} ' || to_string(no(i)); activate r{form}();"
            )
        self.db.amosql("commit;")

    def told(self) -> list[str]:
        rows = [str(row[0]) for row in self.db.amosql("told();").rows]
        self.db.amosql("".join(f"remove told() = '{row}';" for row in rows))
        return sorted(rows)

    def look(self, changed: dict[int, set[str]], forms: set[int]) -> list[str]:
        return [
            f"{form} {i}"
            for form in forms
            for i in ITEMS
            if self.rules[form][i].look(changed.get(i, set()), self.now)
        ]

    def reached(self, changed: dict[int, set[str]]) -> set[int]:
        """The rules that look: something that their events are about has changed."""
        names = {name for each in changed.values() for name in each}
        return {
            form for form, text in enumerate(FORMS)
            for i, name in enumerate(self.rules[form][0].functions)
            if f"{{{i}}}" in text and name in names
        }  # fmt: skip

    def step(self) -> None:
        self.now += datetime.timedelta(minutes=self.random.choice((1, 2, 4)))
        changed: dict[int, set[str]] = {}
        expected: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            i, name = self.random.choice(ITEMS), self.random.choice(NAMES)
            self.value += 1
            self.db.amosql(f"set {name}(:i{i}) = {self.value};")
            changed.setdefault(i, set()).add(name)
            if self.coupling == "immediate":
                expected += self.look({i: {name}}, self.reached({i: {name}}))
        self.db.amosql("commit;")
        if self.coupling == "deferred":
            expected += self.look(changed, self.reached(changed))
        assert (self.now, self.told()) == (self.now, sorted(expected))
        self.db.amosql("commit;")
        if self.random.random() < 0.5:
            self.pass_time()

    def pass_time(self) -> None:
        self.now += datetime.timedelta(minutes=self.random.choice((1, 3, 5)))
        due = {
            form
            for form, rules in enumerate(self.rules)
            if any(at <= self.now for rule in rules.values() for at in rule.due)
        }
        self.db.run_due()
        assert (self.now, self.told()) == (self.now, sorted(self.look({}, due)))
        self.db.amosql("commit;")


def check(seed: int) -> None:
    random = Random(seed)
    trial = Trial(random, random.choice(("deferred", "immediate")))
    with trial.db:
        for _ in range(12):
            trial.step()


@some
@given(st.integers(0, 10**9))
def test_rules_act_on_joined_events_as_a_plain_interpreter_says(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
@many
@given(st.integers(0, 10**9))
def test_rules_act_on_joined_events_as_a_plain_interpreter_says_at_length(seed: int) -> None:
    check(seed)
