"""The network below a view or a rule's condition, as people read it: each node with its clauses,
its costs, what is kept for it, and the decisions about it; each table with its screeners and
indexes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from harken.calculus.counting import Derivations
from harken.calculus.first_rows import FirstRows
from harken.calculus.totals import Totals
from harken.database.runtime import Runtime
from harken.engines.protocol import AnyKept, Engine, KeptCounts
from harken.ir.printer import print_definition, print_literal
from harken.ir.relations import Relation, Role
from harken.maintenance import tuning
from harken.maintenance.decisions import Decision
from harken.maintenance.nodes import DerivedNode, Monitored, Node, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.watched import WatchedView
from harken.planner.network_nodes import Reason
from harken.planner.screen import Alternative
from harken.propagation.network import Network


@dataclass(frozen=True, slots=True)
class ScreenerExplanation:
    """Which changes of a stored relation are recorded, and which of those trigger a check."""

    tests: tuple[str, ...]
    sql: str
    cost: float
    passing: float

    def __str__(self) -> str:
        tested = " or ".join(f"({each})" for each in self.tests)
        return f"{tested}, {self.passing:.0%} expected to pass, at {self.cost:.1f} a row"


@dataclass(frozen=True, slots=True)
class DecisionExplanation:
    """How the change of a node was found, or would be: the chooser's decision."""

    strategy: str
    reason: str
    numbers: dict[str, float]
    """The numbers behind the decision, each named with its unit."""
    sentence: str
    times: int = 0
    """The number of consecutive changes; 0 for a decision not taken yet."""
    seconds: float | None = None
    """The time that the last of these changes took, if it was measured."""

    def __str__(self) -> str:
        numbers = ", ".join(_in_words(name, value) for name, value in self.numbers.items())
        return f"{self.sentence} ({numbers})" if numbers else self.sentence


def _in_words(name: str, value: float) -> str:
    """A number that a decision was made by.

    >>> _in_words("changed_rows", 1000), _in_words("recompute_seconds", 0.0021)
    ('1,000 changed rows', 'recompute 2.1 ms')
    """
    what, _, unit = name.rpartition("_")
    what = what.replace("_", " ")
    if unit == "seconds":
        return f"{what} {1e3 * value:.3g} ms"
    if unit == "rows":
        return f"{value:,.0f} {what} row{'' if value == 1 else 's'}"
    return f"{what} {unit} {value:.4g}"


def _explained(
    decision: Decision, times: int = 0, seconds: float | None = None
) -> DecisionExplanation:
    return DecisionExplanation(
        str(decision.strategy),
        str(decision.reason),
        dict(decision.numbers),
        decision.sentence,
        times,
        seconds,
    )


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """A node of the network. Costs are in the units of the cost model: about one row lookup."""

    id: str
    level: int
    kind: str
    influents: tuple[str, ...]
    clauses: str
    rows: int | None = None
    is_internal: bool = False
    """A relation that only Harken knows, such as the activations of a rule."""
    indexes: tuple[str, ...] = ()
    events: ScreenerExplanation | None = None
    """The test that decides whether a change is recorded; None if every change is."""
    checks: ScreenerExplanation | None = None
    """The test that decides whether a recorded change triggers a check; None if every one does."""
    updates: str = ""
    whole: float | None = None
    """The cost of naive evaluation."""
    each_row: tuple[tuple[str, float], ...] = ()
    """The cost of the differentials for one changed row of each influent."""
    kept: str = ""
    label: str = ""
    """What a person calls it."""
    measured: tuple[str, ...] = ()
    """Measured times of computing its change; where there are any, the estimates are not used."""

    decisions: tuple[DecisionExplanation, ...] = ()
    """The last decisions about it, oldest first."""
    next: DecisionExplanation | None = None
    """The decision for one changed row of each relation below; None if nobody watches."""

    def lines(self) -> list[str]:
        found = [f"level {self.level}: {self.id}, {self.kind}"]
        if self.influents:
            found.append(f"  from {', '.join(self.influents)}")
        if self.rows is not None:
            found.append(f"  {self.rows} rows; {self.updates}")
            found += [f"  {each}" for each in self.indexes]
            found.append(f"  leaves an event: {self.events or 'every change'}")
            found.append(f"  brings about a check: {self.checks or 'every event'}")
        found += [f"  {each}" for each in self.choice()]
        if self.kept:
            found.append(f"  {self.kept}")
        found += [f"  {each}" for each in self.measured]
        return found

    def choice(self) -> list[str]:
        """The estimates that the chooser compares; empty for a node with one strategy only."""
        if self.whole is None:
            return []
        rows = ", ".join(f"{cost:.1f} for {name}" for name, cost in self.each_row)
        return [
            f"differentials cost, for each changed row, {rows}",
            f"naive evaluation costs {self.whole:.0f}; the cheaper is chosen",
        ]


def explain_network(
    runtime: Runtime, network: Network, view: WatchedView
) -> tuple[NodeExplanation, ...]:
    """The nodes of a view, as they are or as they would be if it were watched."""
    return explain_preview(runtime, network, *network.graph.preview(view))


def explain_preview(
    runtime: Runtime, network: Network, condition: ViewNode, derived: dict[str, DerivedNode]
) -> tuple[NodeExplanation, ...]:
    """The nodes that `Graph.preview` returned."""
    return tuple(_Nodes(runtime, network).explained(condition, derived))


def network_text(nodes: Iterable[NodeExplanation]) -> list[str]:
    """The network, and the clauses of each node but the view itself, in paragraphs."""
    nodes = list(nodes)
    listed = "\n".join(line for node in nodes for line in node.lines())
    clauses = [node.clauses for node in nodes if node.kind != "condition" and node.clauses]
    return ["The network:", listed, *clauses]


@dataclass(slots=True)
class _Nodes:
    runtime: Runtime
    network: Network

    def explained(
        self, condition: ViewNode, derived: dict[str, DerivedNode]
    ) -> list[NodeExplanation]:
        """From the condition down to the tables."""
        inner = sorted(derived.values(), key=lambda node: (-node.level, node.id))
        nodes: list[Node] = [condition, *inner]
        stored = {
            name: relation
            for node in nodes
            for name, relation in node.depends_on().items()
            if name not in derived and relation.role is not Role.BEFORE
        }
        tables = [
            self._table(relation, [node for node in nodes if name in node.depends_on()])
            for name, relation in stored.items()
        ]
        return [*(self._node(node) for node in nodes), *tables]

    def _node(self, node: Node) -> NodeExplanation:
        goal = node.part.program.definitions[node.part.relation.id]
        costs = None if isinstance(node, TotalsNode) else self.network.chooser.costs(node)
        recursive = node.part.reason is Reason.RECURSIVE
        return NodeExplanation(
            id=_node_label(node),
            level=node.level,
            kind=node.part.reason.value,
            influents=tuple(each.label for each in node.depends_on().values()),
            clauses=print_definition(goal),
            whole=costs.whole if costs is not None else None,
            each_row=tuple(
                (node.depends_on()[name].label if name in node.depends_on() else name, cost)
                for name, cost in (costs.each_row.items() if costs and not recursive else ())
            ),
            kept=self._kept(node),
            label=_label_for_people(node),
            measured=tuple(node.experience.lines()) if node.experience is not None else (),
            decisions=tuple(
                _explained(each.decision, each.times, each.seconds)
                for each in self.network.chooser.decisions(node.id)
            ),
            next=self._next(node),
        )

    def _next(self, node: Node) -> DecisionExplanation | None:
        graph = self.network.graph
        known = (
            graph.node(node.view.name) if isinstance(node, ViewNode) else graph.derived.get(node.id)
        )
        if known is not node:
            return None
        one_each = dict.fromkeys(node.depends_on(), 1)
        return _explained(self.network.next_decision(node, one_each))

    def _kept(self, node: Monitored) -> str:
        if isinstance(node, TotalsNode):
            members = self.network.chooser.members(node)
            wanted = self.network.chooser.wants_totals(node)
            verb = "are kept" if wanted else "are not kept"
            is_there = node.table.holds()
            rows = f", {node.table.size()} of them, {_size(node.table)}" if is_there else ""
            if wanted and not is_there:
                verb = "are to be kept"
            if isinstance(node.totals, Derivations):
                if not wanted:
                    return "derivations are not counted: that ran away and was broken off"
                return counted(node)
            if isinstance(node.totals, FirstRows):
                return f"first rows {verb}{rows}, in their order"
            return (
                f"totals {verb}{rows}: a group has about {members:.0f} members, and the "
                f"limit is {tuning.LEAST_GROUP_MEMBERS:.0f}"
            )
        if isinstance(node, RecursiveNode) and node.refused is None:
            if not node.kept_rows.holds():
                return "nothing is stored for it: what a change needs is rederived on demand"
            size = _size(node.kept_rows)
            return (
                f"{node.kept_rows.size()} rows are stored of it and of what it depends on, {size}"
            )
        if isinstance(node, RoundsNode) and node.refused is None:
            if not node.table.holds():
                return "its rounds will be stored after the next change"
            return f"its rounds are stored: {node.table.size()} rows, {_size(node.table)}"
        if isinstance(node, RecursiveNode | RoundsNode):
            return f"recomputed at each change: {node.refused}"
        return ""

    def _table(self, relation: Relation, above: list[Node]) -> NodeExplanation:
        screener = self.network.graph.screener(relation, above)
        updates = self.network.chooser.statistics.updates.get(relation.id)
        return NodeExplanation(
            id=relation.label,
            level=0,
            kind="stored",
            influents=(),
            clauses="",
            rows=self.runtime.engine.count(relation),
            is_internal=relation.role is Role.ACTIVATIONS,
            indexes=self.runtime.engine.indexes.of(relation),
            events=_screener(self.runtime.engine, screener.row_tests),
            checks=_screener(self.runtime.engine, screener.moment_tests),
            updates="not yet updated in this session"
            if updates is None
            else f"{updates.transactions} transactions have changed {updates.rows} rows, lately "
            f"{updates.lately:.1f} each; the screener is for {screener.changes:.1f}",
        )


def _size(kept: AnyKept) -> str:
    return f"{kept.measure().bytes:,} bytes"


def _label_for_people(node: Node) -> str:
    """What is kept for a view has no name of its own."""
    if isinstance(node, TotalsNode):
        totals = node.totals
        if isinstance(totals, Totals):
            groups = len(totals.groups)
            kept = " and ".join(dict.fromkeys(each.aggregate for each in totals.measures))
            return f"{kept} by {groups} column{'' if groups == 1 else 's'}"
        return node.kind
    return _node_label(node)


def _node_label(node: Node) -> str:
    if isinstance(node, ViewNode):
        return node.part.relation.name
    return node.delta.relation.label


def counted(node: TotalsNode) -> str:
    table = cast(KeptCounts, node.table)
    if not table.holds():
        return "derivations will be counted after the next change"
    return f"derivations are counted: {table.size()} rows have {table.total()} of them"


def followed(network: Network, function: str) -> tuple[str, ...]:
    """How the changes of a materialized or monitored function are found, and how long that took."""
    lines: list[str] = []
    for name in (f"materialized {function}", f"monitor {function}"):
        node = network.graph.node(name)
        if node is None:
            continue
        below = [each for each in network.graph.derived.values() if each.id in node.keeps()]
        kept = [each for each in below if isinstance(each, TotalsNode)]
        lines += [counted(each) for each in kept if isinstance(each.totals, Derivations)]
        if node.counting_history is not None and node.counted is None:
            lines.append(
                "derivations are not counted: differentials look for another derivation "
                "of each row that may have come or gone"
            )
        lines += node.experience.lines() if node.experience is not None else ()
    return tuple(lines)


def _screener(
    engine: Engine, alternatives: tuple[Alternative, ...] | None
) -> ScreenerExplanation | None:
    if alternatives is None:
        return None
    return ScreenerExplanation(
        tests=tuple(" ∧ ".join(map(print_literal, each.tests)) for each in alternatives),
        sql=engine.capture.explain_screener(alternatives),
        cost=sum(each.cost for each in alternatives),
        passing=min(1.0, sum(each.passing for each in alternatives)),
    )
