"""The shape of the propagation network: which nodes there are, and who depends on whom.

Level 0 holds a node for each stored relation that a watched condition depends on; its Δ-set is kept
by triggers. Above it are the derived relations that have nodes (`planner.network` says which) and,
above those, the conditions, of activated rules and of monitors. Two conditions that share a part
share its node.

Law: a node is one level higher than the highest it depends on, and exists while something above it
does: those it `affects` are its reference count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from harken.calculus.counting import Derivations
from harken.calculus.firsts import FirstRows
from harken.calculus.rederivation import is_rederivable
from harken.calculus.rounds import rounds_of
from harken.calculus.totals import Kept, Totals
from harken.consumers.rules.definition import CompiledRule
from harken.database.catalog import Catalog
from harken.database.system import ACTIVATED, is_activations, is_parameters
from harken.engines.protocol import Connection, Engine
from harken.engines.sqlite.copies import Copy
from harken.engines.sqlite.counts import CountsTable
from harken.engines.sqlite.events import Capture, DeltaSet
from harken.engines.sqlite.firsts import FirstRowsTable
from harken.engines.sqlite.kept import KeptRows
from harken.engines.sqlite.rounds import RoundsTable
from harken.engines.sqlite.totals import TotalsTable
from harken.ir.clauses import Definition, Program
from harken.ir.relations import Kind, Relation
from harken.ir.strata import depends_on, reachable
from harken.maintenance.choices import Choices
from harken.maintenance.counting import Tally
from harken.planner.change_methods import rounds_again
from harken.planner.network import (
    Part,
    Reason,
    Sharing,
    is_worth_counting,
    members_part,
    plan_part,
    with_counted_derivations,
    with_kept_totals,
)
from harken.planner.screen import Screener
from harken.propagation.nodes import (
    COUNTING,
    ConditionNode,
    DerivedNode,
    MadeFrom,
    Node,
    Row,
    TotalsNode,
)
from harken.propagation.recursive_nodes import EXTERNAL, RecursiveNode, kept_relations
from harken.propagation.round_nodes import RoundsNode
from harken.propagation.watched import Condition
from harken.statements.amosql import steps


class Topology:
    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._sharing = Sharing()
        self._conditions: dict[str, ConditionNode] = {}
        self._derived: dict[str, DerivedNode] = {}
        self._captures: dict[str, Capture] = {}
        self._affects: dict[str, dict[str, Node]] = {}
        self.watching_rules: set[str] = set()
        """The conditions that are about rules themselves."""
        self.redefined: set[str] = set()
        """The conditions that the open transaction defined again: the next propagation compares
        them as a whole with what is stored of them."""
        self.choices = Choices(engine.statistics, engine.is_far, lambda: engine.has_spark)

    @property
    def is_empty(self) -> bool:
        return not self._conditions

    def __contains__(self, name: str) -> bool:
        return name in self._conditions

    def node(self, name: str) -> ConditionNode | None:
        return self._conditions.get(name)

    def derived(self) -> Iterator[DerivedNode]:
        yield from self._derived.values()

    def conditions(self) -> Iterator[Condition]:
        return (node.condition for node in self._conditions.values())

    def rules(self) -> list[CompiledRule]:
        """The rules among the conditions."""
        return [each for each in self.conditions() if isinstance(each, CompiledRule)]

    def rule(self, name: str) -> CompiledRule | None:
        node = self._conditions.get(name)
        rule = node.condition if node is not None else None
        return rule if isinstance(rule, CompiledRule) else None

    def action(self, rule_name: str) -> steps.Step | None:
        """The compiled action of a rule, made again when the schema has changed."""
        node, rule = self._conditions.get(rule_name), self.rule(rule_name)
        if node is None or rule is None:
            return None
        if node.action is None or node.action_epoch != self._catalog.epoch:
            node.action = rule.build_action()
            node.action_epoch = self._catalog.epoch
        return node.action

    def influent(self, name: str) -> Relation:
        return self._captures[name].relation

    def note_activation(self, rule_name: str, before: list[Row], after: list[Row]) -> None:
        """The activations of a rule have changed; those of one with parameters have triggers."""
        rule = self.rule(rule_name)
        capture = self._captures.get(rule.rule.activations.id) if rule is not None else None
        if capture is not None and capture.is_told:
            for rows, weight in ((before, -1), (after, 1)):
                for row in rows:
                    capture.note(row, weight)

    def note_changes(self, name: str, rows: list[Row]) -> None:
        """A stored relation has changed elsewhere: these rows, each with its weight."""
        capture = self._captures.get(name)
        if capture is not None:
            capture.note_many(rows)

    def note_large(self, name: str, size: int) -> None:
        """A stored relation has changed elsewhere, too much to be held here."""
        capture = self._captures.get(name)
        if capture is not None:
            capture.note_elsewhere(size)

    def forget_large(self) -> None:
        """What was noted as elsewhere is undone."""
        self._engine.forget_large()
        for capture in self._captures.values():
            capture.elsewhere = 0

    # --- growing and shrinking -------------------------------------------------------------

    def insert(self, condition: Condition) -> None:
        """Add a condition, or put another in its place; Δ-sets that both need are kept."""
        name = condition.name
        others = self._sharing.remove(name) if name in self._conditions else set()
        others |= self._sharing.add(name, condition.program)
        if ACTIVATED.id in condition.program.definitions:
            self.watching_rules.add(name)
        self._attach(condition)
        for other in others - {name}:
            self._attach(self._conditions[other].condition)

    def remove(self, name: str) -> None:
        node = self._conditions.pop(name)
        self.watching_rules.discard(name)
        others = self._sharing.remove(name)
        self._disconnect(node)
        for other in others:
            self._attach(self._conditions[other].condition)

    def hold(self, kind: type[Condition], wanted: Iterable[Condition]) -> list[str]:
        """Of the conditions of this kind, have those that are wanted and no others; the names of
        those that are new or not what they were."""
        named = {each.name: each for each in wanted}
        for condition in list(self.conditions()):
            if isinstance(condition, kind) and condition.name not in named:
                self.remove(condition.name)
        changed = []
        for name, each in named.items():
            node = self.node(name)
            if node is None or not node.is_for(each):
                self.insert(each)
                changed.append(name)
        return changed

    def reading(self, relation: Relation) -> list[Condition]:
        """The conditions that a relation has a part in."""
        return [
            each
            for each in self.conditions()
            if any(relation.id in depends_on(d) for d in each.program.definitions.values())
        ]

    def rebuild(self, conditions: Collection[Condition]) -> None:
        """Make the nodes of these conditions anew, with nothing kept from before."""
        for each in conditions:
            self.remove(each.name)
        for each in conditions:
            self.insert(each)

    def _attach(self, condition: Condition) -> None:
        before = self._conditions.get(condition.name)
        part = self.plan(condition)
        same = before is not None and before.condition.says_the_same(condition)
        node = _condition_node(part, condition, before.tally if before and same else None)
        if before is not None and same:
            node.experience = before.experience
        self._conditions[condition.name] = node
        self._connect(node, condition.program)
        if before is not None:
            self._disconnect(before)

    def plan(self, condition: Condition) -> Part:
        name, program = condition.name, condition.program
        kept = self._sharing.nodes(name) if name in self._sharing.programs else ()
        return plan_part(program, program.goal, Reason.CONDITION, kept, self._catalog.hierarchy)

    def _connect(self, node: Node, program: Program) -> None:
        """Connect a node to those it depends on, which are made if they are missing."""
        below = {part.relation.id: part for part in node.part.below}
        totals = node.keeps()
        for name, relation in node.depends_on().items():
            if is_parameters(relation):
                continue  # they change between transactions only, and that is no event
            if name in totals:
                self._ensure_totals(totals[name], node, program)
            elif relation.kind is Kind.DERIVED:
                self._ensure_derived(relation, node, program, below)
            elif name not in self._affects or self._is_of_another(relation):
                self._capture(relation)
            self._affects.setdefault(name, {})[node.id] = node
            node.level = max(node.level, 1 + self._level(name))
            self._screen(name)

    def _is_of_another(self, relation: Relation) -> bool:
        """Are the changes of a table kept that had this name, and other columns? Conditions over
        the old one are replaced one after another."""
        capture = self._captures.get(relation.id)
        return capture is not None and capture.relation != relation

    def _capture(self, relation: Relation) -> None:
        """Keep the changes of a relation; perhaps they were kept earlier in the transaction."""
        idle = self._captures.get(relation.id)
        if idle is not None and idle.relation != relation:
            idle.release()
            idle = None
        # There may be ten thousand rules without parameters: they take no triggers.
        told = is_activations(relation) and not relation.inputs
        schema = self._engine.schema_of(relation)
        capture = idle or Capture(self._engine.connection, relation, told, schema)
        self._captures[relation.id] = capture
        capture.capture()

    def _screen(self, name: str) -> None:
        """Choose the screener of a stored relation for those it affects now."""
        capture = self._captures.get(name)
        # The constraints of a table that was dropped are let go of one after another.
        if capture is not None and self._engine.exists(capture.relation):
            nodes = self._affects.get(name, {}).values()
            capture.screen(self.choices.screener(capture.relation, nodes))

    def _level(self, name: str) -> int:
        return self._derived[name].level if name in self._derived else 0

    def _ensure_derived(
        self, relation: Relation, above: Node, program: Program, recursive: dict[str, Part]
    ) -> None:
        made_from = _made_from(relation, above, program)
        if not self._is_there(relation.id, made_from) or self._lacks_counts(relation.id, above):
            node = self._derived_node(relation, made_from, recursive, above)
            self._put(node, Program(relation, made_from[0]))

    def _derived_node(
        self, relation: Relation, made_from: MadeFrom, recursive: dict[str, Part], above: Node
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
        delta = DeltaSet(connection, relation)
        if part.reason is not Reason.RECURSIVE:
            totals = with_kept_totals(part) if self._may_keep(above) else None
            counted = with_counted_derivations(part) if self._must_count(above) else None
            return DerivedNode(part, totals, counted, delta=delta, made_from=made_from)
        far = [name for name, each in part.stored.items() if self._engine.is_far(each)]
        rounds = rounds_of(part.program)
        if rounds is not None:
            table = RoundsTable(connection, rounds)
            return RoundsNode(
                part,
                delta=delta,
                made_from=made_from,
                rounds=rounds,
                table=table,
                refused=rounds_again(part.program, far)
                or (None if self._may_keep(above) else "nothing is to be stored"),
            )
        refused = is_rederivable(part.program)
        return RecursiveNode(
            part,
            delta=delta,
            made_from=made_from,
            copy=Copy(connection, relation) if refused is not None else None,
            kept_rows=KeptRows(connection, kept_relations(part), relation.id),
            refused=refused,
            is_far=bool(far),
        )

    def _may_keep(self, node: Node) -> bool:
        """May anything be stored for what is above?"""
        if isinstance(node, ConditionNode):
            return node.condition.strategy != EXTERNAL
        return node.kept is not None or any(
            map(self._may_keep, self._affects.get(node.id, {}).values())
        )

    def _lacks_counts(self, name: str, above: Node) -> bool:
        """Was a node made before someone wanted its derivations counted?"""
        node = self._derived[name]
        lacks = node.counted is None and not isinstance(node, RecursiveNode)
        return lacks and self._must_count(above) and with_counted_derivations(node.part) is not None

    def _must_count(self, node: Node) -> bool:
        """Are derivations to be counted for what is above?"""
        if isinstance(node, ConditionNode):
            return node.condition.strategy == COUNTING
        return any(map(self._must_count, self._affects.get(node.id, {}).values()))

    def _ensure_totals(self, totals: Kept, above: Node, program: Program) -> None:
        made_from = _made_from(_members_of(totals, above), above, program)
        if not self._is_there(totals.relation.id, made_from):
            node = self._totals_node(totals, above, made_from)
            self._put(node, Program(totals.members.goal, made_from[0]))

    def _totals_node(self, totals: Kept, above: Node, made_from: MadeFrom) -> TotalsNode:
        connection = self._engine.connection
        return TotalsNode(
            members_part(totals, above.part),
            delta=DeltaSet(connection, totals.relation),
            made_from=made_from,
            totals=totals,
            table=_table_of(connection, totals),
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

    def preview(self, condition: Condition) -> tuple[ConditionNode, dict[str, DerivedNode]]:
        """A condition and the nodes below it, as they are, or as they would be if it were
        active."""
        known = self._conditions.get(condition.name)
        part = self.plan(condition)
        node = known or _condition_node(part, condition)
        found: dict[str, DerivedNode] = {}
        self._look_below(node, condition.program, found)
        return node, found

    def _look_below(self, node: Node, program: Program, found: dict[str, DerivedNode]) -> None:
        recursive = {part.relation.id: part for part in node.part.below}
        totals = node.keeps()
        for name, relation in node.depends_on().items():
            if relation.kind is not Kind.DERIVED and name not in totals:
                continue
            below = found.get(name) or self._derived.get(name)
            goal = _members_of(totals[name], node) if name in totals else relation
            made_from = _made_from(goal, node, program)
            if below is None and name in totals:
                below = self._totals_node(totals[name], node, made_from)
            elif below is None:
                below = self._derived_node(relation, made_from, recursive, node)
            found[name] = below
            self._look_below(below, Program(goal, made_from[0]), found)
            node.level = max(node.level, below.level + 1)

    def screener(self, relation: Relation, above: Collection[Node]) -> Screener:
        """The screener of a stored relation as it is, or as it would be for these nodes."""
        if relation.id in self._affects:
            return self._captures[relation.id].screener
        return self.choices.screener(relation, above)


def _condition_node(part: Part, condition: Condition, tally: Tally | None = None) -> ConditionNode:
    """What is kept of a condition that moves would be that of another time."""
    keeping = not condition.moves and condition.strategy != EXTERNAL
    kept = with_kept_totals(part) if keeping else None
    counting = keeping and condition.strategy == COUNTING
    if keeping and kept is None and _may_count(part, condition):
        tally = tally or Tally()
        counting = tally.is_counting
    else:
        tally = None
    counted = with_counted_derivations(part) if counting else None
    return ConditionNode(part, kept, counted, condition=condition, tally=tally)


def _may_count(part: Part, condition: Condition) -> bool:
    """Is it left open whether its derivations are counted? They are where all that it gains and
    loses is wanted every time, and may have to be looked for."""
    return (
        condition.strategy == "auto"
        and condition.may_be_counted
        and condition.needs_losses
        and condition.strict
        and not condition.events
        and is_worth_counting(part)
    )


def _members_of(totals: Kept, above: Node) -> Relation:
    """The relation by whose definition what is kept was planned: derivations have that of the set
    that they are derivations of."""
    return above.part.relation if isinstance(totals, Derivations) else totals.members.goal


def _table_of(connection: Connection, totals: Kept) -> TotalsTable | FirstRowsTable | CountsTable:
    match totals:
        case Totals():
            return TotalsTable(connection, totals)
        case FirstRows():
            return FirstRowsTable(connection, totals)
        case Derivations():
            return CountsTable(connection, totals)


def _made_from(relation: Relation, above: Node, program: Program) -> MadeFrom:
    source = reachable(relation, {**above.part.program.definitions, **program.definitions})
    return source, above.part.nodes & source.keys()


def _reason(definition: Definition) -> Reason:
    late = definition.exclusive and len(definition.clauses) > 1
    return Reason.LATE_BOUND if late else Reason.SHARED
