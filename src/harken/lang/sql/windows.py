"""Window functions: for each row a value of the rows in its partition.

The query without them becomes the rows m(A); a window function is then an aggregate over those rows
of m that are in the same partition and in the frame of the row. Where equal rows must be told apart
(row_number, lag, lead, frames of ROWS) they are numbered first, see `row_numbers`.

A change is recomputed in its partition only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from harken.errors import LanguageError, TypeFault
from harken.ir.clauses import Aggregation, Atom, Comparison, Literal
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Column, Relation
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql import decimals
from harken.lang.sql.aggregate_nodes import AGGREGATED
from harken.lang.sql.group_aggregates import is_fold, read_fold
from harken.lang.sql.ordering import Order, comes_before, direction
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.row_numbers import RowNumbers, Stage, Wanted
from harken.lang.sql.type_names import is_numeric, type_name
from harken.lang.sql.window_frames import CUMULATIVE, WHOLE, Frame, frame_of, within
from harken.values.types import BOOLEAN, INTEGER, is_decimal

ONE = Constant(1, INTEGER)
OF_ROWS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""Functions that return the value of one row."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window function with the columns of its partition, its order and its frame."""

    node: exp.Window
    parts: tuple[int, ...]
    keys: tuple[Order, ...]
    frame: Frame

    @property
    def function(self) -> exp.Expr:
        function = self.node.this
        assert isinstance(function, exp.Expr)
        return function.this if self.ignores_nulls else function

    @property
    def ignores_nulls(self) -> bool:
        return isinstance(self.node.this, exp.IgnoreNulls)

    @property
    def wanted(self) -> Wanted:
        return self.parts, self.keys


class Windows:
    """The windows over the rows of one query."""

    def __init__(self, draft: Draft, rows: QueryRows, names: Sequence[str]) -> None:
        self._draft = draft
        self._rows = rows
        self._names = list(names)
        self._captured = rows.captured
        self.row = [draft.fresh(column.type) for column in rows.columns]
        self._numbering = RowNumbers(draft, rows, self.row)

    def source(self, body: Body) -> None:
        """The rows themselves, numbered if any window wants it."""
        body.literals.insert(0, self._numbering.source())

    def value(self, node: exp.Window, body: Body) -> Term:
        order = node.args.get("order")
        window = Window(
            node,
            tuple(self._place(each) for each in node.args.get("partition_by") or ()),
            tuple(
                (self._place(each.this), *direction(each))
                for each in (order.expressions if order is not None else ())
            ),
            frame_of(node, self._draft),
        )
        if window.ignores_nulls and not isinstance(window.function, OF_ROWS):
            raise self._not_yet(node, f"{_spelled(window.function)} with IGNORE NULLS")
        match window.function:
            case exp.RowNumber():
                return self._numbering.number(window.wanted)
            case exp.Rank():
                return self._rank(window, body, distinct=False)
            case exp.DenseRank():
                return self._rank(window, body, distinct=True)
            case exp.Lag() | exp.Lead():
                return self._neighbour(window, body)
            case exp.FirstValue() | exp.LastValue() | exp.NthValue():
                return self._nth(window, body)
        if type(window.function) not in AGGREGATED and not is_fold(window.function):
            raise self._not_yet(node, f"the window function {_spelled(window.function)}")
        return self._aggregate(window, window.function, window.frame, body)

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(self, window: Window, function: exp.Expr, frame: Frame, body: Body) -> Term:
        atom, groups = self._frame(window, frame, None, body)
        return self._over(function, atom, atom.terms[-len(self.row) :], groups, body)

    def _frame(
        self, window: Window, frame: Frame, stage: Stage | None, body: Body
    ) -> tuple[Atom, tuple[Term, ...]]:
        """The rows of the frame, and the terms that identify the frame. With a stage the rows have
        their numbers."""
        base = stage.relation if stage is not None else self._rows.relation
        if frame.kind == "ROWS":
            stage = self._numbering.stage(window.wanted)
            return self._between(window, stage.relation, stage.number, frame, base)
        if frame.kind == "GROUPS" and not frame.is_plain:
            number = self._rank(window, body, distinct=True)
            assert isinstance(number, Variable)
            return self._between(window, self._ranked(window, base), number, frame, base)
        return self._in_range(window, frame, base)

    def _in_range(
        self, window: Window, frame: Frame, base: Relation
    ) -> tuple[Atom, tuple[Term, ...]]:
        """The partition, or its rows up to this one and those equal to it, or those that are not
        far from it in the order."""
        groups = self._groups(window.parts)
        columns = base.columns[len(self._captured) :]
        other = [self._draft.fresh(column.type) for column in columns]
        if frame.is_whole or (frame.is_plain and not window.keys):  # then all rows are equal
            terms = [self.row[i] if i in window.parts else each for i, each in enumerate(other)]
            return Atom(base, (*self._captured, *terms)), groups
        same: list[Literal] = [Comparison("=", other[p], self.row[p]) for p in window.parts]
        ways = within(frame, self.row, other, window.keys, window.node, self._draft)
        by = [self.row[place] for place, _, _ in window.keys]
        arguments = list(dict.fromkeys((*groups, *by)))
        heads = [(other, [Atom(base, (*self._captured, *other)), *same, *way]) for way in ways]
        relation = self._draft.define("window", arguments, columns, heads, bag=True)
        fresh = [self._draft.fresh(column.type) for column in columns]
        return Atom(relation, (*arguments, *fresh)), tuple(arguments)

    def _between(
        self, window: Window, numbered: Relation, number: Variable, frame: Frame, base: Relation
    ) -> tuple[Atom, tuple[Term, ...]]:
        """The rows of the base that are in the frame by their number, the last column of
        `numbered`."""
        draft, columns = self._draft, base.columns[len(self._captured) :]
        inner = [draft.fresh(each.type) for each in numbered.columns[len(self._captured) :]]
        inside = Body([Atom(numbered, (*self._captured, *inner))])
        for part in window.parts:
            inside.add(Comparison("=", inner[part], self.row[part]))
        for bound, operator in ((frame.start, ">="), (frame.end, "<=")):
            if bound is not None:
                limit = self._later(number, bound, inside)
                inside.add(Comparison(operator, inner[-1], limit))
        arguments = list(dict.fromkeys((*self._groups(window.parts), number)))
        heads = [(inner[: len(columns)], inside.literals)]
        relation = draft.define("window", arguments, columns, heads, bag=True)
        fresh = [draft.fresh(column.type) for column in columns]
        return Atom(relation, (*arguments, *fresh)), tuple(arguments)

    def _ranked(self, window: Window, base: Relation) -> Relation:
        """The rows of the base with their dense rank, as frames of GROUPS count."""
        columns = base.columns[len(self._captured) :]
        row = [self._draft.fresh(column.type) for column in columns]
        body = Body([Atom(base, (*self._captured, *row))])
        rank = self._rank(window, body, distinct=True, row=row)
        return self._draft.define(
            "ranked",
            self._captured,
            (*columns, Column("rank", INTEGER)),
            [((*row, rank), body.literals)],
            bag=True,
        )

    def _over(
        self,
        function: exp.Expr,
        atom: Atom,
        terms: Sequence[Term],
        groups: tuple[Term, ...],
        body: Body,
    ) -> Term:
        if is_fold(function):
            return self._folded(function, atom, terms, groups, body)
        name, argument = AGGREGATED[type(function)], function.this
        value: Term | None = None
        if isinstance(argument, exp.Distinct):
            if name not in ("min", "max"):  # those are the same of a set
                atom, terms = self._once(function, atom, terms, groups)
            argument = argument.expressions[0]
        if isinstance(argument, exp.Column):
            value = terms[self._place(argument)]
            self._check_type(function, value)
        type_ = AGGREGATES[name].result or (INTEGER if value is None else value.type)
        if value is not None and is_decimal(value.type) and name in ("sum", "avg"):
            exact = decimals.sum_of if name == "sum" else decimals.average_of
            type_ = exact(value.type)
        if name == "count" and value is not None and not value.type.nullable:
            value = None
        if value is not None and value in groups:  # the value is a partition column
            atom, value = self._apart(atom, value)
        nullable = name != "count"
        result = self._draft.fresh(type_.or_null(nullable))
        assert value is None or isinstance(value, Variable)
        body.add(Aggregation(result, name, value, atom, groups, or_null=nullable))
        return result

    def _once(
        self, function: exp.Expr, atom: Atom, terms: Sequence[Term], groups: tuple[Term, ...]
    ) -> tuple[Atom, Sequence[Term]]:
        """The distinct values of the rows, without NULL. Other columns do not count."""
        places = [self._place(each) for each in function.this.expressions]
        if len(places) > 1 and not isinstance(function, exp.Count):
            raise self._not_yet(function, "DISTINCT of several columns, but to count them,")
        inner = Body([atom])
        for place in places:
            inner.not_null(terms[place])
        values = [terms[place] for place in dict.fromkeys(places)]
        columns = [Column(f"d{i}", each.type) for i, each in enumerate(values)]
        known = [each for each in groups if isinstance(each, Variable)]
        heads = [(values, inner.literals)]
        relation = self._draft.define("once", known, columns, heads, bag=False)
        fresh = [self._draft.fresh(each.type) for each in values]
        now = dict(zip(values, fresh, strict=True))
        return Atom(relation, (*known, *fresh)), [now.get(each, each) for each in terms]

    def _folded(
        self,
        function: exp.Expr,
        atom: Atom,
        terms: Sequence[Term],
        groups: tuple[Term, ...],
        body: Body,
    ) -> Term:
        """An aggregate of the whole frame."""
        fold = read_fold(function, self._draft)
        values = []
        for each in fold.values:
            value = terms[self._place(each)]
            assert isinstance(value, Variable)
            if value in groups:
                atom, value = self._apart(atom, value)
            values.append(value)
        found = fold.aggregation(self._draft, values, atom, groups)
        body.add(found)
        return fold.shown(self._draft, found.result, body)

    def _check_type(self, function: exp.Expr, value: Term) -> None:
        wrong = isinstance(function, exp.Sum | exp.Avg) and not is_numeric(value.type)
        wrong |= isinstance(function, exp.LogicalAnd | exp.LogicalOr) and value.type != BOOLEAN
        if wrong:
            raise TypeFault(
                f"{_spelled(function)} of {type_name(value.type)}",
                code="type-mismatch",
                span=self._draft.place(function),
            )

    def _apart(self, atom: Atom, value: Term) -> tuple[Atom, Variable]:
        """The same rows with a column of the group once more, as a value."""
        inner = [self._draft.fresh(each.type) for each in atom.terms]
        place, again = atom.terms.index(value), self._draft.fresh(value.type)
        columns = [Column(f"v{i}", each.type) for i, each in enumerate(inner)]
        heads = [((*inner, inner[place]), [Atom(atom.relation, tuple(inner))])]
        relation = self._draft.define(
            "window", (), (*columns, Column("again", value.type)), heads, bag=True
        )
        return Atom(relation, (*atom.terms, again)), again

    def _rank(
        self, window: Window, body: Body, *, distinct: bool, row: Sequence[Variable] | None = None
    ) -> Term:
        """One more than the rows before it, or than the different places before it; of this row, or
        of another."""
        keys, row = window.keys, self.row if row is None else row
        by = [row[place] for place, _, _ in keys]
        other = [self._draft.fresh(column.type) for column in self._rows.columns]
        same: list[Literal] = [Comparison("=", other[p], row[p]) for p in window.parts]
        parts = (row[part] for part in window.parts)
        arguments = list(dict.fromkeys((*self._captured, *parts, *by)))
        shown = [other[place] for place, _, _ in keys] if distinct else other
        columns = [Column(f"b{i}", each.type) for i, each in enumerate(shown)]
        relation = self._draft.define(
            "before",
            arguments,
            columns,
            [
                (shown, [Atom(self._rows.relation, (*self._captured, *other)), *same, *way])
                for way in comes_before(other, row, keys)
            ],
            bag=not distinct,
        )
        fresh = [self._draft.fresh(each.type) for each in shown]
        before = self._draft.fresh(INTEGER)
        atom = Atom(relation, (*arguments, *fresh))
        body.add(Aggregation(before, "count", None, atom, tuple(arguments)))
        return self._draft.compute("+", (before, ONE), INTEGER, body)

    # --- values of other rows --------------------------------------------------------------

    def _neighbour(self, window: Window, body: Body) -> Term:
        """lag and lead: the value of a row at a distance; NULL if there is no such row."""
        distance = self._whole(window, 1)
        if isinstance(window.function, exp.Lag):
            distance = -distance
        if window.ignores_nulls and distance:
            beside = Frame("ROWS", None, -1) if distance < 0 else Frame("ROWS", 1, None)
            return self._counted(window, beside, abs(distance), distance < 0, body)
        there = self._later(self._numbering.number(window.wanted), distance, body)
        return self._at(window, there, body)

    def _nth(self, window: Window, body: Body) -> Term:
        """The value of the first, the last or another row of the frame; NULL if it has none."""
        if window.ignores_nulls or not (window.frame.kind == "ROWS" or window.frame.is_plain):
            last = isinstance(window.function, exp.LastValue)
            count = 1 if last else self._whole(window, 1)
            return self._counted(window, window.frame, count, last, body)
        start, end = self._start(window, body), self._end(window, body)
        there = end
        if not isinstance(window.function, exp.LastValue):
            there = self._later(start, self._whole(window, 1) - 1, body)
        found = self._at(window, there, body)
        inside = self._draft.compute("is <=", (start, there), BOOLEAN, body)
        if not isinstance(window.function, exp.LastValue):
            inside = self._draft.compute("is <=", (there, end), BOOLEAN, body)
        nothing = Constant(None, found.type.or_null())
        return self._draft.compute("choose", (inside, found, nothing), found.type, body)

    def _counted(
        self, window: Window, frame: Frame, count: int, from_end: bool, body: Body
    ) -> Term:
        """The value of the n-th row from the start or the end of a frame."""
        stage = self._numbering.stage(window.wanted)
        atom, groups = self._frame(window, frame, stage, body)
        width = len(stage.relation.columns) - len(self._captured)
        *inner, number = atom.terms[-width:]
        value = inner[self._place(window.function.this)]
        if value in groups:
            atom, value = self._apart(atom, value)
        assert isinstance(number, Variable)
        assert isinstance(value, Variable)
        settings = (False, (), count, from_end, window.ignores_nulls)
        result = self._draft.fresh(value.type.or_null())
        body.add(
            Aggregation(result, "nth_value", number, atom, groups, None, True, (value,), settings)
        )
        return result

    def _start(self, window: Window, body: Body) -> Term:
        """The number of the first row of the frame."""
        if window.frame.start is None or (window.frame.kind != "ROWS" and not window.keys):
            return ONE
        if window.frame.kind != "ROWS":
            return self._rank(window, body, distinct=False)
        number = self._numbering.number(window.wanted)
        there = self._later(number, window.frame.start, body)
        early = self._draft.compute("is <", (there, ONE), BOOLEAN, body)
        return self._draft.compute("choose", (early, ONE, there), INTEGER, body)

    def _end(self, window: Window, body: Body) -> Term:
        """The number of the last row of the frame; less than that of the first if it has none."""
        counted = exp.Count(this=exp.Star())
        if window.frame.kind != "ROWS" and window.frame.end is not None:
            return self._aggregate(window, counted, CUMULATIVE, body)
        last = self._aggregate(window, counted, WHOLE, body)
        if window.frame.end is None:
            return last
        number = self._numbering.number(window.wanted)
        there = self._later(number, window.frame.end, body)
        late = self._draft.compute("is >", (there, last), BOOLEAN, body)
        return self._draft.compute("choose", (late, last, there), INTEGER, body)

    def _at(self, window: Window, number: Term, body: Body) -> Term:
        groups = (*self._groups(window.parts), number)
        place = self._place(window.function.this)
        return self._numbering.at(place, window.wanted, groups, body)

    def _later(self, number: Term, distance: object, body: Body) -> Term:
        assert isinstance(distance, int)
        if not distance:
            return number
        return self._draft.compute("+", (number, Constant(distance, INTEGER)), INTEGER, body)

    def _whole(self, window: Window, otherwise: int) -> int:
        """The number that stands behind the value; nth_value counts from 1."""
        given = window.function.args.get("offset")
        if given is None:
            return otherwise
        sign = -1 if isinstance(given, exp.Neg) else 1
        literal = given.this if isinstance(given, exp.Neg) else given
        counts = isinstance(window.function, exp.NthValue)
        if not (isinstance(literal, exp.Literal) and literal.name.isdigit()) or (
            counts and sign * int(literal.name) < 1
        ):
            raise self._not_yet(window.node, "a distance that is not a whole number")
        return sign * int(literal.name)

    # --- columns ---------------------------------------------------------------------------

    def _groups(self, parts: Sequence[int]) -> tuple[Variable, ...]:
        return (*self._captured, *(self.row[part] for part in dict.fromkeys(parts)))

    def _place(self, node: exp.Expr) -> int:
        return self._names.index(node.name)

    def _not_yet(self, node: exp.Expr, what: str) -> LanguageError:
        span = self._draft.place(node)
        return LanguageError(f"{what} is not supported yet", code="unsupported", span=span)


def _spelled(function: exp.Expr) -> str:
    return str(function.sql_name() if isinstance(function, exp.Func) else function.key).lower()
