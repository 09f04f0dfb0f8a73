"""Window functions: for each row a value of the rows in its partition.

The query without them becomes the rows m(A); a window function is then an aggregate over those rows
of m that are in the same partition and, if the window is ordered, not after the row. Where equal
rows must be told apart (row_number, lag, lead, frames of ROWS) they are numbered first:

    n(A, N) ← rows(A) ∧ C = count(: m(A)) ∧ B = count(: before(A, A')) ∧ copies(C, K) ∧ N = B + K

A change is looked at again in its partition and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from harken.errors import LanguageError
from harken.ir.clauses import Aggregation, Atom, Comparison, Literal, Numbered
from harken.ir.operations import AGGREGATES
from harken.ir.relations import COPIES, Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.ir.types import INTEGER, is_decimal
from harken.lang.sql import decimals
from harken.lang.sql.draft import Body, Draft
from harken.lang.sql.ordering import Order, direction, earlier
from harken.lang.sql.rows import Rows

AGGREGATED: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
ONE = Constant(1, INTEGER)


@dataclass(slots=True)
class Split:
    """A SELECT with windows in two: what they are computed of, as columns, and what is made of
    them."""

    columns: dict[str, exp.Expr] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)

    def take(self, node: exp.Expr) -> exp.Expr:
        """A column that has the value of an expression without windows."""
        text = node.unalias().sql("spark", normalize=True)
        if text not in self.names:
            self.names[text] = f"column {len(self.names)}"
            self.columns[self.names[text]] = node.unalias().copy()
        return exp.column(self.names[text], table="rows")

    def outer(self, node: exp.Expr) -> exp.Expr:
        """The expression over the columns, its windows columns as well."""
        if isinstance(node, exp.Window):
            name = f"window {len(self.windows)}"
            self.windows[name] = self._taken(node)
            return exp.column(name, table="rows")
        if node.find(exp.Window) is None:
            return node.copy() if isinstance(node, exp.Literal | exp.Null) else self.take(node)
        made = node.copy()
        for key, value in list(made.args.items()):
            if isinstance(value, exp.Expr):
                made.set(key, self.outer(value))
            elif isinstance(value, list):
                made.set(key, [self.outer(v) if isinstance(v, exp.Expr) else v for v in value])
        return made

    def _taken(self, node: exp.Window) -> exp.Window:
        made = node.copy()
        function = made.this
        for key in ("this", "offset", "default"):
            value = function.args.get(key)
            if isinstance(value, exp.Expr) and not isinstance(value, exp.Literal | exp.Star):
                function.set(key, self.take(value))
        parts = made.args.get("partition_by") or []
        made.set("partition_by", [self.take(each) for each in parts])
        order = made.args.get("order")
        for each in order.expressions if order is not None else ():
            each.set("this", self.take(each.this))
        return made


class Windows:
    """The windows over the rows of one query."""

    def __init__(self, draft: Draft, rows: Rows, names: Sequence[str]) -> None:
        self._draft = draft
        self._rows = rows
        self._names = list(names)
        self._captured = rows.captured
        self.row = [draft.fresh(column.type) for column in rows.columns]
        self._number: Variable | None = None
        self._numbered: Relation | None = None
        self._numbered_by: tuple[tuple[int, ...], tuple[Order, ...]] | None = None

    def source(self, body: Body) -> None:
        """The rows themselves, numbered if any window wants it."""
        if self._numbered is not None:
            assert self._number is not None
            body.literals.insert(
                0, Atom(self._numbered, (*self._captured, *self.row, self._number))
            )
        else:
            body.literals.insert(0, Atom(self._rows.relation, (*self._captured, *self.row)))

    def value(self, node: exp.Window, body: Body) -> Term:
        function = node.this
        parts = tuple(self._place(each) for each in node.args.get("partition_by") or ())
        order = node.args.get("order")
        keys = tuple(
            (self._place(each.this), *direction(each))
            for each in (order.expressions if order is not None else ())
        )
        frame = node.args.get("spec")
        match function:
            case exp.RowNumber():
                return self._number_in(parts, keys, node)
            case exp.Rank():
                return self._rank(parts, keys, body, distinct=False)
            case exp.DenseRank():
                return self._rank(parts, keys, body, distinct=True)
            case exp.Lag() | exp.Lead():
                return self._neighbour(function, parts, keys, node, body)
            case exp.FirstValue():
                self._number_in(parts, keys, node)
                return self._at(self._place(function.this), parts, ONE, body)
        name = AGGREGATED.get(type(function))
        if name is None:
            raise self._not_yet(node, f"the window function {function.sql('spark')}")
        if frame is not None and not self._is_default(frame):
            return self._in_frame(name, function, frame, parts, keys, node, body)
        return self._aggregate(name, function, parts, keys, body)

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(
        self,
        name: str,
        function: exp.Expr,
        parts: tuple[int, ...],
        keys: tuple[Order, ...],
        body: Body,
    ) -> Term:
        """Of the partition, or of its rows up to this one and those that are equal to it."""
        groups = self._groups(parts)
        other = [self._draft.fresh(column.type) for column in self._rows.columns]
        terms = [self.row[i] if i in parts else each for i, each in enumerate(other)]
        if not keys:
            atom = Atom(self._rows.relation, (*self._captured, *terms))
            return self._over(name, function, atom, terms, groups, body)
        by = [self.row[place] for place, _, _ in keys]
        same: list[Literal] = [Comparison("=", other[p], self.row[p]) for p in parts]
        equal: list[Literal] = [Comparison("=", other[p], self.row[p]) for p, _, _ in keys]
        ways: list[list[Literal]] = [*earlier(other, self.row, keys), equal]
        arguments = list(dict.fromkeys((*groups, *by)))
        relation = self._draft.define(
            "window",
            arguments,
            self._rows.columns,
            [
                (other, [Atom(self._rows.relation, (*self._captured, *other)), *same, *way])
                for way in ways
            ],
            bag=True,
        )
        fresh = [self._draft.fresh(column.type) for column in self._rows.columns]
        atom = Atom(relation, (*arguments, *fresh))
        return self._over(name, function, atom, fresh, tuple(arguments), body)

    def _over(
        self,
        name: str,
        function: exp.Expr,
        atom: Atom,
        terms: Sequence[Term],
        groups: tuple[Term, ...],
        body: Body,
    ) -> Term:
        argument = function.this
        value: Term | None = None
        if isinstance(argument, exp.Distinct):
            raise self._not_yet(function, "DISTINCT in a window")
        if isinstance(argument, exp.Column):
            value = terms[self._place(argument)]
        type_ = AGGREGATES[name].result or (INTEGER if value is None else value.type)
        if value is not None and is_decimal(value.type) and name in ("sum", "avg"):
            exact = decimals.sum_of if name == "sum" else decimals.average_of
            type_ = exact(value.type)
        if name == "count" and value is not None and not value.type.nullable:
            value = None
        if value is not None and value in groups:  # it is what the partition has in common
            fresh = self._draft.fresh(value.type)
            spread = tuple(fresh if each == value else each for each in atom.terms)
            atom, value, groups = self._apart(atom, spread, fresh, groups)
        nullable = name != "count"
        result = self._draft.fresh(type_.or_null(nullable))
        assert value is None or isinstance(value, Variable)
        body.add(Aggregation(result, name, value, atom, groups, or_null=nullable))
        return result

    def _apart(
        self, atom: Atom, terms: tuple[Term, ...], value: Variable, groups: tuple[Term, ...]
    ) -> tuple[Atom, Variable, tuple[Term, ...]]:
        """The same rows with a column of the group once more, as a value."""
        inner = [self._draft.fresh(each.type) for each in terms]
        place = next(i for i, each in enumerate(terms) if each == value)
        columns = [Column(f"v{i}", each.type) for i, each in enumerate(inner)]
        heads = [((*inner, inner[place]), [Atom(atom.relation, tuple(inner))])]
        relation = self._draft.define(
            "window", (), (*columns, Column("again", value.type)), heads, bag=True
        )
        return Atom(relation, (*atom.terms, value)), value, groups

    def _rank(
        self, parts: tuple[int, ...], keys: tuple[Order, ...], body: Body, *, distinct: bool
    ) -> Term:
        """One more than the rows before it, or than the different places before it."""
        groups = self._groups(parts)
        by = [self.row[place] for place, _, _ in keys]
        other = [self._draft.fresh(column.type) for column in self._rows.columns]
        same: list[Literal] = [Comparison("=", other[p], self.row[p]) for p in parts]
        arguments = list(dict.fromkeys((*groups, *by)))
        shown = [other[place] for place, _, _ in keys] if distinct else other
        columns = [Column(f"b{i}", each.type) for i, each in enumerate(shown)]
        relation = self._draft.define(
            "before",
            arguments,
            columns,
            [
                (shown, [Atom(self._rows.relation, (*self._captured, *other)), *same, *way])
                for way in earlier(other, self.row, keys)
            ],
            bag=not distinct,
        )
        fresh = [self._draft.fresh(each.type) for each in shown]
        before = self._draft.fresh(INTEGER)
        atom = Atom(relation, (*arguments, *fresh))
        body.add(Aggregation(before, "count", None, atom, tuple(arguments)))
        return self._draft.compute("+", (before, ONE), INTEGER, body)

    # --- numbered rows ---------------------------------------------------------------------

    def _number_in(
        self, parts: tuple[int, ...], keys: tuple[Order, ...], node: exp.Expr
    ) -> Variable:
        """The number of the row in its partition."""
        wanted = (parts, keys)
        if self._numbered_by is not None and self._numbered_by != wanted:
            raise self._not_yet(node, "numbering rows in two different orders in one query")
        if self._number is None:
            self._numbered_by = wanted
            self._number = self._draft.fresh(INTEGER)
            self._numbered = self._numbered_rows(parts, keys)
        return self._number

    def _numbered_rows(self, parts: tuple[int, ...], keys: tuple[Order, ...]) -> Relation:
        draft, rows, captured = self._draft, self._rows, self._captured
        placed = {place for place, _, _ in keys}
        order = [*keys, *((i, False, True) for i in range(len(self.row)) if i not in placed)]
        one = [draft.fresh(column.type) for column in rows.columns]
        other = [draft.fresh(column.type) for column in rows.columns]
        there = draft.define(
            "rows",
            captured,
            rows.columns,
            [(one, [Atom(rows.relation, (*captured, *one))])],
            bag=False,
        )
        same: list[Literal] = [Comparison("=", other[p], one[p]) for p in parts]
        before = draft.define(
            "before",
            (*captured, *one),
            rows.columns,
            [
                (other, [Atom(rows.relation, (*captured, *other)), *same, *way])
                for way in earlier(other, one, order)
            ],
            bag=True,
        )
        terms: tuple[Term, ...] = (*captured, *one)
        times, ahead, which = (draft.fresh(INTEGER) for _ in range(3))
        fresh = [draft.fresh(each.type) for each in other]
        body = Body(
            [
                Atom(there, terms),
                Aggregation(times, "count", None, Atom(rows.relation, terms), terms),
                Aggregation(ahead, "count", None, Atom(before, (*terms, *fresh)), terms),
                Atom(COPIES, (times, which)),
            ]
        )
        number = draft.compute("+", (ahead, which), INTEGER, body)
        first = len(captured)
        return draft.define(
            "numbered",
            captured,
            (*rows.columns, Column("number", INTEGER)),
            [((*one, number), body.literals)],
            bag=True,
            numbered=Numbered(
                rows.relation.id,
                first,
                tuple(first + part for part in parts),
                tuple((first + place, down, nulls) for place, down, nulls in order),
            ),
        )

    def _neighbour(
        self,
        function: exp.Expr,
        parts: tuple[int, ...],
        keys: tuple[Order, ...],
        node: exp.Expr,
        body: Body,
    ) -> Term:
        """The value of a row so many before or after; NULL, or what is said, if there is none."""
        number = self._number_in(parts, keys, node)
        offset = function.args.get("offset")
        if offset is not None and not isinstance(offset, exp.Literal):
            raise self._not_yet(node, "a distance that is not a number")
        distance = Constant(1 if offset is None else int(offset.this), INTEGER)
        symbol = "-" if isinstance(function, exp.Lag) else "+"
        there = self._draft.compute(symbol, (number, distance), INTEGER, body)
        found = self._at(self._place(function.this), parts, there, body)
        default = function.args.get("default")
        if default is None:
            return found
        raise self._not_yet(node, "a default of lag or lead")

    def _at(self, place: int, parts: tuple[int, ...], number: Term, body: Body) -> Term:
        """The value of the row with a number, in the same partition."""
        assert self._numbered is not None
        draft = self._draft
        inner = [draft.fresh(column.type) for column in self._rows.columns]
        own = draft.fresh(INTEGER)
        partition = [inner[p] for p in parts]
        columns = [
            *(Column(f"p{i}", each.type) for i, each in enumerate(partition)),
            Column("number", INTEGER),
            Column("value", inner[place].type),
        ]
        relation = draft.define(
            "at",
            self._captured,
            columns,
            [
                (
                    (*partition, own, inner[place]),
                    [Atom(self._numbered, (*self._captured, *inner, own))],
                )
            ],
            bag=True,
        )
        value = draft.fresh(inner[place].type)
        result = draft.fresh(value.type.or_null())
        groups = (*self._groups(parts), number)
        atom = Atom(relation, (*groups, value))
        body.add(Aggregation(result, "single value", value, atom, groups, or_null=True))
        return result

    def _in_frame(
        self,
        name: str,
        function: exp.Expr,
        frame: exp.Expr,
        parts: tuple[int, ...],
        keys: tuple[Order, ...],
        node: exp.Expr,
        body: Body,
    ) -> Term:
        """An aggregate of the rows from so many before to so many after."""
        if str(frame.args.get("kind")).upper() != "ROWS":
            raise self._not_yet(node, "this frame")
        number = self._number_in(parts, keys, node)
        draft = self._draft
        assert self._numbered is not None
        bounds = [
            _bound(frame.args.get(key), frame.args.get(f"{key}_side")) for key in ("start", "end")
        ]
        inner = [draft.fresh(column.type) for column in self._rows.columns]
        own = draft.fresh(INTEGER)
        inside = Body([Atom(self._numbered, (*self._captured, *inner, own))])
        for part in parts:
            inside.add(Comparison("=", inner[part], self.row[part]))
        for bound, operator in zip(bounds, (">=", "<="), strict=True):
            if bound is not None:
                limit = draft.compute("+", (number, Constant(bound, INTEGER)), INTEGER, inside)
                inside.add(Comparison(operator, own, limit))
        arguments = list(dict.fromkeys((*self._groups(parts), number)))
        relation = draft.define(
            "window", arguments, self._rows.columns, [(inner, inside.literals)], bag=True
        )
        fresh = [draft.fresh(column.type) for column in self._rows.columns]
        atom = Atom(relation, (*arguments, *fresh))
        return self._over(name, function, atom, fresh, tuple(arguments), body)

    # --- columns ---------------------------------------------------------------------------

    def _groups(self, parts: Sequence[int]) -> tuple[Variable, ...]:
        return (*self._captured, *dict.fromkeys(self.row[part] for part in parts))

    def _place(self, node: exp.Expr) -> int:
        return self._names.index(node.name)

    def _is_default(self, frame: exp.Expr) -> bool:
        return (
            str(frame.args.get("kind")).upper() == "RANGE"
            and str(frame.args.get("start")).upper() == "UNBOUNDED"
            and str(frame.args.get("end") or "CURRENT ROW").upper() == "CURRENT ROW"
        )

    def _not_yet(self, node: exp.Expr, what: str) -> LanguageError:
        span = self._draft.place(node)
        return LanguageError(f"{what} is not there yet", code="unsupported", span=span)


def _bound(value: object, side: object) -> int | None:
    """How many rows after this one; None for all."""
    text = str(value.name if isinstance(value, exp.Expr) else value or "CURRENT ROW").upper()
    if text == "UNBOUNDED":
        return None
    if text == "CURRENT ROW":
        return 0
    return int(text) * (-1 if str(side).upper() == "PRECEDING" else 1)
