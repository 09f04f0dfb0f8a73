"""GROUPING SETS, ROLLUP and CUBE: the rows are grouped once for each set of keys.

    SELECT a, b, sum(v) FROM … GROUP BY GROUPING SETS ((a), (b))

    m(A, NULL, 0, V) ← …        m(NULL, B, 1, V) ← …        then GROUP BY a, b and the number

Each row is there once for every set, with NULL for the keys that are not in it, as in Spark; so
where there are no rows there are no groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from harken.ir.clauses import Atom
from harken.ir.relations import Column
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.program_draft import Body, Draft
from harken.values.types import BOOLEAN, INTEGER

Set = list[exp.Expr]


def sets_of(group: exp.Expr) -> list[Set] | None:
    """The sets of keys that a GROUP BY asks for; None if it has one, as usual."""
    keys = list(group.expressions)
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(name):  # GROUP BY a, b WITH ROLLUP
            return _sets(kind(expressions=keys))
    if group.args.get("grouping_sets"):  # GROUP BY a, b GROUPING SETS (...), which has them all
        keys = list(group.args["grouping_sets"])
    if not any(isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets) for each in keys):
        return None
    return [
        [key for part in parts for key in part]
        for parts in product(*(_sets(each) for each in keys))
    ]


def _sets(node: exp.Expr) -> list[Set]:
    match node:
        case exp.Rollup():
            parts = [_one(each) for each in node.expressions]
            return [_joined(parts[:count]) for count in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_one(each) for each in node.expressions]
            counts = range(len(parts), -1, -1)
            return [_joined(some) for count in counts for some in combinations(parts, count)]
        case exp.GroupingSets():
            return [each for inner in node.expressions for each in _sets(inner)]
    return [_one(node)]


def _one(node: exp.Expr) -> Set:
    """A key, or several in parentheses."""
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def _joined(parts: Sequence[Set]) -> Set:
    return [key for part in parts for key in part]


def rows_for_each_set(
    draft: Draft,
    captured: Sequence[Variable],
    sets: Sequence[frozenset[int]],
    keys: Sequence[Term],
    others: Sequence[Term],
    body: Body,
) -> tuple[list[Term], list[Term], Body]:
    """The rows once for every set: their keys with the number of the set, what else is needed
    of them, and where it is all found."""
    heads = [
        (
            [
                *(k if i in one else Constant(None, k.type.or_null()) for i, k in enumerate(keys)),
                Constant(number, INTEGER),
                *others,
            ],
            body.literals,
        )
        for number, one in enumerate(sets)
    ]
    types = [*(each.type.or_null() for each in keys), INTEGER, *(t.type for t in others)]
    columns = [Column(f"e{i}", type_) for i, type_ in enumerate(types)]
    relation = draft.define("sets", captured, columns, heads, bag=True)
    fresh: list[Term] = [draft.fresh(type_) for type_ in types]
    found = Body([Atom(relation, (*captured, *fresh))])
    return fresh[: len(keys) + 1], fresh[len(keys) + 1 :], found


def grouping_bits(draft: Draft, absent: Sequence[Sequence[bool]], number: Term, body: Body) -> Term:
    """grouping(a) or grouping_id(a, b): for each set, a bit for each key that is not in it."""
    result: Term = Constant(0, INTEGER)
    for place, bits in enumerate(absent):
        value = int("".join("01"[bit] for bit in bits) or "0", 2)
        if value:
            test = draft.compute("is =", (number, Constant(place, INTEGER)), BOOLEAN, body)
            given = (test, Constant(value, INTEGER), result)
            result = draft.compute("choose", given, INTEGER, body)
    return result
