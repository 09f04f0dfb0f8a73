"""Part of `harken bench closure`: recursive programs that calculate, by each strategy.

Here the ways differ by far more than over graphs: a strategy that asks for one row after the other
may ask for more rows than there are, and one that follows a change may follow it through rows that
nobody joins with. So each is broken off when one change takes too long, and what counts is that
Harken's choice stays close to the best, and that no other is far behind without being broken off.

Law: all strategies see the same changes, and tell the same.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from harken.bench.contestants import Contestant, Fact, contestant, in_turns, learn
from harken.bench.figures import Figure, cpu_time
from harken.maintenance.strategies import Strategy

AUTO = "auto"
STRATEGIES = (
    Strategy.EXTERNAL,
    Strategy.MATERIALIZED,
    Strategy.COUNTING,
    Strategy.NAIVE,
    AUTO,
)
CHOICE, SPREAD = "<= 1.5", "<= 20"
PATIENCE = 5.0
"""Seconds after which a strategy is broken off on its first change."""
SHORT, MOST = 3.0, 20
"""The seconds for the rounds that count, and the most rounds."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A program, the view that is watched, its facts, and the relation that changes."""

    name: str
    view: str
    text: str
    facts: Mapping[str, Sequence[Fact]]
    changes: str

    def changing(self, relation: str) -> Calculation:
        return replace(self, name=f"{self.name}, {relation} changes", changes=relation)


NUMBERS = """.decl num(x: number)
.decl mark(x: number)
.decl succ(x: number, y: number)
.decl add(x: number, y: number, z: number)
.decl mul(x: number, y: number, z: number)
.decl exp(x: number, y: number, z: number)
succ(x, y) :- num(x), num(y), y = x + 1.
add(0, y, y) :- num(y).
add(x, y, z) :- succ(w, x), add(w, y, u), succ(u, z).
mul(0, y, 0) :- num(y).
mul(x, y, z) :- succ(w, x), mul(w, y, u), add(u, y, z).
exp(x, 0, 1) :- num(x).
exp(x, y, z) :- succ(w, y), exp(x, w, u), mul(u, x, z).
"""
TAK = """.decl num(x: number)
.decl call(x: number, y: number, z: number)
.decl tak(x: number, y: number, z: number, v: number)
.decl answer(x: number, y: number, z: number, v: number)
tak(x, y, z, z) :- num(x), num(y), num(z), x <= y.
tak(x, y, z, v) :-
    tak(x - 1, y, z, a), tak(y - 1, z, x, b), tak(z - 1, x, y, c), tak(a, b, c, v), x > y.
answer(x, y, z, v) :- call(x, y, z), tak(x, y, z, v).
"""
BOARD = """.decl cell(p: number)
.decl line(a: number, b: number, c: number)
.decl reach(b: number, t: number)
.decl won(b: number, t: number)
reach(0, 1).
reach(c, u) :- reach(b, t), cell(p), (b / p) % 3 = 0, c = b + t * p, u = 3 - t.
won(b, t) :- reach(b, u), line(x, y, z), t = 3 - u,
    (b / x) % 3 = t, (b / y) % 3 = t, (b / z) % 3 = t.
"""
SIEVE = """.decl num(x: number)
.decl skip(x: number)
.decl last(n: number)
.decl multiple(p: number, x: number)
.decl prime(x: number)
multiple(x, x + x) :- num(x), last(n), x + x <= n.
multiple(x, z + x) :- multiple(x, z), last(n), z + x <= n.
prime(x) :- num(x), !multiple(_, x), !skip(x).
"""
LARGEST = """.decl k(x: number)
.decl p(x: number, v: number)
.decl s(x: number, n: number)
.decl q(x: number, w: number)
s(x, n) :- k(x), n = max v : { p(x, v) }.
q(x, w) :- s(x, y), s(y, z), s(z, w).
"""
ANY = """.decl a(x: number)
.decl b(x: number, y: number)
.decl r(x: number)
r(x) :- a(x), b(_, y), b(y, _).
"""


def _ones(numbers: range) -> list[Fact]:
    return [(each,) for each in numbers]


def calculations() -> tuple[Calculation, ...]:
    numbers = {"num": _ones(range(61)), "mark": _ones(range(15))}
    sums = Calculation(
        "sums of squares",
        "sums",
        f"{NUMBERS}.decl sums(x: number, y: number, z: number)\n"
        "sums(x, y, z) :- mark(x), mark(y), exp(x, 2, a), exp(y, 2, b), add(a, b, z).\n",
        numbers,
        "mark",
    )
    factors = Calculation(
        "no factors",
        "prime",
        f"{NUMBERS}.decl composite(z: number)\n.decl prime(x: number)\n"
        "composite(z) :- mul(x, y, z), x > 1, y > 1.\n"
        "prime(x) :- num(x), x > 1, !composite(x), !mark(x).\n",
        numbers,
        "mark",
    )
    calls = [(x, y, z) for x in range(9) for y in range(9) for z in range(0, 9, 4) if x > y]
    tak = Calculation("tak", "answer", TAK, {"num": _ones(range(9)), "call": calls}, "call")
    lines = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
    board: dict[str, Sequence[Fact]] = {
        "cell": [(3**i,) for i in range(9)],
        "line": [(3**a, 3**b, 3**c) for a, b, c in lines],
    }
    sieve: dict[str, Sequence[Fact]] = {
        "num": _ones(range(2, 500)),
        "skip": _ones(range(2, 500, 30)),
        "last": [(500,)],
    }
    primes = Calculation("sieve", "prime", SIEVE, sieve, "skip")
    keys = 100
    largest: dict[str, Sequence[Fact]] = {
        "k": _ones(range(keys)),
        "p": [(x, v) for x in range(keys) for v in ((x + 1) % keys, x // 2)],
    }
    pairs: dict[str, Sequence[Fact]] = {
        "a": _ones(range(1_000)),
        "b": [(x, x) for x in range(1_000)],
    }
    return (
        sums,
        sums.changing("num"),
        factors,
        tak,
        Calculation("board", "won", BOARD, board, "cell"),
        primes,
        primes.changing("num"),
        Calculation("largest", "q", LARGEST, largest, "p"),
        Calculation("any", "r", ANY, pairs, "a"),
    )


def figures(rounds: int = 5, programs: Sequence[Calculation] | None = None) -> Iterator[Figure]:
    for program in calculations() if programs is None else programs:
        yield from _figures(program, rounds)


def _figures(program: Calculation, rounds: int) -> Iterator[Figure]:
    params = {"view": program.name}
    random = Random(1)
    chosen = partial(random.sample, list(program.facts[program.changes]), 1)
    with contextlib.ExitStack() as stack:
        field: list[Contestant] = []
        for strategy in STRATEGIES:
            each = contestant(program.text, program.view, strategy, program.facts, stack)
            if strategy == AUTO or each.keeps_up(program.changes, chosen(), PATIENCE):
                field.append(each)
            else:
                yield Figure("closure", f"{strategy} is broken off", 1, params)
        for _ in range(2):
            in_turns(field, program.changes, chosen(), random, counts=False)
        learn(field[-1], program.changes, chosen)
        until = cpu_time() + SHORT
        for number in range(MOST):
            if number >= rounds and cpu_time() > until:
                break
            in_turns(field, program.changes, chosen(), random, counts=True)
        took = {each.strategy: statistics.mean(each.times) for each in field}
    for strategy, seconds in took.items():
        yield Figure("closure", f"{strategy} ms", seconds * 1e3, params)
    others = [seconds for strategy, seconds in took.items() if strategy != AUTO]
    yield Figure("closure", "auto/best", took[AUTO] / min(others), params, CHOICE)
    yield Figure("closure", "worst/best", max(others) / min(others), params, SPREAD)
