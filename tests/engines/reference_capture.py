"""Captured changes in plain Python: the rows of now against those when they were last settled.

All that a rollback takes back is in the `State` of the engine. Tests of screeners are made when
someone asks what is pending, not when a row changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harken.calculus.states import delta
from harken.engines.protocol import LargeChange, Query
from harken.ir.clauses import Comparison
from harken.ir.relations import Relation
from harken.planner.screen import Alternative, Screener
from harken.values.rows import Row
from tests.models.meanings import COMPARE


class ReferenceDelta:
    """A Δ-set; without `captures` it has what it is told and no more."""

    def __init__(self, engine: Any, of: Relation, captures: bool) -> None:
        self.engine = engine
        self.of = of
        self.captures = captures
        self.relation = of
        self.screener = Screener(of, None, None, 1.0)
        if captures:
            self.engine.state.settled[of.id] = Counter(engine.rows(of))

    def weights(self) -> Counter[Row]:
        state = self.engine.state
        found = Counter(state.told.get(self.of.id, {}))
        if self.captures:
            found.update(state.rows[self.of.id])
            found.subtract(state.settled[self.of.id])
        tests = self.screener.row_tests
        return Counter({row: w for row, w in found.items() if w and _passes(tests, row)})

    def rows(self) -> tuple[list[Row], list[Row]]:
        weights = self.weights().items()
        return [row for row, w in weights if w > 0], [row for row, w in weights if w < 0]

    def size(self) -> int:
        return len(self.weights()) + int(self.engine.state.noted.get(self.of.id, 0))

    def has_lost(self) -> bool:
        return bool(self.rows()[1])

    def create(self) -> None:
        """There is room."""

    def clear(self) -> None:
        self.engine.state.told.pop(self.of.id, None)

    drop = clear

    def fill(self, query: Query, weight: int) -> None:
        self.add([(*row, weight) for row in query.rows(())])

    def add(self, rows: Sequence[Row]) -> None:
        self.engine.state.told.setdefault(self.of.id, Counter()).update(summed(rows))

    def note(self, rows: Sequence[Row] | LargeChange) -> None:
        self.engine.state.noted[self.of.id] = getattr(rows, "size", 0)
        self.add(() if isinstance(rows, LargeChange) else rows)

    def screen(self, screener: Screener) -> None:
        self.screener = screener

    def unwatch(self) -> None:
        del self.engine.capture.watched[self.of.id]

    def has_passed(self) -> bool:
        tests, is_large = self.screener.moment_tests, self.engine.state.noted.get(self.of.id)
        return bool(is_large) or any(_passes(tests, row) for row in self.weights())


def _passes(tests: tuple[Alternative, ...] | None, row: Row) -> bool:
    return tests is None or any(_passes_one(each, row) for each in tests)


def _passes_one(alternative: Alternative, row: Row) -> bool:
    """Whether comparisons of the columns with constants hold, which is all that tests here are."""
    known: dict[Any, Any] = dict(zip(alternative.row, row, strict=True))
    tests = [test for test in alternative.tests if isinstance(test, Comparison)]
    return all(COMPARE[t.operator](known[t.left], getattr(t.right, "value", None)) for t in tests)


def summed(weighted: Iterable[Row]) -> Counter[Row]:
    """The rows, and the sums of the weights that stand behind them."""
    found: Counter[Row] = Counter()
    for *row, weight in weighted:
        found[tuple(row)] += weight
    return found


class ReferenceCapture:
    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.watched: dict[str, ReferenceDelta] = {}

    def rows(self) -> dict[str, list[Row]]:
        """The Δ-sets of watched relations, as plans read them."""
        return {
            delta(each.of).id: [(*row, weight) for row, weight in each.weights().items()]
            for each in self.watched.values()
        }

    def delta(self, relation: Relation) -> ReferenceDelta:
        return ReferenceDelta(self.engine, relation, captures=False)

    def watch(self, relation: Relation, *, reported: bool = False) -> ReferenceDelta:
        self.watched[relation.id] = ReferenceDelta(self.engine, relation, captures=not reported)
        return self.watched[relation.id]

    def pending(self) -> Mapping[str, bool]:
        return {
            name: each.has_passed()
            for name, each in self.watched.items()
            if name in self.engine.state.noted or (each.captures and each.weights())
        }

    def settle(self, changes: Iterable[ReferenceDelta]) -> None:
        state = self.engine.state
        for each in changes:
            state.settled[each.of.id] = Counter(state.rows[each.of.id])
            state.told.pop(each.of.id, None)
            state.noted.pop(each.of.id, None)

    def forget_large(self, changes: Iterable[ReferenceDelta]) -> None:
        for each in changes:
            self.engine.state.noted.pop(each.of.id, None)

    def can_take_back(self, relation: Relation) -> bool:
        return relation.id in self.watched

    @contextmanager
    def before(self, changes: Iterable[ReferenceDelta]) -> Iterator[None]:
        state = self.engine.state
        now = {each.of.id: state.rows[each.of.id] for each in changes}
        state.rows |= {name: list(state.settled[name].elements()) for name in now}
        try:
            yield
        finally:
            state.rows |= now
