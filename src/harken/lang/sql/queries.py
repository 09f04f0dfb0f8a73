"""Queries into relations: a query is a bag of rows, or a set where SQL removes duplicates.

    SELECT e FROM a, b WHERE c            q(E) ← a(X) ∧ b(Y) ∧ c
    a LEFT JOIN b ON c                    j(X, Y) ← a(X) ∧ b(Y) ∧ c        j(X, NULL) ← a(X) ∧ ¬m(X)
    SELECT g, sum(v) FROM … GROUP BY g    q(G, S) ← groups(G) ∧ S = sum(V : members(G, V))

A subquery is a relation of its own; the columns of the query around it that it mentions are its
first arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from harken.errors import LanguageError, NameFault, TypeFault, nearest
from harken.ir.clauses import Aggregation, Atom, Comparison, Literal, Program
from harken.ir.operations import AGGREGATES
from harken.ir.relations import COPIES, Column, Relation
from harken.ir.safety import required_inputs
from harken.ir.terms import Constant, Term, Variable
from harken.ir.types import BOOLEAN, INTEGER, Type, is_decimal
from harken.lang.sql import decimals
from harken.lang.sql.conditions import Conditions, compare
from harken.lang.sql.draft import FALSE, TRUE, Body, Draft, Table, Tables, used
from harken.lang.sql.expressions import Expressions, numeric_type
from harken.lang.sql.ordering import Keys, direction, limited
from harken.lang.sql.rows import Rows
from harken.lang.sql.scope import Field, Scope, Source
from harken.lang.sql.types import is_numeric, shown
from harken.lang.sql.windows import Split, Windows

AGGREGATED: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "min",
    exp.LogicalOr: "max",
}


@dataclass(slots=True)
class Groups:
    """The grouping of a query: what its expressions may be made of."""

    keys: dict[str, Term]
    aggregates: dict[str, Term]


class Queries:
    def __init__(self, draft: Draft, tables: Tables) -> None:
        self._draft = draft
        self._tables = tables
        self._expressions = Expressions(draft, self)
        self._conditions = Conditions(self._expressions, self)
        self._with: list[dict[str, Rows]] = []
        self._usings = count(1)
        self.mentioned: set[str] = set()
        """The tables and views that were named."""

    # --- queries ---------------------------------------------------------------------------

    def query(self, node: exp.Expr, scope: Scope | None = None) -> Rows:
        """A query inside a scope, which it may capture columns of."""
        node = node.unnest() if isinstance(node, exp.Subquery | exp.Paren) else node
        common = node.args.get("with_") or node.args.get("with")
        if common is not None:
            if common.args.get("recursive"):
                raise self._not_yet(common, "WITH RECURSIVE is not there yet")
            self._with.append({})
            for each in common.expressions:
                rows = self.query(each.this, scope)
                names = tuple(c.name for c in each.args["alias"].columns) or rows.names
                self._with[-1][each.alias.lower()] = replace(rows, names=names)
        try:
            return self._body_of(node, scope)
        finally:
            if common is not None:
                self._with.pop()

    def _body_of(self, node: exp.Expr, scope: Scope | None) -> Rows:
        if node.args.get("limit") is not None or node.args.get("offset") is not None:
            return self._limited(node, scope)
        match node:
            case exp.Select():
                self._refuse(node)
                return self._select(node, scope)
            case exp.SetOperation():
                self._refuse(node)
                return self._set_operation(node, scope)
            case exp.Values():
                return self._values(node, scope)
            case exp.Table():
                star = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))
                return self._select(star, scope)
        raise self._not_yet(node, "this is not a query")

    def _refuse(self, node: exp.Expr) -> None:
        for name in ("laterals", "qualify", "windows", "pivots", "match", "sample", "connect"):
            if node.args.get(name):
                raise self._not_yet(node, f"{name.upper()} is not there yet")

    def _select(self, node: exp.Select, outer: Scope | None) -> Rows:
        if any(each.find(exp.Window) is not None for each in node.expressions):
            return self._windowed(node, outer)
        scope, body = Scope(outer), Body()
        self._from(node, scope, body)
        where = node.args.get("where")
        if where is not None:
            self._conditions.hold(where.this, scope, body)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise self._not_yet(node, "DISTINCT ON is not there yet")
        selected = self._expanded(node, scope)
        grouped = node.args.get("group") is not None or node.args.get("having") is not None
        if grouped or any(_aggregates_of(each) for each, _ in selected):
            return self._grouped(node, selected, scope, body, distinct is not None)
        terms = [self._expressions.value(each, scope, body) for each, _ in selected]
        names = [name for _, name in selected]
        return self._rows(names, terms, body, scope, bag=distinct is None)

    def _windowed(self, node: exp.Select, outer: Scope | None) -> Rows:
        """The query without its window functions first, then those over its rows."""
        if any(each.is_star for each in node.expressions):
            named = Scope(outer)
            self._from(node, named, Body())
            selected = self._expanded(node, named)
        else:
            selected = [(each, _name_of(each, i)) for i, each in enumerate(node.expressions)]
        split = Split()
        expressions = [split.outer(each.unalias()) for each, _ in selected]
        inner = node.copy()
        inner.set("distinct", None)
        columns = [exp.alias_(each, name, quoted=True) for name, each in split.columns.items()]
        inner.set("expressions", columns or [exp.Literal.number(1)])
        rows = self.query(inner, outer)
        windows = Windows(self._draft, rows, list(split.columns) or ["nothing"])
        scope, body = Scope(outer), Body()
        for each in rows.captured:
            scope.capture(each)
        values = {name: windows.value(each, body) for name, each in split.windows.items()}
        windows.source(body)
        fields = [Field(n, t) for n, t in zip(split.columns, windows.row, strict=False)]
        fields += [Field(name, term) for name, term in values.items()]
        scope.sources.append(Source("rows", fields))
        terms = [self._expressions.value(each, scope, body) for each in expressions]
        distinct = node.args.get("distinct") is not None
        return self._rows([name for _, name in selected], terms, body, scope, bag=not distinct)

    def _limited(self, node: exp.Expr, scope: Scope | None) -> Rows:
        """ORDER BY with LIMIT: the first rows; those that the order leaves open are told apart by
        their columns."""
        keys = Keys(node, self._draft)
        rows = self.query(keys.query, scope)
        width = len(rows.columns) - keys.added
        places = [keys.place(i, len(rows.columns)) for i in range(len(keys.nodes))]
        order = [(place, *direction(key)) for place, key in zip(places, keys.nodes, strict=True)]
        order += [(i, False, True) for i in range(width) if i not in places]
        return limited(self._draft, rows, width, order, keys.count, keys.offset)

    def _rows(
        self, names: Sequence[str], terms: Sequence[Term], body: Body, scope: Scope, *, bag: bool
    ) -> Rows:
        captured = self._captured(scope, terms, body.literals)
        columns = tuple(
            Column(name.lower(), term.type) for name, term in zip(names, terms, strict=True)
        )
        relation = self._draft.define("query", captured, columns, [(terms, body.literals)], bag=bag)
        return Rows(relation, captured, tuple(names))

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
            table = None
            if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                table = each.table.lower()
                if table not in [source.alias for source in scope.sources]:
                    raise NameFault(
                        f"there is no table {table} in FROM",
                        code="unknown-table",
                        span=self._draft.place(each),
                    )
            elif not isinstance(each, exp.Star):
                found.append((each, _name_of(each, len(found))))
                continue
            for source in scope.sources:
                if table is None or source.alias == table:
                    for one in source.fields:
                        if table is None and one.name in source.merged:
                            continue
                        column = exp.column(one.name, table=source.alias)
                        found.append((column, one.name))
        return found

    # --- FROM ------------------------------------------------------------------------------

    def _from(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        start = node.args.get("from_") or node.args.get("from")
        if start is None:
            return
        self._item(start.this, scope, body)
        for join in node.args.get("joins") or ():
            self._join(join, scope, body)

    def _item(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        """An item of FROM: what it joins goes into the body, its columns into the scope."""
        if isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self._item(node.this, scope, body)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._table(node, scope, body)
        elif isinstance(node, exp.Subquery | exp.Values):
            inner = node.this if isinstance(node, exp.Subquery) else node
            rows = self.query(inner, scope.parent)
            self._derived(node, rows, scope, body)
        else:
            raise self._not_yet(node, "this cannot stand in FROM yet")
        for join in node.args.get("joins") or ():
            self._join(join, scope, body)

    def _derived(self, node: exp.Expr, rows: Rows, scope: Scope, body: Body) -> None:
        alias = node.args.get("alias")
        given = [each.name for each in alias.columns] if alias is not None else []
        names = [*given, *rows.names[len(given) :]]
        fresh = [self._draft.fresh(c.type, n) for c, n in zip(rows.columns, names, strict=True)]
        body.add(Atom(rows.relation, (*rows.captured, *fresh), span=self._draft.place(node)))
        for each in rows.captured:
            scope.capture(each)
        fields = [Field(n.lower(), term) for n, term in zip(names, fresh, strict=True)]
        self._add_source(node, node.alias.lower() or f"query {len(scope.sources)}", fields, scope)

    def _table(self, node: exp.Table, scope: Scope, body: Body) -> None:
        name = node.name.lower()
        for known in reversed(self._with):
            if name in known:
                if not node.alias:
                    node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
                self._derived(node, known[name], scope, body)
                return
        table = self.table(node)
        terms: list[Term] = [
            self._draft.fresh(column.type, column.name) for column in table.relation.columns
        ]
        body.add(Atom(table.relation, tuple(terms), span=self._draft.place(node)))
        fields = [
            Field(column.name.lower(), terms[position])
            for column, position in zip(table.columns, table.positions, strict=True)
        ]
        alias = node.args.get("alias")
        for i, each in enumerate(alias.columns if alias is not None else ()):
            fields[i] = Field(each.name.lower(), fields[i].term)
        self._add_source(node, node.alias_or_name.lower(), fields, scope)

    def table(self, node: exp.Table) -> Table:
        table = self._tables.table(node.name.lower())
        if table is None:
            near = nearest(node.name, self._tables.table_names())
            raise NameFault(
                f"there is no table or view {node.name}",
                code="unknown-table",
                span=self._draft.place(node),
                hint=f"do you mean {near}?" if near else None,
            )
        self.mentioned.add(table.relation.name)
        return table

    def _add_source(self, node: exp.Expr, alias: str, fields: list[Field], scope: Scope) -> None:
        if any(source.alias == alias for source in scope.sources):
            raise TypeFault(
                f"two items of FROM are called {alias}",
                code="ambiguous",
                span=self._draft.place(node),
                hint="give one of them an alias",
            )
        scope.sources.append(Source(alias, fields))

    def _join(self, join: exp.Join, scope: Scope, body: Body) -> None:
        side = (join.side or "").upper()
        kind = (join.kind or "").upper()
        if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
            self._semi_join(join, scope, body, anti="ANTI" in (kind, side))
            return
        right, right_body = Scope(scope.parent), Body()
        self._item(join.this, right, right_body)
        if not side:
            right_body = Body([*body.literals, *right_body.literals])
            body.literals = right_body.literals
            merged = self._common(join, scope, right)
            self._merge(scope, right)
            self._on(join, merged, scope, body)
            return
        self._outer_join(join, side, scope, body, right, right_body)

    def _merge(self, scope: Scope, right: Scope) -> None:
        for source in right.sources:
            if any(each.alias == source.alias for each in scope.sources):
                raise TypeFault(
                    f"two items of FROM are called {source.alias}",
                    code="ambiguous",
                    span=self._draft.statement.span,
                    hint="give one of them an alias",
                )
        scope.sources += right.sources
        scope.captured.update(right.captured)

    def _common(self, join: exp.Join, left: Scope, right: Scope) -> list[tuple[str, Term, Term]]:
        """The columns that USING or NATURAL says are to be the same."""
        names = [each.name.lower() for each in join.args.get("using") or ()]
        if (join.method or "").upper() == "NATURAL":
            there = {f.name for source in right.sources for f in source.fields}
            names = [f.name for source in left.sources for f in source.fields if f.name in there]
        place = self._draft.place(join)
        return [
            (name, left.column(None, name, place), right.column(None, name, place))
            for name in dict.fromkeys(names)
        ]

    def _on(
        self,
        join: exp.Join,
        common: list[tuple[str, Term, Term]],
        scope: Scope,
        body: Body,
    ) -> None:
        kept = []
        for name, one, other in common:
            kept.append(Field(name, one))
            one, other = self._expressions.alike(one, other, body, join)
            compare("=", one, other, body)
        self._keep_one(kept, scope)
        on = join.args.get("on")
        if on is not None:
            self._conditions.hold(on, scope, body)

    def _outer_join(
        self,
        join: exp.Join,
        side: str,
        scope: Scope,
        body: Body,
        right: Scope,
        right_body: Body,
    ) -> None:
        """The rows of both sides that match, and those of one side or both that match nothing."""
        if side not in ("LEFT", "RIGHT", "FULL"):
            raise self._not_yet(join, f"{side} JOIN is not there yet")
        common = self._common(join, scope, right)
        inside = Scope(scope.parent, [*scope.sources, *right.sources])
        condition = Body()
        for _, one, other in common:
            one, other = self._expressions.alike(one, other, condition, join)
            compare("=", one, other, condition)
        if join.args.get("on") is not None:
            self._conditions.hold(join.args["on"], inside, condition)
        inside.captured.update({**scope.captured, **right.captured})
        fields = [f for source in inside.sources for f in source.fields]
        terms = [each.term for each in fields]
        lefts = len([f for source in scope.sources for f in source.fields])
        matched = [*body.literals, *right_body.literals, *condition.literals]
        heads: list[tuple[Sequence[Term], Sequence[Literal]]] = [(terms, matched)]
        if side in ("LEFT", "FULL"):
            missing = [Constant(None, each.type.or_null()) for each in terms[lefts:]]
            unmatched = self._unmatched(
                terms[:lefts], [*right_body.literals, *condition.literals], inside
            )
            heads.append(([*terms[:lefts], *missing], [*body.literals, unmatched]))
        if side in ("RIGHT", "FULL"):
            missing = [Constant(None, each.type.or_null()) for each in terms[:lefts]]
            unmatched = self._unmatched(
                terms[lefts:], [*body.literals, *condition.literals], inside
            )
            heads.append(([*missing, *terms[lefts:]], [*right_body.literals, unmatched]))
        every = [literal for _, literals in heads for literal in literals]
        captured = self._captured(inside, terms, every)
        types = [
            each.type.or_null(
                each.type.nullable
                or (side != "LEFT" and i < lefts)
                or (side != "RIGHT" and i >= lefts)
            )
            for i, each in enumerate(terms)
        ]
        columns = [Column(f.name, type_) for f, type_ in zip(fields, types, strict=True)]
        relation = self._draft.define("join", captured, columns, heads, bag=True)
        fresh = [self._draft.fresh(c.type, c.name) for c in columns]
        body.literals = [Atom(relation, (*captured, *fresh), span=self._draft.place(join))]
        renamed = iter(fresh)
        scope.sources = [
            Source(s.alias, [Field(f.name, next(renamed)) for f in s.fields], s.merged)
            for s in inside.sources
        ]
        scope.captured.update(inside.captured)
        lefts = len(scope.sources) - len(right.sources)
        left = Scope(None, scope.sources[:lefts])
        right = Scope(None, scope.sources[lefts:])
        kept = []
        for name, one, other in self._common(join, left, right):
            chosen = {"LEFT": one, "RIGHT": other}.get(side)
            if chosen is None:
                sides = self._expressions.alike(one, other, body, join)
                chosen = self._draft.compute("coalesce", sides, sides[0].type, body)
            kept.append(Field(name, chosen))
        self._keep_one(kept, scope)

    def _keep_one(self, fields: list[Field], scope: Scope) -> None:
        """Of columns that USING made one, those that a name without a table means. `*` shows them
        first, and once; under the names of their tables the columns are what they were."""
        if not fields:
            return
        names = {each.name for each in fields}
        for source in scope.sources:
            source.merged |= names
        scope.sources.insert(0, Source(f"using {next(self._usings)}", fields))

    def _unmatched(
        self, terms: Sequence[Term], literals: Sequence[Literal], scope: Scope
    ) -> Literal:
        """No row of the other side matches."""
        mentioned = used((), literals)
        own = [each for each in terms if isinstance(each, Variable) and each in mentioned]
        captured = [each for each in scope.captured if each in mentioned and each not in own]
        arguments = list(dict.fromkeys((*captured, *own)))
        match = self._draft.define("match", arguments, (), [((), literals)], bag=False)
        return Atom(match, tuple(arguments), negated=True)

    def _semi_join(self, join: exp.Join, scope: Scope, body: Body, *, anti: bool) -> None:
        right, right_body = Scope(scope.parent), Body()
        self._item(join.this, right, right_body)
        # A name in ON means a column of either side: one that both have is ambiguous.
        inside = Scope(scope.parent, list(scope.sources), dict(scope.captured))
        self._merge(inside, right)
        for source in scope.sources:
            for each in source.fields:
                inside.capture(each.term)
        for _, one, other in self._common(join, scope, right):
            one, other = self._expressions.alike(one, other, right_body, join)
            compare("=", one, other, right_body)
        if join.args.get("on") is not None:
            self._conditions.hold(join.args["on"], inside, right_body)
        arguments = self._captured(inside, (), right_body.literals)
        match = self._draft.define("match", arguments, (), [((), right_body.literals)], bag=False)
        self._capture_outwards(arguments, scope)
        if anti:
            body.add(Atom(match, arguments, negated=True))
        else:
            self._require(match, arguments, body)

    def _capture_outwards(self, captured: Sequence[Variable], scope: Scope) -> None:
        """What an inner query captured and this one does not have, it captures as well."""
        own = {f.term for source in scope.sources for f in source.fields}
        for each in captured:
            if each not in own and scope.parent is not None and each not in scope.captured:
                scope.capture(each)

    # --- VALUES and set operations ---------------------------------------------------------

    def _values(self, node: exp.Values, scope: Scope | None) -> Rows:
        inside, body = Scope(scope), Body()
        rows = [
            [self._expressions.value(v, inside, body) for v in _items(each)]
            for each in node.expressions
        ]
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            raise TypeFault(
                "the rows of VALUES are not all of the same length",
                code="arity",
                span=self._draft.place(node),
            )
        types = [self._common_type([row[i] for row in rows], node) for i in range(width)]
        heads = []
        for row in rows:
            own = Body(list(body.literals))
            heads.append(
                (
                    [self._as(t, type_, own, node) for t, type_ in zip(row, types, strict=True)],
                    own.literals,
                )
            )
        names = tuple(f"col{i + 1}" for i in range(width))
        columns = [Column(name, type_) for name, type_ in zip(names, types, strict=True)]
        captured = self._captured(inside, [t for row in rows for t in row], body.literals)
        relation = self._draft.define("values", captured, columns, heads, bag=True)
        return Rows(relation, captured, names)

    def _common_type(self, terms: Sequence[Term], node: exp.Expr) -> Type:
        known = [t for t in terms if not (isinstance(t, Constant) and t.value is None)]
        nullable = any(t.type.nullable for t in terms)
        types = {t.type for t in known}
        if len(types) > 1 and not all(map(is_numeric, types)):
            raise TypeFault(
                f"{' and '.join(sorted(map(shown, types)))} cannot be in one column",
                code="type-mismatch",
                span=self._draft.place(node),
                hint="convert one of them with CAST",
            )
        found = numeric_type(types) if len(types) > 1 else (known or list(terms))[0].type
        return found.or_null(nullable)

    def _as(self, term: Term, type_: Type, body: Body, node: exp.Expr) -> Term:
        if isinstance(term, Constant) and term.value is None:
            return Constant(None, type_.or_null())
        return self._draft.coerce(term, type_, body, node)

    def _set_operation(self, node: exp.SetOperation, scope: Scope | None) -> Rows:
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        if len(left.columns) != len(right.columns):
            raise TypeFault(
                f"one side has {len(left.columns)} columns and the other {len(right.columns)}",
                code="arity",
                span=self._draft.place(node),
            )
        captured = tuple(dict.fromkeys((*left.captured, *right.captured)))
        sides = [self._side(rows, node, other) for rows, other in ((left, right), (right, left))]
        types = [
            one.type.or_null(one.type.nullable or other.type.nullable)
            for one, other in zip(sides[0][0], sides[1][0], strict=True)
        ]
        columns = [
            Column(name.lower(), type_) for name, type_ in zip(left.names, types, strict=True)
        ]
        distinct = bool(node.args.get("distinct", True))
        if isinstance(node, exp.Union):
            relation = self._draft.define("union", captured, columns, sides, bag=not distinct)
            return Rows(relation, captured, left.names)
        made = [self._draft.define("side", captured, columns, [side], bag=True) for side in sides]
        row = [self._draft.fresh(column.type) for column in columns]
        atoms = [Atom(each, (*captured, *row)) for each in made]
        body: list[Literal]
        if distinct:
            there = self._as_set(made[1], captured, columns)
            negated = isinstance(node, exp.Except)
            body = [atoms[0], Atom(there, (*captured, *row), negated=negated)]
        else:
            body = self._counted(node, made, captured, row, columns)
        relation = self._draft.define("set", captured, columns, [(row, body)], bag=not distinct)
        return Rows(relation, captured, left.names)

    def _side(
        self, rows: Rows, node: exp.Expr, other: Rows
    ) -> tuple[Sequence[Term], Sequence[Literal]]:
        """The rows of one side of a set operation, as ones of the types of both."""
        fresh = [self._draft.fresh(column.type) for column in rows.columns]
        body = Body([Atom(rows.relation, (*rows.captured, *fresh))])
        terms: list[Term] = []
        for term, column in zip(fresh, other.columns, strict=True):
            wanted = self._common_type([term, self._draft.fresh(column.type)], node)
            terms.append(self._draft.coerce(term, wanted, body, node))
        return terms, body.literals

    def _as_set(
        self, relation: Relation, captured: Sequence[Variable], columns: Sequence[Column]
    ) -> Relation:
        row = [self._draft.fresh(column.type) for column in columns]
        body = [Atom(relation, (*captured, *row))]
        return self._draft.define("rows", captured, columns, [(row, body)], bag=False)

    def _counted(
        self,
        node: exp.Expr,
        made: Sequence[Relation],
        captured: Sequence[Variable],
        row: Sequence[Variable],
        columns: Sequence[Column],
    ) -> list[Literal]:
        """INTERSECT ALL and EXCEPT ALL: a row as often as in both, or more often than in the
        second."""
        terms = (*captured, *row)
        one, other, least = (self._draft.fresh(INTEGER) for _ in range(3))
        which = self._draft.fresh(INTEGER)
        body = Body(
            [
                Atom(self._as_set(made[0], captured, columns), terms),
                Aggregation(one, "count", None, Atom(made[0], terms), terms),
                Aggregation(other, "count", None, Atom(made[1], terms), terms),
            ]
        )
        if isinstance(node, exp.Except):
            times = self._draft.compute("-", (one, other), INTEGER, body)
        else:
            fewer = self._draft.compute("is <", (one, other), BOOLEAN, body)
            times = self._draft.compute("choose", (fewer, one, other), INTEGER, body)
        del least
        body.add(Atom(COPIES, (times, which)))
        return body.literals

    # --- GROUP BY --------------------------------------------------------------------------

    def _grouped(
        self,
        node: exp.Select,
        selected: Sequence[tuple[exp.Expr, str]],
        scope: Scope,
        body: Body,
        distinct: bool,
    ) -> Rows:
        keys = self._keys(node, selected)
        having = node.args.get("having")
        mentioned = [each for each, _ in selected]
        if having is not None:
            mentioned.append(having.this)
        wanted: dict[str, exp.Expr] = {}
        for each in mentioned:
            for found_in in _aggregates_of(each):
                wanted.setdefault(_text(found_in), found_in)
        key_terms = [self._expressions.value(each, scope, body) for each in keys]
        values = [self._argument(each, scope, body) for each in wanted.values()]
        captured = self._captured(scope, [*key_terms, *_present(values)], body.literals)
        out, clause = Scope(scope.parent), Body()
        out.captured.update(scope.captured)
        plain = self._members(captured, key_terms, _present(values), body, bag=True)
        distinct_ones = {
            text: self._members(captured, key_terms, _present([value]), body, bag=False)
            for (text, aggregate), value in zip(wanted.items(), values, strict=True)
            if _is_distinct(aggregate)
        }
        over = [plain, *distinct_ones.values()]
        groups = self._groups(over, captured, key_terms, clause)
        found = Groups({_text(each): term for each, term in zip(keys, groups, strict=True)}, {})
        for (text, aggregate), value in zip(wanted.items(), values, strict=True):
            place = 0 if text in distinct_ones else _place(values, value)
            members = distinct_ones.get(text, plain)
            found.aggregates[text] = self._aggregate(
                aggregate, value, members, place, (*captured, *groups), clause, bool(keys)
            )
        inside = GroupedScope(out, found, self, scope)
        if having is not None:
            self._conditions.hold(inside.rewritten(having.this), inside.scope, clause)
        terms = [
            self._expressions.value(inside.rewritten(each), inside.scope, clause)
            for each, _ in selected
        ]
        names = [name for _, name in selected]
        out.captured.update(dict.fromkeys(captured))
        return self._rows(names, terms, clause, inside.scope, bag=not distinct)

    def _keys(self, node: exp.Select, selected: Sequence[tuple[exp.Expr, str]]) -> list[exp.Expr]:
        """The expressions that are grouped by; a number or the name of a column of the result
        stands for that column."""
        group = node.args.get("group")
        if group is None:
            return []
        for name in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(name):
                raise self._not_yet(group, f"{name.upper()} is not there yet")
        found = []
        named = {name.lower(): each for each, name in selected if isinstance(each, exp.Alias)}
        sources = node.args.get("from_") or node.args.get("from")
        for each in group.expressions:
            if isinstance(each, exp.Literal) and not each.is_string:
                position = int(each.this) - 1
                if not 0 <= position < len(selected):
                    raise TypeFault(
                        f"there is no column {each.this} to group by",
                        code="arity",
                        span=self._draft.place(each),
                    )
                each = selected[position][0]
            elif (
                isinstance(each, exp.Column)
                and not each.table
                and each.name.lower() in named
                and sources is not None
                and not self._is_column(each, node)
            ):
                each = named[each.name.lower()]
            found.append(each.unalias())
        return found

    def _is_column(self, column: exp.Column, node: exp.Select) -> bool:
        scope = Scope()
        self._from(node, scope, Body())
        return scope.knows(None, column.name.lower())

    def _members(
        self,
        captured: Sequence[Variable],
        keys: Sequence[Term],
        values: Sequence[Term],
        body: Body,
        *,
        bag: bool,
    ) -> Relation:
        """The rows that are grouped: the keys, and what the aggregates are taken of."""
        terms = [*keys, *values]
        columns = [Column(f"m{i}", each.type) for i, each in enumerate(terms)]
        return self._draft.define("members", captured, columns, [(terms, body.literals)], bag=bag)

    def _groups(
        self,
        over: Sequence[Relation],
        captured: Sequence[Variable],
        keys: Sequence[Term],
        clause: Body,
    ) -> list[Term]:
        """The groups there are; without GROUP BY all rows are one, also if there are none."""
        if not keys:
            return []
        members = over[0]
        row = [self._draft.fresh(each.type) for each in members.columns[len(captured) :]]
        own = row[: len(keys)]
        columns = [Column(f"g{i}", each.type) for i, each in enumerate(own)]
        body = [Atom(members, (*captured, *row))]
        relation = self._draft.define(
            "groups", captured, columns, [(own, body)], bag=False, groups=over
        )
        fresh: list[Term] = [self._draft.fresh(column.type) for column in columns]
        clause.add(Atom(relation, (*captured, *fresh)))
        return fresh

    def _argument(self, node: exp.Expr, scope: Scope, body: Body) -> Term | None:
        """What an aggregate is taken of; None if it only counts rows."""
        if type(node) not in AGGREGATED:
            raise self._not_yet(node, f"the aggregate {node.sql('spark')} is not there yet")
        argument = node.this
        if isinstance(argument, exp.Distinct):
            if len(argument.expressions) != 1:
                raise self._not_yet(node, "DISTINCT of several columns is not there yet")
            argument = argument.expressions[0]
        if argument is None or isinstance(argument, exp.Star):
            return None
        value = self._expressions.value(argument, scope, body)
        if isinstance(node, exp.Sum | exp.Avg) and not is_numeric(value.type):
            raise TypeFault(
                f"{AGGREGATED[type(node)]} of {shown(value.type)}",
                code="type-mismatch",
                span=self._draft.place(node),
                hint="it takes numbers",
            )
        if isinstance(node, exp.LogicalAnd | exp.LogicalOr):
            value = self._draft.coerce(value, BOOLEAN, body, node)
        if isinstance(node, exp.Count) and not value.type.nullable and not _is_distinct(node):
            return None  # no value is NULL, so all rows are counted
        return value

    def _aggregate(
        self,
        node: exp.Expr,
        value: Term | None,
        members: Relation,
        place: int,
        groups: tuple[Term, ...],
        clause: Body,
        is_grouped: bool,
    ) -> Term:
        """The value of an aggregate for a group of the members."""
        name = AGGREGATED[type(node)]
        if name == "avg" and value is not None and is_decimal(value.type):
            return self._exact_average(node, value, members, place, groups, clause, is_grouped)
        type_ = AGGREGATES[name].result or (INTEGER if value is None else value.type)
        if value is not None and is_decimal(value.type) and name in ("sum", "avg"):
            exact = decimals.sum_of if name == "sum" else decimals.average_of
            type_ = exact(value.type)
        nullable = name != "count" and (
            not is_grouped or (value is not None and value.type.nullable)
        )
        result = self._draft.fresh(type_.or_null(nullable))
        rest = [self._draft.fresh(column.type) for column in members.columns[len(groups) :]]
        inner = None if value is None else rest[place]
        atom = Atom(members, (*groups, *rest))
        clause.add(Aggregation(result, name, inner, atom, groups, or_null=nullable))
        return result

    def _exact_average(
        self,
        node: exp.Expr,
        value: Term,
        members: Relation,
        place: int,
        groups: tuple[Term, ...],
        clause: Body,
        is_grouped: bool,
    ) -> Term:
        """Of decimals: a sum and a count, which can be kept, and their quotient."""
        whole, counted = (
            self._aggregate(kind(this=node.this), value, members, place, groups, clause, is_grouped)
            for kind in (exp.Sum, exp.Count)
        )
        divisor = self._draft.coerce(counted, decimals.as_decimal(INTEGER), clause, node)
        type_ = decimals.average_of(value.type)
        quotient = self._draft.compute("/", (whole, divisor), type_, clause)
        if not whole.type.nullable:
            return quotient
        missing = self._draft.compute("is null", (whole,), BOOLEAN, clause)
        nothing = Constant(None, type_.or_null())
        return self._draft.compute("choose", (missing, nothing, quotient), type_, clause)

    # --- subqueries in expressions ---------------------------------------------------------

    def _inner(self, node: exp.Expr, scope: Scope) -> Rows:
        rows = self.query(node, scope)
        self._capture_outwards(rows.captured, scope)
        return rows

    def _some_row(self, node: exp.Expr, scope: Scope) -> tuple[Relation, tuple[Variable, ...]]:
        """A set that has a row iff the query has one."""
        rows = self._inner(node.unnest(), scope)
        fresh = tuple(self._draft.fresh(column.type) for column in rows.columns)
        body = [Atom(rows.relation, (*rows.captured, *fresh))]
        found = self._draft.define("exists", rows.captured, (), [((), body)], bag=False)
        return found, rows.captured

    def require_row(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        body.require(self.exists(node, scope, body))

    def require_no_row(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        relation, captured = self._some_row(node, scope)
        body.add(Atom(relation, captured, negated=True))

    def exists(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        relation, captured = self._some_row(node, scope)
        return self._some(relation, captured, body)

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

    def _listed(
        self, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body
    ) -> tuple[list[Term], Rows]:
        """What stands left of IN, as terms of the types of the query's columns."""
        parts = list(left.expressions) if isinstance(left, exp.Tuple) else [left]
        rows = self._inner(node, scope)
        if len(parts) != len(rows.columns):
            raise TypeFault(
                f"{len(parts)} values are sought among rows of {len(rows.columns)}",
                code="arity",
                span=self._draft.place(left),
            )
        terms = [self._expressions.value(each, scope, body) for each in parts]
        return terms, rows

    def _matches(
        self, terms: Sequence[Term], rows: Rows, node: exp.Expr, body: Body, *, unknown: bool
    ) -> tuple[Relation, tuple[Term, ...]]:
        """The set of rows that the terms can be found in; those with a NULL if `unknown`."""
        fresh = [self._draft.fresh(column.type) for column in rows.columns]
        inner = Body([Atom(rows.relation, (*rows.captured, *fresh))])
        wanted: list[Term] = []
        given: list[Term] = []
        for term, column in zip(terms, fresh, strict=True):
            conversions = Body()
            one, other = self._expressions.alike(column, term, conversions, node)
            for literal in conversions.literals:
                (inner if column in used((), [literal]) else body).add(literal)
            wanted.append(one)
            given.append(other)
        if unknown:
            heads = [
                ((), [*inner.literals, Comparison("=", each, Constant(None, each.type.or_null()))])
                for each in wanted
                if each.type.nullable
            ]
            relation = self._draft.define("unknown", rows.captured, (), heads, bag=False)
            return relation, rows.captured
        for each in wanted:
            inner.not_null(each)
        columns = [Column(f"v{i}", each.type.or_null(False)) for i, each in enumerate(wanted)]
        relation = self._draft.define(
            "in", rows.captured, columns, [(wanted, inner.literals)], bag=False
        )
        return relation, (*rows.captured, *given)

    def require_in(self, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body) -> None:
        terms, rows = self._listed(left, node, scope, body)
        relation, arguments = self._matches(terms, rows, node, body, unknown=False)
        self._require(relation, arguments, body)

    def require_not_in(self, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body) -> None:
        terms, rows = self._listed(left, node, scope, body)
        if len(terms) > 1:
            body.add(Comparison("=", self._is_among(terms, rows, node, body), FALSE))
            return
        relation, arguments = self._matches(terms, rows, node, body, unknown=False)
        body.add(Atom(relation, arguments, negated=True))
        if any(column.type.nullable for column in rows.columns):
            unknown, captured = self._matches(terms, rows, node, body, unknown=True)
            body.add(Atom(unknown, captured, negated=True))
        if terms[0].type.nullable:
            there = self._some(*self._any(rows), body)
            missing = self._draft.compute("is null", (terms[0],), BOOLEAN, body)
            both = self._draft.compute("and", (missing, there), BOOLEAN, body)
            body.add(Comparison("=", both, FALSE))

    def _any(self, rows: Rows) -> tuple[Relation, tuple[Variable, ...]]:
        fresh = tuple(self._draft.fresh(column.type) for column in rows.columns)
        inner = [Atom(rows.relation, (*rows.captured, *fresh))]
        found = self._draft.define("exists", rows.captured, (), [((), inner)], bag=False)
        return found, rows.captured

    def is_in(self, left: exp.Expr, node: exp.Expr, scope: Scope, body: Body) -> Term:
        terms, rows = self._listed(left, node, scope, body)
        return self._is_among(terms, rows, node, body)

    def _is_among(self, terms: Sequence[Term], rows: Rows, node: exp.Expr, body: Body) -> Term:
        """IN as a value: true, false, or NULL where a NULL leaves it open."""
        if len(terms) > 1:
            raise self._not_yet(node, "IN of several columns is only there as a condition")
        compute = self._draft.compute
        relation, arguments = self._matches(terms, rows, node, body, unknown=False)
        found = self._some(relation, arguments, body)
        open_: Term = FALSE
        if any(column.type.nullable for column in rows.columns):
            open_ = self._some(*self._matches(terms, rows, node, body, unknown=True), body)
        if terms[0].type.nullable:
            there = self._some(*self._any(rows), body)
            missing = compute("is null", (terms[0],), BOOLEAN, body)
            both = compute("and", (missing, there), BOOLEAN, body)
            open_ = both if open_ is FALSE else compute("or", (open_, both), BOOLEAN, body)
        if open_ is FALSE:
            return found
        nothing = Constant(None, BOOLEAN.or_null())
        rest = compute("choose", (open_, nothing, FALSE), BOOLEAN, body)
        return compute("choose", (found, TRUE, rest), BOOLEAN, body)

    def scalar(self, node: exp.Expr, scope: Scope, body: Body) -> Term:
        """The one value of a query: NULL if it has no row, an error if it has several."""
        rows = self._inner(node, scope)
        if len(rows.columns) != 1:
            raise TypeFault(
                f"a query that stands for a value has one column, not {len(rows.columns)}",
                code="arity",
                span=self._draft.place(node),
            )
        type_ = rows.columns[0].type
        inner = self._draft.fresh(type_)
        result = self._draft.fresh(type_.or_null())
        atom = Atom(rows.relation, (*rows.captured, inner))
        groups = tuple(rows.captured)
        body.add(Aggregation(result, "single value", inner, atom, groups, or_null=True))
        return result

    def _not_yet(self, node: exp.Expr, message: str) -> LanguageError:
        return LanguageError(message, code="unsupported", span=self._draft.place(node))


@dataclass(slots=True)
class GroupedScope:
    """Expressions above a GROUP BY: keys and aggregates become columns of a source of their own."""

    scope: Scope
    groups: Groups
    queries: Queries
    below: Scope
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields = []
        for number, (text, term) in enumerate((self.groups.keys | self.groups.aggregates).items()):
            self.names[text] = f"value {number}"
            fields.append(Field(f"value {number}", term))
        self.scope.sources.append(Source("group", fields))
        # A column that is grouped by keeps its name, for subqueries and HAVING.
        for source in self.below.sources:
            kept = [
                Field(each.name, self.groups.keys[text])
                for each in source.fields
                for text in _texts_of(source, each.name)
                if text in self.groups.keys
            ]
            if kept:
                unique = {each.name: each for each in kept}
                self.scope.sources.append(
                    Source(source.alias, list(unique.values()), source.merged)
                )

    def rewritten(self, node: exp.Expr) -> exp.Expr:
        """The expression with what it may be made of replaced by columns."""

        def replace_known(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Identifier):
                return each
            name = self.names.get(_text(each))
            if name is not None:
                return exp.column(name, table="group")
            # In a subquery names mean its own columns first; a copy is not searched.
            return each.copy() if isinstance(each, exp.Query) else each

        return node.copy().transform(replace_known)


def _is_distinct(node: exp.Expr) -> bool:
    """min and max are the same of a set."""
    return isinstance(node.this, exp.Distinct) and not isinstance(node, exp.Min | exp.Max)


def _present(values: Sequence[Term | None]) -> list[Term]:
    """The terms that aggregates are taken of, each once."""
    return list(dict.fromkeys(each for each in values if each is not None))


def _place(values: Sequence[Term | None], value: Term | None) -> int:
    return 0 if value is None else _present(values).index(value)


def _texts_of(source: Source, name: str) -> list[str]:
    """How a column can be written; without its table not if USING made it one with another."""
    found = [_text(exp.column(name, table=source.alias))]
    return found if name in source.merged else [*found, _text(exp.column(name))]


def _aggregates_of(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression, not those of subqueries in it."""
    found: list[exp.Expr] = []

    def visit(each: exp.Expr) -> None:
        if isinstance(each, exp.Query):
            return
        if isinstance(each, exp.AggFunc):
            found.append(each)
            return
        for child in each.iter_expressions():
            visit(child)

    visit(node)
    return found


def _text(node: exp.Expr) -> str:
    """What tells two expressions apart."""
    return node.unalias().sql("spark", normalize=True, comments=False)


def _name_of(node: exp.Expr, position: int) -> str:
    return node.alias_or_name or node.sql("spark").lower() or f"col{position + 1}"


def _items(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
