"""The base of the translation of queries: names, captured columns, and the types of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from harken.errors import LanguageError, NameFault, TypeFault, nearest
from harken.ir.clauses import Aggregation, Atom, Literal, Program
from harken.ir.relations import Column, Relation
from harken.ir.safety import required_inputs
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.aggregate_calls import written
from harken.lang.sql.conditions import Conditions
from harken.lang.sql.conversions import NULL_TYPE, together
from harken.lang.sql.draft import Body, Draft, Tables, used
from harken.lang.sql.expressions import Expressions
from harken.lang.sql.rows import Rows
from harken.lang.sql.scope import Scope
from harken.lang.sql.spelling import as_written
from harken.lang.sql.syntax import normalized
from harken.lang.sql.types import shown
from harken.values.types import BOOLEAN, Type

if TYPE_CHECKING:
    from harken.lang.sql.queries import Queries


class Translation:
    """What all parts of the translation of a query share; `Queries` puts them together."""

    def __init__(self, draft: Draft, tables: Tables) -> None:
        self._draft = draft
        self._tables = tables
        self._expressions = Expressions(draft, cast("Queries", self))
        self._conditions = Conditions(self._expressions, cast("Queries", self))
        self._with: list[dict[str, Rows]] = []
        self._usings = count(1)
        self.mentioned: set[str] = set()
        """The tables and views that were named."""

    def query(self, node: exp.Expr, scope: Scope | None = None) -> Rows:
        """A query inside a scope, which it may capture columns of."""
        raise NotImplementedError

    def _from(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        """Join the items of FROM: their columns go into the scope."""
        raise NotImplementedError

    def _rows(
        self, names: Sequence[str], terms: Sequence[Term], body: Body, scope: Scope, *, bag: bool
    ) -> Rows:
        captured = self._captured(scope, terms, body.literals)
        columns = tuple(
            Column(name.lower(), term.type) for name, term in zip(names, terms, strict=True)
        )
        relation = self._draft.define("query", captured, columns, [(terms, body.literals)], bag=bag)
        return Rows(relation, captured, tuple(names), unknown_places([terms]))

    def _captured(
        self, scope: Scope, terms: Sequence[Term], literals: Sequence[Literal]
    ) -> tuple[Variable, ...]:
        """The captured columns that a clause mentions, in the order in which they were met."""
        mentioned = used(terms, literals)
        return tuple(each for each in scope.captured if each in mentioned)

    def _expanded(self, node: exp.Select, scope: Scope) -> list[tuple[exp.Expr, str]]:
        """The select list with its names, `*` spelled out."""
        found: list[tuple[exp.Expr, str]] = []
        for each in node.expressions:
            table, star = None, each.this if isinstance(each, exp.Column) else each
            if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                table = each.table.lower()
                if table not in [source.alias for source in scope.sources]:
                    raise scope.unknown_source(table, self._draft.place(each))
            elif not isinstance(each, exp.Star):
                found.append((each, name_of(each, len(found))))
                continue
            columns = [
                (exp.column(one.key or one.name, table=source.alias), one.name)
                for source in scope.sources
                if table is None or source.alias == table
                for one in source.fields
                if table is not None or one.name not in source.merged
            ]
            found += self._changed(star, columns)
        return found

    def _changed(
        self, star: exp.Expr, columns: list[tuple[exp.Column, str]]
    ) -> list[tuple[exp.Expr, str]]:
        """The columns of `*` without those of EXCEPT, and those of REPLACE with other values."""
        dropped = {_named(each): each for each in star.args.get("except_") or []}
        replaced = {(None, e.alias.lower()): e for e in star.args.get("replace") or []}
        known = {way for column, name in columns for way in ((None, name), (column.table, name))}
        for way, each in (dropped | replaced).items():
            if way not in known:
                near = nearest(way[1], {name for _, name in columns})
                raise NameFault(
                    f"there is no column {way[1]} in *",
                    code="unknown-column",
                    span=self._draft.place(each),
                    hint=f"did you mean {near}?" if near and near != way[1] else None,
                )
        left = [
            (replaced.get((None, name), column), name)
            for column, name in columns
            if (None, name) not in dropped and (column.table, name) not in dropped
        ]
        if not left:
            raise self._not_yet(star, "EXCEPT leaves no column" if columns else "* without FROM")
        return left

    def _spread(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """count(DISTINCT *) and count(t.*), with the columns that they mean."""
        if isinstance(node, exp.Filter):
            return exp.Filter(this=self._spread(node.this, scope), expression=node.expression)
        if not isinstance(node, exp.Count):
            return node
        distinct = isinstance(node.this, exp.Distinct)
        given = node.this.expressions if distinct else [node.this]
        if None in given or not given:
            raise self._not_yet(node, "count takes * or a value")
        given = [each.unnest() for each in given]
        if not any(_is_star(each, distinct) for each in given):
            return node
        columns = [each for each, _ in self._expanded(exp.Select(expressions=given), scope)]
        if distinct:
            return exp.Count(this=exp.Distinct(expressions=columns))
        return normalized(exp.Count(this=columns[0], expressions=columns[1:]))

    def _capture_outwards(self, captured: Sequence[Variable], scope: Scope) -> None:
        """What an inner query captured and this one does not have, it captures as well."""
        own = {f.term for source in scope.sources for f in source.fields}
        for each in captured:
            if each not in own and scope.parent is not None and each not in scope.captured:
                scope.capture(each)

    def _common_type(self, terms: Sequence[Term], node: exp.Expr) -> Type:
        known = [t for t in terms if not (isinstance(t, Constant) and t.value is None)]
        nullable = any(t.type.nullable for t in terms)
        types = {t.type for t in known}
        found = together(types) if types else terms[0].type
        if found is None:
            raise TypeFault(
                f"{' and '.join(sorted(map(shown, types)))} cannot be in one column",
                code="type-mismatch",
                span=self._draft.place(node),
                hint="convert one of them with CAST",
            )
        return found.or_null(nullable)

    def _as(self, term: Term, type_: Type, body: Body, node: exp.Expr) -> Term:
        if isinstance(term, Constant) and term.value is None:
            return Constant(None, type_.or_null())
        return self._expressions.brought_to(term, type_, body, node)

    def _as_set(
        self, relation: Relation, captured: Sequence[Variable], columns: Sequence[Column]
    ) -> Relation:
        row = [self._draft.fresh(column.type) for column in columns]
        body = [Atom(relation, (*captured, *row))]
        return self._draft.define("rows", captured, columns, [(row, body)], bag=False)

    def _require(self, relation: Relation, terms: Sequence[Term], body: Body) -> None:
        """Only where the set has the row: a join, unless the set does not produce its arguments."""
        needs = required_inputs(Program(relation, self._draft.definitions))
        if relation.id in needs:
            body.require(self._some(relation, terms, body))
        else:
            body.add(Atom(relation, tuple(terms)))

    def _some(self, relation: Relation, terms: Sequence[Term], body: Body) -> Term:
        found = self._draft.fresh(BOOLEAN)
        given = tuple(terms)
        body.add(Aggregation(found, "some", None, Atom(relation, given), given))
        return found

    def _not_yet(self, node: exp.Expr, message: str) -> LanguageError:
        return LanguageError(message, code="unsupported", span=self._draft.place(node))


def _is_star(node: exp.Expr, distinct: bool) -> bool:
    """count(*) counts rows; count(t.*) those in which no column is NULL."""
    return node.is_star and (distinct or isinstance(node, exp.Column))


def unknown_places(rows: Sequence[Sequence[Term]]) -> frozenset[int]:
    """The columns that are a bare NULL in all rows."""
    bare = Constant(None, NULL_TYPE)
    return frozenset(i for i in range(len(rows[0])) if all(row[i] == bare for row in rows))


def name_of(node: exp.Expr, position: int) -> str:
    """What a column is called: as it says, or as the column that it is, or as it is written."""
    plain = isinstance(node, exp.Alias | exp.Column | exp.Literal | exp.Subquery)
    said = (plain and node.alias_or_name) or written(node) or as_written(node).lower()
    return said or f"col{position + 1}"


def _named(column: exp.Expr) -> tuple[str | None, str]:
    """A column by its table, if it is said, and its name."""
    table = column.args.get("table")
    return (table.name.lower() if table is not None else None), column.name.lower()
