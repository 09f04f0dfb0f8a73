"""The relation that a query becomes, and the operations on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken.ir.clauses import Aggregation, Atom, Literal, Program
from harken.ir.relations import Column, Relation
from harken.ir.safety import required_inputs
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.conversions import NULL_TYPE
from harken.lang.sql.program_draft import Body, Draft, variables_in
from harken.lang.sql.scope import Scope
from harken.values.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class QueryRows:
    """The relation of a query. Its first columns are the captured ones.

    `unknown` are the positions of columns that are a bare NULL, which fits any type."""

    relation: Relation
    captured: tuple[Variable, ...]
    names: tuple[str, ...]
    unknown: frozenset[int] = frozenset()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.relation.columns[len(self.captured) :]


def define_rows(
    draft: Draft,
    names: Sequence[str],
    terms: Sequence[Term],
    body: Body,
    scope: Scope,
    *,
    bag: bool,
) -> QueryRows:
    captured = captured_by(scope, terms, body.literals)
    columns = tuple(
        Column(name.lower(), term.type) for name, term in zip(names, terms, strict=True)
    )
    relation = draft.define("query", captured, columns, [(terms, body.literals)], bag=bag)
    return QueryRows(relation, captured, tuple(names), null_columns([terms]))


def captured_by(
    scope: Scope, terms: Sequence[Term], literals: Sequence[Literal]
) -> tuple[Variable, ...]:
    """The captured columns that a clause mentions, in the order in which they were met."""
    mentioned = variables_in(terms, literals)
    return tuple(each for each in scope.captured if each in mentioned)


def null_columns(rows: Sequence[Sequence[Term]]) -> frozenset[int]:
    """The columns that are a bare NULL in all rows."""
    bare = Constant(None, NULL_TYPE)
    return frozenset(i for i in range(len(rows[0])) if all(row[i] == bare for row in rows))


def capture_outwards(captured: Sequence[Variable], scope: Scope) -> None:
    """Capture the variables that an inner query captured and that are not columns of this one."""
    own = {f.term for source in scope.sources for f in source.fields}
    for each in captured:
        if each not in own and scope.parent is not None and each not in scope.captured:
            scope.capture(each)


def as_set(
    draft: Draft, relation: Relation, captured: Sequence[Variable], columns: Sequence[Column]
) -> Relation:
    row = [draft.fresh(column.type) for column in columns]
    body = [Atom(relation, (*captured, *row))]
    return draft.define("rows", captured, columns, [(row, body)], bag=False)


def require_member(draft: Draft, relation: Relation, terms: Sequence[Term], body: Body) -> None:
    """Only where the set has the row: a join, unless the set does not produce its arguments."""
    needs = required_inputs(Program(relation, draft.definitions))
    if relation.id in needs:
        body.require(is_member(draft, relation, terms, body))
    else:
        body.add(Atom(relation, tuple(terms)))


def is_member(draft: Draft, relation: Relation, terms: Sequence[Term], body: Body) -> Term:
    found = draft.fresh(BOOLEAN)
    given = tuple(terms)
    body.add(Aggregation(found, "some", None, Atom(relation, given), given))
    return found
