"""Aggregates that rules join with each other are computed for their groups, not for each row of a
product.

Law: what such a query costs grows with the rows, not with a power of them.
"""

from __future__ import annotations

import harken
from tests.harness.counting import cost

PROGRAM = """
.decl k(x: number)
.decl p(x: number, v: number)
.decl s(x: number, n: number)
.decl q(x: number, w: number)
s(x, n) :- k(x), n = max v : { p(x, v) }.
q(x, w) :- s(x, y), s(y, z), s(z, w).
"""


def _steps(keys: int) -> int:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        facts = (f"k({x}). p({x}, {(x + 1) % keys}). p({x}, {x // 2})." for x in range(keys))
        db.datalog("\n".join(facts))
        assert len(db.datalog("?- q(x, w).")[0].rows) == keys
        return cost(db, lambda: db.datalog("?- q(x, w).")).steps


def test_a_chain_of_aggregates_grows_with_its_keys() -> None:
    assert _steps(80) < 8 * _steps(20)
