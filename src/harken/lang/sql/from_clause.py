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
from harken.lang.sql.conditions import require_comparison, require_condition
from harken.lang.sql.conversions import to_same_type
from harken.lang.sql.program_draft import Body, Draft, Table, unknown_table, variables_in
from harken.lang.sql.query_rows import QueryRows, capture_outwards, captured_by, require_member
from harken.lang.sql.scope import Field, FromItem, Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.values_clause import is_range, range_rows


def is_lateral(node: exp.Expr) -> bool:
    return isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)


def _is_joined(node: exp.Expr) -> bool:
    """An item of FROM in parentheses, whose tables keep their names; no query of its own."""
    if not isinstance(node, exp.Subquery):
        return False
    inside = node.this
    named = isinstance(inside, exp.Subquery) and bool(inside.alias or inside.args.get("joins"))
    return isinstance(inside, exp.Table) or named or _is_joined(inside)


def join_from(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> None:
    start = node.args.get("from_") or node.args.get("from")
    if start is None:
        return
    _item(translation, start.this, scope, body)
    for join in node.args.get("joins") or ():
        _join(translation, join, scope, body)


def _item(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> None:
    """Translate an item of FROM: its literals go into the body, its columns into the scope."""
    if isinstance(node, exp.Paren):
        node = node.this
    if _is_joined(node) and not node.alias:
        _item(translation, node.this, scope, body)
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        _add_table(translation, node, scope, body)
    elif isinstance(node, exp.Subquery | exp.Values) or is_lateral(node):
        inner = node if isinstance(node, exp.Values) else node.this
        rows = translation.query(inner, scope.parent)
        _add_rows(translation.draft, node, rows, scope, body)
    elif isinstance(node, exp.Table) and is_range(node.this):
        _add_rows(translation.draft, node, range_rows(translation.draft, node.this), scope, body)
    else:
        raise translation.draft.unsupported(
            node,
            "this is not supported in FROM yet",
            "a table, a view, a subquery, VALUES and range(n) are; CREATE TABLE name KEY (columns) "
            "USING csv LOCATION 'directory' reads files",
        )
    for join in node.args.get("joins") or ():
        _join(translation, join, scope, body)


def _right_item(
    translation: Translation, join: exp.Join, side: str, left: Scope, right: Scope, body: Body
) -> None:
    """The right side of a join. A LATERAL query may use the columns of the left side."""
    if not is_lateral(join.this):
        _item(translation, join.this, right, body)
        return
    if side not in ("", "LEFT"):
        raise translation.draft.unsupported(join, f"{side} JOIN LATERAL is not supported")
    around = Scope(left.parent, list(left.sources))
    rows = translation.query(join.this.this, around)
    _refuse_open_rows(translation.draft, join, rows)
    own = {each.term for source in left.sources for each in source.fields}
    _add_rows(translation.draft, join.this, rows, right, body, own)


def _refuse_open_rows(draft: Draft, join: exp.Join, rows: QueryRows) -> None:
    """Groups, sets and orders are computed once for all rows of the left side. So the captured
    columns must be bound inside them."""
    definitions = draft.definitions
    needs = required_inputs(Program(rows.relation, definitions))
    waiting, seen = [rows.relation], {rows.relation.id}
    while waiting:
        relation = waiting.pop()
        definition = definitions.get(relation.id)
        if definition is None:
            continue
        closed = definition.groups or definition.first or definition.numbered
        if (relation.is_set or closed) and relation.id in needs:
            raise draft.unsupported(
                join,
                "a LATERAL query with DISTINCT, GROUP BY, LIMIT or numbered rows compares its "
                "columns with those around it by = only, so far",
            )
        literals = [each for clause in definition.clauses for each in clause.body]
        joined = [e.relation for e in literals if isinstance(e, Atom) and not e.negated]
        waiting += [each for each in joined if each.id not in seen]
        seen.update(each.id for each in joined)


def _add_rows(
    draft: Draft,
    node: exp.Expr,
    rows: QueryRows,
    scope: Scope,
    body: Body,
    own: Collection[Term] = (),
) -> None:
    """The rows of a query in FROM; `own` are columns of the same FROM that it mentions."""
    names = _renamed(draft, node, rows.names)
    fresh = [draft.fresh(c.type, n) for c, n in zip(rows.columns, names, strict=True)]
    body.add(Atom(rows.relation, (*rows.captured, *fresh), span=draft.place(node)))
    for each in rows.captured:
        if each not in own:
            scope.capture(each)
    fields = [Field(n.lower(), term) for n, term in zip(names, fresh, strict=True)]
    alias = node.alias_or_name.lower() or f"query {len(scope.sources)}"
    _add_source(draft, node, alias, fields, scope)


def _renamed(draft: Draft, node: exp.Expr, names: Sequence[str]) -> list[str]:
    """The columns of an item of FROM, as its alias calls them."""
    alias = node.args.get("alias")
    given = [each.name for each in alias.columns] if alias is not None else []
    if len(given) > len(names):
        raise TypeFault(
            f"{counted(len(given), 'column', 'is')} named, and there "
            f"{agreeing(len(names))} {len(names)}",
            code="arity",
            span=draft.place(node),
        )
    return [*given, *names[len(given) :]]


def _add_table(translation: Translation, node: exp.Table, scope: Scope, body: Body) -> None:
    name = node.name.lower()
    for known in reversed(translation.with_items):
        if name in known:
            _add_rows(translation.draft, node, known[name], scope, body)
            return
    table = _named_table(translation, node)
    terms: list[Term] = [
        translation.draft.fresh(column.type, column.name) for column in table.relation.columns
    ]
    body.add(Atom(table.relation, tuple(terms), span=translation.draft.place(node)))
    names = _renamed(translation.draft, node, [column.name for column in table.columns])
    fields = [
        Field(name.lower(), terms[position])
        for name, position in zip(names, table.positions, strict=True)
    ]
    if not node.alias:
        _refuse_twin(translation, node, scope.parent)
    _add_source(translation.draft, node, node.alias_or_name.lower(), fields, scope)


def _refuse_twin(translation: Translation, node: exp.Table, around: Scope | None) -> None:
    """Relations whose names differ in case only have names of the same column in one query:
    inside, what is outside could not be meant."""
    name = node.name.lower()
    while around is not None:
        if any(source.alias == name for source in around.sources) and _has_twin(translation, name):
            raise _called_twice(translation.draft, node, name)
        around = around.parent


def _has_twin(translation: Translation, name: str) -> bool:
    return sum(each.lower() == name for each in translation.tables.table_names()) > 1


def _called_twice(draft: Draft, node: exp.Expr, alias: str) -> TypeFault:
    return TypeFault(
        f"two items of FROM are called {alias}",
        code="ambiguous",
        span=draft.place(node),
        hint="give one of them an alias",
    )


def _named_table(translation: Translation, node: exp.Table) -> Table:
    table = translation.tables.table(node.name)
    if table is None:
        raise unknown_table(translation.tables, node.name, translation.draft.place(node))
    translation.mentioned.add(table.relation.name)
    return table


def _add_source(
    draft: Draft, node: exp.Expr, alias: str, fields: list[Field], scope: Scope
) -> None:
    if any(source.alias == alias for source in scope.sources):
        raise _called_twice(draft, node, alias)
    scope.sources.append(FromItem(alias, fields))


def _join(translation: Translation, join: exp.Join, scope: Scope, body: Body) -> None:
    side = (join.side or "").upper()
    kind = (join.kind or "").upper()
    if (join.method or "").upper() not in ("", "NATURAL"):
        raise translation.draft.unsupported(
            join, f"{join.method.upper()} JOIN is not in Harken's SQL"
        )
    if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
        _semi_join(translation, join, scope, body, anti="ANTI" in (kind, side))
        return
    right, right_body = Scope(scope.parent), Body()
    _right_item(translation, join, side, scope, right, right_body)
    if not side:
        right_body = Body([*body.literals, *right_body.literals])
        body.literals = right_body.literals
        merged = _common(translation.draft, join, scope, right)
        _merge(translation.draft, scope, right)
        _on(translation, join, merged, scope, body)
        return
    _outer_join(translation, join, side, scope, body, right, right_body)


def _merge(draft: Draft, scope: Scope, right: Scope) -> None:
    for source in right.sources:
        if any(each.alias == source.alias for each in scope.sources):
            raise TypeFault(
                f"two items of FROM are called {source.alias}",
                code="ambiguous",
                span=draft.statement.span,
                hint="give one of them an alias",
            )
    scope.sources += right.sources
    scope.captured.update(right.captured)


def _common(
    draft: Draft, join: exp.Join, left: Scope, right: Scope
) -> list[tuple[str, Term, Term]]:
    """The columns that USING or NATURAL says are to be the same."""
    names = [each.name.lower() for each in join.args.get("using") or ()]
    if (join.method or "").upper() == "NATURAL":
        there = {f.name for source in right.sources for f in source.fields}
        names = [f.name for source in left.sources for f in source.fields if f.name in there]
    place = draft.place(join)
    return [
        (name, left.column(None, name, place), right.column(None, name, place))
        for name in dict.fromkeys(names)
    ]


def _on(
    translation: Translation,
    join: exp.Join,
    common: list[tuple[str, Term, Term]],
    scope: Scope,
    body: Body,
) -> None:
    kept = []
    for name, one, other in common:
        kept.append(Field(name, one))
        one, other = to_same_type(translation.draft, one, other, body, join)
        require_comparison("=", one, other, body)
    _keep_one(translation, kept, scope)
    on = join.args.get("on")
    if on is not None:
        require_condition(translation, on, scope, body)


def _outer_join(
    translation: Translation,
    join: exp.Join,
    side: str,
    scope: Scope,
    body: Body,
    right: Scope,
    right_body: Body,
) -> None:
    """The rows of both sides that match, and those of one side or both that match nothing."""
    if side not in ("LEFT", "RIGHT", "FULL"):
        raise translation.draft.unsupported(join, f"{side} JOIN is not supported yet")
    common = _common(translation.draft, join, scope, right)
    inside = Scope(scope.parent, [*scope.sources, *right.sources])
    condition = Body()
    for _, one, other in common:
        one, other = to_same_type(translation.draft, one, other, condition, join)
        require_comparison("=", one, other, condition)
    if join.args.get("on") is not None:
        require_condition(translation, join.args["on"], inside, condition)
    inside.captured.update({**scope.captured, **right.captured})
    fields = [f for source in inside.sources for f in source.fields]
    terms = [each.term for each in fields]
    lefts = len([f for source in scope.sources for f in source.fields])
    matched = [*body.literals, *right_body.literals, *condition.literals]
    heads: list[tuple[Sequence[Term], Sequence[Literal]]] = [(terms, matched)]
    if side in ("LEFT", "FULL"):
        missing = [Constant(None, each.type.or_null()) for each in terms[lefts:]]
        unmatched = _unmatched(
            translation.draft, terms[:lefts], [*right_body.literals, *condition.literals], inside
        )
        heads.append(([*terms[:lefts], *missing], [*body.literals, unmatched]))
    if side in ("RIGHT", "FULL"):
        missing = [Constant(None, each.type.or_null()) for each in terms[:lefts]]
        unmatched = _unmatched(
            translation.draft, terms[lefts:], [*body.literals, *condition.literals], inside
        )
        heads.append(([*missing, *terms[lefts:]], [*right_body.literals, unmatched]))
    every = [literal for _, literals in heads for literal in literals]
    captured = captured_by(inside, terms, every)
    types = [
        each.type.or_null(
            each.type.nullable or (side != "LEFT" and i < lefts) or (side != "RIGHT" and i >= lefts)
        )
        for i, each in enumerate(terms)
    ]
    columns = [Column(f.name, type_) for f, type_ in zip(fields, types, strict=True)]
    relation = translation.draft.define("join", captured, columns, heads, bag=True)
    fresh = [translation.draft.fresh(c.type, c.name) for c in columns]
    body.literals = [Atom(relation, (*captured, *fresh), span=translation.draft.place(join))]
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
    for name, one, other in _common(translation.draft, join, left, right):
        chosen = {"LEFT": one, "RIGHT": other}.get(side)
        if chosen is None:
            sides = to_same_type(translation.draft, one, other, body, join)
            chosen = translation.draft.compute("coalesce", sides, sides[0].type, body)
        kept.append(Field(name, chosen))
    _keep_one(translation, kept, scope)


def _keep_one(translation: Translation, fields: list[Field], scope: Scope) -> None:
    """Of columns that USING made one, those that a name without a table means. `*` shows them
    first, and once; under the names of their tables the columns are what they were."""
    if not fields:
        return
    names = {each.name for each in fields}
    for source in scope.sources:
        source.merged |= names
    scope.sources.insert(
        0, FromItem(f"using {next(translation.using_numbers)}", fields, of_using=True)
    )


def _unmatched(
    draft: Draft, terms: Sequence[Term], literals: Sequence[Literal], scope: Scope
) -> Literal:
    """No row of the other side matches."""
    mentioned = variables_in((), literals)
    own = [each for each in terms if isinstance(each, Variable) and each in mentioned]
    captured = [each for each in scope.captured if each in mentioned and each not in own]
    arguments = list(dict.fromkeys((*captured, *own)))
    match = draft.define("match", arguments, (), [((), literals)], bag=False)
    return Atom(match, tuple(arguments), negated=True)


def _semi_join(
    translation: Translation, join: exp.Join, scope: Scope, body: Body, *, anti: bool
) -> None:
    right, right_body = Scope(scope.parent), Body()
    _item(translation, join.this, right, right_body)
    # A name in ON means a column of either side: one that both have is ambiguous.
    inside = Scope(scope.parent, list(scope.sources), dict(scope.captured))
    _merge(translation.draft, inside, right)
    for source in scope.sources:
        for each in source.fields:
            inside.capture(each.term)
    for _, one, other in _common(translation.draft, join, scope, right):
        one, other = to_same_type(translation.draft, one, other, right_body, join)
        require_comparison("=", one, other, right_body)
    if join.args.get("on") is not None:
        require_condition(translation, join.args["on"], inside, right_body)
    arguments = captured_by(inside, (), right_body.literals)
    match = translation.draft.define("match", arguments, (), [((), right_body.literals)], bag=False)
    capture_outwards(arguments, scope)
    if anti:
        body.add(Atom(match, arguments, negated=True))
    else:
        require_member(translation.draft, match, arguments, body)
