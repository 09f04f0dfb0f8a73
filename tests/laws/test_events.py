"""The law of events: a rule acts on just what `docs/rules.md` says that its events are about.

Rules are random: their condition is made of parts of which it is known where each calls which
function, and with which of the rule's variables. A plain interpreter of the definition then needs
only the rows of every function and of the condition before and after, which it asks for with
ordinary queries:

- `added(f)` occurs with the rows that f gained, `removed(f)` with those that it lost, `updated(f)`
  with both, for arguments for which it gained and lost one.
- Such a row is about a tuple if they agree in the variables that the condition calls f with: its
  arguments, or if no argument is a variable of the rule, its results. Several calls: any of them.
  A call without any: about every tuple. If the condition does not call f: by type.
- A strict rule acts on the tuples that its condition gained and that an event is about; a nervous
  rule, and one without a condition, on all that it holds for and that an event is about.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harken
from harken import Database, HarkenError

Row = tuple[Any, ...]
Rows = dict[str, set[Row]]

relaxed = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
some = settings(max_examples=10, phases=as_found, suppress_health_check=relaxed)
many = settings(max_examples=1_000, suppress_health_check=relaxed)

SCHEMA = """
create type item properties (quantity integer, stock integer);
create type fresh subtype of item;
create type supplier;
create function next(item) -> item;
create function tags(item) -> bag of integer;
create function distance(item, item) -> integer;
create function supplies(supplier) -> item;
create function delivery(item, supplier) -> integer;
create function season() -> integer;
create function worth(item i) -> integer as select quantity(i) * 2;
create function low(item i) -> boolean as select true where worth(i) < 4;
create function beside(item i) -> integer as select quantity(next(i));
create item(quantity, stock) instances :i0(1, 4), :i1(2, 3);
create fresh(quantity, stock) instances :i2(3, 2);
create supplier instances :s0, :s1;
set supplies(:s0) = :i0; set supplies(:s1) = :i1;
set delivery(:i0, :s0) = 1; set delivery(:i1, :s1) = 2; set distance(:i0, :i1) = 1;
set next(:i0) = :i1; set next(:i1) = :i2; set season() = 1;
add tags(:i0) = 1; add tags(:i0) = 2; add tags(:i1) = 2;
create rule onlooker() immediate as for each item i when quantity(i) > 3 do set stock(i) = 0;
commit;
"""

FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "quantity": (("item",), "integer"),
    "stock": (("item",), "integer"),
    "next": (("item",), "item"),
    "tags": (("item",), "integer"),
    "distance": (("item", "item"), "integer"),
    "supplies": (("supplier",), "item"),
    "delivery": (("item", "supplier"), "integer"),
    "season": ((), "integer"),
    "worth": (("item",), "integer"),
    "low": (("item",), "boolean"),
    "beside": (("item",), "integer"),
}
"""Of each function that an event may name, the types of its arguments and of its result."""

TYPES = {"i": "item", "j": "item", "f": "fresh", "s": "supplier", "n": "integer"}

Call = tuple[str | None, ...]
"""The variables that a function is called with, and the one for its result."""


@dataclass(frozen=True)
class Part:
    """A part of a condition: its text, the variables in it, and each call of a function in it."""

    text: str
    variables: str
    calls: dict[str, set[Call]]


PARTS = (
    Part("quantity(i) < 3", "i", {"quantity": {("i", None)}}),
    Part("quantity(i) > quantity(j)", "ij", {"quantity": {("i", None), ("j", None)}}),
    Part("not quantity(i) > 2", "i", {"quantity": {("i", None)}}),
    Part("quantity(next(i)) > 1", "i", {"next": {("i", None)}, "quantity": {(None, None)}}),
    Part("quantity(i) = n", "in", {"quantity": {("i", "n")}}),
    Part("stock(f) > 1", "f", {"stock": {("f", None)}}),
    Part("stock(i) > 2", "i", {"stock": {("i", None)}}),
    Part("next(i) = j", "ij", {"next": {("i", "j")}}),
    Part("count(select x for each item x where next(x) = i) > 0", "i", {"next": {(None, "i")}}),
    Part(
        "notany(select x for each item x where next(x) = i and quantity(x) > 1)",
        "i",
        {"next": {(None, "i")}, "quantity": {(None, None)}},
    ),
    Part("count(select x for each item x where i = next(x)) > 0", "i", {"next": {(None, "i")}}),
    Part(
        "some(select x for each item x where x = i and quantity(x) > 1)",
        "i",
        {"quantity": {("i", None)}},
    ),
    Part("tags(i) = n", "in", {"tags": {("i", "n")}}),
    Part("count(tags(i)) > 1", "i", {"tags": {("i", None)}}),
    Part("supplies(s) = i", "is", {"supplies": {("s", "i")}}),
    Part(
        "some(select s for each supplier s where supplies(s) = i)",
        "i",
        {"supplies": {(None, "i")}},
    ),
    Part("delivery(i, s) > 0", "is", {"delivery": {("i", "s", None)}}),
    Part(
        "some(select s for each supplier s where delivery(i, s) > 1)",
        "i",
        {"delivery": {("i", None, None)}},
    ),
    Part("distance(i, j) > 0", "ij", {"distance": {("i", "j", None)}}),
    Part("season() > 1", "", {"season": {(None,)}}),
    Part("worth(i) > 2", "i", {"worth": {("i", None)}, "quantity": {("i", None)}}),
    Part(
        "low(i) = true",
        "i",
        {"low": {("i", None)}, "worth": {("i", None)}, "quantity": {("i", None)}},
    ),
    Part(
        "beside(i) > 1",
        "i",
        {"beside": {("i", None)}, "next": {("i", None)}, "quantity": {(None, None)}},
    ),
    Part(
        "tclose(next, i) = j", "ij", {"next": {("i", None), (None, "j"), ("i", "j"), (None,) * 2}}
    ),
    Part("i = j", "ij", {}),
    Part("not i = j", "ij", {}),
)
BINDS_NUMBER = ("quantity(i) = n", "tags(i) = n")


@dataclass(frozen=True)
class Rule:
    parts: tuple[Part, ...]
    joined_by: str
    parameters: str
    more_variables: str
    events: tuple[tuple[str, str], ...]
    nervous: bool
    coupling: str

    @property
    def columns(self) -> str:
        inside = {name for part in self.parts for name in part.variables} | set(self.more_variables)
        return self.parameters + "".join(sorted(inside - set(self.parameters)))

    @property
    def variables(self) -> str:
        return self.columns[len(self.parameters) :]

    @property
    def holds(self) -> str:
        return f" {self.joined_by} ".join(f"({part.text})" for part in self.parts)

    def create(self, rule: str) -> str:
        events = ", ".join(f"{kind}({name})" for kind, name in self.events)
        nervous = "nervous" if self.nervous else ""
        ranging = f"for each {declared(self.variables)}" if self.variables else ""
        where = f"where {self.holds}" if ranging and self.parts else self.holds
        when = f"when {ranging} {where}" if ranging or self.parts else ""
        shown = "".join(f", {name}" for name in self.columns)
        options = f"{nervous} {self.coupling} on {events}"
        action = f'print("{rule}"{shown})'
        return f"create rule {rule}({declared(self.parameters)}) {options} as {when} do {action};"

    def query(self, rule: str) -> str:
        given = f"<{', '.join(self.parameters)}>" if self.parameters else "true"
        active = f"{rule}_activations() = {given}"
        ranging = f"for each {declared(self.columns)}" if self.columns else ""
        where = f"{active} and ({self.holds})" if self.parts else active
        return f"select {', '.join(self.columns) or 'true'} {ranging} where {where};"

    def bindings(self, function: str) -> list[dict[int, int]]:
        """The definition: columns of the function with the columns of the rule that they bind."""
        calls = {call for part in self.parts for call in part.calls.get(function, ())}
        arguments, result = FUNCTIONS[function]
        if not calls:
            return [self.by_type(arguments, result)]
        found = []
        for call in calls:
            bound = {n: self.columns.index(name) for n, name in enumerate(call) if name is not None}
            inside = {n: place for n, place in bound.items() if n < len(arguments)}
            found.append(inside or bound)
        return found

    def by_type(self, arguments: tuple[str, ...], result: str) -> dict[int, int]:
        found = self.only_fits(list(enumerate(arguments)))
        if not found and result in ("item", "supplier"):
            found = self.only_fits([(len(arguments), result)])
        return found

    def only_fits(self, given: list[tuple[int, str]]) -> dict[int, int]:
        fits = [
            (n, place)
            for n, type_ in given
            for place, name in enumerate(self.columns)
            if TYPES[name] == type_ or {TYPES[name], type_} == {"item", "fresh"}
        ]
        return {
            n: place
            for n, place in fits
            if [each for each, _ in fits].count(n) == 1
            and [each for _, each in fits].count(place) == 1
        }

    def acts_on(self, rule: str, before: Rows, after: Rows) -> Counter[Row]:
        held, holds = before[rule], after[rule]
        candidates = holds if self.nervous or not self.parts else holds - held
        return Counter(row for row in candidates if self.is_about(row, before, after))

    def is_about(self, row: Row, before: Rows, after: Rows) -> bool:
        return any(
            all(row[place] == changed[column] for column, place in binding.items())
            for kind, function in self.events
            for changed in occurred(kind, function, before, after)
            for binding in self.bindings(function)
        )


def occurred(kind: str, function: str, before: Rows, after: Rows) -> set[Row]:
    gained, lost = after[function] - before[function], before[function] - after[function]
    if kind == "added":
        return gained
    if kind == "removed":
        return lost
    width = len(FUNCTIONS[function][0])
    both = {row[:width] for row in gained} & {row[:width] for row in lost}
    return {row for row in gained | lost if row[:width] in both}


def declared(names: str) -> str:
    return ", ".join(f"{TYPES[name]} {name}" for name in names)


def is_safe(rule: Rule) -> bool:
    """Is a number that is a variable bound by a part, in every alternative?"""
    if "n" not in rule.variables:
        return True
    binding = [part.text in BINDS_NUMBER for part in rule.parts]
    return any(binding) if rule.joined_by == "and" else bool(binding) and all(binding)


OFTEN_CHANGED = ("quantity", "next", "worth", "tags", "quantity", "next", "supplies", "beside")
KINDS = ("added", "removed", "updated")


def made_rule(random: Random) -> Rule:
    """A rule whose events are mostly about functions that its condition calls."""
    while True:
        parts = tuple(random.sample(PARTS, random.choice([0, 1, 1, 2])))
        called = sorted({name for part in parts for name in part.calls})
        names = [random.choice([*OFTEN_CHANGED, *FUNCTIONS]) for _ in range(2)]
        if called and random.random() < 0.75:
            names[0] = random.choice(called)
        rule = Rule(
            parts,
            random.choice(["and", "or"]),
            random.choice(["", "", "", "", "", "i", "s", "ij", "in", "f"]),
            random.choice(["", "", "", "i", "s", "ij", "f"]),
            tuple((random.choice(KINDS), name) for name in names[: random.choice([1, 1, 2])]),
            random.random() < 0.5,
            random.choice(["deferred", "deferred", "immediate", "detached"]),
        )
        if is_safe(rule):
            return rule


CHANGES = (
    *4 * ("set quantity(:{i}) = {n};",),
    *3 * ("set next(:{i}) = :{j};",),
    *2 * ("set stock(:{i}) = {n};", "add tags(:{i}) = {n};", "remove tags(:{i}) = {n};"),
    *2 * ("set supplies(:{s}) = :{i};", "set delivery(:{i}, :{s}) = {n};", "set season() = {n};"),
    "set distance(:{i}, :{j}) = {n};",
    "remove quantity(:{i}) = quantity(:{i});",
    "remove next(:{i}) = next(:{i});",
    "create item(quantity) instances :{i}({n});",
    "create supplier instances :{s};",
    "delete :{i};",
    "delete :{s};",
)


def made_change(random: Random) -> str:
    return random.choice(CHANGES).format(
        i=random.choice(["i0", "i1", "i2"]),
        j=random.choice(["i0", "i1", "i2"]),
        s=random.choice(["s0", "s1"]),
        n=random.randint(0, 4),
    )


MAY_HAPPEN = ("wrong-object", "unknown-variable", "no-value")


@dataclass(frozen=True)
class Transaction:
    changes: list[str]
    strategy: str
    end: str


def made_transaction(random: Random) -> Transaction:
    return Transaction(
        [made_change(random) for _ in range(random.randint(1, 6))],
        random.choice(["adaptive", "incremental", "naive"]),
        random.choice(["commit;", "commit;", "commit;", "commit;", "rollback;"]),
    )


class Watcher:
    """A database with some active rules; runs statements, and asks for the rows of everything."""

    def __init__(self, db: Database, rules: list[Rule], onlooker: bool) -> None:
        self.db = db
        # What the onlooker does after a statement is a check of its own for immediate rules.
        coupling = {"immediate": "deferred"} if onlooker else {}
        rules = [
            replace(each, coupling=coupling.get(each.coupling, each.coupling)) for each in rules
        ]
        self.rules = {f"r{number}": rule for number, rule in enumerate(rules)}
        for prefix, type_ in (("i", "item"), ("s", "supplier")):
            for number, (each,) in enumerate(db.amosql(f"select x for each {type_} x;").rows):
                db.assign(f"{prefix}{number}", each)
        for name, rule in self.rules.items():
            db.amosql(rule.create(name))
            for number in (0, 1):
                given = {"i": f":i{number}", "j": ":i1", "s": f":s{number}", "n": "1", "f": ":i2"}
                arguments = ", ".join(given[each] for each in rule.parameters)
                db.amosql(f"activate {name}({arguments});")
        if onlooker:
            db.amosql("activate onlooker();")
        db.commit()

    def run(self, text: str) -> dict[str, Counter[Row]]:
        """Run a statement; what each rule acted on meanwhile."""
        acted: dict[str, Counter[Row]] = {name: Counter() for name in self.rules}
        try:
            results = self.db.amosql(text)
        except HarkenError as error:
            if error.code not in MAY_HAPPEN:
                raise
            return acted
        for name, *row in (row for result in results for row in result.rows):
            acted[name][tuple(row)] += 1
        return acted

    def state(self) -> Rows:
        """The rows of every condition and of every function that an event names."""
        found: Rows = {}
        for name, rule in self.rules.items():
            holds = self.db.amosql(rule.query(name)).rows
            found[name] = {row if rule.columns else () for row in holds}
        for function in {function for rule in self.rules.values() for _, function in rule.events}:
            arguments, result = FUNCTIONS[function]
            given = [f"x{n}" for n in range(len(arguments))]
            typed = zip((*arguments, result), (*given, "y"), strict=True)
            ranging = ", ".join(f"{type_} {name}" for type_, name in typed)
            call = f"{function}({', '.join(given)})"
            query = f"select {', '.join([*given, 'y'])} for each {ranging} where {call} = y;"
            found[function] = set(self.db.amosql(query).rows)
        return found

    def check(self, is_immediate: bool, acted: Any, before: Rows, after: Rows) -> None:
        """Those that look after each statement, or those that look at the commit, did as they
        should, and the others nothing."""
        for name, rule in self.rules.items():
            looks = is_immediate == (rule.coupling == "immediate")
            expected = rule.acts_on(name, before, after) if looks else Counter()
            assert acted[name] == expected, rule.create(name)

    def watch(self, script: list[Transaction]) -> None:
        for transaction in script:
            self.db.monitoring(transaction.strategy)
            begun = before = self.state()
            for change in transaction.changes:
                acted = self.run(change)
                after = self.state()
                self.check(True, acted, before, after)
                before = after
            acted = self.run(transaction.end)
            after = self.state()
            if transaction.end == "rollback;":
                assert after == begun
            self.check(False, acted, begun, after)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "template.db"
    with harken.connect(str(path)) as db:
        db.amosql(SCHEMA)
    return path


def check(template: Path, path: Path, random: Random) -> None:
    shutil.copy(template, path)
    rules = [made_rule(random) for _ in range(8)]
    with harken.connect(str(path)) as db:
        try:
            watcher = Watcher(db, rules, onlooker=random.random() < 0.4)
            watcher.watch([made_transaction(random) for _ in range(6)])
        finally:
            db.rollback()


# Chosen by a seed, because what hypothesis chooses is mostly too simple for an event to matter.
scenarios = given(seed=st.integers(0, 2**48))


@some
@scenarios
def test_rules_act_on_what_their_events_are_about(
    seed: int, template: Path, tmp_path: Path
) -> None:
    check(template, tmp_path / "watched.db", Random(seed))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@many
@scenarios
def test_rules_act_on_what_their_events_are_about_all_night(
    seed: int, template: Path, tmp_path: Path
) -> None:
    check(template, tmp_path / "watched.db", Random(seed))
