"""Law: what a monitor tells is the difference of two plain runs, whatever a rule is made of.

The random programs of the other laws are of atoms, comparisons and simple aggregates; here are the
rest: generators, witnesses, aggregates in aggregates and in negations, floats, texts, relations
without attributes, and those that are written out."""

from __future__ import annotations

from random import Random

import pytest

import harken

DECLARATIONS = """
    .decl e(x: number, y: number)
    .decl v(x: number, s: symbol)
    .decl f(x: number, w: float)
    .decl u(x: number)
    .decl ready()
    .decl near(x: number, y: number) inline
    near(x, y) :- x - y < 2, y - x < 2.
    .decl r(x: number, y: number)
    r(x, y) :- e(x, y).
    r(x, z) :- r(x, y), e(y, z).
"""
KINDS = {"e": "nn", "v": "ns", "f": "nf", "u": "n", "ready": ""}
BODIES = (
    "u(x), y = range(0, x)",
    "u(x), y = range(x, 0, -2), !r(x, y)",
    "y = count : { z = range(x, 4), r(x, z) }, u(x)",
    "y = max t : { r(x, t) }",
    "y = min t : { r(x, t), u(x) }",
    "u(x), y = max n : { u(t), n = count : { r(t, _) } }",
    "u(x), y = sum n : { r(x, t), n = min w : { e(t, w) } }",
    "y = sum t * t : { r(t, _), u(t) }, e(x, _)",
    "r(x, y), y > min t : { u(t) }, 2 <= count : { e(_, _) }",
    "e(x, y), !r(y, max t : { u(t) })",
    "f(x, w), w >= mean q : { f(_, q) }, y = to_number(w)",
    "f(x, w), w = min q : { f(y, q) }",
    "u(x), y = to_number(sum w : { f(x, w) } * 4.0)",
    "v(x, s), v(y, cat(s, \"a\"))",
    "v(x, s), y = strlen(s) + ord(s) % 3, !match(\"b.*\", s)",
    "r(x, y), ready()",
    "e(x, y), !ready()",
    "u(x), u(y), near(x, y)",
    "u(x), u(y), !near(x, y), !r(x, y)",
    "(u(x), y = x ; r(x, y), !(u(x) ; v(y, _)))",
    "r(x, y), r(y, x + 1)",
    "e(x, t), y = max(x, t) bxor 1",
)  # fmt: skip
VIEWS = [f"p{number}" for number in range(len(BODIES))]
PROGRAM = DECLARATIONS + "\n".join(
    f".decl {name}(x: number, y: number) {name}(x, y) :- {body}."
    for name, body in zip(VIEWS, BODIES, strict=True)
)
TRANSACTIONS = 8

Row = tuple[int | float | str, ...]
World = dict[str, set[Row]]


def row(random: Random, kinds: str) -> Row:
    values = {
        "n": lambda: random.randint(-1, 4),
        "s": lambda: random.choice(["a", "b", "ab", "ba", ""]),
        "f": lambda: random.choice([0.5, 1.0, 2.5, -1.25]),
    }
    return tuple(values[kind]() for kind in kinds)


def fact(name: str, values: Row) -> str:
    shown = (f'"{each}"' if isinstance(each, str) else repr(each) for each in values)
    return f"{name}({', '.join(shown)})."


def changed(world: World, random: Random) -> tuple[World, str]:
    """Facts that come and go, and the script that says so."""
    after = {name: set(rows) for name, rows in world.items()}
    lines = []
    for name, kinds in KINDS.items():
        for each in sorted(after[name]):
            if random.random() < 0.25:
                after[name].discard(each)
                lines.append(f"-{fact(name, each)}")
        for _ in range(random.randint(0, 2)):
            new = row(random, kinds)
            after[name].add(new)
            lines.append(f"+{fact(name, new)}")
    return after, "\n".join(lines)


def plain_run(world: World) -> dict[str, set[Row]]:
    facts = "\n".join(fact(name, each) for name, rows in world.items() for each in sorted(rows))
    with harken.connect() as db:
        outputs = db.datalog(f"{PROGRAM}\n{facts}\n.output {', '.join(VIEWS)}")
        return {name: set(each.rows) for name, each in zip(VIEWS, outputs, strict=True)}


@pytest.mark.parametrize("strategy", ["external", "materialized", "counting", "auto"])
def test_monitors_tell_the_difference_of_plain_runs(strategy: str) -> None:
    random = Random(f"constructs {strategy}")
    world: World = {name: set() for name in KINDS}
    before = plain_run(world)
    told = 0
    with harken.connect() as db:
        db.datalog(PROGRAM)
        monitors = {name: db.monitor(name, strategy=strategy) for name in VIEWS}
        for _ in range(TRANSACTIONS):
            world, script = changed(world, random)
            after = plain_run(world)
            db.datalog(script)
            for name, body in zip(VIEWS, BODIES, strict=True):
                changes = monitors[name].changes()
                plus = {each for change in changes for each in change.plus}
                minus = {each for change in changes for each in change.minus}
                expected = (after[name] - before[name], before[name] - after[name])
                assert (plus, minus) == expected, f"{body}\n{script}"
                told += len(plus) + len(minus)
            before = after
    assert told > 100, "programs that derive nothing say nothing"
