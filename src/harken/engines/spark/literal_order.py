"""The order in which the literals of a body are compiled: by rank, as soon as each can be.

Literals that restrict the rows come first; those that can fail or need magic keys come late.

Law: an order never changes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from harken.engines.spark.body import Body, Environment
from harken.engines.spark.magic_keys import MagicKeys
from harken.engines.spark.sql_expressions import Risk, Sql, operation
from harken.ir.clauses import Aggregation, Atom, Comparison, Computation, Literal, literal_terms
from harken.ir.safety import ready
from harken.ir.terms import Term, Variable

Written = Callable[[Term, Environment], Sql]


class Rank(IntEnum):
    """The kinds of turns, the soonest first."""

    TEST = 0
    SOURCE = 1
    NEGATION = 2
    AGGREGATE = 3
    GROWING = 4
    RESTRICTED = 5
    FAILING = 6


LATE = {Risk.NONE: Rank.TEST, Risk.OVERFLOW: Rank.GROWING, Risk.FAILURE: Rank.FAILING}


def next_literal(
    waiting: Sequence[Literal], body: Body, magic_keys: MagicKeys, written: Written
) -> int:
    """The position of the next literal to compile; `written` compiles a term."""
    known = set(body.environment)
    able = [
        (_rank(literal, body, magic_keys, written), position)
        for position, literal in enumerate(waiting)
        if ready(literal, known, magic_keys.needs, solving=False)
    ]
    return min(able)[1]


def _rank(literal: Literal, body: Body, magic_keys: MagicKeys, written: Written) -> Rank:
    rank, worst = _kind(literal, body, magic_keys), _risk(literal, body.environment, written)
    # A source joins by a value that may overflow as by any other.
    if rank is Rank.SOURCE and worst is Risk.OVERFLOW:
        return rank
    return max(rank, LATE[worst])


def _kind(literal: Literal, body: Body, magic_keys: MagicKeys) -> Rank:
    match literal:
        case Aggregation():
            return Rank.RESTRICTED if magic_keys.is_asked(literal.atom) else Rank.AGGREGATE
        case Atom(negated=True):
            return Rank.RESTRICTED if magic_keys.is_asked(literal) else Rank.NEGATION
        case Atom() if literal.relation.id in body.groupings:
            return Rank.AGGREGATE
        case Atom():
            return Rank.RESTRICTED if magic_keys.is_asked_in(literal, body) else Rank.SOURCE
        case Comparison() | Computation():
            return Rank.TEST


def _risk(literal: Literal, known: Environment, written: Written) -> Risk:
    """The worst of what it reads and computes."""
    terms = literal.arguments if isinstance(literal, Computation) else literal_terms(literal)
    risks = [known[t].risk for t in terms if isinstance(t, Variable) and t in known]
    if isinstance(literal, Computation):
        given = tuple(written(term, known) for term in literal.arguments)
        risks.append(operation(literal.operation, given, literal.result.type).risk)
    return max(risks, default=Risk.NONE)
