"""The propagation network: which changes of stored relations reach which conditions.

Level 0 holds a node for each stored relation that an activated rule depends on; its Δ-set is kept
by triggers, and a mark says that it has changed. Level 1 holds the conditions, each with the
differentials of its influents, compiled when a combination of changed influents first occurs.
A node exists while something above it does (reference counts).

Law: after `propagate`, what it returned is the exact change of every condition since the last
time, and all Δ-sets are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harken.calculus.differentials import Change, differentiate, recompute
from harken.database.catalog import Catalog
from harken.database.rules.definition import CompiledRule
from harken.engines.base import CompiledQuery
from harken.engines.sqlite import events
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.events import DeltaSet
from harken.ir.clauses import Program, atoms
from harken.ir.relations import Kind, Relation
from harken.planner.prepare import prepare

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """What a condition gained and lost, and how that was found out."""

    rule: CompiledRule
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    strategy: str


@dataclass(slots=True)
class Plans:
    """The compiled change of one condition for one combination of changed influents."""

    change: Change
    plus: CompiledQuery
    minus: CompiledQuery | None = None


@dataclass(slots=True)
class ConditionNode:
    rule: CompiledRule
    influents: dict[str, Relation]
    plans: dict[tuple[frozenset[str], str], Plans] = field(default_factory=dict)


class Network:
    def __init__(self, engine: SQLiteEngine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._nodes: dict[str, ConditionNode] = {}
        self._affects: dict[str, list[ConditionNode]] = {}
        self._delta_sets: dict[str, DeltaSet] = {}
        self.strategy = "adaptive"
        """`adaptive`, or `incremental` or `naive` to force one."""

    @property
    def is_empty(self) -> bool:
        return not self._nodes

    def __contains__(self, rule_name: str) -> bool:
        return rule_name in self._nodes

    def node(self, rule_name: str) -> ConditionNode | None:
        return self._nodes.get(rule_name)

    def nodes(self) -> Iterator[ConditionNode]:
        yield from self._nodes.values()

    def insert(self, rule: CompiledRule) -> None:
        node = ConditionNode(rule, influents_of(rule))
        self._nodes[rule.rule.name] = node
        for name, relation in node.influents.items():
            self._affects.setdefault(name, []).append(node)
            if name not in self._delta_sets:
                delta_set = DeltaSet(self._engine.connection, relation)
                delta_set.capture()
                self._delta_sets[name] = delta_set

    def remove(self, rule_name: str) -> None:
        node = self._nodes.pop(rule_name)
        for name in node.influents:
            self._affects[name].remove(node)
            if not self._affects[name]:
                del self._affects[name]
                self._delta_sets.pop(name).release()

    def clear(self) -> None:
        """Forget everything; after a rollback the triggers may already be gone."""
        for delta_set in self._delta_sets.values():
            delta_set.release()
        self._nodes.clear()
        self._affects.clear()
        self._delta_sets.clear()

    def propagate(self, wants_minus: set[str]) -> list[ConditionChange]:
        """The changes of all conditions since the last time.

        Rows that a condition lost are only computed for the rules in `wants_minus`.
        """
        marked = events.marked(self._engine.connection)
        if not marked:
            return []
        touched = {name for name in marked if name in self._delta_sets}
        reached = {node.rule.rule.name: node for name in touched for node in self._affects[name]}
        found = [
            self._change_of(node, touched.intersection(node.influents), name in wants_minus)
            for name, node in reached.items()
        ]
        for name in touched:
            self._delta_sets[name].clear()
        events.unmark(self._engine.connection)
        return found

    def _change_of(
        self, node: ConditionNode, changed: set[str], with_minus: bool
    ) -> ConditionChange:
        if node.rule.events:
            if not any(self._happened(node, *event, changed) for event in node.rule.events):
                return ConditionChange(node.rule, [], [], frozenset(changed), "no event")
            if not node.rule.rule.has_condition:
                rows = self._engine.compile(prepare(node.rule.program, self._catalog.hierarchy))
                return ConditionChange(node.rule, rows.rows(()), [], frozenset(changed), "event")
        strategy = self._choose(node, changed)
        plans = self._plans(node, frozenset(changed), strategy)
        plus = plans.plus.rows(())
        minus: list[Row] = []
        if with_minus:
            if plans.minus is None:
                plans.minus = self._compile(plans.change, -1)
            minus = plans.minus.rows(())
        return ConditionChange(node.rule, plus, minus, frozenset(changed), strategy)

    def _happened(
        self, node: ConditionNode, kind: str, program: Program, changed: set[str]
    ) -> bool:
        """Did the watched function gain or lose rows, or change the value of an argument?"""
        concerned = frozenset(changed & set(stored_relations(program)))
        if not concerned:
            return False
        key = (concerned, f"event {program.goal.id}")
        plans = node.plans.get(key)
        if plans is None:
            change = differentiate(program, concerned)
            plans = node.plans[key] = Plans(change, self._compile(change, 1))
            plans.minus = self._compile(change, -1)
        assert plans.minus is not None
        if kind == "added":
            return bool(plans.plus.rows(()))
        if kind == "removed":
            return bool(plans.minus.rows(()))
        inputs = program.goal.inputs
        gained = {row[:inputs] for row in plans.plus.rows(())}
        return any(row[:inputs] in gained for row in plans.minus.rows(()))

    def _choose(self, node: ConditionNode, changed: set[str]) -> str:
        """Differentials look at each changed row once for each influent; naive evaluation looks
        at every row of the smallest influent that has to be read."""
        if self.strategy != "adaptive":
            return self.strategy
        rows = sum(self._delta_sets[name].size() for name in changed)
        if rows < SMALL_CHANGE:
            return "incremental"
        largest = max(self._engine.count(node.influents[name]) for name in changed)
        return "naive" if rows > largest else "incremental"

    def _plans(self, node: ConditionNode, changed: frozenset[str], strategy: str) -> Plans:
        key = (changed, strategy)
        known = node.plans.get(key)
        if known is None:
            nervous = node.rule.rule.nervous
            if strategy == "naive":
                change = recompute(node.rule.program, changed)
            else:
                change = differentiate(node.rule.program, changed, checked=not nervous)
            known = node.plans[key] = Plans(change, self._compile(change, 1))
        return known

    def _compile(self, change: Change, sign: int) -> CompiledQuery:
        program = change.plus if sign > 0 else change.minus
        return self._engine.compile(prepare(program, self._catalog.hierarchy))


SMALL_CHANGE = 1000
"""So few changed rows are never worth a look at the sizes of the relations."""


def influents_of(rule: CompiledRule) -> dict[str, Relation]:
    """The stored relations that a condition, and the events it waits for, depend on."""
    found = stored_relations(rule.program)
    for _, program in rule.events:
        found |= stored_relations(program)
    return found


def stored_relations(program: Program) -> dict[str, Relation]:
    return {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.STORED
    }
