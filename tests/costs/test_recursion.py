"""Recursive queries and changes cost at most a small multiple of the best way to evaluate them.

Law: what counts here is the work of SQLite, whatever the machine does besides.
"""

from __future__ import annotations

from random import Random

import pytest

import harken
from tests.harness.counting import cost

TAK = """
.decl n(x: number)
.decl tak(x: number, y: number, z: number, v: number)
n(0). n(x + 1) :- n(x), x < 8.
tak(x, y, z, z) :- n(x), n(y), n(z), x <= y.
tak(x, y, z, v) :-
    tak(x - 1, y, z, a), tak(y - 1, z, x, b), tak(z - 1, x, y, c), tak(a, b, c, v), x > y.
"""
"""Each call asks for others whose arguments are the results of still others."""

SIEVE = """
.decl limit(n: number)
.decl num(x: number)
.decl multiple(x: number)
.decl prime(x: number)
num(2). num(x + 1) :- num(x), limit(n), x < n.
multiple(z) :- num(x), num(y), z = x * y, limit(n), z <= n.
prime(x) :- num(x), !multiple(x).
"""

PATH = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def _steps(db: harken.Database, text: str) -> int:
    return cost(db, lambda: db.datalog(text)).steps


def test_a_call_with_constants_costs_a_small_multiple_of_the_whole_relation() -> None:
    with harken.connect() as db:
        db.datalog(TAK)
        whole = _steps(db, "?- tak(x, y, z, v).")
        assert db.datalog("?- tak(8, 7, 8, v).")[0].rows == [(7,)]
        assert _steps(db, "?- tak(8, 7, 8, v).") < 6 * whole + 4_000_000


def test_what_is_asked_of_a_large_graph_is_derived_on_demand() -> None:
    random = Random(1)
    edges = {(x, x + 1 + random.randrange(5)) for x in range(400) for _ in range(2)}
    with harken.connect() as db:
        db.datalog(PATH)
        db.datalog(" ".join(f"edge({x}, {y})." for x, y in sorted(edges)))
        whole = _steps(db, "?- path(x, y).")
        assert _steps(db, "?- path(390, y).") < whole / 50


def _sieve_steps(numbers: int) -> int:
    with harken.connect() as db:
        db.datalog(f"{SIEVE} limit({numbers}).")
        return _steps(db, "?- prime(x).")


def test_what_is_searched_in_vain_is_computed_once() -> None:
    """All products of two numbers are looked through once, not once for each number."""
    assert _sieve_steps(120) < 6 * _sieve_steps(60)


@pytest.mark.parametrize("order", ["x, y", "y, x"])
def test_the_answer_of_a_recursion_comes_in_order(order: str) -> None:
    with harken.connect() as db:
        db.datalog(f"{PATH} edge(1, 2). edge(2, 3). edge(0, 9).")
        rows = db.datalog(f"?- path({order}).")[0].rows
        assert rows == sorted(rows)
        assert len(rows) == 4


def _pairless_steps(rows: int) -> int:
    with harken.connect() as db:
        db.datalog(".decl a(x: number)\n.decl b(x: number, y: number)\n.decl r(x: number)")
        db.datalog("r(x) :- a(x), b(_, y), b(y, _), y > 0.")
        db.datalog(" ".join(f"a({x}). b({x}, {x})." for x in range(rows)))
        assert len(db.datalog("?- r(x).")[0].rows) == rows
        return _steps(db, "?- r(x).")


def test_atoms_that_share_nothing_are_existence_tests() -> None:
    """A row of `a` is not paired with each row of `b`."""
    assert _pairless_steps(400) < 6 * _pairless_steps(100)


def test_a_thousand_views_in_a_chain_can_be_followed() -> None:
    """Their conditions are one expression, deeper than SQLite takes unless it is a tree."""
    views = 1_100
    with harken.connect() as db:
        chain = "".join(
            f".decl v{i}(x: number)\nv{i}(x) :- v{i - 1}(x), x < {views + i}.\n"
            for i in range(1, views)
        )
        db.datalog(f".decl v0(x: number)\n{chain}v0(1).")
        view = db.monitor(f"v{views - 1}")
        db.datalog("+v0(2).")
        assert [each.plus for each in view.changes()] == [[(2,)]]
