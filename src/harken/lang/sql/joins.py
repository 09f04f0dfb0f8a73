"""FROM: tables, subqueries and joins of every kind.

a LEFT JOIN b ON c        j(X, Y) ← a(X) ∧ b(Y) ∧ c        j(X, NULL) ← a(X) ∧ ¬m(X)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from harken.errors import TypeFault, agreeing, counted
from harken.ir.clauses import Atom, Literal, Program
from harken.ir.relations import Column
from harken.ir.safety import required_inputs
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.combining import Combining, is_range
from harken.lang.sql.conditions import compare
from harken.lang.sql.draft import Body, Table, unknown_table, used
from harken.lang.sql.rows import Rows
from harken.lang.sql.scope import Field, Scope, Source


def is_lateral(node: exp.Expr) -> bool:
    return isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)


def _is_joined(node: exp.Expr) -> bool:
    """An item of FROM in parentheses, whose tables keep their names; no query of its own."""
    if not isinstance(node, exp.Subquery):
        return False
    inside = node.this
    named = isinstance(inside, exp.Subquery) and bool(inside.alias or inside.args.get("joins"))
    return isinstance(inside, exp.Table) or named or _is_joined(inside)


class Joins(Combining):
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
        if _is_joined(node) and not node.alias:
            self._item(node.this, scope, body)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._table(node, scope, body)
        elif isinstance(node, exp.Subquery | exp.Values) or is_lateral(node):
            inner = node if isinstance(node, exp.Values) else node.this
            rows = self.query(inner, scope.parent)
            self._derived(node, rows, scope, body)
        elif isinstance(node, exp.Table) and is_range(node.this):
            self._derived(node, self._range(node.this), scope, body)
        else:
            raise self._not_yet(node, "this cannot stand in FROM yet")
        for join in node.args.get("joins") or ():
            self._join(join, scope, body)

    def _right_item(self, join: exp.Join, side: str, left: Scope, right: Scope, body: Body) -> None:
        """What is joined; a lateral query may mention the columns of what it is joined to."""
        if not is_lateral(join.this):
            self._item(join.this, right, body)
            return
        if side not in ("", "LEFT"):
            raise self._not_yet(join, f"{side} JOIN LATERAL is not there")
        around = Scope(left.parent, list(left.sources))
        rows = self.query(join.this.this, around)
        self._refuse_open_rows(join, rows)
        own = {each.term for source in left.sources for each in source.fields}
        self._derived(join.this, rows, right, body, own)

    def _refuse_open_rows(self, join: exp.Join, rows: Rows) -> None:
        """Groups, sets and orders are made for all that they are joined to at once; so what tells
        which of them are meant must be found in them."""
        definitions = self._draft.definitions
        needs = required_inputs(Program(rows.relation, definitions))
        waiting, seen = [rows.relation], {rows.relation.id}
        while waiting:
            relation = waiting.pop()
            definition = definitions.get(relation.id)
            if definition is None:
                continue
            closed = definition.groups or definition.first or definition.numbered
            if (relation.is_set or closed) and relation.id in needs:
                raise self._not_yet(
                    join,
                    "a LATERAL query with DISTINCT, GROUP BY, LIMIT or numbered rows compares its "
                    "columns with those around it by = only, so far",
                )
            literals = [each for clause in definition.clauses for each in clause.body]
            joined = [e.relation for e in literals if isinstance(e, Atom) and not e.negated]
            waiting += [each for each in joined if each.id not in seen]
            seen.update(each.id for each in joined)

    def _derived(
        self,
        node: exp.Expr,
        rows: Rows,
        scope: Scope,
        body: Body,
        own: Collection[Term] = (),
    ) -> None:
        """The rows of a query in FROM; `own` are columns of the same FROM that it mentions."""
        names = self._renamed(node, rows.names)
        fresh = [self._draft.fresh(c.type, n) for c, n in zip(rows.columns, names, strict=True)]
        body.add(Atom(rows.relation, (*rows.captured, *fresh), span=self._draft.place(node)))
        for each in rows.captured:
            if each not in own:
                scope.capture(each)
        fields = [Field(n.lower(), term) for n, term in zip(names, fresh, strict=True)]
        alias = node.alias_or_name.lower() or f"query {len(scope.sources)}"
        self._add_source(node, alias, fields, scope)

    def _renamed(self, node: exp.Expr, names: Sequence[str]) -> list[str]:
        """The columns of an item of FROM, as its alias calls them."""
        alias = node.args.get("alias")
        given = [each.name for each in alias.columns] if alias is not None else []
        if len(given) > len(names):
            raise TypeFault(
                f"{counted(len(given), 'column', 'is')} named, and there "
                f"{agreeing(len(names))} {len(names)}",
                code="arity",
                span=self._draft.place(node),
            )
        return [*given, *names[len(given) :]]

    def _table(self, node: exp.Table, scope: Scope, body: Body) -> None:
        name = node.name.lower()
        for known in reversed(self._with):
            if name in known:
                self._derived(node, known[name], scope, body)
                return
        table = self.table(node)
        terms: list[Term] = [
            self._draft.fresh(column.type, column.name) for column in table.relation.columns
        ]
        body.add(Atom(table.relation, tuple(terms), span=self._draft.place(node)))
        names = self._renamed(node, [column.name for column in table.columns])
        fields = [
            Field(name.lower(), terms[position])
            for name, position in zip(names, table.positions, strict=True)
        ]
        if not node.alias:
            self._refuse_twin(node, scope.parent)
        self._add_source(node, node.alias_or_name.lower(), fields, scope)

    def _refuse_twin(self, node: exp.Table, around: Scope | None) -> None:
        """Relations whose names differ in case only have names of the same column in one query:
        inside, what is outside could not be meant."""
        name = node.name.lower()
        while around is not None:
            if any(source.alias == name for source in around.sources) and self._has_twin(name):
                raise self._called_twice(node, name)
            around = around.parent

    def _has_twin(self, name: str) -> bool:
        return sum(each.lower() == name for each in self._tables.table_names()) > 1

    def _called_twice(self, node: exp.Expr, alias: str) -> TypeFault:
        return TypeFault(
            f"two items of FROM are called {alias}",
            code="ambiguous",
            span=self._draft.place(node),
            hint="give one of them an alias",
        )

    def table(self, node: exp.Table) -> Table:
        table = self._tables.table(node.name)
        if table is None:
            raise unknown_table(self._tables, node.name, self._draft.place(node))
        self.mentioned.add(table.relation.name)
        return table

    def _add_source(self, node: exp.Expr, alias: str, fields: list[Field], scope: Scope) -> None:
        if any(source.alias == alias for source in scope.sources):
            raise self._called_twice(node, alias)
        scope.sources.append(Source(alias, fields))

    def _join(self, join: exp.Join, scope: Scope, body: Body) -> None:
        side = (join.side or "").upper()
        kind = (join.kind or "").upper()
        if (join.method or "").upper() not in ("", "NATURAL"):
            raise self._not_yet(join, f"{join.method.upper()} JOIN is not in Harken's SQL")
        if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
            self._semi_join(join, scope, body, anti="ANTI" in (kind, side))
            return
        right, right_body = Scope(scope.parent), Body()
        self._right_item(join, side, scope, right, right_body)
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
            replace(s, fields=[replace(f, term=next(renamed)) for f in s.fields])
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
        scope.sources.insert(0, Source(f"using {next(self._usings)}", fields, of_using=True))

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
