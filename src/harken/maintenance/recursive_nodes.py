"""Nodes of recursive relations, and the three strategies that compute their change.

    external        rederivation on demand: nothing is stored (`calculus.rederivation`)
    materialized    a stored copy, deleted from and rederived (`calculus.stored_recursion`)
    naive           all rows recomputed, and compared with those of the old state

The first two fetch the rows that they need from the lake; `TooManyRows` is raised if there are too
many.

Law: all three find the same change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from harken.maintenance.nodes import DerivedNode, Planning, StoredRows
from harken.maintenance.recursion_history import RecursionHistory
from harken.maintenance.strategies import Strategy
from harken.planner.network_nodes import Part
from harken.planner.prepare import prepare, prepare_change

STRATEGIES = ("auto", Strategy.COUNTING, Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)


@dataclass(slots=True, eq=False)
class RecursiveNode(DerivedNode):
    kept_rows: KeptRecursion = field(kw_only=True)
    external: dict[frozenset[str], Query] = field(default_factory=dict)
    maintained: dict[frozenset[str], RecursionChange] = field(default_factory=dict)
    refused: str | None = None
    """The reason why its change is always recomputed; None if it is not."""
    reads_lake: bool = False
    """Whether any relation below it is in the lake."""
    history: RecursionHistory = field(default_factory=RecursionHistory)
    delta_of: Callable[[Relation], Delta] = field(kw_only=True)
    _losses: dict[str, Delta] = field(default_factory=dict)

    def has_lost(self, name: str) -> bool:
        """Whether a relation below has lost rows."""
        found = self._losses.get(name)
        if found is None:
            found = self._losses[name] = self.delta_of(self.part.influents[name])
        return found.has_lost()

    def drop(self) -> None:
        DerivedNode.drop(self)
        self.kept_rows.drop()

    def stored_rows(self) -> StoredRows | None:
        """Where its rows are stored; None unless they are stored and up to date."""
        if self.refused is not None or not self.kept_rows.holds():
            return None
        return StoredRows(self.kept_rows, self.kept_rows.version)

    def rederive(self, changed: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set by rederivation, which needs no stored rows."""
        query = self.external.get(changed)
        if query is None:
            made = rederive(self.part.program, changed, self.part.nodes)
            query = planning.compile_change(made.program, made.driven)
            self.external[changed] = query
            self.is_fresh = True
        self.delta.fill_weighted(query)

    def maintain(self, changed: frozenset[str], stored: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set and update the stored rows. `stored` are the changed stored relations:
        rows that are not stored yet are first built as of before the change."""
        if not self.kept_rows.holds():
            self.build(planning, stored)
        if self.reads_lake and not planning.engine.holds_changes(changed):
            raise TooManyRows
        rules = self.maintained.get(changed)
        if rules is None:
            rules = self.maintained[changed] = self._compile_rules(changed, planning)
            self.is_fresh = True
        if not self.reads_lake:
            self.kept_rows.follow(rules, self.delta)
            return
        try:
            with planning.engine.connection.savepoint("follow"):
                self.kept_rows.follow(rules, self.delta)
        except TooManyRows:
            self.maintained.clear()  # the rollback removed the indexes of these rules
            planning.engine.indexes.reload()
            raise

    def recompute(self, stored: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set by comparing all rows with the stored rows of the old state."""
        if not self.kept_rows.holds():
            self.build(planning, stored)
        stated = {each.id: each for each in self.kept_rows.relations}
        if self.from_scratch is None:
            self.from_scratch = self._all_of(self.part.program, stated, planning)
            self.is_fresh = True
        self.kept_rows.compare(RecursionSource(self.from_scratch, stated), self.delta)

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
