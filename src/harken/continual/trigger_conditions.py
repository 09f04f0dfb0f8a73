"""Content triggers as the network watches them: each leaf of a condition is a view.

    condition(S, K) ← parameters(S, C) ∧ t(K, X) ∧ X > C

S is the subscription of a query for one leaf of its trigger. Leaves that differ only in their
constants share a view, whose parameters have a row for each subscription. Previous values are those
of `Reference`, which follows the rows of a table or of a table of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harken.ir.clauses import Program
from harken.ir.event_trees import Tree
from harken.ir.relations import Column, Kind, Relation, Role
from harken.maintenance.watched import NetChangeView, SharedView
from harken.values.types import INTEGER, TEXT, Type

LEAVES = 64
"""The numbers of subscriptions that each query has, one for each leaf."""
POSITIONS = Relation(
    "positions of executions",
    (Column("subscription", INTEGER), Column("position", INTEGER)),
    1,
    Kind.STORED,
    key=(0,),
    role=Role.PREVIOUS,
)
"""The last execution of each subscription, as a position among the changes."""
SIGNALS = Relation(
    "signals",
    (Column("name", TEXT), Column("number", INTEGER)),
    1,
    Kind.STORED,
    key=(0,),
    role=Role.PREVIOUS,
)
"""The number of the last signal of each name."""


def subscription(query: int, leaf: int) -> int:
    return query * LEAVES + leaf


def query_and_leaf(number: int) -> tuple[int, int]:
    return divmod(number, LEAVES)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCondition(SharedView):
    """A leaf of triggers, for all subscriptions of its shape."""

    parameters: Relation
    said: str

    @property
    def name(self) -> str:
        return f"trigger {self.label}"

    @property
    def title(self) -> str:
        return f"the trigger condition {self.said}"

    @property
    def may_fail(self) -> bool:
        """A condition that cannot be computed, as it divides by 0, holds for nothing."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRows(NetChangeView):
    """The rows whose previous values are kept: first the key, then the values."""

    label: str

    @property
    def name(self) -> str:
        return f"previous values of {self.label}"

    @property
    def title(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows(NetChangeView):
    """The rows of a table that a trigger reads which does not compile."""

    label: str

    @property
    def name(self) -> str:
        return f"rows of {self.label} for triggers"

    @property
    def title(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Reference:
    """Previous values: the relation has the key, the positions from and to which an execution must
    have for them to be its previous values, whether there was a row, and its values."""

    rows: ReferenceRows
    relation: Relation
    key: int
    """How many columns are the key."""


@dataclass(frozen=True, slots=True)
class RowReading:
    """How the values of a row are read by its key: `now`, and as at the last execution of a
    subscription, whose number comes first then."""

    alias: str
    columns: tuple[Column, ...]
    key_types: tuple[Type, ...]
    now: Program
    was: Program | None


@dataclass(frozen=True, slots=True)
class CompiledLeaf:
    kind: str
    """The value of a `LeafKind`."""
    view: WatchedCondition
    constants: tuple[Any, ...]
    """As they are stored."""
    holding: Program
    """The rows of the subscription that is its parameter."""
    references: tuple[Reference, ...]
    readings: tuple[RowReading, ...]
    names: tuple[str, ...]
    """The names of the key columns."""
    events: frozenset[str]


@dataclass(frozen=True, slots=True)
class CompiledTrigger:
    tree: Tree
    leaves: tuple[CompiledLeaf, ...]
    repeats: bool
    mentions: frozenset[str]
    """The names of the tables and views that it reads."""


class TriggerFrontEnd(Protocol):
    """The language of content triggers."""

    def reads(self, text: str) -> bool:
        """Whether the text is a content trigger; raises if it is one with a mistake."""

    def knows(self, text: str) -> bool:
        """Whether a content trigger that differs from it in constants only was read before."""

    def named(self, text: str) -> frozenset[str]:
        """The tables and views that a trigger names."""

    def rows_read(self, text: str, query: str) -> Sequence[ReadRows]:
        """What a trigger reads: its tables and views, or else those of the query."""

    def events(self, text: str) -> list[str]:
        """The events that a trigger waits for, as triplets (thesis, 4.2.3.2)."""

    def compile(self, text: str, query: str) -> CompiledTrigger:
        """Compile the text of a trigger; the columns of it that name no table are those of the
        tables of the query."""


def columns_of(trigger: CompiledTrigger) -> Mapping[str, Column]:
    """The columns of `triggered`: those of all tables of the trigger, each name once."""
    found: dict[str, Column] = {}
    for leaf in trigger.leaves:
        for reading in leaf.readings:
            for each in reading.columns:
                found.setdefault(each.name, Column(each.name, each.type.or_null(True)))
        for name in leaf.names:
            if not leaf.readings:
                found.setdefault(name, _key_column(leaf, name))
    return found


def _key_column(leaf: CompiledLeaf, name: str) -> Column:
    place = 1 + leaf.names.index(name)
    return Column(name, leaf.view.program.goal.columns[place].type.or_null(True))
