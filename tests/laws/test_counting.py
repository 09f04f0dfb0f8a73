"""Law: with counted derivations the change of a view is the difference of two recomputations, as it
is by differentials, whenever counting begins and ends."""

from __future__ import annotations

import sqlite3
from collections import Counter
from random import Random

import pytest

import harken
from harken.maintenance import tuning
from harken.maintenance.nodes import ViewNode
from tests.generators.datalog_programs import Maker, RandomProgram, text_of
from tests.laws.test_recursive_views import Client, Shape, graph_program, random_clock, transaction
from tests.models.datalog_interpreter import meaning

PROGRAMS, AT_ONCE, TRANSACTIONS = 36, 6, 15

Row = tuple[int | str, ...]


def program_of(seed: int) -> tuple[RandomProgram, Random]:
    """A random program that is not too long, with or without recursion."""
    random = Random(seed)
    while True:
        program = Maker(random).program()
        if len(program.rules) <= 8:
            return program, random


SHAPES: list[Shape] = [
    ([["p"]], ["p(x) :- edge(x,y)"]),
    ([["p"]], ["p(x) :- edge(x,y), edge(y,z), node(z)"]),
    ([["q"]], ["q(x,z) :- edge(x,y), edge(y,z)", "q(x,y) :- edge(y,x)", "q(x,x) :- node(x)"]),
    ([["r"]], ["r(x) :- edge(x,y), !edge(y,x)", "r(x) :- edge(y,x), node(y)"]),
    ([["p"], ["q"]], ["p(x) :- edge(x,y)", "q(z) :- p(x), edge(x,y), edge(y,z)"]),
    ([["c"], ["q"]], ["c(x,n) :- node(x), n = count edge(x,_)", "q(n) :- c(x,n), edge(x,y)"]),
    (
        [["t"], ["q"]],
        ["t(x,y) :- edge(x,y)", "t(x,y) :- t(x,z), edge(z,y)", "q(x) :- t(x,y), edge(y,x)"],
    ),
]


def shaped(seed: int) -> tuple[RandomProgram, Random]:
    """Rules over edges that give a row in many ways, one of them over what is recursive."""
    random = Random(seed)
    groups, rules = SHAPES[seed % len(SHAPES)]
    return graph_program(random, [(groups, rules)]), random


def nodes(client: Client) -> list[ViewNode]:
    found = client.db.internals.network.graph.nodes.values()
    return [each for each in found if isinstance(each, ViewNode)]


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_counting_tells_the_difference_of_recomputations(first: int) -> None:
    counted = 0
    for seed in range(first, first + AT_ONCE):
        program, random = (shaped if seed % 2 else program_of)(seed)
        text, world = text_of(program, random), meaning(program)
        client = Client(text, "counting", program.derived[-4:], world)
        gone: list[tuple[str, Row]] = []
        for _ in range(TRANSACTIONS):
            script = transaction(program, random, gone)
            text += f"\n.commit\n{script}"
            client.follow(script, meaning(program), text)
        counted += sum(1 for each in nodes(client) if each.counted is not None)
        client.db.close()
    assert counted


@pytest.mark.parametrize("first", range(0, 18, AT_ONCE))
def test_whenever_it_begins_and_ends(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "COUNTING_OVERHEAD", 0.0)
    monkeypatch.setattr(tuning, "MANY_RUNS", 2)
    monkeypatch.setattr(tuning, "INVESTMENT", 50.0)
    monkeypatch.setattr(tuning, "SHORT_RUN", 0.0)
    monkeypatch.setattr(tuning, "SECONDS_PER_ROW", 0.0)
    counted: Counter[bool] = Counter()
    for seed in range(first, first + AT_ONCE):
        program, random = shaped(seed)
        text = text_of(program, random)
        client = Client(text, "auto", program.derived[-1:], meaning(program))
        client.db.internals.engine.connection.working_time = random_clock(random)
        gone: list[tuple[str, Row]] = []
        for _ in range(2 * TRANSACTIONS):
            script = transaction(program, random, gone)
            text += f"\n.commit\n{script}"
            client.follow(script, meaning(program), text)
            for node in nodes(client):
                if node.counting_history is not None:
                    counted[node.counting_history.is_counting] += 1
                    node.counting_history.was_useless = False
        client.db.close()
    assert counted[True]
    assert counted[False]


SCHEMA = "CREATE TABLE a (x INT, y INT NOT NULL); CREATE TABLE b (y INT NOT NULL, z INT)"
SETS = [
    "SELECT DISTINCT x FROM a",
    "SELECT DISTINCT a.x, b.z FROM a JOIN b ON a.y = b.y WHERE a.x > 1 OR b.z IS NULL",
    "SELECT x FROM a UNION SELECT z FROM b",
    "SELECT DISTINCT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.y = a.y)",
    "SELECT DISTINCT x FROM (SELECT x, count(*) AS n FROM a GROUP BY x, y) AS g WHERE n > 1",
]


def changes(random: Random) -> list[str]:
    steps = []
    for _ in range(random.randint(1, 4)):
        name, (one, other) = random.choice([("a", "xy"), ("b", "yz")])
        values = {each: random.choice(["1", "2", "3", "NULL"]) for each in "xz"}
        values["y"] = str(random.randint(1, 3))
        if random.random() < 0.6:
            steps.append(f"INSERT INTO {name} VALUES ({values[one]}, {values[other]})")
        else:
            where = f"{one} IS {values[one]} AND {other} IS {values[other]}"
            steps.append(f"DELETE FROM {name} WHERE {where}")
    return steps


@pytest.mark.parametrize("query", SETS)
def test_sets_of_rows_that_may_be_null(query: str) -> None:
    random, other = Random(query), sqlite3.connect(":memory:")
    other.executescript(SCHEMA)
    with harken.connect() as db:
        db.sql(f"{SCHEMA}; CREATE VIEW v AS {query}")
        monitor, held = db.monitor("v", strategy="counting"), set[tuple[object, ...]]()
        for number in range(40):
            steps = changes(random)
            other.executescript("; ".join(steps))
            text = "; ".join(steps).replace(" IS ", " <=> ")
            if number % 9 == 8:  # what was undone leaves no trace in the numbers
                db.sql("BEGIN; INSERT INTO a VALUES (1, 1), (NULL, 2); DELETE FROM b; ROLLBACK")
            db.sql(f"BEGIN; {text}; COMMIT")
            for change in monitor.changes():
                assert not held & set(change.plus)
                assert held >= set(change.minus)
                held = (held | set(change.plus)) - set(change.minus)
            assert held == set(other.execute(query).fetchall()), text
        assert "derivations are counted" in str(db.explain("v", verbose=True))
    other.close()
