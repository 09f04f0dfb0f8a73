"""Nodes of recursive relations, and the three ways in which they compute their change.

    external        rederivation on demand: nothing is stored (`calculus.rederivation`)
    materialized    a stored copy, deleted from and rederived (`calculus.stored_recursion`)
    naive           all rows from scratch, beside those of before

What the first two need of relations in the lake they fetch; `TooManyRows` says that it is too much.

Law: each gives the same change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.calculus.rederivation import cycle_of, rederive
from harken.calculus.states import in_old_state, old
from harken.calculus.stored_recursion import maintain
from harken.engines.protocol import (
    Delta,
    KeptRecursion,
    Query,
    RecursionChange,
    RecursionSource,
    TooManyRows,
)
from harken.errors import TypeFault
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.maintenance import tuning
from harken.maintenance.investment import Outlay
from harken.maintenance.measurements import Case, Experience
from harken.maintenance.nodes import DerivedNode, Planning, StoredRows
from harken.maintenance.strategies import Strategy
from harken.planner.network_nodes import Part
from harken.planner.prepare import prepare, prepare_change

TAKEN_IN = "external, with a stored copy"
"""Rederivation does not need stored rows, but they have to be brought up to date with it."""
STRATEGIES = ("auto", Strategy.COUNTING, Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)


@dataclass(slots=True)
class Mean:
    """Of the last times."""

    seconds: float = 0.0
    times: int = 0

    def note(self, seconds: float) -> None:
        self.times = min(self.times + 1, tuning.RECURSION_MEMORY)
        self.seconds += (seconds - self.seconds) / self.times


@dataclass(slots=True)
class Course(Outlay):
    """Which way a node goes when it may choose, by what the ways have taken before. What may be
    kept are the rows; rederivation goes without."""

    share: float = field(default_factory=lambda: tuning.RECURSION_INVESTMENT)
    regret: float = 0.0
    """The seconds by which changes with stored rows have taken longer than without."""
    last: str = ""
    """The way of the change before."""
    staying: int = 0
    """So many more changes go the same way, whatever is thought the fastest."""
    same: int = 0
    """So many changes in a row have gone the way of the one before, and none to try it."""
    unwatched: int = 0
    """So many more of them are not watched,"""
    largest: int = 0
    """if they are no larger than those."""
    above: dict[bool, Mean] = field(default_factory=dict)
    """The seconds that a change takes what reads the relation, if its rows are stored, or not."""

    def goes_on(self, size: int) -> bool:
        """Does a change of this size go the way of the one before, whatever it takes?"""
        if not self.unwatched or size > self.largest:
            return False
        self.unwatched -= 1
        return True

    def note_way(self, strategy: str, size: int, stored: bool) -> None:
        """A change was chosen for, and has gone this way."""
        settles = stored and strategy == self.last != Strategy.EXTERNAL and not self.staying
        self.same = self.same + 1 if settles else 0
        self.largest = max(size, self.largest) if settles else 0
        self.unwatched = tuning.UNTIMED_CHANGES if self.same >= tuning.SETTLED_AFTER else 0
        self.last = strategy

    def choose(
        self, known: Experience, changed: frozenset[str], size: int, stored: KeptRecursion | None
    ) -> str:
        """Of rows that are stored, the change has to bring them up to date."""
        if self.staying and (self.last != Strategy.MATERIALIZED or stored is not None):
            self.staying -= 1
            return self.last
        ways: list[Case] = [(Strategy.EXTERNAL, changed)]
        if stored is not None:
            taken_in = (TAKEN_IN, changed)
            if not stored.can_take_in or known.is_measured(taken_in, size):
                ways = [taken_in] if stored.can_take_in else []
            ways.append((Strategy.MATERIALIZED, changed))
        naive, is_tried = known.naive_seconds, known.is_measured((Strategy.NAIVE, changed), size)
        if is_tried:
            ways.append((Strategy.NAIVE, changed))
        way = known.best_of(ways, size, _trial)
        longest = tuning.RECOMPUTE_TRIAL_FACTOR * known.expected(way, size)
        if not is_tried and naive is not None and naive < longest:
            return Strategy.NAIVE
        best = Strategy.EXTERNAL if way[0] == TAKEN_IN else way[0]
        fastest = min(ways, key=lambda each: known.expected(each, size))
        if way != fastest:
            known.try_again(way, size)
            if best != self.last:
                self.staying = _trial(known.expected(way, size)) - 1
        return best

    def is_cold(self, strategy: str) -> bool:
        """Were the statements of this way not in use for a while?"""
        is_early = self.staying >= tuning.WARM_TRIAL_CHANGES
        return bool(self.staying) and (strategy != self.last or is_early)

    def limit(self, known: Experience, changed: frozenset[str], size: int, stored: bool) -> float:
        """How long rederivation may take before another way is gone instead."""
        naive = known.naive_seconds
        first = (
            tuning.FIRST_LAKE_REDERIVATION_LIMIT
            if known.is_far
            else tuning.FIRST_REDERIVATION_LIMIT
        )
        limit = first if naive is None else tuning.TIME_LIMIT_FACTOR * naive
        if stored and known.is_measured((Strategy.MATERIALIZED, changed), size):
            expected = known.expected((Strategy.MATERIALIZED, changed), size)
            limit = min(limit, tuning.TIME_LIMIT_FACTOR * expected)
        return max(limit, tuning.SHORTEST_LIMIT)

    def note_without(self, seconds: float) -> None:
        """A change took so long without stored rows."""
        self.spent += seconds

    def note_with(self, seconds: float, known: Experience, case: Case, size: int) -> None:
        """A change took so long with them, and is thought to take as long as `case` without."""
        seconds -= known.expected(case, size)
        if len(self.above) == 2:
            seconds += self.above[True].seconds - self.above[False].seconds
        least = -tuning.MOST_SAVINGS * (known.naive_seconds or 0.0)
        self.regret = max(least, self.regret + seconds)

    def note_above(self, seconds: float, stored: bool) -> None:
        """What reads the relation took so long."""
        self.above.setdefault(stored, Mean()).note(seconds)
        if not stored:
            self.spent += seconds

    def give_up_rows(self, known: Experience) -> None:
        """Stored rows were of no use: they are tried again when going without has taken longer."""
        enough = (known.naive_seconds or 0.0) / self.share
        self.regret, self.spent = 0.0, 0.0
        self.trial = tuning.REBUILD_FACTOR * max(self.trial, enough)

    def wants_no_rows(self, known: Experience) -> bool:
        """Have stored rows cost as much more as it takes to store them again?"""
        return known.naive_seconds is not None and self.regret > known.naive_seconds


def _trial(seconds: float) -> int:
    """So many changes in a row are a trial of a way that is thought to take so long."""
    return tuning.TRIAL_CHANGES if seconds < tuning.COLD_STATEMENT_SECONDS else 1


@dataclass(slots=True, eq=False)
class RecursiveNode(DerivedNode):
    kept_rows: KeptRecursion = field(kw_only=True)
    external: dict[frozenset[str], Query] = field(default_factory=dict)
    maintained: dict[frozenset[str], RecursionChange] = field(default_factory=dict)
    refused: str | None = None
    """Why its change is always found from scratch, if it is."""
    is_far: bool = False
    """Is any relation below it in the lake?"""
    course: Course = field(default_factory=Course)
    _losses: dict[str, Delta] = field(default_factory=dict)

    def has_lost(self, name: str, planning: Planning) -> bool:
        """Has a relation below lost rows?"""
        found = self._losses.get(name)
        if found is None:
            found = self._losses[name] = planning.engine.capture.delta(self.part.influents[name])
        return found.has_lost()

    def drop(self) -> None:
        DerivedNode.drop(self)
        self.kept_rows.drop()

    def stored_rows(self) -> StoredRows | None:
        """Where its rows are, if they are stored and those of now."""
        if self.refused is not None or not self.kept_rows.holds():
            return None
        return StoredRows(self.kept_rows, self.kept_rows.version)

    def rederive(self, changed: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set with nothing but the tables at hand."""
        query = self.external.get(changed)
        if query is None:
            made = rederive(self.part.program, changed, self.part.nodes)
            query = planning.compile_change(made.program, made.driven)
            self.external[changed] = query
            self.is_fresh = True
        self.delta.fill_weighted(query)

    def maintain(self, changed: frozenset[str], stored: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set, and bring the stored rows up to date. `stored` are the stored relations
        that have changed: the rows that are built first are those of before."""
        if not self.kept_rows.holds():
            self.build(planning, stored)
        if self.is_far and not planning.engine.holds_changes(changed):
            raise TooManyRows
        rules = self.maintained.get(changed)
        if rules is None:
            rules = self.maintained[changed] = self._compile_rules(changed, planning)
            self.is_fresh = True
        if not self.is_far:
            self.kept_rows.follow(rules, self.delta)
            return
        try:
            with planning.engine.connection.savepoint("follow"):
                self.kept_rows.follow(rules, self.delta)
        except TooManyRows:
            self.maintained.clear()  # the indexes that these rules had made are gone
            planning.engine.indexes.reload()
            raise

    def recompute(self, stored: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set by comparing all rows with those of before, which are stored."""
        if not self.kept_rows.holds():
            self.build(planning, stored)
        stated = {each.id: each for each in self.kept_rows.relations}
        if self.from_scratch is None:
            self.from_scratch = self._all_of(self.part.program, stated, planning)
            self.is_fresh = True
        self.kept_rows.compare(RecursionSource(self.from_scratch, stated), self.delta)

    def differ(self, stored: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set with the difference of both states, none of which comes here."""
        for sign in (1, -1):
            self.delta.fill(self.query(sign, Strategy.NAIVE, stored, planning), sign)

    def build(self, planning: Planning, stored: frozenset[str] = frozenset()) -> None:
        """Store the rows, as they were before these relations changed."""
        program = self.part.program
        stated = {each.id: each for each in self.kept_rows.relations}
        if stored:
            program = in_old_state(program, stored)
            stated = {
                name: old(each) if old(each).id in program.definitions else each
                for name, each in stated.items()
            }
        query = self._all_of(program, stated, planning)
        try:
            self.kept_rows.build(RecursionSource(query, stated))
        finally:
            query.release()
        self.maintained.clear()

    def _all_of(
        self, program: Program, stated: Mapping[str, Relation], planning: Planning
    ) -> Query:
        wanted = [each.id for each in stated.values()]
        plan = prepare(program, planning.schema.hierarchy, wanted=wanted)
        return planning.engine.compile(plan)

    def _compile_rules(self, changed: frozenset[str], planning: Planning) -> RecursionChange:
        made = maintain(self.part.program, changed, self.part.nodes)
        hierarchy = planning.schema.hierarchy
        deleted = [made.deleted(each).id for each in made.relations]
        grown = [made.grown(each).id for each in self.kept_rows.relations]
        return self.kept_rows.prepare(
            made,
            prepare_change(made.deletion, hierarchy, deleted),
            prepare_change(made.insertion, hierarchy, grown),
        )


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise TypeFault(
            f"there is no strategy {strategy}",
            code="bad-value",
            hint=f"it is one of {', '.join(STRATEGIES)}",
        )


def kept_relations(part: Part) -> tuple[Relation, ...]:
    definitions = part.program.definitions
    return tuple(definitions[name].relation for name in sorted(cycle_of(part.program)))
