"""Captured changes in plain Python: the rows of now against those when they were last settled.

All that a rollback takes back is in the `State` of the engine. A moment test is made when someone
asks what is pending, not when the row changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harken.calculus.states import delta
from harken.engines.protocol import LargeChange, Query
from harken.ir.clauses import Atom, Clause, Definition, Program
from harken.ir.relations import Column, Kind, Relation
from harken.planner.screen import Alternative, Screener
from harken.values.rows import Row

Evaluate = Callable[[Program, dict[str, list[Row]]], Counter[Row]]
"""The rows of a program in the present state, with the rows of further relations."""


@dataclass
class Changes:
    """What is known of changes, by the id of the relation."""

    settled: dict[str, Counter[Row]] = field(default_factory=dict)
    """The rows of watched relations when they were last settled."""
    told: dict[str, Counter[Row]] = field(default_factory=dict)
    """The weights that rows were given by hand, or that a node filled in."""
    announced: set[str] = field(default_factory=set)
    """Those of which rows were told that make them pending."""
    large: dict[str, int] = field(default_factory=dict)


class ReferenceDelta:
    def __init__(self, capture: ReferenceCapture, of: Relation) -> None:
        self._capture = capture
        self.of = of
        self.relation = delta(of)

    @property
    def changes(self) -> Changes:
        return self._capture.changes

    def weights(self) -> Counter[Row]:
        return self.changes.told.get(self.of.id, Counter())

    def create(self) -> None:
        self.changes.told.setdefault(self.of.id, Counter())

    def drop(self) -> None:
        self.changes.told.pop(self.of.id, None)

    clear = drop

    def fill(self, query: Query, weight: int) -> None:
        self._add((row, weight) for row in query.rows(()))

    def fill_weighted(self, query: Query) -> None:
        self._add((row[:-1], row[-1]) for row in query.rows(()))

    def _add(self, weighted: Iterable[tuple[Row, int]]) -> None:
        found = self.changes.told.setdefault(self.of.id, Counter())
        for row, weight in weighted:
            found[row] += weight

    def rows(self) -> tuple[list[Row], list[Row]]:
        weights = self.weights().items()
        return [row for row, w in weights if w > 0], [row for row, w in weights if w < 0]

    def size(self) -> int:
        known = sum(weight != 0 for weight in self.weights().values())
        return known + self.changes.large.get(self.of.id, 0)

    def has_lost(self) -> bool:
        return bool(self.rows()[1])


class ReferenceCaptured(ReferenceDelta):
    def __init__(self, capture: ReferenceCapture, of: Relation, is_told: bool) -> None:
        super().__init__(capture, of)
        self.is_told = is_told
        self.screener = Screener(of, None, None, 1.0)
        self.capture()

    def capture(self) -> None:
        self.changes.settled.setdefault(self.of.id, self._capture.rows_of(self.of))

    def settle(self) -> None:
        self.changes.settled[self.of.id] = self._capture.rows_of(self.of)
        self.changes.told.pop(self.of.id, None)
        self.changes.announced.discard(self.of.id)
        self.changes.large.pop(self.of.id, None)

    def unwatch(self) -> None:
        self.settle()
        self._capture.watched.pop(self.of.id, None)

    def screen(self, screener: Screener) -> None:
        self.screener = screener

    def weights(self) -> Counter[Row]:
        found = Counter(super().weights())
        if not self.is_told:
            found.update(self._capture.rows_of(self.of))
            found.subtract(self.changes.settled[self.of.id])
        tests = self.screener.row_tests
        return Counter({r: w for r, w in found.items() if w and self._capture.passes(tests, r)})

    def note(self, rows: Sequence[Row] | LargeChange) -> None:
        self.changes.announced.add(self.of.id)
        if isinstance(rows, LargeChange):
            self.changes.large[self.of.id] = rows.size
        else:
            self.add(rows)

    def add(self, rows: Sequence[Row]) -> None:
        self._add((row[:-1], row[-1]) for row in rows)

    def is_pending(self) -> bool:
        by_itself = not self.is_told and bool(self.weights())
        return by_itself or self.of.id in self.changes.announced

    def has_passed(self) -> bool:
        tests = self.screener.moment_tests
        return self.of.id in self.changes.large or any(
            self._capture.passes(tests, row) for row in self.weights()
        )


class ReferenceCapture:
    """`state` is the state of the engine, `evaluate` finds the rows of a program in it."""

    def __init__(self, state: Callable[[], Any], evaluate: Evaluate) -> None:
        self._state = state
        self._evaluate = evaluate
        self.watched: dict[str, ReferenceCaptured] = {}

    @property
    def changes(self) -> Changes:
        found: Changes = self._state().changes
        return found

    def rows_of(self, relation: Relation) -> Counter[Row]:
        return Counter(self._state().rows[relation.id])

    def passes(self, tests: tuple[Alternative, ...] | None, row: Row) -> bool:
        return tests is None or any(self._passes_one(each, row) for each in tests)

    def _passes_one(self, alternative: Alternative, row: Row) -> bool:
        columns = tuple(Column(each.name, each.type) for each in alternative.row)
        given = Relation("given", columns, 0, Kind.STORED)
        goal = Relation("passing", columns, 0, Kind.DERIVED)
        body = (Atom(given, alternative.row), *alternative.tests)
        clause = Clause(Atom(goal, alternative.row), body)
        program = Program(goal, {goal.id: Definition(goal, (clause,))})
        return bool(self._evaluate(program, {given.id: [row]}))

    def delta_rows(self) -> dict[str, list[Row]]:
        """The Δ-sets of the watched relations, as plans read them."""
        return {
            each.relation.id: [(*row, weight) for row, weight in each.weights().items()]
            for each in self.watched.values()
            if each.screener.row_tests is None
        }

    def delta(self, relation: Relation) -> ReferenceDelta:
        return ReferenceDelta(self, relation)

    def watch(self, relation: Relation, *, told: bool = False) -> ReferenceCaptured:
        self.watched[relation.id] = ReferenceCaptured(self, relation, told)
        return self.watched[relation.id]

    def pending(self) -> Mapping[str, bool]:
        changed = ((name, each) for name, each in self.watched.items() if each.is_pending())
        return {name: each.has_passed() for name, each in changed}

    def settle(self, changes: Iterable[ReferenceCaptured]) -> None:
        for each in changes:
            each.settle()

    def forget_large(self, changes: Iterable[ReferenceCaptured]) -> None:
        for each in changes:
            self.changes.large.pop(each.of.id, None)

    def can_take_back(self, relation: Relation) -> bool:
        return relation.id in self.watched

    @contextmanager
    def before(self, changes: Iterable[ReferenceCaptured]) -> Iterator[None]:
        rows = self._state().rows
        now = {each.of.id: rows[each.of.id] for each in changes}
        for name in now:
            rows[name] = list(self.changes.settled[name].elements())
        try:
            yield
        finally:
            rows.update(now)

    def explain_screener(self, alternatives: tuple[Alternative, ...] | None) -> str:
        return "" if alternatives is None else " or ".join(map(str, alternatives))
