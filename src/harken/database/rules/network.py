"""The propagation network: which changes of stored relations reach which conditions.

Level 0 holds a node for each stored relation that an activated rule depends on; its Δ-set is kept
by triggers, and a mark says that it has changed. Above it are the derived relations that have nodes
(`planner.network` says which) and, above those, the conditions. A node is one level higher than
the highest it depends on, and exists while something above it does: those it `affects` are its
reference count.

A wave of changes goes up level by level. A node is computed once, when all below it is known, and
not at all if nothing below it changed; a Δ-set is dropped when no node above still has to read it.

Law: after `propagate`, what it returned is the exact change of every condition since the last
time, and all Δ-sets are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harken.calculus.differentials import differentiate
from harken.calculus.totals import Totals
from harken.database import steps
from harken.database.catalog import Catalog
from harken.database.rules.choices import COPY_LIMIT, Choices
from harken.database.rules.definition import CompiledEvent, CompiledRule
from harken.database.rules.nodes import (
    COPIED,
    NAIVE,
    ConditionNode,
    DerivedNode,
    MadeFrom,
    Planning,
    TotalsNode,
    stored_relations,
)
from harken.database.system import ACTIVATED, is_activations
from harken.engines.sqlite import events
from harken.engines.sqlite.copies import Copy
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.sqlite.events import Capture, DeltaSet
from harken.engines.sqlite.totals import TotalsTable
from harken.errors import HarkenError
from harken.ir.clauses import Definition, Program
from harken.ir.relations import Kind, Relation
from harken.ir.strata import reachable
from harken.planner.network import (
    Part,
    Reason,
    Sharing,
    members_part,
    plan_part,
    with_kept_totals,
)
from harken.planner.screen import Screener

Row = tuple[Any, ...]
Node: TypeAlias = DerivedNode | ConditionNode


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """What a condition gained and lost, and how that was found out."""

    rule: CompiledRule
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    strategy: str


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What a node between the tables and the conditions gained and lost, for the trace."""

    relation: Relation
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    strategy: str


@dataclass(slots=True)
class Wave:
    """One propagation: what has changed so far, and whom that reaches, by level."""

    stored: frozenset[str]
    changed: set[str]
    reached: dict[int, dict[str, Node]] = field(default_factory=dict)
    last_reader: dict[str, int] = field(default_factory=dict)
    """For each changed node the highest level that reads its Δ-set."""
    sizes: dict[str, int] = field(default_factory=dict)
    """The rows of the Δ-sets."""
    to_build: list[TotalsNode] = field(default_factory=list)
    """Totals that are wanted and not kept: they are computed when all has settled."""

    def reach(self, name: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.reached.setdefault(node.level, {})[node.id] = node
            self.last_reader[name] = max(node.level, self.last_reader.get(name, 0))

    def levels(self) -> Iterator[tuple[int, list[Node]]]:
        while self.reached:
            level = min(self.reached)
            yield level, list(self.reached.pop(level).values())


class Network:
    def __init__(self, engine: SQLiteEngine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._planning = Planning(engine, catalog)
        self._sharing = Sharing()
        self._conditions: dict[str, ConditionNode] = {}
        self._derived: dict[str, DerivedNode] = {}
        self._captures: dict[str, Capture] = {}
        self._affects: dict[str, dict[str, Node]] = {}
        self.watching_rules: set[str] = set()
        """The rules whose conditions are about rules themselves."""
        self.choices = Choices(engine.statistics)
        self.observer: Callable[[NodeChange], None] | None = None
        """Who is told of the changes of nodes between the tables and the conditions."""

    @property
    def is_empty(self) -> bool:
        return not self._conditions

    def __contains__(self, rule_name: str) -> bool:
        return rule_name in self._conditions

    def node(self, rule_name: str) -> ConditionNode | None:
        return self._conditions.get(rule_name)

    def nodes(self) -> Iterator[ConditionNode]:
        yield from self._conditions.values()

    def derived(self) -> Iterator[DerivedNode]:
        yield from self._derived.values()

    def action(self, rule_name: str) -> steps.Step | None:
        """The compiled action of a rule, made again when the schema has changed."""
        node = self._conditions.get(rule_name)
        if node is None:
            return None
        if node.action is None or node.action_epoch != self._catalog.epoch:
            node.action = node.rule.build_action()
            node.action_epoch = self._catalog.epoch
        return node.action

    def influent(self, name: str) -> Relation:
        return self._captures[name].relation

    def note_activation(self, rule_name: str, before: list[Row], after: list[Row]) -> None:
        """The activations of a rule have changed; those of one with parameters have triggers."""
        capture = self._captures.get(self._conditions[rule_name].rule.rule.activations.id)
        if capture is not None and capture.is_told:
            for rows, weight in ((before, -1), (after, 1)):
                for row in rows:
                    capture.note(row, weight)

    # --- growing and shrinking -------------------------------------------------------------

    def insert(self, rule: CompiledRule) -> None:
        """Add a condition, or put another in its place; Δ-sets that both need are kept."""
        name = rule.rule.name
        others = self._sharing.remove(name) if name in self._conditions else set()
        others |= self._sharing.add(name, rule.program)
        if ACTIVATED.name in rule.dependencies.functions:
            self.watching_rules.add(name)
        self._attach(rule)
        for other in others - {name}:
            self._attach(self._conditions[other].rule)

    def remove(self, rule_name: str) -> None:
        node = self._conditions.pop(rule_name)
        self.watching_rules.discard(rule_name)
        others = self._sharing.remove(rule_name)
        self._disconnect(node)
        for other in others:
            self._attach(self._conditions[other].rule)

    def _attach(self, rule: CompiledRule) -> None:
        name = rule.rule.name
        before = self._conditions.get(name)
        part = self.plan(rule)
        node = ConditionNode(part, with_kept_totals(part), rule=rule)
        self._conditions[name] = node
        self._connect(node, rule.program)
        if before is not None:
            self._disconnect(before)

    def plan(self, rule: CompiledRule) -> Part:
        name = rule.rule.name
        kept = self._sharing.nodes(name) if name in self._sharing.programs else ()
        goal = rule.program.goal
        return plan_part(rule.program, goal, Reason.CONDITION, kept, self._catalog.hierarchy)

    def _connect(self, node: Node, program: Program) -> None:
        """Connect a node to those it depends on, which are made if they are missing."""
        below = {part.relation.id: part for part in node.part.below}
        totals = {each.relation.id: each for each in node.kept.totals} if node.kept else {}
        for name, relation in node.depends_on().items():
            if name in totals:
                self._ensure_totals(totals[name], node, program)
            elif relation.kind is Kind.DERIVED:
                self._ensure_derived(relation, node, program, below)
            elif name not in self._affects:
                self._capture(relation)
            self._affects.setdefault(name, {})[node.id] = node
            node.level = max(node.level, 1 + self._level(name))
            self._screen(name)

    def _capture(self, relation: Relation) -> None:
        """Keep the changes of a relation; perhaps they were kept earlier in the transaction."""
        idle = self._captures.get(relation.id)
        if idle is not None and idle.relation != relation:
            idle.release()
            idle = None
        # There may be ten thousand rules without parameters: they take no triggers.
        told = is_activations(relation) and not relation.inputs
        capture = idle or Capture(self._engine.connection, relation, told)
        self._captures[relation.id] = capture
        capture.capture()

    def _screen(self, name: str) -> None:
        """Choose the screener of a stored relation for those it affects now."""
        capture = self._captures.get(name)
        if capture is not None:
            nodes = self._affects.get(name, {}).values()
            capture.screen(self.choices.screener(capture.relation, nodes))

    def _level(self, name: str) -> int:
        return self._derived[name].level if name in self._derived else 0

    def _ensure_derived(
        self, relation: Relation, above: Node, program: Program, recursive: dict[str, Part]
    ) -> None:
        made_from = _made_from(relation, above, program)
        if not self._is_there(relation.id, made_from):
            node = self._derived_node(relation, made_from, recursive)
            self._put(node, Program(relation, made_from[0]))

    def _derived_node(
        self, relation: Relation, made_from: MadeFrom, recursive: dict[str, Part]
    ) -> DerivedNode:
        source, kept = made_from
        part = recursive.get(relation.id) or plan_part(
            Program(relation, source),
            relation,
            _reason(source[relation.id]),
            kept,
            self._catalog.hierarchy,
        )
        connection = self._engine.connection
        copied = part.reason is Reason.RECURSIVE
        return DerivedNode(
            part,
            None if copied else with_kept_totals(part),
            delta=DeltaSet(connection, relation),
            made_from=made_from,
            copy=Copy(connection, relation) if copied else None,
        )

    def _ensure_totals(self, totals: Totals, above: Node, program: Program) -> None:
        made_from = _made_from(totals.members.goal, above, program)
        if not self._is_there(totals.relation.id, made_from):
            node = self._totals_node(totals, above, made_from)
            self._put(node, Program(totals.members.goal, made_from[0]))

    def _totals_node(self, totals: Totals, above: Node, made_from: MadeFrom) -> TotalsNode:
        connection = self._engine.connection
        return TotalsNode(
            members_part(totals, above.part),
            delta=DeltaSet(connection, totals.relation),
            made_from=made_from,
            totals=totals,
            table=TotalsTable(connection, totals),
        )

    def _is_there(self, name: str, made_from: MadeFrom) -> bool:
        return name in self._derived and self._derived[name].made_from == made_from

    def _put(self, node: DerivedNode, program: Program) -> None:
        """Take a node in, perhaps in place of one that was planned from something else."""
        before = self._derived.get(node.id)
        if before is not None:
            before.drop()
        node.delta.create()
        self._derived[node.id] = node
        self._connect(node, program)
        if before is not None:
            self._disconnect(before)
            self._raise_above(node)

    def _raise_above(self, node: DerivedNode) -> None:
        for above in self._affects.get(node.id, {}).values():
            if above.level <= node.level:
                above.level = node.level + 1
                if isinstance(above, DerivedNode):
                    self._raise_above(above)

    def _disconnect(self, node: Node) -> None:
        """Let go of what a node depends on; what nothing depends on any more goes as well."""
        for name in node.depends_on():
            affected = self._affects.get(name, {})
            if affected.get(node.id) is not node:
                continue  # another has taken its place
            del affected[node.id]
            if affected:
                self._screen(name)
            else:
                del self._affects[name]
                self._forget(name)

    def _forget(self, name: str) -> None:
        """Nothing depends on it any more. The changes of a stored relation are kept until the
        transaction ends: what is switched off may be switched on again."""
        if name in self._derived:
            node = self._derived.pop(name)
            node.drop()
            self._disconnect(node)
        elif self._engine.exists(self._captures[name].relation):
            self._screen(name)
        else:
            self._captures.pop(name).release()

    def _idle(self) -> list[str]:
        if len(self._captures) + len(self._derived) == len(self._affects):
            return []
        return [name for name in self._captures if name not in self._affects]

    def release_idle(self) -> None:
        """The transaction has ended: stop keeping changes that nothing depends on."""
        for name in self._idle():
            self._captures.pop(name).release()

    def release_missing(self) -> None:
        """Let go of stored relations that were deleted."""
        for name in self._idle():
            if not self._engine.exists(self._captures[name].relation):
                self._captures.pop(name).release()

    def capture_again(self) -> None:
        """Something was undone, perhaps triggers with it: make them as they should be."""
        for name, capture in self._captures.items():
            if name in self._affects:
                capture.capture_again()
        for node in self._derived.values():
            node.delta.create()

    # --- looking at it ---------------------------------------------------------------------

    def preview(self, rule: CompiledRule) -> tuple[ConditionNode, dict[str, DerivedNode]]:
        """The condition of a rule and the nodes below it, as they are, or as they would be if it
        were active."""
        known = self._conditions.get(rule.rule.name)
        part = self.plan(rule)
        node = known or ConditionNode(part, with_kept_totals(part), rule=rule)
        found: dict[str, DerivedNode] = {}
        self._look_below(node, rule.program, found)
        return node, found

    def _look_below(self, node: Node, program: Program, found: dict[str, DerivedNode]) -> None:
        recursive = {part.relation.id: part for part in node.part.below}
        totals = {each.relation.id: each for each in node.kept.totals} if node.kept else {}
        for name, relation in node.depends_on().items():
            if relation.kind is not Kind.DERIVED and name not in totals:
                continue
            below = found.get(name) or self._derived.get(name)
            goal = totals[name].members.goal if name in totals else relation
            made_from = _made_from(goal, node, program)
            if below is None and name in totals:
                below = self._totals_node(totals[name], node, made_from)
            elif below is None:
                below = self._derived_node(relation, made_from, recursive)
            found[name] = below
            self._look_below(below, Program(goal, made_from[0]), found)
            node.level = max(node.level, below.level + 1)

    def screener(self, relation: Relation, above: Collection[Node]) -> Screener:
        """The screener of a stored relation as it is, or as it would be for these nodes."""
        if relation.id in self._affects:
            return self._captures[relation.id].screener
        return self.choices.screener(relation, above)

    # --- propagation -----------------------------------------------------------------------

    def incoming(self) -> list[tuple[str, list[Row], list[Row]]]:
        """The Δ-sets as they stand: what each changed relation gained and lost."""
        marked = sorted(events.marked(self._engine.connection)) if self._captures else []
        return [(name, *self._captures[name].rows()) for name in marked if name in self._captures]

    def propagate(self, wants_minus: Callable[[str], bool]) -> list[ConditionChange]:
        """The changes of all conditions since the last time.

        Rows that a condition lost are only computed for the rules that `wants_minus`.
        """
        marked = events.marked(self._engine.connection)
        if not marked:
            return []
        stored = frozenset(name for name in marked if name in self._captures)
        if not self._passed(marked):
            self._settle(stored)
            return []
        wave = self._wave(stored)
        found = []
        for level, nodes in wave.levels():
            for node in nodes:
                with _told_of(self._rule_above(node)):
                    if isinstance(node, ConditionNode):
                        found.append(self._change_of(node, wave, wants_minus))
                    else:
                        self._advance(node, wave)
            self._drop_read(wave, level)
        self._settle(stored)
        for totals in wave.to_build:
            totals.build(self._planning)
        for name in stored:
            if self.choices.is_outdated(self._captures[name].screener):
                self._screen(name)
        return found

    def _settle(self, stored: frozenset[str]) -> None:
        for name in stored:
            self._captures[name].clear()
        events.unmark(self._engine.connection)

    def has_work(self) -> bool:
        """Has any change passed its screener?"""
        return self._passed(events.marked(self._engine.connection))

    def _passed(self, marked: Mapping[str, bool]) -> bool:
        return any(marked.values()) or (bool(marked) and self.choices.forced == NAIVE)

    def _wave(self, stored: frozenset[str]) -> Wave:
        wave = Wave(stored, set(stored))
        for name in sorted(stored):
            wave.sizes[name] = self._captures[name].size()
            self.choices.statistics.note(name, wave.sizes[name])
            wave.reach(name, self._affects.get(name, {}).values())
        return wave

    def _drop_read(self, wave: Wave, level: int) -> None:
        """Drop the Δ-sets that no node above this level reads."""
        for name in [n for n, last in wave.last_reader.items() if last <= level]:
            del wave.last_reader[name]
            if name in self._derived:
                self._derived[name].delta.clear()

    def _rule_above(self, node: Node) -> str:
        while isinstance(node, DerivedNode):
            node = next(iter(self._affects[node.id].values()))
        return node.rule.rule.name

    def _advance(self, node: DerivedNode, wave: Wave) -> None:
        """Fill the Δ-set of a node; if it holds anything, the wave goes on from there."""
        if self.choices.forced == NAIVE:  # the conditions above are evaluated from the tables
            self._miss(node)
            wave.reach(node.id, self._affects[node.id].values())
            return
        changed = frozenset(wave.changed & node.part.influents.keys())
        if isinstance(node, TotalsNode):
            strategy = self._follow(node, wave, changed)
        else:
            strategy = self._fill(node, wave)
        if self.observer is not None:
            plus, minus = node.delta.rows()
            relation = node.delta.relation
            self.observer(NodeChange(relation, plus, minus, changed, strategy))
        size = node.delta.size()
        if size:
            wave.changed.add(node.id)
            wave.sizes[node.id] = size
            wave.reach(node.id, self._affects[node.id].values())

    def _miss(self, node: DerivedNode) -> None:
        """A change passes the node by: what it keeps is not up to date any more."""
        if isinstance(node, TotalsNode):
            node.table.validity.revoke()
        elif node.copy is not None:
            node.copy.validity.revoke()

    def _follow(self, node: TotalsNode, wave: Wave, changed: frozenset[str]) -> str:
        if not self.choices.wants_totals(node):
            self._miss(node)
            return "not kept"
        if node.table.validity.holds() and node.follow(changed, self._planning):
            return "kept totals"
        wave.to_build.append(node)
        return "not kept yet"

    def _fill(self, node: DerivedNode, wave: Wave) -> str:
        strategy = self._choose(node, wave)
        copy = node.copy if strategy == NAIVE else None
        if copy is not None and copy.validity.holds():
            strategy = COPIED
        below = frozenset(wave.changed & node.influents(strategy).keys())
        if not below:
            return "no change"
        for sign in (1, -1):
            node.delta.fill(node.query(sign, strategy, below, self._planning), sign)
        if strategy == COPIED:
            assert copy is not None
            copy.follow(node.delta)
        elif copy is not None:
            copy.take(self._planning.compile(node.part.program))
            if copy.size() > COPY_LIMIT:
                copy.drop()
                node.copy = None
        return strategy

    def _change_of(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        about = None
        if node.rule.events:
            about = self._what_happened(node, wave.stored)
            if not about.happened:
                return ConditionChange(node.rule, [], [], wave.stored, "no event")
            if not node.rule.rule.has_condition:
                query = self._planning.compile(node.part.program)
                rows = about.concerning(query.rows(()))
                return ConditionChange(node.rule, rows, [], wave.stored, "event")
        strategy = self._choose(node, wave)
        below = frozenset(wave.changed & node.influents(strategy).keys())
        if not below:
            return ConditionChange(node.rule, [], [], below, "no change")
        checked = not node.rule.rule.nervous
        plus = node.query(1, strategy, below, self._planning, checked).rows(())
        minus = []
        if wants_minus(node.rule.rule.name):
            minus = node.query(-1, strategy, below, self._planning, checked).rows(())
        if about is not None:
            plus = about.concerning(plus)
        return ConditionChange(node.rule, plus, minus, below, strategy)

    def _choose(self, node: Node, wave: Wave) -> str:
        kept = node.kept is not None and self._are_kept(node.kept, wave)
        part = node.kept if kept and node.kept is not None else node.part
        sizes = {name: size for name, size in wave.sizes.items() if name in part.influents}
        return self.choices.strategy(node, sizes, kept)

    def _are_kept(self, part: Part, wave: Wave) -> bool:
        """Are the totals that a part reads those of now?"""
        return all(
            isinstance(node := self._derived[each.relation.id], TotalsNode)
            and node not in wave.to_build
            and node.table.validity.holds()
            for each in part.totals
        )

    # --- events ----------------------------------------------------------------------------

    def _what_happened(self, node: ConditionNode, stored: frozenset[str]) -> Occurrence:
        """Which of the rule's events occurred, and for which of its tuples."""
        happened = Occurrence()
        for event in node.rule.events:
            arguments = self._occurrences(node, event, stored)
            if arguments:
                happened.add(event.positions, arguments)
        return happened

    def _occurrences(
        self, node: ConditionNode, event: CompiledEvent, stored: frozenset[str]
    ) -> set[Row]:
        """The arguments for which the watched function gained, lost or changed a value."""
        concerned = frozenset(stored & stored_relations(event.program).keys())
        if not concerned:
            return set()
        key = (event.program.goal.id, concerned)
        queries = node.events.get(key)
        if queries is None:
            change = differentiate(event.program, concerned)
            compiled = (self._planning.compile(each) for each in (change.plus, change.minus))
            queries = node.events[key] = (next(compiled), next(compiled))
        inputs = event.program.goal.inputs
        gained = {row[:inputs] for row in queries[0].rows(())}
        if event.kind == "added":
            return gained
        lost = {row[:inputs] for row in queries[1].rows(())}
        return lost if event.kind == "removed" else gained & lost


@contextmanager
def _told_of(rule: str) -> Iterator[None]:
    """Let an error say which rule's condition it is in."""
    try:
        yield
    except HarkenError as error:
        error.message = f"in the condition of rule {rule}: {error.message}"
        error.span = None
        raise


def _made_from(relation: Relation, above: Node, program: Program) -> MadeFrom:
    source = reachable(relation, {**above.part.program.definitions, **program.definitions})
    return source, above.part.nodes & source.keys()


def _reason(definition: Definition) -> Reason:
    late = definition.exclusive and len(definition.clauses) > 1
    return Reason.LATE_BOUND if late else Reason.SHARED


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
