"""Law: however the change of a recursive view is found (with nothing stored, with a stored copy, by
recomputing, or by whichever of these is the fastest), it is the difference of two recomputations,
and a client that applies the changes holds exactly the view."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

import pytest

import harken
from harken.engines.sqlite import race, recursion
from harken.maintenance import tuning
from tests.generators.datalog_programs import (
    Const,
    Lit,
    Maker,
    RandomProgram,
    RandomRule,
    Var,
    Wild,
    fact,
    text_of,
)
from tests.models.datalog_interpreter import World, meaning

PROGRAMS, AT_ONCE = 30, 5
TRANSACTIONS, MORE_TRANSACTIONS = 12, 68
NIGHTLY = 100_000
QUERIES = 40
STRATEGIES = ("external", "materialized")
OTHERS = ("naive", "auto", "counting")

Row = tuple[int | str, ...]


def small_program(seed: int) -> tuple[RandomProgram, Random]:
    """A program with recursion: one of those that people write, over a small graph, or a random one
    that is not too long and derives something by recursion."""
    random = Random(seed)
    if seed % 2:
        return graph_program(random), random
    while True:
        program = Maker(random).program()
        groups = [group for group in program.groups if recurs(program, group)]
        if len(program.rules) <= 6 and groups:
            world = meaning(program)
            if any(len(world[name]) > 1 for group in groups for name in group):
                return program, random


Shape = tuple[list[list[str]], list[str]]


def graph_program(random: Random, shapes: list[Shape] | None = None) -> RandomProgram:
    """Some rules over edges, of which a few make cycles."""
    groups, rules = random.choice(shapes or SHAPES)
    columns = {"edge": "nn", "node": "n"}
    for text in rules:
        for atom in re.findall(r"(\w+)\(([^)]*)\)", text):
            columns.setdefault(atom[0], "n" * len(atom[1].split(",")))
    edges = {(random.randint(0, 5), random.randint(0, 5)) for _ in range(random.randint(4, 9))}
    facts: dict[str, set[Row]] = {
        "edge": {(int(x), int(y)) for x, y in edges},
        "node": {(each,) for each in range(6)},
    }
    return RandomProgram(columns, ["edge", "node"], groups, [rule(each) for each in rules], facts)


SHAPES: list[Shape] = [
    ([["p"]], ["p(x,y) :- edge(x,y)", "p(x,y) :- edge(x,z), p(z,y)"]),
    ([["p"]], ["p(x,y) :- edge(x,y)", "p(x,y) :- p(x,z), edge(z,y)"]),
    ([["p"]], ["p(x,y) :- edge(x,y)", "p(x,y) :- p(x,z), p(z,y)"]),
    ([["r"]], ["r(0) :- node(0)", "r(y) :- r(x), edge(x,y)"]),
    (
        [["p"], ["r"], ["u"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- p(x,z), edge(z,y)",
            "r(y) :- p(0,y)",
            "u(x) :- node(x), !r(x)",
        ],
    ),
    (
        [["p"], ["u"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- edge(x,z), p(z,y)",
            "u(x,y) :- node(x), node(y), !p(x,y)",
        ],
    ),
    (
        [["p"], ["q"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- p(x,z), edge(z,y)",
            "q(x) :- node(x), !p(x,x)",
            "q(y) :- q(x), edge(y,x), !p(x,y)",
        ],
    ),
    ([["g"]], ["g(x,x) :- node(x)", "g(x,y) :- edge(v,x), g(v,w), edge(w,y)"]),
    (
        [["odd", "even"]],
        [
            "odd(x,y) :- edge(x,y)",
            "even(x,y) :- odd(x,z), edge(z,y)",
            "odd(x,y) :- even(x,z), edge(z,y)",
        ],
    ),
    (
        [["p"], ["c"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- edge(x,z), p(z,y)",
            "c(x,n) :- node(x), n = count p(x,_)",
        ],
    ),
    (
        [["p"], ["c"], ["t"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- p(x,z), edge(z,y)",
            "c(x,n) :- node(x), n = count p(_,x)",
            "t(x,n) :- c(x,n)",
            "t(y,n) :- t(x,n), edge(x,y), !c(y,0)",
        ],
    ),
    (
        [["p"], ["a"], ["c"]],
        [
            "p(x,y) :- edge(x,y)",
            "p(x,y) :- p(x,z), edge(z,y)",
            "a(n) :- n = count p(_,_)",
            "c(x,n) :- node(x), n = count p(x,_), edge(x,_)",
        ],
    ),
    (
        [["q"], ["a"], ["c"]],
        [
            "q(x,y) :- edge(x,y)",
            "q(x,y) :- edge(x,z), edge(z,y)",
            "a(n) :- n = count q(_,_)",
            "c(x,n) :- node(x), n = count q(x,_)",
        ],
    ),
]


def rule(text: str) -> RandomRule:
    """`p(x,y) :- edge(x,z), !q(z), n = count p(x,_)`, as the data of a random program."""
    head, body = text.split(" :- ")
    literals = [literal(each) for each in re.findall(r"(?:n = count )?!?\w+\([^)]*\)", body)]
    name, terms = atom(head)
    return RandomRule(((name, tuple(_expr(each) for each in terms)),), tuple(literals))


def literal(text: str) -> Lit:
    if text.startswith("n = "):
        inner = literal(text.removeprefix("n = count "))
        return Lit("aggregate", operator="count", left=Var("n"), inner=(inner,))
    name, terms = atom(text.removeprefix("!"))
    kind = "not" if text.startswith("!") else "atom"
    wild = tuple(Wild(i) if each == "_" else _expr(each) for i, each in enumerate(terms))
    return Lit(kind, name, wild)


def atom(text: str) -> tuple[str, list[str]]:
    name, _, terms = text.partition("(")
    return name, terms.removesuffix(")").split(",")


def _expr(text: str) -> Var | Const:
    return Const(int(text)) if text.isdigit() else Var(text)


def recurs(program: RandomProgram, group: list[str]) -> bool:
    return any(
        each.relation in group
        for rule in program.rules
        if any(name in group for name, _ in rule.heads)
        for each in rule.body
    )


class Client:
    """Someone who asked for all views once, and applies the changes since."""

    def __init__(
        self,
        text: str,
        strategy: str,
        views: list[str],
        world: World,
        db: harken.Database | None = None,
    ) -> None:
        self.strategy = strategy
        self.db = harken.connect() if db is None else db
        self.db.datalog(text)
        self.rows = {view: set(world[view]) for view in views}
        self.monitors = {view: self.db.monitor(view, strategy=strategy) for view in views}

    def follow(self, script: str, world: World, told_by: str) -> None:
        before = {view: set(rows) for view, rows in self.rows.items()}
        self.db.datalog(script)
        for view, monitor in self.monitors.items():
            changes = monitor.changes()
            told = [(set(each.plus), set(each.minus)) for each in changes]
            wanted = (world[view] - before[view], before[view] - world[view])
            assert told == ([wanted] if any(wanted) else []), f"{told_by}\n{view} {self.strategy}"
            for each in changes:
                self.rows[view] -= set(each.minus)
                self.rows[view] |= set(each.plus)
            assert self.rows[view] == world[view], f"{told_by}\n{view} {self.strategy}"


def transaction(program: RandomProgram, random: Random, gone: list[tuple[str, Row]]) -> str:
    """Facts of several relations that come, go and come again, some of them in vain."""
    maker = Maker(random)
    lines = []
    for name in program.stored:
        rows = program.facts[name]
        steps: list[tuple[str, Row]] = []
        for row in sorted(maker.rows(program.columns[name], random.randint(0, 2)), key=repr):
            steps.append(("+", row))
        steps += [("-", row) for row in sorted(rows, key=repr) if random.random() < 0.2]
        steps += [("+", row) for known, row in gone if known == name and random.random() < 0.3]
        random.shuffle(steps)
        for sign, row in steps:
            if sign == "+":
                rows.add(row)
            else:
                rows.discard(row)
                gone.append((name, row))
            lines.append(f"{sign}{fact(name, row)}.")
    del gone[:-6]
    return "\n".join(lines)


def follow(
    clients: Sequence[Client], program: RandomProgram, random: Random, text: str, transactions: int
) -> None:
    """Let all of them follow the same transactions; `text` is what led up to them."""
    gone: list[tuple[str, Row]] = []
    for _ in range(transactions):
        script = transaction(program, random, gone)
        text += f"\n.commit\n{script}"
        world = meaning(program)
        for client in clients:
            client.follow(script, world, text)


def compare(seed: int, transactions: int) -> int:
    program, random = small_program(seed)
    text = text_of(program, random)
    world = meaning(program)
    views = program.derived[-2:]
    strategies = (*STRATEGIES, *([OTHERS[seed // 3 % 3]] if seed % 3 == 0 else []))
    clients = [Client(text, strategy, views, world) for strategy in strategies]
    follow(clients, program, random, text, transactions)
    for client in clients:
        client.db.close()
    return transactions


@pytest.mark.parametrize(
    "transactions", [TRANSACTIONS, pytest.param(MORE_TRANSACTIONS, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_all_strategies_tell_the_difference_of_recomputations(
    first: int, transactions: int
) -> None:
    for seed in range(first, first + AT_ONCE):
        compare(seed, transactions)


def test_there_are_enough_pairs() -> None:
    assert PROGRAMS * TRANSACTIONS >= 300
    assert PROGRAMS * MORE_TRANSACTIONS >= 2_000


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_many_programs_and_transactions() -> None:
    done, seed = 0, PROGRAMS
    while done < NIGHTLY:
        done += compare(seed, 20)
        seed += 1
        if seed % 100 == 0:
            print(f"{done} pairs", flush=True)


@pytest.mark.parametrize("first", range(0, 10, AT_ONCE))
def test_a_choice_by_experience_tells_the_same_whatever_it_chooses(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ways are changed often: rows are stored, used, not used and dropped within a few changes."""
    monkeypatch.setattr(tuning, "FIRST_RUN", 0.05)
    monkeypatch.setattr(tuning, "SHORT_RUN", 0.0)
    for seed in range(first, first + AT_ONCE):
        program, random = small_program(1_000 + seed)
        text = text_of(program, random)
        client = Client(text, "auto", program.derived[-2:], meaning(program))
        client.db.internals.engine.connection.working_time = random_clock(random)
        gone: list[tuple[str, Row]] = []
        for _ in range(25):
            script = transaction(program, random, gone)
            text += f"\n.commit\n{script}"
            client.follow(script, meaning(program), text)
        client.db.close()


@pytest.fixture
def small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation on demand and as a whole take turns from the start, and each rule reads one new
    row at a time."""
    monkeypatch.setattr(race, "HEAD_START", 1)
    monkeypatch.setattr(recursion, "FIRST_PORTION", 1)
    monkeypatch.setattr(recursion, "_next_portion", lambda portion, work: 1)


@pytest.mark.usefixtures("small_turns")
@pytest.mark.parametrize("first", range(0, 20, AT_ONCE))
def test_two_ways_in_turns_tell_the_difference_of_recomputations(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        compare(3_000 + seed, 6)


@pytest.mark.usefixtures("small_turns")
@pytest.mark.parametrize("first", range(0, QUERIES, 2 * AT_ONCE))
def test_a_query_that_two_ways_answer_in_turns_has_the_same_rows(first: int) -> None:
    ask_with_constants(range(first + 4_000, first + 4_000 + 2 * AT_ONCE))


def random_clock(random: Random) -> Callable[[], float]:
    times = [0.0]

    def clock() -> float:
        times[0] += random.choice([0.0, 1e-5, 1e-3, 0.1])
        return times[0]

    return clock


@pytest.mark.parametrize("first", range(0, QUERIES, 2 * AT_ONCE))
def test_a_query_with_constants_has_the_rows_with_these_constants(first: int) -> None:
    """All binding patterns, by constants and by what is joined."""
    ask_with_constants(range(first + 2_000, first + 2_000 + 2 * AT_ONCE))


def ask_with_constants(seeds: Sequence[int]) -> None:
    for seed in seeds:
        program, random = small_program(seed)
        text = text_of(program, random)
        world = meaning(program)
        with harken.connect() as db:
            db.datalog(text)
            for name in program.derived:
                for _ in range(3):
                    query, wanted = question(program, name, world, random)
                    found = db.datalog(f"?- {query}.")[-1].rows
                    assert sorted(found) == sorted(wanted), f"{text}\n?- {query}."


def question(
    program: RandomProgram, name: str, world: World, random: Random
) -> tuple[str, list[tuple[object, ...]]]:
    """An atom with constants in some places, of rows that are there or are not."""
    kinds = program.columns[name]
    rows = sorted(world[name], key=repr)
    like = random.choice(rows) if rows and random.random() < 0.7 else None
    maker = Maker(random)
    terms: list[Var | Const] = []
    for place, kind in enumerate(kinds):
        if random.random() < 0.5:
            terms.append(Const(like[place] if like is not None else maker.value(kind)))
        else:
            terms.append(Var(f"x{place}"))
    free = [i for i, term in enumerate(terms) if isinstance(term, Var)]
    matching = [
        row
        for row in rows
        if all(not isinstance(t, Const) or t.value == row[i] for i, t in enumerate(terms))
    ]
    shown = ", ".join(_shown(term) for term in terms)
    if not free:
        return f"{name}({shown})", [(bool(matching),)]
    return f"{name}({shown})", [tuple(row[i] for i in free) for row in matching]


def _shown(term: Var | Const) -> str:
    if isinstance(term, Var):
        return term.name
    return f'"{term.value}"' if isinstance(term.value, str) else str(term.value)
