"""The order in which the literals of a body are written: each takes its turn when it can.

What confines the rows comes first; what can fail, or asks for the rows so far, comes late.

Law: an order never changes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from harken.engines.spark.asking import Asking
from harken.engines.spark.body import Body, Environment
from harken.engines.spark.expressions import Risk, Sql, operation
from harken.ir.clauses import Aggregation, Atom, Comparison, Computation, Literal, literal_terms
from harken.ir.safety import ready
from harken.ir.terms import Term, Variable

Written = Callable[[Term, Environment], Sql]


class Turn(IntEnum):
    """The kinds of turns, the soonest first."""

    TEST = 0
    SOURCE = 1
    NEGATION = 2
    AGGREGATE = 3
    GROWING = 4
    RESTRICTED = 5
    FAILING = 6


LATE = {Risk.NONE: Turn.TEST, Risk.OVERFLOW: Turn.GROWING, Risk.FAILURE: Turn.FAILING}


def next_of(waiting: Sequence[Literal], body: Body, asking: Asking, written: Written) -> int:
    """The place of the literal whose turn it is; `written` says how a term is."""
    known = set(body.environment)
    able = [
        (_turn(literal, body, asking, written), position)
        for position, literal in enumerate(waiting)
        if ready(literal, known, asking.needs, solving=False)
    ]
    return min(able)[1]


def _turn(literal: Literal, body: Body, asking: Asking, written: Written) -> Turn:
    turn, worst = _kind(literal, body, asking), _risk(literal, body.environment, written)
    # A source joins by a value that may overflow as by any other.
    if turn is Turn.SOURCE and worst is Risk.OVERFLOW:
        return turn
    return max(turn, LATE[worst])


def _kind(literal: Literal, body: Body, asking: Asking) -> Turn:
    match literal:
        case Aggregation():
            return Turn.RESTRICTED if asking.is_asked(literal.atom) else Turn.AGGREGATE
        case Atom(negated=True):
            return Turn.RESTRICTED if asking.is_asked(literal) else Turn.NEGATION
        case Atom() if literal.relation.id in body.groupings:
            return Turn.AGGREGATE
        case Atom():
            return Turn.RESTRICTED if asking.is_asked_in(literal, body) else Turn.SOURCE
        case Comparison() | Computation():
            return Turn.TEST


def _risk(literal: Literal, known: Environment, written: Written) -> Risk:
    """The worst of what it reads and computes."""
    terms = literal.arguments if isinstance(literal, Computation) else literal_terms(literal)
    risks = [known[t].risk for t in terms if isinstance(t, Variable) and t in known]
    if isinstance(literal, Computation):
        given = tuple(written(term, known) for term in literal.arguments)
        risks.append(operation(literal.operation, given, literal.result.type).risk)
    return max(risks, default=Risk.NONE)
