"""A condition as a tree of leaves, each of which is a query.

Tests that concern the same row become one leaf: those that AND or OR joins, without a WHERE or with
the same one, if they are about the same tables. All others are leaves of their own, whose rows are
independent. Aggregates are computed in a table of groups below the leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from harken.errors import LanguageError, Span
from harken.ir.event_trees import (
    AtOnce,
    Collected,
    FirstOf,
    Held,
    InOrder,
    Leaf,
    Moving,
    NotHolding,
    OneOf,
    Tree,
)
from harken.lang.continual.column_names import ROW, ColumnNames
from harken.lang.continual.condition_tables import ConditionTable, ConditionTables, column
from harken.lang.continual.leaf_queries import LeafQueries, LeafQuery
from harken.lang.continual.row_tests import place
from harken.lang.continual.syntax import (
    CHANGES,
    SINCE,
    All,
    Alternative,
    AnyChange,
    Condition,
    Either,
    Group,
    Lasting,
    Negation,
    Parallel,
    RowEvent,
    Signal,
    Trend,
    Trigger,
)
from harken.lang.continual.syntax import (
    Sequence as Chain,
)
from harken.lang.sql.aggregate_nodes import aggregates_of

GROUPS = "groups"
MOST_LEAVES = 64
"""Conditions of one trigger that are watched by themselves."""
SIGNALS = " signals"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A group whose columns have found their tables."""

    test: exp.Expr
    where: exp.Expr | None
    by: tuple[exp.Expr, ...]
    sources: dict[str, ConditionTable]
    span: Span
    clauses: tuple[int, ...] | None
    """Equal for groups that share WHERE and GROUP BY; None if the group stands alone."""

    @property
    def is_aggregated(self) -> bool:
        return bool(self.by) or bool(aggregates_of(self.test))

    @property
    def is_since(self) -> bool:
        return any(each.this == SINCE for each in self.test.find_all(exp.Anonymous))

    def joins(self, other: RowGroup) -> bool:
        """Whether they concern the same rows, if AND joins them."""
        return (
            self.clauses is not None
            and self.clauses == other.clauses
            and self.is_aggregated == other.is_aggregated
            and not (self.is_since or other.is_since)
            and not self.sources.keys().isdisjoint(other.sources)
        )

    def with_other(self, other: RowGroup, join: Callable[..., exp.Expr]) -> RowGroup:
        span = Span(min(self.span.start, other.span.start), max(self.span.end, other.span.end))
        sources = {**self.sources, **other.sources}
        return replace(self, test=join(self.test, other.test), sources=sources, span=span)


class ConditionLeaves:
    def __init__(self, tables: ConditionTables, trigger: Trigger) -> None:
        self._tables = tables
        self._repeats = trigger.repeats
        self._named = named_tables(trigger.condition)
        self.leaves: list[LeafQuery] = []
        self.tree = self._tree(self._reduced(trigger.condition))

    # --- joining groups --------------------------------------------------------------------

    def _reduced(self, condition: Condition) -> RowGroup | Tree:
        match condition:
            case Group():
                return self._group(condition)
            case All(parts):
                return self._joined(parts, exp.and_, AtOnce)
            case Either(parts):
                return self._joined(parts, exp.or_, OneOf)
            case Negation(part):
                made = self._reduced(part)
                if isinstance(made, RowGroup) and made.clauses is not None:
                    return replace(made, test=exp.not_(made.test))
                return NotHolding(self._tree(made))
            case Chain(parts, within):
                return InOrder(self._trees(parts), within)
            case Parallel(parts, within):
                return Collected(self._trees(parts), within)
            case Alternative(parts):
                return FirstOf(self._trees(parts))
            case Lasting(part, length, longer):
                return Held(self._tree(self._reduced(part)), length, longer)
            case Trend():
                return self._trend(condition)
            case AnyChange():
                return self._any_change(condition)
            case RowEvent():
                return self._row_event(condition)
            case Signal(name, span):
                return self._leaf(LeafQueries(self._tables, {}, span).signal(SIGNALS, name))

    def _trees(self, parts: Sequence[Condition]) -> tuple[Tree, ...]:
        return tuple(self._tree(self._reduced(each)) for each in parts)

    def _joined(
        self,
        parts: Sequence[Condition],
        join: Callable[..., exp.Expr],
        kind: Callable[[tuple[Tree, ...]], Tree],
    ) -> RowGroup | Tree:
        found: list[RowGroup | Tree] = []
        for part in parts:
            made = self._reduced(part)
            place = _place_to_join(found, made, kind is OneOf)
            if place is None:
                found.append(made)
            else:
                known = found[place]
                assert isinstance(known, RowGroup)
                assert isinstance(made, RowGroup)
                found[place] = known.with_other(made, join)
        if len(found) == 1:
            return found[0]
        return kind(tuple(map(self._tree, found)))

    def _group(self, group: Group) -> RowGroup:
        names = self._names(group.span)
        for each in (group.test, group.where, *group.by):
            if each is not None:
                names.note(each)
        test = names.resolve(group.test)
        where = None if group.where is None else names.resolve(group.where)
        by = tuple(names.resolve(each) for each in group.by)
        if aggregates_of(test):
            names.use_default(group.span)
        restrictions = names.found.restrictions
        if where is not None and aggregates_of(where):
            raise LanguageError(
                "an aggregate cannot stand in WHERE",
                code="unsupported",
                span=place(where) or group.span,
                hint="write it before WHERE",
            )
        _check_groups(by, group.span)
        clauses = None if restrictions else (id(group.where), *map(id, group.by))
        tests = [each for each in (where, *restrictions) if each is not None]
        restricted = exp.and_(*tests) if tests else None
        sources = names.found.sources
        return RowGroup(test, restricted, by, dict(sources), group.span, clauses)

    def _names(self, span: Span) -> ColumnNames:
        return ColumnNames(self._tables, span, self._named)

    # --- leaves ----------------------------------------------------------------------------

    def _tree(self, made: RowGroup | Tree) -> Tree:
        return self._leaf(self._query(made)) if isinstance(made, RowGroup) else made

    def _leaf(self, query: LeafQuery) -> Leaf:
        if len(self.leaves) >= MOST_LEAVES:
            raise LanguageError(
                f"more than {MOST_LEAVES} independent conditions",
                code="unsupported",
                span=query.span,
                hint="join conditions on the same table in one WHERE, or watch a view",
            )
        self.leaves.append(query)
        return Leaf(len(self.leaves) - 1)

    def _query(self, group: RowGroup) -> LeafQuery:
        if group.is_since:
            return self._since(group)
        if group.is_aggregated:
            group = self._grouped(group)
        test = group.test if group.where is None else exp.and_(group.test, group.where)
        return LeafQueries(self._tables, group.sources, group.span).rows(test, self._repeats)

    def _since(self, group: RowGroup) -> LeafQuery:
        def inside(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Anonymous) and node.this == SINCE:
                inside_it: exp.Expr = node.expressions[0]
                return inside_it
            return node

        test = group.test.copy().transform(inside)
        queries = LeafQueries(self._tables, group.sources, group.span)
        return queries.since(test, group.where, group.by)

    def _grouped(self, group: RowGroup) -> RowGroup:
        """The group over a table of its aggregates. An equality in WHERE becomes a column to group
        by, so that conditions that differ in the constant share the table."""
        fixed, rest = _equalities(group)
        by = [*group.by, *(side for side, _ in fixed)]
        names = _distinct([each.name for each in by])
        aggregates: dict[str, tuple[str, exp.Expr]] = {}
        for each in aggregates_of(group.test):
            said = each.sql("spark")
            if said not in aggregates:
                name = _distinct([*names, *(n for n, _ in aggregates.values()), _name_of(each)])[-1]
                aggregates[said] = name, each.copy()
        shown = [
            *(exp.alias_(e.copy(), n, quoted=True) for e, n in zip(by, names, strict=True)),
            *(exp.alias_(e, n, quoted=True) for n, e in aggregates.values()),
        ]
        query = exp.select(*shown)
        for number, (alias, table) in enumerate(group.sources.items()):
            item = exp.alias_(
                exp.Table(this=exp.to_identifier(table.name, quoted=True)),
                alias,
                table=True,
                quoted=True,
            )
            query = query.from_(item) if number == 0 else query.join(item, join_type="cross")
        if rest:
            query = query.where(*rest)
        if by:
            query = query.group_by(*(each.copy() for each in by))
        table = self._tables.groups(query, names)

        def of_groups(node: exp.Expr) -> exp.Expr:
            known = aggregates.get(node.sql("spark")) if isinstance(node, exp.AggFunc) else None
            return node if known is None else _at(column(known[0], GROUPS), node)

        test = _outer(group.test.copy().transform(of_groups), by, names)
        equal = [
            exp.EQ(this=column(name, GROUPS), expression=value.copy())
            for name, (_, value) in zip(names[len(group.by) :], fixed, strict=True)
        ]
        where = exp.and_(*equal) if equal else None
        return replace(group, test=test, where=where, by=(), sources={GROUPS: table})

    def _trend(self, trend: Trend) -> Tree:
        names = self._names(trend.span)
        for each in (trend.value, trend.where):
            if each is not None:
                names.note(each)
        value = names.resolve(trend.value)
        where = None if trend.where is None else names.resolve(trend.where)
        restrictions = names.found.restrictions
        tests = [each for each in (where, *restrictions) if each is not None]
        sources = dict(names.found.sources)
        if aggregates_of(value):
            group = self._grouped(
                RowGroup(value, exp.and_(*tests) if tests else None, (), sources, trend.span, None)
            )
            value, sources = group.test, group.sources
            tests = [group.where] if group.where is not None else []
        queries = LeafQueries(self._tables, sources, trend.span)
        query = queries.moves(value, exp.and_(*tests) if tests else None)
        return Moving(self._leaf(query), trend.rising, trend.length)

    def _any_change(self, change: AnyChange) -> Tree:
        names = self._names(change.span)
        rows = []
        for name in change.tables:
            alias = names.use(name, change.span)
            rows.append(exp.Anonymous(this=ROW, expressions=[exp.Literal.string(alias)]))
        where = None if change.where is None else names.resolve(change.where)
        tests = [exp.Anonymous(this=CHANGES, expressions=[each]) for each in rows]
        test = exp.and_(exp.or_(*tests), *([where] if where is not None else []))
        queries = LeafQueries(self._tables, names.found.sources, change.span)
        return self._leaf(queries.rows(test, self._repeats))

    def _row_event(self, event: RowEvent) -> Tree:
        names = self._names(event.span)
        alias = names.use(event.table, event.span)
        where = None if event.where is None else names.resolve(event.where)
        columns = [names.resolve(exp.column(each, table=alias)).name for each in event.columns]
        if len(names.found.sources) > 1:
            raise LanguageError(
                "the condition of an event is about the row that changed",
                code="unsupported",
                span=event.span,
                hint="join another condition with AND, or use EXISTS (SELECT ...)",
            )
        queries = LeafQueries(self._tables, names.found.sources, event.span)
        return self._leaf(queries.events(event.kinds, columns, where))


def _place_to_join(
    found: Sequence[RowGroup | Tree], made: RowGroup | Tree, same_tables: bool
) -> int | None:
    if not isinstance(made, RowGroup):
        return None
    for number, known in enumerate(found):
        if not isinstance(known, RowGroup) or not known.joins(made):
            continue
        if not same_tables or known.sources.keys() == made.sources.keys():
            return number
    return None


def _check_groups(by: Sequence[exp.Expr], span: Span) -> None:
    for each in by:
        if not isinstance(each, exp.Column):
            raise LanguageError(
                "GROUP BY takes columns here",
                code="unsupported",
                span=place(each) or span,
                hint="watch a view that groups by an expression",
            )


def _equalities(group: RowGroup) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
    """The equalities of columns and constants in WHERE, and what else it says. Over no rows there
    is no group, so they stay where they are if the condition can hold for none."""
    where = group.where
    if where is None:
        return [], []
    conjuncts = list(where.flatten()) if isinstance(where, exp.And) else [where]
    if not _is_false_over_nothing(group.test):
        return [], [each.copy() for each in conjuncts]
    fixed: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for each in conjuncts:
        match each.unnest():
            case exp.EQ(this=exp.Column() as side, expression=exp.Literal() as value):
                fixed.append((side, value))
            case _:
                rest.append(each.copy())
    return fixed, rest


def _is_false_over_nothing(test: exp.Expr) -> bool:
    """Aggregates over no rows are NULL, except for counts."""
    kinds = (exp.Count, exp.CountIf, exp.Is, exp.Coalesce, exp.Case, exp.Not, exp.Or, exp.Query)
    if test.find(*kinds, exp.NullSafeEQ, exp.NullSafeNEQ) is not None:
        return False
    return not any(each.this == CHANGES for each in test.find_all(exp.Anonymous))


def _outer(test: exp.Expr, by: Sequence[exp.Expr], names: Sequence[str]) -> exp.Expr:
    """The columns that are grouped by, as those of the groups."""
    known = {
        (each.args["table"].name, each.name): name for each, name in zip(by, names, strict=True)
    }

    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table != GROUPS:
            name = known.get((node.table, node.name))
            if name is None:
                raise LanguageError(
                    f"the column {node.name} is neither in GROUP BY nor in an aggregate",
                    code="ungrouped",
                    span=place(node),
                    hint=f"add GROUP BY {node.name}",
                )
            return _at(column(name, GROUPS), node)
        return node

    return test.transform(renamed)


def _at(made: exp.Expr, node: exp.Expr) -> exp.Expr:
    found = place(node)
    if found is not None:
        made.meta.update(start=found.start, end=found.end - 1)
    return made


def _name_of(aggregate: exp.Expr) -> str:
    inside = aggregate.find(exp.Column)
    name = type(aggregate).__name__.lower()
    return name if inside is None else f"{name}_{inside.name}"


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, made = 1, name
        while made in found:
            number += 1
            made = f"{name}_{number}"
        found.append(made)
    return found


def named_tables(condition: Condition) -> list[str]:
    """The tables that any part of a condition names."""
    found: dict[str, None] = {}
    match condition:
        case Group(test, _, where, by):
            for each in (test, where, *by):
                for one in each.find_all(exp.Column) if each is not None else ():
                    if one.table and one.table.lower() not in ("old", "new"):
                        found[one.table.lower()] = None
        case Lasting(part) | Negation(part):
            found = dict.fromkeys(named_tables(part))
        case AnyChange(tables):
            found = dict.fromkeys(each.lower() for each in tables)
        case RowEvent(_, table):
            found = {table.lower(): None}
        case Trend(value):
            found = {e.table.lower(): None for e in value.find_all(exp.Column) if e.table}
        case All(parts) | Either(parts) | Alternative(parts):
            found = {name: None for part in parts for name in named_tables(part)}
        case Chain(parts) | Parallel(parts):
            found = {name: None for part in parts for name in named_tables(part)}
    return list(found)
