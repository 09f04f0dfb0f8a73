"""What the propagation network watches: a view whose changes someone wants.

A rule wants them to act on, a monitor to hand them to its client, a materialised view to store
them. To the network all are the same: a program whose goal is watched, under a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.maintenance.event_bindings import Binding


@dataclass(frozen=True, slots=True)
class CompiledEvent:
    """A kind of change, and of what: the rows of a function as a set, and what they bind."""

    kind: str
    program: Program
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedView(ABC):
    program: Program
    """The view with all its definitions, none of them expanded."""
    events: tuple[CompiledEvent, ...] = ()
    """What must happen for the condition to be considered."""
    strategy: str = "auto"
    """How its change is to be found, whatever that costs: `external`, with nothing stored,
    `materialized` or `naive`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in the network; no two views have the same name."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What an error calls it."""

    @property
    def strict(self) -> bool:
        """Are rows that it had already left out of those it gained?"""
        return True

    @property
    def only_events(self) -> bool:
        """Does it hold for everything that its events are about?"""
        return False

    @property
    def acts_on_gains(self) -> bool:
        """With events, is only what it gained acted on? If not, it is all that it holds for."""
        return self.strict and not self.only_events

    @property
    def needs_losses(self) -> bool:
        """Are the rows that it lost wanted every time?"""
        return False

    @property
    def is_asked_at_end(self) -> bool:
        """Does only the state at the end of a transaction matter? Then its evaluation may fail in
        states on the way there, which the next rule may repair."""
        return False

    @property
    def may_be_counted(self) -> bool:
        """May its derivations be counted?"""
        return True

    @property
    def moves(self) -> bool:
        """Does it ask for the time, so that rows come and go without a change?"""
        return False

    @property
    def stored(self) -> Relation | None:
        """The relation that the network keeps its rows in, if it is materialised."""
        return None

    def says_the_same(self, other: WatchedView) -> bool:
        return self.program == other.program and self.events == other.events
