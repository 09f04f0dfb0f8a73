"""A clause whose body can never hold is not there."""

from __future__ import annotations

import pytest

from harken.ir.clauses import Atom, Clause, Comparison
from harken.ir.relations import Column, Kind, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.planner.simplify import simplify
from harken.values.types import INTEGER, Hierarchy

MAYBE = INTEGER.or_null()
X, Y = Variable("X", MAYBE), Variable("Y", MAYBE)
NULL = Constant(None, MAYBE)


def simplified(operator: str, left: Term, right: Term) -> Clause | None:
    columns = (Column("x", MAYBE), Column("y", MAYBE))
    found = Relation("found", columns, 0, Kind.DERIVED)
    stored = Relation("stored", columns, 0, Kind.STORED)
    body = (Atom(stored, (X, Y)), Comparison(operator, left, right))
    return simplify(Clause(Atom(found, (X, Y)), body), Hierarchy({}))


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [
        *((operator, X, X) for operator in ("!=", "<", ">")),
        *((operator, X, NULL) for operator in ("<", "<=", ">", ">=")),
        *((operator, NULL, Y) for operator in ("<", "<=", ">", ">=")),
        ("!=", NULL, NULL),
    ],
)
def test_what_never_holds(operator: str, left: Term, right: Term) -> None:
    assert simplified(operator, left, right) is None


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [("<=", X, X), ("!=", X, NULL), ("<", X, Y), ("!=", X, Y), ("<", X, Constant(3, MAYBE))],
)
def test_what_may_hold(operator: str, left: Term, right: Term) -> None:
    clause = simplified(operator, left, right)
    assert clause is not None
    assert Comparison(operator, left, right) in clause.body
