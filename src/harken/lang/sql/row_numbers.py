"""Rows with their numbers, in one order or in several.

    n(A, N) ← rows(A) ∧ C = count(: m(A)) ∧ B = count(: before(A, A')) ∧ copies(C, K) ∧ N = B + K

Rows that the order leaves open are told apart by their other columns. A second order numbers the
rows of the first: its number is one more column, so copies of a row keep their numbers together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken.ir.clauses import Aggregation, Atom, Comparison, Literal, Numbered
from harken.ir.relations import COPIES, Column, Relation
from harken.ir.terms import Term, Variable
from harken.lang.sql.ordering import Order, comes_before
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.query_rows import QueryRows
from harken.values.types import INTEGER

Wanted = tuple[tuple[int, ...], tuple[Order, ...]]
"""The columns of a partition, and the order in it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The rows with one more number as their last column, and the variable for it."""

    relation: Relation
    number: Variable


class RowNumbers:
    def __init__(self, draft: Draft, rows: QueryRows, row: Sequence[Variable]) -> None:
        self._draft = draft
        self._captured = rows.captured
        self._row = list(row)
        self._relation = rows.relation
        self._stages: dict[Wanted, Stage] = {}

    def source(self) -> Atom:
        """The rows, with all the numbers that were asked for."""
        return Atom(self._relation, (*self._captured, *self._row))

    def number(self, wanted: Wanted) -> Variable:
        """The number of the row in its partition."""
        return self.stage(wanted).number

    def stage(self, wanted: Wanted) -> Stage:
        if wanted not in self._stages:
            number = self._draft.fresh(INTEGER)
            self._relation = self._numbered(*wanted)
            self._row.append(number)
            self._stages[wanted] = Stage(self._relation, number)
        return self._stages[wanted]

    def at(self, place: int, wanted: Wanted, groups: Sequence[Term], body: Body) -> Term:
        """The value in the row of a partition with a number, which is the last of `groups`."""
        stage, draft = self.stage(wanted), self._draft
        inner = self.fresh_row(stage)
        partition = [inner[part] for part in dict.fromkeys(wanted[0])]
        columns = [
            *(Column(f"p{i}", each.type) for i, each in enumerate(partition)),
            Column("number", INTEGER),
            Column("value", inner[place].type),
        ]
        rows = Atom(stage.relation, (*self._captured, *inner))
        head = (*partition, inner[-1], inner[place])
        relation = draft.define("at", self._captured, columns, [(head, [rows])], bag=True)
        value = draft.fresh(inner[place].type)
        result = draft.fresh(value.type.or_null())
        atom = Atom(relation, (*groups, value))
        body.add(Aggregation(result, "single value", value, atom, tuple(groups), or_null=True))
        return result

    def fresh_row(self, stage: Stage) -> list[Variable]:
        columns = stage.relation.columns[len(self._captured) :]
        return [self._draft.fresh(column.type) for column in columns]

    def _numbered(self, parts: tuple[int, ...], keys: tuple[Order, ...]) -> Relation:
        draft, captured = self._draft, self._captured
        rows, columns = self._relation, self._relation.columns[len(self._captured) :]
        placed = {place for place, _, _ in keys}
        order = [*keys, *((i, False, True) for i in range(len(columns)) if i not in placed)]
        one, other = ([draft.fresh(column.type) for column in columns] for _ in range(2))
        there = draft.define(
            "rows", captured, columns, [(one, [Atom(rows, (*captured, *one))])], bag=False
        )
        same: list[Literal] = [Comparison("=", other[p], one[p]) for p in parts]
        before = draft.define(
            "before",
            (*captured, *one),
            columns,
            [
                (other, [Atom(rows, (*captured, *other)), *same, *way])
                for way in comes_before(other, one, order)
            ],
            bag=True,
        )
        terms: tuple[Term, ...] = (*captured, *one)
        times, ahead, which = (draft.fresh(INTEGER) for _ in range(3))
        fresh = [draft.fresh(each.type) for each in other]
        body = Body(
            [
                Atom(there, terms),
                Aggregation(times, "count", None, Atom(rows, terms), terms),
                Aggregation(ahead, "count", None, Atom(before, (*terms, *fresh)), terms),
                Atom(COPIES, (times, which)),
            ]
        )
        number = draft.compute("+", (ahead, which), INTEGER, body)
        first = len(captured)
        return draft.define(
            "numbered",
            captured,
            (*columns, Column(f"number{len(self._stages)}", INTEGER)),
            [((*one, number), body.literals)],
            bag=True,
            numbered=Numbered(
                rows.id,
                first,
                tuple(first + part for part in parts),
                tuple((first + place, down, nulls) for place, down, nulls in order),
            ),
        )
