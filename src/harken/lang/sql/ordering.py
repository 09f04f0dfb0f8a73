"""ORDER BY, LIMIT and OFFSET.

    t(X) ← rows(X) ∧ N = count(: rows(X)) ∧ B = count(: before(X, Y)) ∧ C = … ∧ copies(C, _)
    before(X, Y) ← rows(Y) ∧ Y comes before X

A row that is there N times, with B rows before it, has the places B + 1 to B + N; it is among the
first as often as those are. So a row that leaves is replaced by the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.errors import LanguageError, TypeFault
from harken.ir.clauses import Aggregation, Atom, Comparison, First, Literal
from harken.ir.relations import COPIES
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.expression_text import canonical_text
from harken.lang.sql.normalization import replace_columns
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.whole_numbers import whole_number
from harken.values.types import BOOLEAN, INTEGER

Order = tuple[int, bool, bool]
"""A column, whether downwards, and whether NULLs come first."""


def direction(key: exp.Expr) -> tuple[bool, bool]:
    """Whether a key is descending, and whether NULLs come first, by default if ascending."""
    descending = bool(key.args.get("desc"))
    first = key.args.get("nulls_first")
    return descending, (not descending) if first is None else bool(first)


class OrderKeys:
    """A query without its ORDER BY and LIMIT, with the order keys added to its columns."""

    def __init__(self, node: exp.Expr, draft: Draft) -> None:
        self.query = node.copy()
        taken = {key: self.query.args.pop(key, None) for key in ("order", "limit", "offset")}
        order = taken["order"]
        self._nodes: list[exp.Expr] = list(order.expressions) if order is not None else []
        self._by_all = len(self._nodes) == 1 and _is_all(self._nodes[0].this)
        self.count = _whole(taken["limit"], draft)
        self.offset = _whole(taken["offset"], draft) or 0
        self._added: list[exp.Expr] = []
        self._draft = draft
        if isinstance(self.query, exp.Values):
            self.query = exp.select("*").from_(exp.Subquery(this=self.query))
        assert isinstance(self.query, exp.Query)
        selects = self.query.selects
        # The name of a literal or of a call is not a column name.
        named = (exp.Alias, exp.Column)
        self._names = [e.alias_or_name.lower() if isinstance(e, named) else "" for e in selects]
        self._texts = [canonical_text(each) for each in selects]
        self._has_star = any(each.is_star for each in selects)
        self._places = [] if self._by_all else [self._find(key) for key in self._nodes]
        if self._added:
            if self._is_closed:  # a column more would make other rows of it
                self.query = exp.select("*").from_(exp.Subquery(this=self.query))
            columns = [*self.query.expressions, *(each.copy() for each in self._added)]
            self.query.set("expressions", columns)

    @property
    def _is_closed(self) -> bool:
        plain = isinstance(self.query, exp.Select) and self.query.args.get("distinct") is None
        return not plain

    @property
    def added(self) -> int:
        """The number of columns that only serve the order; they come last."""
        return len(self._added)

    def order(self, width: int) -> list[Order]:
        """The columns that rows of this width are ordered by; ORDER BY ALL is by each of them."""
        if self._by_all:
            return [(place, *direction(self._nodes[0])) for place in range(width)]
        return [
            (self._place(place, key, width), *direction(key))
            for place, key in zip(self._places, self._nodes, strict=True)
        ]

    def _place(self, place: int | None, key: exp.Expr, width: int) -> int:
        shown = width - self.added
        if place is None:
            place = int(key.this.this) - 1
            if not 0 <= place < shown:
                raise TypeFault(
                    f"there is no column {place + 1} to order by",
                    code="arity",
                    span=self._draft.place(key),
                    hint=f"there are {shown}" if shown > 1 else "there is one",
                )
        return place if place >= 0 else shown - place - 1

    def _spelled_out(self, node: exp.Expr) -> exp.Expr:
        """An expression with the aliases of the select list replaced by their expressions."""
        if not isinstance(self.query, exp.Select):
            return node
        named = {s.alias.lower(): s for s in self.query.selects if isinstance(s, exp.Alias)}

        def stands_for(column: exp.Expr) -> exp.Expr:
            found = None if column.args.get("table") else named.get(column.name.lower())
            return column if found is None else exp.Paren(this=found.this.copy())

        return replace_columns(node, stands_for)

    def _find(self, key: exp.Expr) -> int | None:
        """A column of the query, or -1 for the first one that is added, -2 for the second; None if
        it is said by its number."""
        wanted = key.this
        if isinstance(wanted, exp.Literal) and wanted.is_int:
            return None
        plain = isinstance(wanted, exp.Column) and not wanted.table
        if not self._has_star and plain and wanted.name.lower() in self._names:
            return self._names.index(wanted.name.lower())
        spelled = self._spelled_out(wanted)
        text = canonical_text(spelled)
        if not self._has_star and text in self._texts:
            return self._texts.index(text)
        if not self._is_closed:
            self._added.append(spelled)
            return -len(self._added)
        if not self._has_star and not self._is_made_of_columns(wanted):
            raise LanguageError(
                "ORDER BY may use only the selected columns here",
                code="unsupported",
                span=self._draft.place(key),
            )
        self._added.append(replace_columns(wanted, lambda each: exp.column(each.this.copy())))
        return -len(self._added)

    def _is_made_of_columns(self, node: exp.Expr) -> bool:
        own = all(each.name.lower() in self._names for each in node.find_all(exp.Column))
        return own and node.find(exp.AggFunc, exp.Query) is None


def _whole(node: exp.Expr | None, draft: Draft) -> int | None:
    if node is None:
        return None
    wanted = node.expression.unnest() if isinstance(node.expression, exp.Expr) else None
    if isinstance(node, exp.Limit) and (isinstance(wanted, exp.Null) or _is_all(wanted)):
        return None
    count = None if wanted is None else whole_number(wanted)
    if count is None or count < 0:
        raise LanguageError(
            "LIMIT and OFFSET take a whole number, which may be computed of others",
            code="unsupported",
            span=draft.place(node),
        )
    return count


def _is_all(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


def first_rows(
    draft: Draft,
    rows: QueryRows,
    width: int,
    order: Sequence[Order],
    count: int | None,
    offset: int,
) -> QueryRows:
    """The first rows of a query, of which the first `width` columns are wanted."""
    captured = rows.captured
    one = [draft.fresh(column.type) for column in rows.columns]
    there = draft.define(
        "rows", captured, rows.columns, [(one, [Atom(rows.relation, (*captured, *one))])], bag=False
    )
    terms: tuple[Term, ...] = (*captured, *one)
    times, ahead = draft.fresh(INTEGER), draft.fresh(INTEGER)
    other = [draft.fresh(column.type) for column in rows.columns]
    before = draft.define(
        "before",
        (*captured, *one),
        rows.columns,
        [
            (other, [Atom(rows.relation, (*captured, *other)), *tests])
            for tests in comes_before(other, one, order)
        ],
        bag=True,
    )
    body = Body(
        [
            Atom(there, terms),
            Aggregation(times, "count", None, Atom(rows.relation, terms), terms),
            Aggregation(ahead, "count", None, Atom(before, (*terms, *_fresh(draft, other))), terms),
        ]
    )
    last = draft.compute("+", (ahead, times), INTEGER, body)
    start: Term = ahead
    if count is not None:
        last = _least(draft, last, Constant(offset + count, INTEGER), body)
    if offset:
        start = _most(draft, start, Constant(offset, INTEGER), body)
    copies = draft.compute("-", (last, start), INTEGER, body)
    body.add(Atom(COPIES, (copies, draft.fresh(INTEGER))))
    places = tuple((len(captured) + i, down, nulls) for i, down, nulls in order)
    relation = draft.define(
        "first",
        captured,
        rows.columns[:width],
        [(one[:width], body.literals)],
        bag=True,
        first=First(rows.relation.id, len(captured), places, count, offset),
    )
    return QueryRows(relation, captured, rows.names[:width])


def _fresh(draft: Draft, like: Sequence[Variable]) -> list[Variable]:
    return [draft.fresh(each.type) for each in like]


def comes_before(
    row: Sequence[Variable], than: Sequence[Variable], order: Sequence[Order]
) -> list[list[Literal]]:
    """The alternatives under which a row comes before another. At most one of them holds."""
    ways: list[list[Literal]] = []
    same: list[Literal] = []
    for place, down, nulls_first in order:
        one, other = row[place], than[place]
        ways.append([*same, Comparison(">" if down else "<", one, other)])
        if one.type.nullable:
            nothing = Constant(None, one.type.or_null())
            early, late = (one, other) if nulls_first else (other, one)
            missing = Comparison("=", early, nothing)
            ways.append([*same, missing, Comparison("!=", late, nothing)])
        same = [*same, Comparison("=", one, other)]
    return ways


def _least(draft: Draft, one: Term, other: Term, body: Body) -> Term:
    fewer = draft.compute("is <", (one, other), BOOLEAN, body)
    return draft.compute("choose", (fewer, one, other), INTEGER, body)


def _most(draft: Draft, one: Term, other: Term, body: Body) -> Term:
    fewer = draft.compute("is <", (one, other), BOOLEAN, body)
    return draft.compute("choose", (fewer, other, one), INTEGER, body)
