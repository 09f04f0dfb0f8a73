"""Rows without a table: VALUES, and range() in FROM."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.errors import TypeFault
from harken.ir.clauses import Atom, Literal
from harken.ir.relations import COPIES, Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.conversions import as_type, common_type
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows, captured_by, null_columns
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.whole_numbers import whole_number
from harken.values.types import INTEGER

ROWS_PER_RELATION = 400
"""How many rows one relation lists. SQLite allows 500 terms in a compound SELECT."""


def translate_values(translation: Translation, node: exp.Values, scope: Scope | None) -> QueryRows:
    inside = Scope(scope)
    bodies = [Body() for _ in node.expressions]
    rows = [
        [translation.value(v, inside, body) for v in _items(each)]
        for each, body in zip(node.expressions, bodies, strict=True)
    ]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise TypeFault(
            "the rows of VALUES are not all of the same length",
            code="arity",
            span=translation.draft.place(node),
        )
    types = [common_type(translation.draft, [row[i] for row in rows], node) for i in range(width)]
    heads = []
    for row, own in zip(rows, bodies, strict=True):
        heads.append(
            (
                [
                    as_type(translation.draft, t, type_, own, node)
                    for t, type_ in zip(row, types, strict=True)
                ],
                own.literals,
            )
        )
    names = tuple(f"col{i + 1}" for i in range(width))
    columns = [Column(name, type_) for name, type_ in zip(names, types, strict=True)]
    literals = [each for body in bodies for each in body.literals]
    captured = captured_by(inside, [t for row in rows for t in row], literals)
    relation = _written_out(translation.draft, captured, columns, heads)
    return QueryRows(relation, captured, names, null_columns(rows))


def _written_out(
    draft: Draft,
    captured: Sequence[Variable],
    columns: Sequence[Column],
    heads: Sequence[tuple[Sequence[Term], Sequence[Literal]]],
) -> Relation:
    """Rows that are written out; many of them in several relations, which are put together."""
    if len(heads) <= ROWS_PER_RELATION:
        return draft.define("values", captured, columns, heads, bag=True)
    parts = []
    for start in range(0, len(heads), ROWS_PER_RELATION):
        part = _written_out(draft, captured, columns, heads[start : start + ROWS_PER_RELATION])
        terms = [draft.fresh(column.type) for column in columns]
        parts.append((terms, [Atom(part, (*captured, *terms))]))
    return _written_out(draft, captured, columns, parts)


def range_rows(draft: Draft, node: exp.Expr) -> QueryRows:
    """range(end), range(start, end) and range(start, end, step): whole numbers, without the
    last."""
    given = [whole_number(each) for each in node.expressions]
    known = [each for each in given if each is not None]
    if len(known) != len(given) or not 1 <= len(known) <= 3 or known[2:] == [0]:
        raise draft.unsupported(
            node, "range takes whole numbers: an end, or a start, an end, a step"
        )
    start, end, step = ([0, *known] if len(known) == 1 else known) + [1] * (len(known) < 3)
    times = max(0, -((start - end) // step))
    which, body = draft.fresh(INTEGER), Body()
    body.add(Atom(COPIES, (Constant(times, INTEGER), which)))
    steps = draft.compute("*", (which, Constant(step, INTEGER)), INTEGER, body)
    first = Constant(start - step, INTEGER)
    value = draft.compute("+", (steps, first), INTEGER, body)
    columns = [Column("id", INTEGER)]
    relation = draft.define("range", (), columns, [([value], body.literals)], bag=True)
    return QueryRows(relation, (), ("id",), frozenset())


def is_range(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "range"


def _items(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
