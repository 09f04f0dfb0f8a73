"""One change of a recursive relation: which way it goes, and what is learnt from it.

Rederivation is tried first. Over its limit it is broken off, and all is recomputed, which stores
the rows. When it has taken many times as long as storing the rows does, that is done as well; from
then on each change goes the way that took the least. When that has taken as much longer than
without stored rows as it takes to store them, they are dropped. A way for which too much would have
to come here from the lake is left, and all is found from scratch.

Law: whichever way is gone, the Δ-set is the change, and rows that are stored are those of now.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.engines.protocol import BrokenOff, TooManyRows
from harken.maintenance import tuning
from harken.maintenance.chooser import Chooser
from harken.maintenance.measurements import Experience
from harken.maintenance.nodes import Planning
from harken.maintenance.recursive_nodes import TAKEN_IN, RecursiveNode
from harken.maintenance.strategies import Strategy


@dataclass(slots=True)
class RecursionUpdate:
    """`changed` are the influents that have Δ-sets, `stored` the stored relations below that have
    changed."""

    node: RecursiveNode
    changed: frozenset[str]
    stored: frozenset[str]
    size: int
    chooser: Chooser
    planning: Planning
    case: frozenset[str] = frozenset()
    """What has changed, and what of it has lost rows: that takes another time than to gain some."""

    def go(self, wanted: str | None) -> str:
        """Fill the Δ-set; the way that was gone: the one that is `wanted`, or the one that is
        thought the fastest."""
        if wanted is None:
            return self._go_by_experience()
        gone = self._go(wanted)
        if wanted == Strategy.EXTERNAL:
            self.node.kept_rows.drop()
        return gone

    def _go(self, strategy: str) -> str:
        """Fill the Δ-set in this way, or from scratch if that is too much; the way that was gone.
        What even from scratch is too much to come here, is compared where it lies."""
        node = self.node
        try:
            self._try(strategy)
        except TooManyRows:
            node.delta.clear()
            if strategy != Strategy.NAIVE:
                return self._go(Strategy.NAIVE)
            node.kept_rows.drop()
            node.differ(self.stored, self.planning)
        return strategy

    def _try(self, strategy: str) -> None:
        if strategy == Strategy.EXTERNAL:
            self.node.rederive(self.changed, self.planning)
        elif strategy == Strategy.MATERIALIZED:
            self.node.maintain(self.changed, self.stored, self.planning)
        else:
            self.node.recompute(self.stored, self.planning)

    def _go_by_experience(self) -> str:
        node, course = self.node, self.node.course
        if course.goes_on(self.size):
            gone = self._go(course.last)
            if gone != course.last:
                course.note_way(gone, self.size, stored=False)
            return gone
        lost = [each for each in self.changed if node.has_lost(each, self.planning)]
        self.case = self.changed.union(f"{each} lost" for each in lost)
        known = course.experience(
            lambda: self.chooser.experience(node) or self.chooser.begin_experience(node),
            tuning.RECURSION_MEMORY,
        )
        was_stored = node.kept_rows.holds()
        stored = node.kept_rows if was_stored else None
        strategy = course.choose(known, self.case, self.size, stored)
        if strategy == Strategy.EXTERNAL and not self._rederive(known, was_stored):
            strategy = Strategy.MATERIALIZED if was_stored else Strategy.NAIVE
        if strategy != Strategy.EXTERNAL:
            started = self._clock()
            strategy = self._go(strategy)
            self._note(strategy, started, known, was_stored)
        course.note_way(strategy, self.size, stored=was_stored)
        self._store_or_drop(strategy, known, was_stored)
        self.chooser.learnt(node, known)
        return strategy

    def _rederive(self, known: Experience, was_stored: bool) -> bool:
        """False if that took too long and was broken off, or was too much. Rows that are stored
        are brought up to date with it."""
        limit = self.node.course.limit(known, self.case, self.size, was_stored)
        started = self._clock()
        try:
            with self.planning.engine.connection.limited(limit):
                self._try(Strategy.EXTERNAL)
        except (BrokenOff, TooManyRows):
            took = self._clock() - started
            for way in (Strategy.EXTERNAL, TAKEN_IN) if was_stored else (Strategy.EXTERNAL,):
                known.note((way, self.case), self.size, took, broken_off=True)
            return False
        self._note(Strategy.EXTERNAL, started, known, was_stored)
        if was_stored:
            self.node.kept_rows.take_in(self.node.delta)
            self._note(TAKEN_IN, started, known, was_stored)
        return True

    def _note(self, strategy: str, started: float, known: Experience, was_stored: bool) -> None:
        """What takes longer because plans are made in it is not remembered."""
        took, course = self._clock() - started, self.node.course
        is_fresh, self.node.is_fresh = self.node.is_fresh, False
        if strategy == Strategy.NAIVE:
            known.note_naive(took, is_first=is_fresh)
        if is_fresh or self._is_cold(strategy, took, known):
            return
        known.note((strategy, self.case), self.size, took)
        if strategy in (Strategy.MATERIALIZED, TAKEN_IN):
            course.note_with(took, known, (Strategy.EXTERNAL, self.case), self.size)
        elif strategy == Strategy.EXTERNAL and not was_stored:
            course.note_without(took)

    def _is_cold(self, strategy: str, took: float, known: Experience) -> bool:
        """Did it take longer because it was not in use? What took very long is not tried on."""
        case, course = (strategy, self.case), self.node.course
        way = Strategy.EXTERNAL if strategy == TAKEN_IN else strategy
        if not known.is_measured(case, self.size) or not course.is_cold(way):
            return False
        if took <= tuning.RECOMPUTE_TRIAL_FACTOR * known.expected(case, self.size):
            return True
        course.staying = 0
        return False

    def _store_or_drop(self, strategy: str, known: Experience, was_stored: bool) -> None:
        rows, course = self.node.kept_rows, self.node.course
        if strategy == Strategy.EXTERNAL and not was_stored:
            if course.is_worth_a_try:
                self._try_to_store(known)
        elif was_stored and course.wants_no_rows(known):
            rows.drop()
            course.give_up_rows(known)
        elif (strategy == Strategy.NAIVE or course.was_looked_at) and rows.is_larger_than(
            tuning.MOST_COPIED_ROWS
        ):
            rows.drop()

    def _try_to_store(self, known: Experience) -> None:
        course = self.node.course
        started = self._clock()
        try:
            with self.planning.engine.connection.limited(course.most):
                self.node.build(self.planning)
        except (BrokenOff, TooManyRows):
            self.node.kept_rows.drop()
            course.took_too_long()
        else:
            known.note_naive(self._clock() - started, is_first=True)
            course.spent = 0.0

    def _clock(self) -> float:
        return self.planning.engine.connection.working_time()
