"""Groups of a trigger as queries: the rows for which a condition is true, for each subscription.

    STOCK.price > 500 WHERE STOCK.symbol = 'IBM'

    SELECT p.subscription, stock.symbol FROM parameters p, stock
    WHERE stock.price > p.c0 AND stock.symbol = p.c1

A condition on previous values is the union of the cases of `previous_values`. Aggregates are
computed below, for groups that do not depend on the subscription, so that all share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product

from sqlglot import exp

from harken.errors import LanguageError, Span
from harken.lang.continual.condition_tables import (
    COPIES,
    SINCE_POSITION,
    UNTIL_POSITION,
    WAS_THERE,
    ConditionTable,
    ConditionTables,
    column,
    from_table,
    key_name,
    value_name,
)
from harken.lang.continual.literal_lifting import PARAMETERS, SUBSCRIPTION, Constants
from harken.lang.continual.previous_values import (
    FALSE,
    Case,
    PreviousValues,
    before,
    cached_sources,
    check_operators,
    folded,
    sees_deleted_rows,
    without_failures,
)
from harken.lang.sql.lifting import Lifted
from harken.values.types import INTEGER, TEXT, Type

POSITIONS = " positions"
"""The last execution of each subscription, as a position among the changes."""
POSITION = "position"
HOLDS = "holds"


class LeafKind(Enum):
    ROWS = "rows"
    """It happens when a key is gained, and holds while there is one."""
    EVENTS = "events"
    """It happens when rows are inserted, updated or deleted. The last column says whether its
    condition holds, those between are the watched columns."""
    SIGNAL = "signal"
    MOVES = "moves"
    """The last column is a value whose changes are compared."""


@dataclass(frozen=True, slots=True)
class LeafSource:
    """A table of a leaf. `key` is how many columns of its rows are its key; `now` reads a row by
    its key, `was` its previous values by subscription and key, where there are any."""

    alias: str
    table: ConditionTable
    key: int
    now: exp.Expr
    was: exp.Expr | None


@dataclass(frozen=True, slots=True)
class LeafQuery:
    """A leaf as a query. The first column of its rows is the subscription; then come the keys of
    all sources."""

    kind: LeafKind
    query: exp.Expr
    sources: tuple[LeafSource, ...]
    constants: tuple[tuple[object, Type], ...]
    places: tuple[int | None, ...]
    """Where the constants stand in the text."""
    span: Span
    events: frozenset[str] = frozenset()
    referenced: tuple[ConditionTable, ...] = ()
    """The tables whose previous values it reads."""
    names: tuple[str, ...] = ()
    """The names of the keys, where they are of no source."""


class LeafQueries:
    """Builds the query of one group."""

    def __init__(
        self, tables: ConditionTables, sources: Mapping[str, ConditionTable], span: Span
    ) -> None:
        self._tables = tables
        self._sources = dict(sorted(sources.items()))
        self._span = span

    def rows(self, test: exp.Expr, values: bool = False) -> LeafQuery:
        """The rows for which a test is true; with the `values` of the columns it mentions, a row
        that has changed counts as another one."""
        check_operators(test, self._sources, self._span)
        test = without_failures(test)
        constants = Constants(self._sources)
        test = constants.lifted(test)
        cached = self._cached(test)
        mentioned = _mentioned(test, self._sources) if values else []
        selects = []
        for cases in self._cases(test, cached):
            writer = PreviousValues(self._sources, cases, self._span)
            written = writer.written(test)
            if written != FALSE:
                shown = [writer.written(each) for each in mentioned]
                selects.append(self._select(written, cases, shown))
        if not selects:  # it can never hold
            selects = [self._select(FALSE.copy(), {}, [each.copy() for each in mentioned])]
        return self._leaf(LeafKind.ROWS, _union(selects), constants, cached)

    def _cached(self, test: exp.Expr) -> list[str]:
        """The sources with previous values, which know how often rows are there without a key."""
        found = sorted(cached_sources(test) & self._sources.keys())
        for alias in found:
            if not self._sources[alias].has_key:
                self._sources[alias] = self._tables.counted(self._sources[alias])
        return found

    def since(self, test: exp.Expr, where: exp.Expr | None, by: Sequence[exp.Expr]) -> LeafQuery:
        """A test of aggregates over the rows that have come since the last execution."""
        if len(self._sources) != 1 or cached_sources(test):
            raise LanguageError(
                "SINCE LAST EXECUTION is of the rows of one table",
                code="unsupported",
                span=self._span,
                hint="watch a view that joins the tables",
            )
        (alias,) = self._sources
        table = self._sources[alias]
        if not table.has_key:
            table = self._sources[alias] = self._tables.counted(table)
        test = _of_new_rows(test, alias, table)
        query = exp.select(column(SUBSCRIPTION, PARAMETERS), *(each.copy() for each in by))
        query = query.from_(from_table(PARAMETERS, PARAMETERS))
        query = query.join(from_table(POSITIONS, POSITIONS), join_type="cross")
        same = column(SUBSCRIPTION, POSITIONS), column(SUBSCRIPTION, PARAMETERS)
        items, tests = self._from(alias, table, Case.MOVED)
        for each in items:
            query = query.join(each, join_type="cross")
        new = exp.not_(column(WAS_THERE, before(alias))) if table.has_key else None
        given = [each for each in (new, where) if each is not None]
        query = query.where(exp.EQ(this=same[0], expression=same[1]), *tests, *given)
        query = query.group_by(column(SUBSCRIPTION, PARAMETERS), *(each.copy() for each in by))
        query = query.having(test)
        names = tuple(each.name for each in by)
        return LeafQuery(
            LeafKind.ROWS, query, (), (), (), self._span, names=names, referenced=(table,)
        )

    def events(
        self, kinds: frozenset[str], columns: Sequence[str], where: exp.Expr | None
    ) -> LeafQuery:
        (alias,) = self._sources
        constants = Constants(self._sources)
        test = constants.lifted(where) if where is not None else exp.Boolean(this=True)
        cached = sorted(cached_sources(test))
        if cached:
            raise LanguageError(
                "the condition of an event reads the row as it is",
                code="unsupported",
                span=self._span,
                hint="write WHEN condition: it is looked at whenever the row changes",
            )
        watched: list[exp.Expr] = []
        if "UPDATE" in kinds:
            names = columns or [each.name for each in self._sources[alias].values]
            watched = [column(each, alias) for each in names]
        holds = exp.Coalesce(this=exp.Paren(this=test), expressions=[FALSE.copy()])
        query = self._select(exp.Boolean(this=True), {}, [*watched, holds])
        # A deleted row is shown with the values that it had at the last execution.
        shown = [alias] if "DELETE" in kinds and self._sources[alias].has_key else []
        return self._leaf(LeafKind.EVENTS, query, constants, shown, kinds)

    def signal(self, table: str, name: str) -> LeafQuery:
        """A row of the table of signals, whose second column rises with each signal."""
        constants = Constants({})
        given = constants.take(name.lower(), TEXT)
        query = exp.select(column(SUBSCRIPTION, PARAMETERS), column("number", "signal"))
        query = query.from_(from_table(PARAMETERS, PARAMETERS))
        query = query.join(from_table(table, "signal"), join_type="cross")
        query = query.where(exp.EQ(this=column("name", "signal"), expression=given))
        return self._leaf(LeafKind.SIGNAL, query, constants, [])

    def moves(self, value: exp.Expr, where: exp.Expr | None) -> LeafQuery:
        constants = Constants(self._sources)
        test = exp.Boolean(this=True) if where is None else constants.lifted(where)
        if cached_sources(test) or cached_sources(value):
            raise LanguageError(
                "a trend is one of present values",
                code="unsupported",
                span=self._span,
                hint="leave out CHANGES, INCBY and the like",
            )
        query = self._select(test, {}, [value.copy()])
        return self._leaf(LeafKind.MOVES, query, constants, [])

    # --- the query -------------------------------------------------------------------------

    def _leaf(
        self,
        kind: LeafKind,
        query: exp.Expr,
        constants: Constants,
        cached: Sequence[str],
        events: frozenset[str] = frozenset(),
    ) -> LeafQuery:
        sources = tuple(self._source(alias, alias in cached) for alias in self._sources)
        referenced = tuple(self._sources[alias] for alias in cached)
        values, places = tuple(constants.values), tuple(constants.places)
        return LeafQuery(kind, query, sources, values, places, self._span, events, referenced)

    def _cases(self, test: exp.Expr, cached: Sequence[str]) -> Iterator[dict[str, Case]]:
        for chosen in product(*(self._cases_of(test, alias) for alias in cached)):
            yield dict(zip(cached, chosen, strict=True))

    def _cases_of(self, test: exp.Expr, alias: str) -> list[Case]:
        gone = [Case.GONE] if sees_deleted_rows(test, alias) else []
        return [Case.SAME, Case.MOVED, *gone]

    def _select(
        self, test: exp.Expr, cases: Mapping[str, Case], values: Sequence[exp.Expr]
    ) -> exp.Select:
        keys = [
            column(key_name(name), before(alias))
            if cases.get(alias) is Case.GONE
            else column(name, alias)
            for alias, table in self._sources.items()
            for name in table.key
        ]
        query = exp.select(column(SUBSCRIPTION, PARAMETERS), *keys, *values)
        query = query.from_(from_table(PARAMETERS, PARAMETERS))
        conditions: list[exp.Expr] = []
        if cases:
            query = query.join(from_table(POSITIONS, POSITIONS), join_type="cross")
            same = column(SUBSCRIPTION, POSITIONS), column(SUBSCRIPTION, PARAMETERS)
            conditions.append(exp.EQ(this=same[0], expression=same[1]))
        for alias, table in self._sources.items():
            items, tests = self._from(alias, table, cases.get(alias))
            for each in items:
                query = query.join(each, join_type="cross")
            conditions += tests
        return query.where(*conditions, *([] if _is_true(test) else [test]))

    def _from(
        self, alias: str, table: ConditionTable, case: Case | None
    ) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """What a source adds to FROM and to WHERE."""
        now = from_table(table.name, alias)
        if case is None:
            return [now], []
        was = from_table(self._tables.previous(table), before(alias))
        at_hand = covers(alias)
        same_row = _same_row(table, alias)
        if case is Case.MOVED:
            return [now, was], [*at_hand, *same_row]
        if case is Case.SAME:
            entry = exp.select("1").from_(was).where(*at_hand, *same_row)
            return [now], [exp.not_(exp.Exists(this=entry))]
        there = exp.select("1").from_(now).where(*same_row)
        return [was], [*at_hand, column(WAS_THERE, before(alias)), exp.not_(exp.Exists(this=there))]

    # --- reading one row -------------------------------------------------------------------

    def _source(self, alias: str, cached: bool) -> LeafSource:
        table = self._sources[alias]
        names = [each.name for each in table.columns]
        now = exp.select(*(column(each, alias) for each in names))
        now = now.from_(from_table(table.name, alias))
        keys = [(name, table.type_of(name)) for name in table.key]
        now = now.where(*(_is_given(column(n, alias), i, t) for i, (n, t) in enumerate(keys)))
        if not cached:
            return LeafSource(alias, table, len(keys), now, None)
        past = before(alias)
        shown = [column(key_name(n) if n in table.key else value_name(n), past) for n in names]
        was = exp.select(*shown).from_(from_table(self._tables.previous(table), past))
        was = was.join(from_table(POSITIONS, POSITIONS), join_type="cross")
        tests = [_is_given(column(key_name(n), past), i + 1, t) for i, (n, t) in enumerate(keys)]
        mine = _is_given(column(SUBSCRIPTION, POSITIONS), 0, INTEGER)
        was = was.where(mine, *covers(alias), column(WAS_THERE, past), *tests)
        return LeafSource(alias, table, len(keys), now, was)


def _of_new_rows(test: exp.Expr, alias: str, table: ConditionTable) -> exp.Expr:
    """The aggregates of a test over new rows; of a row without a key only the new copies count."""
    if table.has_key:
        return test
    now, was = column(COPIES, alias), column(value_name(COPIES), before(alias))
    before_it = exp.Coalesce(this=was, expressions=[exp.Literal.number(0)])
    new = exp.Greatest(
        this=exp.Sub(this=now, expression=before_it), expressions=[exp.Literal.number(0)]
    )

    def counted(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Sum(this=value):
                return exp.Sum(this=exp.Mul(this=exp.Paren(this=value), expression=new.copy()))
            case exp.Count():
                return exp.Sum(this=new.copy())
        return node

    return test.transform(counted)


def covers(alias: str) -> list[exp.Expr]:
    """The previous values are those of the last execution of the subscription."""
    position = column(POSITION, POSITIONS)
    low = exp.LTE(this=column(SINCE_POSITION, before(alias)), expression=position)
    high = exp.LT(this=position.copy(), expression=column(UNTIL_POSITION, before(alias)))
    return [low, high]


def _same_row(table: ConditionTable, alias: str) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for name in table.key:
        sides = {
            "this": column(key_name(name), before(alias)),
            "expression": column(name, alias),
        }
        type_ = table.type_of(name)
        nullable = type_ is not None and type_.nullable
        found.append(exp.NullSafeEQ(**sides) if nullable else exp.EQ(**sides))
    return found


def _is_given(node: exp.Expr, slot: int, type_: Type | None) -> exp.Expr:
    assert type_ is not None
    given = Lifted(slot=slot, kind=type_.or_null(type_.nullable))
    kind = exp.NullSafeEQ if type_.nullable else exp.EQ
    return kind(this=node, expression=given)


def _union(selects: Sequence[exp.Expr]) -> exp.Expr:
    found = selects[0]
    for each in selects[1:]:
        found = exp.Union(this=found, expression=each, distinct=False)
    return found


def _mentioned(test: exp.Expr, sources: Iterable[str]) -> list[exp.Expr]:
    """The columns that a test reads, each once."""
    known = set(sources)
    found: dict[tuple[str, str], exp.Expr] = {}
    for each in test.find_all(exp.Column):
        if each.table in known:
            found.setdefault((each.table, each.name), each.copy())
    return list(found.values())


def _is_true(node: exp.Expr) -> bool:
    made = folded(node)
    return isinstance(made, exp.Boolean) and bool(made.this)
