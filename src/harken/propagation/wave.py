"""One propagation: what has changed so far, which nodes that reaches, and what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harken.engines.protocol import NO_ANSWERS, Answers
from harken.errors import HarkenError
from harken.ir.relations import Relation
from harken.maintenance.decisions import Decision
from harken.maintenance.nodes import Node, ViewNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.maintenance.wave_plan import WavePlan
from harken.propagation.watched_events import Changes
from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The change of a view, and how it was found."""

    view: WatchedView
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    decision: Decision
    fresh: bool = False
    """Whether the earlier rows are unknown. Then `plus` has all rows, and replaces everything
    before."""
    failure: HarkenError | None = None
    """Why its rows cannot be computed at present: they are computed again at the end of the
    transaction."""
    summed: Changes | None = None
    """The gains and losses of the functions of its events, if they are to be summed up: then `plus`
    is not yet restricted to what the events concern."""

    @property
    def strategy(self) -> Strategy:
        return self.decision.strategy


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The change of a node between the tables and the views, for the trace."""

    relation: Relation
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    decision: Decision


@dataclass(slots=True)
class Wave:
    """One propagation: what has changed so far, and which nodes that reaches, by level."""

    stored: set[str]
    """The stored relations that have changed; those of stored views are added during the wave."""
    changed: set[str]
    reached: dict[int, dict[str, Node]] = field(default_factory=dict)
    last_reader: dict[str, int] = field(default_factory=dict)
    """For each changed node the highest level that reads its Δ-set."""
    sizes: dict[str, int] = field(default_factory=dict)
    """The rows of the Δ-sets."""
    plan: WavePlan = field(kw_only=True)
    counting: dict[str, float] = field(default_factory=dict)
    """The seconds spent updating counted derivations."""
    fresh: set[str] = field(default_factory=set)
    """Kept state that was updated by newly made plans."""
    to_switch: list[ViewNode] = field(default_factory=list)
    """Views whose derivations will be counted from now on, or no longer."""
    answers: Answers = NO_ANSWERS
    """Answers computed in advance for the nodes of the present level."""

    def note_changed(self, name: str, size: int) -> None:
        """A stored relation has changed in this wave."""
        self.stored.add(name)
        self.changed.add(name)
        self.sizes[name] = size
        self.plan.note_changed(name, size)

    def visit(self, node: Node) -> None:
        """Plan to compute a node, whether or not anything below it has changed."""
        self.reached.setdefault(node.level, {})[node.id] = node

    def reach(self, name: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.visit(node)
            self.last_reader[name] = max(node.level, self.last_reader.get(name, 0))

    def levels(self) -> Iterator[tuple[int, list[Node]]]:
        while self.reached:
            level = min(self.reached)
            yield level, list(self.reached.pop(level).values())
