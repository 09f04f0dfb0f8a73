"""UNION, INTERSECT and EXCEPT."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.errors import TypeFault, counted
from harken.ir.clauses import Aggregation, Atom, Literal
from harken.ir.relations import COPIES, Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.conversions import as_type, common_type
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows, as_set
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.values.types import BOOLEAN, INTEGER


def set_operation(
    translation: Translation, node: exp.SetOperation, scope: Scope | None
) -> QueryRows:
    left, right = translation.query(node.this, scope), translation.query(node.expression, scope)
    if node.args.get("by_name"):
        left, right = _by_name(translation.draft, node, left, right)
    if len(left.columns) != len(right.columns):
        raise TypeFault(
            f"one side has {counted(len(left.columns), 'column')} and the other "
            f"{len(right.columns)}",
            code="arity",
            span=translation.draft.place(node),
        )
    captured = tuple(dict.fromkeys((*left.captured, *right.captured)))
    sides = [
        _side(translation.draft, rows, node, other)
        for rows, other in ((left, right), (right, left))
    ]
    types = [
        one.type.or_null(one.type.nullable or other.type.nullable)
        for one, other in zip(sides[0][0], sides[1][0], strict=True)
    ]
    columns = [Column(name.lower(), type_) for name, type_ in zip(left.names, types, strict=True)]
    distinct = bool(node.args.get("distinct", True))
    unknown = left.unknown & right.unknown
    if isinstance(node, exp.Union):
        relation = translation.draft.define("union", captured, columns, sides, bag=not distinct)
        return QueryRows(relation, captured, left.names, unknown)
    made = [translation.draft.define("side", captured, columns, [side], bag=True) for side in sides]
    row = [translation.draft.fresh(column.type) for column in columns]
    atoms = [Atom(each, (*captured, *row)) for each in made]
    body: list[Literal]
    if distinct:
        there = as_set(translation.draft, made[1], captured, columns)
        negated = isinstance(node, exp.Except)
        body = [atoms[0], Atom(there, (*captured, *row), negated=negated)]
    else:
        body = _counted(translation.draft, node, made, captured, row, columns)
    relation = translation.draft.define("set", captured, columns, [(row, body)], bag=not distinct)
    return QueryRows(relation, captured, left.names, unknown)


def _by_name(
    draft: Draft, node: exp.Expr, left: QueryRows, right: QueryRows
) -> tuple[QueryRows, QueryRows]:
    """UNION BY NAME: columns match by name, and a column that one side lacks is NULL there."""
    for side in (left, right):
        lowered = [name.lower() for name in side.names]
        if len(set(lowered)) < len(lowered):
            raise TypeFault(
                "two columns of one side have the same name",
                code="ambiguous",
                span=draft.place(node),
                hint="give each a name of its own with AS",
            )
    known = {name.lower() for name in left.names}
    names = [*left.names, *(name for name in right.names if name.lower() not in known)]
    return _arranged(draft, left, right, names), _arranged(draft, right, left, names)


def _arranged(draft: Draft, rows: QueryRows, other: QueryRows, names: Sequence[str]) -> QueryRows:
    """The rows with these columns, NULL where they have none but the other side does."""
    own = [draft.fresh(column.type) for column in rows.columns]
    there = {name.lower(): i for i, name in enumerate(rows.names)}
    types = {n.lower(): c.type for n, c in zip(other.names, other.columns, strict=True)}
    terms: list[Term] = [
        own[there[name.lower()]]
        if name.lower() in there
        else Constant(None, types[name.lower()].or_null())
        for name in names
    ]
    columns = [Column(n.lower(), t.type) for n, t in zip(names, terms, strict=True)]
    body = [Atom(rows.relation, (*rows.captured, *own))]
    relation = draft.define("named", rows.captured, columns, [(terms, body)], bag=True)
    unknown = frozenset(
        i for i, name in enumerate(names) if there.get(name.lower(), -1) in rows.unknown
    )
    return QueryRows(relation, rows.captured, tuple(names), unknown)


def _side(
    draft: Draft, rows: QueryRows, node: exp.Expr, other: QueryRows
) -> tuple[Sequence[Term], Sequence[Literal]]:
    """The rows of one side of a set operation, as ones of the types of both."""
    fresh = [draft.fresh(column.type) for column in rows.columns]
    body = Body([Atom(rows.relation, (*rows.captured, *fresh))])
    terms: list[Term] = []
    for place, (term, column) in enumerate(zip(fresh, other.columns, strict=True)):
        if place in rows.unknown:
            terms.append(Constant(None, column.type.or_null()))
            continue
        if place in other.unknown:
            terms.append(term)
            continue
        wanted = common_type(draft, [term, draft.fresh(column.type)], node)
        terms.append(as_type(draft, term, wanted, body, node))
    return terms, body.literals


def _counted(
    draft: Draft,
    node: exp.Expr,
    made: Sequence[Relation],
    captured: Sequence[Variable],
    row: Sequence[Variable],
    columns: Sequence[Column],
) -> list[Literal]:
    """INTERSECT ALL and EXCEPT ALL: a row as often as in both, or more often than in the
    second."""
    terms = (*captured, *row)
    one, other, least = (draft.fresh(INTEGER) for _ in range(3))
    which = draft.fresh(INTEGER)
    body = Body(
        [
            Atom(as_set(draft, made[0], captured, columns), terms),
            Aggregation(one, "count", None, Atom(made[0], terms), terms),
            Aggregation(other, "count", None, Atom(made[1], terms), terms),
        ]
    )
    if isinstance(node, exp.Except):
        times = draft.compute("-", (one, other), INTEGER, body)
    else:
        fewer = draft.compute("is <", (one, other), BOOLEAN, body)
        times = draft.compute("choose", (fewer, one, other), INTEGER, body)
    del least
    body.add(Atom(COPIES, (times, which)))
    return body.literals
