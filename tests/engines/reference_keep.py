"""Derived state that is kept, in plain Python: a specification, and the rows that it would build.

All of it is recomputed whenever it follows a change, and its own change is the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from harken.calculus.counting import Derivations
from harken.calculus.first_rows import FirstRows
from harken.calculus.rounds import Rounds
from harken.calculus.states import copy_of
from harken.calculus.totals import Totals
from harken.engines.protocol import CopiedRows, RecursiveRows, Size
from harken.ir.clauses import First, Program
from harken.planner.prepare import Plan
from tests.engines.reference_capture import summed
from tests.models.meanings import Row, aggregated


class ReferenceKeep:
    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.opened: dict[str, ReferenceKept] = {}

    def open(self, specification: Any) -> ReferenceKept:
        made = ReferenceKept(self.engine, specification)
        self.opened[made.name] = made
        return made

    def build(self, wanted: Iterable[Any], compile_members: Callable[[Program], Any]) -> None:
        for kept, program in wanted:
            kept.build(compile_members(program))

    def compile(self, plan: Plan, reading: Iterable[ReferenceKept]) -> Any:
        return self.engine.compile(plan)

    def built(self) -> list[ReferenceKept]:
        return [each for each in self.opened.values() if each.holds()]

    def total(self) -> Size:
        return sum((each.measure() for each in self.built()), Size())


class ReferenceKept:
    def __init__(self, engine: Any, specification: Any) -> None:
        self.engine = engine
        self.specification = specification
        self.name = repr(specification)
        self.source: Any = None

    def create(self) -> None:
        """There is room."""

    def build(self, source: Any) -> None:
        self.source = source
        self.engine.state.kept[self.name] = self.now()

    def prepare(self, *rules: Any) -> None:
        """It follows without rules."""

    def follow(self, change: Any, delta: Any) -> bool:
        before = self.weights(delta)
        self.build(self.source)
        after = self.weights(delta)
        if not isinstance(self.specification, CopiedRows):  # its change is known
            delta.add([(*row, after[row] - before[row]) for row in after | before])
        return True

    def compare(self, source: Any, delta: Any) -> None:
        self.follow(None, delta)

    def holds(self) -> bool:
        return self.name in self.engine.state.kept

    def revoke(self) -> None:
        self.engine.state.kept.pop(self.name, None)

    drop = revoke

    def total(self) -> int:
        return len(self.source.rows(()))

    def size(self) -> int:
        return sum(map(len, self.engine.state.kept[self.name].values()))

    def measure(self) -> Size:
        return Size(self.size(), 8 * self.size())

    def weights(self, delta: Any) -> Counter[Row]:
        """How often a row is there; of rounds, in all of them."""
        kept = self.engine.state.kept[self.name]
        if isinstance(self.specification, RecursiveRows):
            return Counter(kept[copy_of(delta.relation).id])
        (rows,) = kept.values()
        if isinstance(self.specification, Rounds):
            return summed((*row, times) for _, *row, times in rows)
        return Counter(rows)

    def now(self) -> dict[str, list[Row]]:
        """The rows of the relations that plans read."""
        match self.specification:
            case RecursiveRows(relations=relations):
                with self.source.query.evaluated() as rows_of:
                    return {copy_of(r).id: rows_of(self.source.stated[r.id]) for r in relations}
            case Rounds(stored=stored, moving=moving):
                return {stored.id: self._rounds(moving.id)}
            case CopiedRows(relation=relation):
                return {copy_of(relation).id: self.source.rows(())}
            case Totals() as totals:
                return {totals.relation.id: _totals(totals, self.source.rows(()))}
            case FirstRows(relation=relation, first=first):
                shown = _in_order(first, self.source.rows(()))[first.offset :][: first.count]
                return {relation.id: [row[: relation.arity] for row in shown]}
            case Derivations(relation=relation):
                return {relation.id: list(set(self.source.rows(())))}
        raise TypeError(self.specification)

    def _rounds(self, moving: str) -> list[Row]:
        """A step says of each row of the next round how often it is there, and from which."""
        found: list[Row] = []
        weights, number = Counter(self.source.base.rows(())), 0
        while weights:
            rows = [(number, *row, times) for row, times in weights.items()]
            found += rows
            number += 1
            weights = summed(row[1:] for row in self.source.step.rows((), {moving: rows}))
        return found


def _in_order(first: First, rows: list[Row]) -> list[Row]:
    for i, down, nulls_first in reversed(first.order):
        nulls = [row for row in rows if row[i] is None]
        others = [row for row in rows if row[i] is not None]
        others.sort(key=itemgetter(i), reverse=down)
        rows = nulls + others if nulls_first else others + nulls
    return rows


def _totals(totals: Totals, members: list[Row]) -> list[Row]:
    groups: dict[Row, list[Row]] = {}
    for row in members:
        if totals.present is None or row[totals.present] is not None:
            groups.setdefault(tuple(row[i] for i in totals.groups), []).append(row)
    return [
        (*group, *(_total(measure, rows) for measure in totals.measures))
        for group, rows in groups.items()
    ]


def _total(measure: Any, rows: list[Row]) -> Any:
    values = [(row[measure.value or 0],) for row in rows]
    outcome: Any = aggregated(measure.aggregate, values, "integer")
    return outcome[0][0]
