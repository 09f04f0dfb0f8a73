"""Functional dependencies inside a clause: what is determined once some variables are known.

A keyed relation determines its columns from its key, a computation its result from its arguments,
an aggregate its result from its groups.

Law: if `determined(body, V)` holds every variable of the body, then two solutions of the body
that agree on V are the same solution, and projecting the body on V makes no duplicates.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    clause_variables,
    literal_variables,
)
from harken.ir.safety import solve
from harken.ir.terms import Term, Variable


def determined(body: Iterable[Literal], start: Iterable[Variable]) -> set[Variable]:
    """A long body is mostly a chain, from its first literal or from its last: so the direction
    changes with every round."""
    known = set(start)
    waiting = list(body)
    size = -1
    while size != len(known):
        size = len(known)
        left = []
        for literal in waiting:
            found = _step(literal, known)
            known.update(found)
            if not found:
                left.append(literal)
        waiting = left[::-1]
    return known


def is_duplicate_free(clause: Clause) -> bool:
    """Does no row of the head come from two solutions of the body?

    A bag counts its rows, so an atom over a bag makes duplicates whatever it binds.
    """
    if any(
        isinstance(lit, Atom) and not lit.negated and not lit.relation.is_set for lit in clause.body
    ):
        return False
    head = (term for term in clause.head.terms if isinstance(term, Variable))
    return clause_variables(clause) <= determined(clause.body, head)


def may_repeat(definition: Definition) -> bool:
    """May the clauses of a definition, put together, give a row twice?"""
    alone = len(definition.clauses) == 1 or definition.exclusive
    return not (alone and all(is_duplicate_free(clause) for clause in definition.clauses))


def inputs_are_key(clause: Clause) -> bool:
    """Do the argument columns of the head determine its result columns?"""
    inputs = clause.head.relation.inputs
    given = (term for term in clause.head.terms[:inputs] if isinstance(term, Variable))
    known = determined(clause.body, given)
    return all(_known(term, known) for term in clause.head.terms[inputs:])


def _step(literal: Literal, known: set[Variable]) -> tuple[Variable, ...]:
    match literal:
        case Atom(negated=False):
            key = literal.relation.key
            if key is not None and all(_known(literal.terms[i], known) for i in key):
                return literal_variables(literal)
        case Computation():
            solved = solve(literal, known)
            if isinstance(solved, Computation) and all(_known(t, known) for t in solved.arguments):
                return literal_variables(solved)
        case Comparison(operator="="):
            if _known(literal.left, known) or _known(literal.right, known):
                return literal_variables(literal)
        case Aggregation():
            if all(_known(term, known) for term in literal.groups):
                return literal_variables(literal)
    return ()


def _known(term: Term, known: set[Variable]) -> bool:
    return not isinstance(term, Variable) or term in known
