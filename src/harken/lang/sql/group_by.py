"""GROUP BY and HAVING.

SELECT g, sum(v) FROM … GROUP BY g        q(G, S) ← groups(G) ∧ S = sum(V : members(G, V))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from harken.errors import TypeFault
from harken.ir.clauses import Aggregation, Atom
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql import decimals
from harken.lang.sql.aggregate_nodes import (
    AGGREGATED,
    aggregates_from_around,
    aggregates_of,
    is_distinct,
    unfiltered,
)
from harken.lang.sql.conditions import require_condition
from harken.lang.sql.conversions import as_numeric
from harken.lang.sql.expression_text import as_written, canonical_text
from harken.lang.sql.from_clause import join_from
from harken.lang.sql.group_aggregates import fold_group, fold_values, is_fold
from harken.lang.sql.grouping_sets import grouping_bits, rows_for_each_set, sets_of
from harken.lang.sql.normalization import ONE, replace_columns
from harken.lang.sql.other_dialects import replacement
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows, captured_by, define_rows
from harken.lang.sql.scope import Field, FromItem, Scope
from harken.lang.sql.select_list import expand_count
from harken.lang.sql.supported_syntax import unsupported_reason
from harken.lang.sql.translation import Translation
from harken.lang.sql.type_names import is_numeric, type_name
from harken.values.types import BOOLEAN, INTEGER, is_decimal


@dataclass(slots=True)
class Groups:
    """The keys and aggregates of a grouped query, by their canonical text."""

    keys: dict[str, Term]
    aggregates: dict[str, Term]


def grouped_rows(
    translation: Translation,
    node: exp.Select,
    selected: Sequence[tuple[exp.Expr, str]],
    scope: Scope,
    body: Body,
    distinct: bool,
) -> QueryRows:
    keys, sets = group_keys(translation, node, selected)
    having = node.args.get("having")
    mentioned = [each for each, _ in selected]
    if having is not None:
        mentioned.append(having.this)
    wanted: dict[str, exp.Expr] = {}
    asked: dict[str, exp.Expr] = {}
    for each in mentioned:
        for found_in in aggregates_of(each):
            if isinstance(found_in, exp.Grouping | exp.GroupingId):
                asked.setdefault(canonical_text(found_in), found_in)
                continue
            wanted.setdefault(
                canonical_text(found_in),
                unfiltered(expand_count(translation.draft, found_in, scope)),
            )
    key_terms = [translation.value(each, scope, body) for each in keys]
    folds = {
        text: fold_values(translation, each, scope, body)
        for text, each in wanted.items()
        if is_fold(each)
    }
    values = [
        folds[text][0] if text in folds else _argument(translation, each, scope, body)
        for text, each in wanted.items()
    ]
    beside = {
        text: _beside(translation, each, scope, body)
        for text, each in wanted.items()
        if is_distinct(each)
    } | folds
    mentioned_terms = [*key_terms, *_present(values), *(t for b in beside.values() for t in b)]
    captured = captured_by(scope, mentioned_terms, body.literals)
    out, clause = Scope(scope.parent), Body()
    out.captured.update(scope.captured)
    out.hidden = scope
    own_keys = key_terms
    if sets is not None:
        others = _present([*values, *(t for b in beside.values() for t in b)])
        key_terms, found_others, body = rows_for_each_set(
            translation.draft, captured, sets, key_terms, others, body
        )
        now = dict(zip(others, found_others, strict=True))
        values = [each and now[each] for each in values]
        beside = {text: [now[each] for each in given] for text, given in beside.items()}
    folds = {text: beside[text] for text in folds}
    shown = _present([*values, *(each for given in folds.values() for each in given)])
    plain = _members(translation.draft, captured, key_terms, shown, body)
    distinct_ones = {
        text: _distinct_members(
            translation.draft, captured, key_terms, _present([value, *beside[text]]), body
        )
        for (text, aggregate), value in zip(wanted.items(), values, strict=True)
        if is_distinct(aggregate)
    }
    over = [plain, *distinct_ones.values()]
    groups = _groups(translation.draft, over, captured, key_terms, clause)
    found = Groups(
        {canonical_text(each): term for each, term in zip(keys, groups, strict=False)}, {}
    )
    for text, each in asked.items():
        absent = _absent(translation.draft, each, keys, sets)
        found.aggregates[text] = grouping_bits(translation.draft, absent, groups[-1], clause)
    for (text, aggregate), value in zip(wanted.items(), values, strict=True):
        if text in folds:
            places = [shown.index(each) for each in folds[text]]
            found.aggregates[text] = fold_group(
                translation.draft, aggregate, places, plain, (*captured, *groups), clause
            )
            continue
        place = 0 if text in distinct_ones else _place(shown, value)
        members = distinct_ones.get(text, plain)
        found.aggregates[text] = _aggregate(
            translation.draft,
            aggregate,
            value,
            members,
            place,
            (*captured, *groups),
            clause,
            bool(keys),
        )
    inside = GroupedScope(out, found, scope)
    if having is not None:
        condition = _spelled_out(having.this, selected, scope, own_keys)
        require_condition(translation, inside.rewritten(condition), inside.scope, clause)
    terms = [
        translation.value(inside.rewritten(each), inside.scope, clause) for each, _ in selected
    ]
    names = [name for _, name in selected]
    out.captured.update(dict.fromkeys(captured))
    return define_rows(translation.draft, names, terms, clause, inside.scope, bag=not distinct)


def group_keys(
    translation: Translation, node: exp.Select, selected: Sequence[tuple[exp.Expr, str]]
) -> tuple[list[exp.Expr], list[frozenset[int]] | None]:
    """The expressions that are grouped by, and which of them are in each of the grouping sets,
    if there are any."""
    group = node.args.get("group")
    if group is None:
        return [], None
    if group.args.get("all"):
        return [each.unalias() for each, _ in selected if not aggregates_of(each)], None
    sets = sets_of(group)
    if sets is None:
        return [_key(translation, each, node, selected) for each in _flat(group.expressions)], None
    keys: dict[str, exp.Expr] = {}
    spelled = [[_key(translation, each, node, selected) for each in one] for one in sets]
    for one in spelled:
        for each in one:
            keys.setdefault(canonical_text(each), each)
    places = {text: place for place, text in enumerate(keys)}
    return list(keys.values()), [
        frozenset(places[canonical_text(each)] for each in one) for one in spelled
    ]


def _key(
    translation: Translation,
    each: exp.Expr,
    node: exp.Select,
    selected: Sequence[tuple[exp.Expr, str]],
) -> exp.Expr:
    """What is grouped by; a number or the name of a column of the result stands for that
    column."""
    named = {name.lower(): each for each, name in selected if isinstance(each, exp.Alias)}
    sources = node.args.get("from_") or node.args.get("from")
    if isinstance(each, exp.Literal) and each.is_int:
        position = int(each.this) - 1
        if not 0 <= position < len(selected):
            raise TypeFault(
                f"there is no column {each.this} to group by",
                code="arity",
                span=translation.draft.place(each),
            )
        each = selected[position][0]
    elif (
        isinstance(each, exp.Column)
        and not each.table
        and each.name.lower() in named
        and sources is not None
        and not is_column(translation, each, node)
    ):
        each = named[each.name.lower()]
    return each.unalias()


def _absent(
    draft: Draft, node: exp.Expr, keys: Sequence[exp.Expr], sets: Sequence[frozenset[int]] | None
) -> list[list[bool]]:
    """For each grouping set, which of the keys that grouping(...) names are not in it."""
    texts = [canonical_text(each) for each in keys]
    named = [canonical_text(each) for each in node.expressions] or texts
    if sets is None or any(each not in texts for each in named):
        raise TypeFault(
            f"{as_written(node).lower()} takes keys of GROUPING SETS, ROLLUP or CUBE",
            code="ungrouped",
            span=draft.place(node),
        )
    return [[texts.index(each) not in one for each in named] for one in sets]


def _spelled_out(
    node: exp.Expr,
    selected: Sequence[tuple[exp.Expr, str]],
    scope: Scope,
    keys: Sequence[Term],
) -> exp.Expr:
    """HAVING with the names of the select list replaced by what they stand for, unless a name
    is that of a column that is grouped by."""
    named = {name.lower(): each for each, name in selected if isinstance(each, exp.Alias)}

    def stands_for(column: exp.Expr) -> exp.Expr:
        name = column.name.lower()
        own = scope.own(None, name)
        if column.args.get("table") or name not in named or any(t in keys for t in own):
            return column
        return exp.Paren(this=named[name].this.copy())

    return replace_columns(node, stands_for)


def is_column(translation: Translation, column: exp.Expr, node: exp.Select) -> bool:
    scope = Scope()
    join_from(translation, node, scope, Body())
    return scope.knows(None, column.name.lower())


def _members(
    draft: Draft,
    captured: Sequence[Variable],
    keys: Sequence[Term],
    values: Sequence[Term],
    body: Body,
) -> Relation:
    """The rows that are grouped: their keys, and the arguments of the aggregates."""
    terms = [*keys, *values]
    columns = [Column(f"m{i}", each.type) for i, each in enumerate(terms)]
    return draft.define("members", captured, columns, [(terms, body.literals)], bag=True)


def _distinct_members(
    draft: Draft,
    captured: Sequence[Variable],
    keys: Sequence[Term],
    values: Sequence[Term],
    body: Body,
) -> Relation:
    """Those rows once each, and how often they are there: with counts that are kept, it need
    not be asked of a row that went whether there is another."""
    members = _members(draft, captured, keys, values, body)
    clause = Body()
    row = _groups(draft, [members], captured, [*keys, *values], clause)
    place = (*captured, *row)
    often = draft.fresh(INTEGER)
    clause.add(Aggregation(often, "count", None, Atom(members, place), place))
    columns = [*members.columns[len(captured) :], Column("often", INTEGER)]
    heads = [([*row, often], clause.literals)]
    return draft.define("distinct", captured, columns, heads, bag=True)


def _groups(
    draft: Draft,
    over: Sequence[Relation],
    captured: Sequence[Variable],
    keys: Sequence[Term],
    clause: Body,
) -> list[Term]:
    """The groups. Without GROUP BY there is exactly one, even if there are no rows."""
    if not keys:
        return []
    members = over[0]
    row = [draft.fresh(each.type) for each in members.columns[len(captured) :]]
    own = row[: len(keys)]
    columns = [Column(f"g{i}", each.type) for i, each in enumerate(own)]
    body = [Atom(members, (*captured, *row))]
    relation = draft.define("groups", captured, columns, [(own, body)], bag=False, groups=over)
    fresh: list[Term] = [draft.fresh(column.type) for column in columns]
    clause.add(Atom(relation, (*captured, *fresh)))
    return fresh


def _argument(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term | None:
    """The argument of an aggregate; None if it only counts rows."""
    if type(node) not in AGGREGATED:
        raise translation.draft.unsupported(
            node, unsupported_reason(node), replacement(as_written(node))
        )
    argument = node.this
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) > 1:
            return _all_there(translation, node, argument.expressions, scope, body)
        argument = argument.expressions[0] if argument.expressions else None
    if argument is None and not isinstance(node, exp.Count):
        raise translation.draft.unsupported(node, f"{AGGREGATED[type(node)]} takes a value")
    if argument is None or isinstance(argument, exp.Star):
        return None
    value = translation.value(argument, scope, body)
    if isinstance(node, exp.Sum | exp.Avg):
        value = as_numeric(translation.draft, value, body, node)
    if isinstance(node, exp.Sum | exp.Avg) and not is_numeric(value.type):
        raise TypeFault(
            f"{AGGREGATED[type(node)]} of {type_name(value.type)}",
            code="type-mismatch",
            span=translation.draft.place(node),
            hint="it takes numbers",
        )
    if isinstance(node, exp.LogicalAnd | exp.LogicalOr):
        value = translation.draft.coerce(value, BOOLEAN, body, node)
    if isinstance(node, exp.Count) and not value.type.nullable and not is_distinct(node):
        return None  # no value is NULL, so all rows are counted
    return value


def _all_there(
    translation: Translation, node: exp.Expr, values: Sequence[exp.Expr], scope: Scope, body: Body
) -> Term:
    """1, or NULL where one of several values is: those rows are not counted."""
    if not isinstance(node, exp.Count):
        raise translation.draft.unsupported(node, "only count takes DISTINCT of several columns")
    missing = exp.or_(*(exp.Is(this=each.copy(), expression=exp.Null()) for each in values))
    chosen = exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=ONE.copy())
    return translation.value(chosen, scope, body)


def _beside(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> list[Term]:
    """The values of count(DISTINCT a, b), which distinguish rows."""
    values = node.this.expressions
    if len(values) < 2:
        return []
    return [translation.value(each, scope, body) for each in values]


def _aggregate(
    draft: Draft,
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
        return _exact_average(draft, node, value, members, place, groups, clause, is_grouped)
    type_ = AGGREGATES[name].result or (INTEGER if value is None else value.type)
    if value is not None and is_decimal(value.type) and name in ("sum", "avg"):
        exact = decimals.sum_of if name == "sum" else decimals.average_of
        type_ = exact(value.type)
    nullable = name != "count" and (not is_grouped or (value is not None and value.type.nullable))
    result = draft.fresh(type_.or_null(nullable))
    rest = [draft.fresh(column.type) for column in members.columns[len(groups) :]]
    inner = None if value is None else rest[place]
    atom = Atom(members, (*groups, *rest))
    clause.add(Aggregation(result, name, inner, atom, groups, or_null=nullable))
    return result


def _exact_average(
    draft: Draft,
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
        _aggregate(draft, kind(this=node.this), value, members, place, groups, clause, is_grouped)
        for kind in (exp.Sum, exp.Count)
    )
    divisor = draft.coerce(counted, decimals.as_decimal(INTEGER), clause, node)
    type_ = decimals.average_of(value.type)
    quotient = draft.compute("/", (whole, divisor), type_, clause)
    if not whole.type.nullable:
        return quotient
    missing = draft.compute("is null", (whole,), BOOLEAN, clause)
    nothing = Constant(None, type_.or_null())
    return draft.compute("choose", (missing, nothing, quotient), type_, clause)


@dataclass(slots=True)
class GroupedScope:
    """Expressions above a GROUP BY: keys and aggregates become columns of a source of their own."""

    scope: Scope
    groups: Groups
    below: Scope
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields = []
        for number, (text, term) in enumerate((self.groups.keys | self.groups.aggregates).items()):
            self.names[text] = f"value {number}"
            fields.append(Field(f"value {number}", term))
        self.scope.sources.append(FromItem("group", fields))
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
                self.scope.sources.append(replace(source, fields=list(unique.values())))

    def rewritten(self, node: exp.Expr) -> exp.Expr:
        """The expression with keys and aggregates replaced by columns."""

        def replace_known(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Identifier):
                return each
            name = self.names.get(canonical_text(each))
            if name is not None:
                return exp.column(name, table="group")
            # In a subquery names mean its own columns first; a copy is not searched.
            return self._in_query(each) if isinstance(each, exp.Query) else each

        return node.copy().transform(replace_known)

    def _in_query(self, node: exp.Expr) -> exp.Expr:
        """A subquery, in which aggregates of this query may be mentioned."""
        made = node.copy()
        for each in aggregates_from_around(made):
            each.replace(exp.column(self.names[canonical_text(each)], table="group"))
        return made


def _flat(keys: Sequence[exp.Expr]) -> list[exp.Expr]:
    """GROUP BY (a, b) is GROUP BY a, b, and of () it is nothing."""
    found = []
    for each in keys:
        found += _flat(each.expressions) if isinstance(each, exp.Tuple) else [each]
    return found


def _present(values: Sequence[Term | None]) -> list[Term]:
    """The terms that aggregates are taken of, each once."""
    return list(dict.fromkeys(each for each in values if each is not None))


def _place(shown: Sequence[Term], value: Term | None) -> int:
    return 0 if value is None else shown.index(value)


def _texts_of(source: FromItem, name: str) -> list[str]:
    """How a column can be written; without its table not if USING made it one with another."""
    found = [canonical_text(exp.column(name, table=source.alias))]
    return found if name in source.merged else [*found, canonical_text(exp.column(name))]
