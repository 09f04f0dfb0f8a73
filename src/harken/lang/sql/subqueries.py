"""Subqueries in expressions and conditions: EXISTS, IN, ANY, and scalar subqueries."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.errors import TypeFault, counted
from harken.ir.clauses import Aggregation, Atom, Comparison
from harken.ir.relations import Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.conversions import to_same_type
from harken.lang.sql.program_draft import FALSE, TRUE, Body, Draft, variables_in
from harken.lang.sql.query_rows import QueryRows, capture_outwards, is_member, require_member
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.values.types import BOOLEAN


def _inner(translation: Translation, node: exp.Expr, scope: Scope) -> QueryRows:
    rows = translation.query(node, scope)
    capture_outwards(rows.captured, scope)
    return rows


def _some_row(
    translation: Translation, node: exp.Expr, scope: Scope
) -> tuple[Relation, tuple[Variable, ...]]:
    """A set that has a row iff the query has one."""
    rows = _inner(translation, node.unnest(), scope)
    fresh = tuple(translation.draft.fresh(column.type) for column in rows.columns)
    body = [Atom(rows.relation, (*rows.captured, *fresh))]
    found = translation.draft.define("exists", rows.captured, (), [((), body)], bag=False)
    return found, rows.captured


def require_row(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> None:
    body.require(exists(translation, node, scope, body))


def require_no_row(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> None:
    relation, captured = _some_row(translation, node, scope)
    body.add(Atom(relation, captured, negated=True))


def exists(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    relation, captured = _some_row(translation, node, scope)
    return is_member(translation.draft, relation, captured, body)


def _listed(
    translation: Translation, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body
) -> tuple[list[Term], QueryRows]:
    """The values left of IN, and the rows of the query."""
    parts = list(left.expressions) if isinstance(left, exp.Tuple) else [left]
    rows = _inner(translation, node, scope)
    if len(parts) != len(rows.columns):
        raise TypeFault(
            f"{counted(len(parts), 'value', 'is')} sought among rows of {len(rows.columns)}",
            code="arity",
            span=translation.draft.place(left),
        )
    terms = [translation.value(each, scope, body) for each in parts]
    return terms, rows


def _matches(
    draft: Draft,
    terms: Sequence[Term],
    rows: QueryRows,
    node: exp.Expr,
    body: Body,
    *,
    unknown: bool,
) -> tuple[Relation, tuple[Term, ...]]:
    """The set of rows that the terms can be found in; those with a NULL if `unknown`."""
    fresh = [draft.fresh(column.type) for column in rows.columns]
    inner = Body([Atom(rows.relation, (*rows.captured, *fresh))])
    wanted: list[Term] = []
    given: list[Term] = []
    for term, column in zip(terms, fresh, strict=True):
        conversions = Body()
        one, other = to_same_type(draft, column, term, conversions, node)
        for literal in conversions.literals:
            (inner if column in variables_in((), [literal]) else body).add(literal)
        wanted.append(one)
        given.append(other)
    if unknown:
        heads = [
            ((), [*inner.literals, Comparison("=", each, Constant(None, each.type.or_null()))])
            for each in wanted
            if each.type.nullable
        ]
        relation = draft.define("unknown", rows.captured, (), heads, bag=False)
        return relation, rows.captured
    for each in wanted:
        inner.not_null(each)
    columns = [Column(f"v{i}", each.type.or_null(False)) for i, each in enumerate(wanted)]
    relation = draft.define("in", rows.captured, columns, [(wanted, inner.literals)], bag=False)
    return relation, (*rows.captured, *given)


def require_in(
    translation: Translation, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body
) -> None:
    terms, rows = _listed(translation, left, node, scope, body)
    relation, arguments = _matches(translation.draft, terms, rows, node, body, unknown=False)
    require_member(translation.draft, relation, arguments, body)


def require_not_in(
    translation: Translation, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body
) -> None:
    terms, rows = _listed(translation, left, node, scope, body)
    if len(terms) > 1:
        body.add(Comparison("=", _is_among(translation.draft, terms, rows, node, body), FALSE))
        return
    relation, arguments = _matches(translation.draft, terms, rows, node, body, unknown=False)
    body.add(Atom(relation, arguments, negated=True))
    if any(column.type.nullable for column in rows.columns):
        unknown, captured = _matches(translation.draft, terms, rows, node, body, unknown=True)
        body.add(Atom(unknown, captured, negated=True))
    if terms[0].type.nullable:
        there = is_member(translation.draft, *_any(translation.draft, rows), body)
        missing = translation.draft.compute("is null", (terms[0],), BOOLEAN, body)
        both = translation.draft.compute("and", (missing, there), BOOLEAN, body)
        body.add(Comparison("=", both, FALSE))


def _any(draft: Draft, rows: QueryRows) -> tuple[Relation, tuple[Variable, ...]]:
    fresh = tuple(draft.fresh(column.type) for column in rows.columns)
    inner = [Atom(rows.relation, (*rows.captured, *fresh))]
    found = draft.define("exists", rows.captured, (), [((), inner)], bag=False)
    return found, rows.captured


def is_in(
    translation: Translation, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body
) -> Term:
    terms, rows = _listed(translation, left, node, scope, body)
    return _is_among(translation.draft, terms, rows, node, body)


def _is_among(
    draft: Draft, terms: Sequence[Term], rows: QueryRows, node: exp.Expr, body: Body
) -> Term:
    """IN as a value: true, false, or NULL where a NULL leaves it open."""
    if len(terms) > 1:
        return _some_compares(draft, "=", terms, rows, node, body)
    compute = draft.compute
    relation, arguments = _matches(draft, terms, rows, node, body, unknown=False)
    found = is_member(draft, relation, arguments, body)
    open_: Term = FALSE
    if any(column.type.nullable for column in rows.columns):
        open_ = is_member(draft, *_matches(draft, terms, rows, node, body, unknown=True), body)
    if terms[0].type.nullable:
        there = is_member(draft, *_any(draft, rows), body)
        missing = compute("is null", (terms[0],), BOOLEAN, body)
        both = compute("and", (missing, there), BOOLEAN, body)
        open_ = both if open_ is FALSE else compute("or", (open_, both), BOOLEAN, body)
    if open_ is FALSE:
        return found
    nothing = Constant(None, BOOLEAN.or_null())
    rest = compute("choose", (open_, nothing, FALSE), BOOLEAN, body)
    return compute("choose", (found, TRUE, rest), BOOLEAN, body)


def compares_to_any(
    translation: Translation,
    operator: str,
    left: exp.Expr,
    node: exp.Expr,
    scope: Scope,
    body: Body,
) -> Term:
    """x < ANY (query), as a value."""
    terms, rows = _listed(translation, left, node, scope, body)
    return _some_compares(translation.draft, operator, terms, rows, node, body)


def _some_compares(
    draft: Draft, operator: str, terms: Sequence[Term], rows: QueryRows, node: exp.Expr, body: Body
) -> Term:
    """True if the comparison holds for a row; else NULL if it is NULL for a row; else false."""
    compute = draft.compute
    fresh = [draft.fresh(column.type) for column in rows.columns]
    inner = Body([Atom(rows.relation, (*rows.captured, *fresh))])
    test: Term = TRUE
    for term, column in zip(terms, fresh, strict=True):
        sides = to_same_type(draft, term, column, inner, node)
        one = compute(f"is {operator}", sides, BOOLEAN, inner)
        test = one if test is TRUE else compute("and", (test, one), BOOLEAN, inner)
    given = dict.fromkeys(each for each in terms if isinstance(each, Variable))
    arguments = tuple(dict.fromkeys((*rows.captured, *given)))

    def some(value: Constant) -> Term:
        literals = [*inner.literals, Comparison("=", test, value)]
        found = draft.define("some", arguments, (), [((), literals)], bag=False)
        return is_member(draft, found, arguments, body)

    found = some(TRUE)
    if not test.type.nullable:
        return found
    nothing = Constant(None, BOOLEAN.or_null())
    rest = compute("choose", (some(nothing), nothing, FALSE), BOOLEAN, body)
    return compute("choose", (found, TRUE, rest), BOOLEAN, body)


def scalar(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The one value of a query: NULL if it has no row, an error if it has several."""
    rows = _inner(translation, node, scope)
    if len(rows.columns) != 1:
        raise TypeFault(
            f"a query that stands for a value has one column, not {len(rows.columns)}",
            code="arity",
            span=translation.draft.place(node),
        )
    type_ = rows.columns[0].type
    inner = translation.draft.fresh(type_)
    result = translation.draft.fresh(type_.or_null())
    atom = Atom(rows.relation, (*rows.captured, inner))
    groups = tuple(rows.captured)
    body.add(Aggregation(result, "single value", inner, atom, groups, or_null=True))
    return result
