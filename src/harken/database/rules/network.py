"""The propagation network: which changes of stored relations reach which conditions.

Level 0 holds a node for each stored relation that an activated rule depends on; its Δ-set is kept
by triggers, and a mark says that it has changed. Level 1 holds the conditions, each with the
differentials of its influents, compiled when a combination of changed influents first occurs.
A node exists while something above it does (reference counts).

Law: after `propagate`, what it returned is the exact change of every condition since the last
time, and all Δ-sets are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harken.calculus.differentials import Change, differentiate, recompute
from harken.database import steps
from harken.database.catalog import Catalog
from harken.database.rules.definition import CompiledEvent, CompiledRule
from harken.engines.base import CompiledQuery
from harken.engines.sqlite import events
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.events import DeltaSet
from harken.errors import HarkenError
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
    action: steps.Step | None = None
    action_epoch: int = -1

    def is_for(self, rule: CompiledRule) -> bool:
        """Does the node already monitor just this? Then it keeps its plans."""
        same = self.rule.program == rule.program and self.rule.events == rule.events
        if same and self.rule.rule == rule.rule:
            self.rule = rule
            return True
        return False


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

    def action(self, rule_name: str) -> steps.Step | None:
        """The compiled action of a rule, made again when the schema has changed."""
        node = self._nodes.get(rule_name)
        if node is None:
            return None
        if node.action is None or node.action_epoch != self._catalog.epoch:
            node.action = node.rule.build_action()
            node.action_epoch = self._catalog.epoch
        return node.action

    def influent(self, name: str) -> Relation:
        return self._delta_sets[name].relation

    def nodes(self) -> Iterator[ConditionNode]:
        yield from self._nodes.values()

    def insert(self, rule: CompiledRule) -> None:
        """Add a condition, or put another in its place; Δ-sets that both need are kept."""
        before = self._nodes.get(rule.rule.name)
        node = ConditionNode(rule, influents_of(rule))
        self._nodes[rule.rule.name] = node
        for name, relation in node.influents.items():
            self._affects.setdefault(name, []).append(node)
            if name not in self._delta_sets:
                self._delta_sets[name] = DeltaSet(self._engine.connection, relation)
            self._delta_sets[name].capture()
        if before is not None:
            self._release(before)

    def remove(self, rule_name: str) -> None:
        self._release(self._nodes.pop(rule_name))

    def _release(self, node: ConditionNode) -> None:
        for name in node.influents:
            self._affects[name].remove(node)
            if not self._affects[name]:
                del self._affects[name]
                self._delta_sets.pop(name).release()

    def capture_again(self) -> None:
        """Something was undone, perhaps triggers with it: make those that are missing."""
        for delta_set in self._delta_sets.values():
            delta_set.capture()

    def incoming(self) -> list[tuple[str, list[Row], list[Row]]]:
        """The Δ-sets as they stand: what each changed relation gained and lost."""
        marked = sorted(events.marked(self._engine.connection)) if self._nodes else []
        return [
            (name, *self._delta_sets[name].rows()) for name in marked if name in self._delta_sets
        ]

    def propagate(
        self, wants_minus: Callable[[list[ConditionChange]], set[str]]
    ) -> list[ConditionChange]:
        """The changes of all conditions since the last time.

        Rows that a condition lost are only computed for the rules that `wants_minus` names once
        it has seen what was gained.
        """
        marked = sorted(events.marked(self._engine.connection))
        if not marked:
            return []
        touched = {name: None for name in marked if name in self._delta_sets}
        reached = {node.rule.rule.name: node for name in touched for node in self._affects[name]}
        found = [
            self._checked(node, {name for name in touched if name in node.influents})
            for node in reached.values()
        ]
        wanted = wants_minus(found)
        for change in found:
            if change.rule.rule.name in wanted:
                change.minus.extend(self._lost(reached[change.rule.rule.name], change))
        for name in touched:
            self._delta_sets[name].clear()
        events.unmark(self._engine.connection)
        return found

    def _checked(self, node: ConditionNode, changed: set[str]) -> ConditionChange:
        try:
            return self._change_of(node, changed)
        except HarkenError as error:
            error.message = f"in the condition of rule {node.rule.rule.name}: {error.message}"
            error.span = None
            raise

    def _change_of(self, node: ConditionNode, changed: set[str]) -> ConditionChange:
        if node.rule.events:
            about = self._what_happened(node, changed)
            if not about.happened:
                return ConditionChange(node.rule, [], [], frozenset(changed), "no event")
            if not node.rule.rule.has_condition:
                query = self._engine.compile(prepare(node.rule.program, self._catalog.hierarchy))
                rows = about.concerning(query.rows(()))
                return ConditionChange(node.rule, rows, [], frozenset(changed), "event")
        strategy = self._choose(node, changed)
        plus = self._plans(node, frozenset(changed), strategy).plus.rows(())
        if node.rule.events:
            plus = about.concerning(plus)
        return ConditionChange(node.rule, plus, [], frozenset(changed), strategy)

    def _lost(self, node: ConditionNode, change: ConditionChange) -> list[Row]:
        if change.strategy not in ("incremental", "naive"):
            return []
        plans = self._plans(node, change.changed, change.strategy)
        if plans.minus is None:
            plans.minus = self._compile(plans.change, -1)
        return plans.minus.rows(())

    def _what_happened(self, node: ConditionNode, changed: set[str]) -> Occurrence:
        """Which of the rule's events occurred, and for which of its tuples."""
        happened = Occurrence()
        for event in node.rule.events:
            arguments = self._occurrences(node, event, changed)
            if arguments:
                happened.add(event.positions, arguments)
        return happened

    def _occurrences(
        self, node: ConditionNode, event: CompiledEvent, changed: set[str]
    ) -> set[Row]:
        """The arguments for which the watched function gained, lost or changed a value."""
        concerned = frozenset(changed & set(stored_relations(event.program)))
        if not concerned:
            return set()
        key = (concerned, f"event {event.program.goal.id}")
        plans = node.plans.get(key)
        if plans is None:
            change = differentiate(event.program, concerned)
            plans = node.plans[key] = Plans(change, self._compile(change, 1))
            plans.minus = self._compile(change, -1)
        assert plans.minus is not None
        inputs = event.program.goal.inputs
        gained = {row[:inputs] for row in plans.plus.rows(())}
        if event.kind == "added":
            return gained
        lost = {row[:inputs] for row in plans.minus.rows(())}
        return lost if event.kind == "removed" else gained & lost

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


@dataclass(slots=True)
class Occurrence:
    """For which tuples of a condition its events occurred; None in `about` means for all."""

    happened: bool = False
    about: list[tuple[tuple[int, ...], set[Row]]] | None = field(default_factory=list)

    def add(self, positions: tuple[int, ...] | None, arguments: set[Row]) -> None:
        self.happened = True
        if positions is None:
            self.about = None
        elif self.about is not None:
            self.about.append((positions, arguments))

    def concerning(self, rows: list[Row]) -> list[Row]:
        about = self.about
        if about is None:
            return rows
        return [
            row
            for row in rows
            if any(tuple(row[i] for i in places) in given for places, given in about)
        ]


SMALL_CHANGE = 1000
"""So few changed rows are never worth a look at the sizes of the relations."""


def influents_of(rule: CompiledRule) -> dict[str, Relation]:
    """The stored relations that a condition, and the events it waits for, depend on."""
    found = stored_relations(rule.program)
    for event in rule.events:
        found |= stored_relations(event.program)
    return found


def stored_relations(program: Program) -> dict[str, Relation]:
    return {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.STORED
    }
