"""What the propagation network watches: a view whose changes someone wants.

A rule acts on them, a monitor delivers them to its client, a materialised view stores them. For the
network all are the same: a program whose goal is watched, under a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from harken.calculus.clock import with_clock
from harken.errors import SafetyFault
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.maintenance.event_bindings import Binding


@dataclass(frozen=True, slots=True)
class CompiledEvent:
    """An event of a rule: the kind of change, the rows of the function as a set, and the
    columns that they bind."""

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
    """The requested strategy: `auto`, `external` (nothing stored), `materialized` or `naive`."""

    def __post_init__(self) -> None:
        """What a view says of `now()`, it says of the clock: then passing time is a change."""
        object.__setattr__(self, "program", with_clock(self.program))

    @property
    @abstractmethod
    def name(self) -> str:
        """Its unique name in the network."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name in errors."""

    @property
    def strict(self) -> bool:
        """Whether rows that it had before are excluded from its gains."""
        return True

    @property
    def only_events(self) -> bool:
        """Whether it holds for everything that its events concern."""
        return False

    @property
    def acts_on_gains(self) -> bool:
        """With events: whether it acts on its gains only, rather than on everything it holds
        for."""
        return self.strict and not self.only_events

    @property
    def needs_losses(self) -> bool:
        """Whether its consumer always needs the lost rows."""
        return False

    @property
    def is_asked_at_end(self) -> bool:
        """Whether only the state at the end of a transaction matters. Then its evaluation may fail
        in earlier states, which the next rule may repair."""
        return False

    @property
    def may_read_past(self) -> bool:
        """Whether it may ask for old values: it is considered only while a transaction runs, and
        nothing that is computed of them is kept."""
        return False

    @property
    def may_fail(self) -> bool:
        """Whether a transaction may leave it in a state in which its rows cannot be computed."""
        return False

    @property
    def may_be_counted(self) -> bool:
        """Whether its derivations may be counted."""
        return True

    @property
    def depends_on_time(self) -> bool:
        """Whether it depends on chance, which is drawn anew at each moment: its old rows are those
        of its last evaluation. (Views over `now()` read the clock instead.)"""
        return False

    @property
    def is_looked_at(self) -> bool:
        """Whether its consumer wants the change between two looks, of many transactions: then it
        may cost less to recompute it at a look."""
        return False

    @property
    def stored(self) -> Relation | None:
        """The relation that the network stores its rows in, if it is materialised."""
        return None

    def has_no_past(self) -> SafetyFault:
        return SafetyFault(
            f"{self.title} asks for old values, which are known only while a transaction runs",
            code="unsafe",
            hint="use old, delta_plus and delta_minus in rules, and in what their actions call",
        )

    def has_same_definition(self, other: WatchedView) -> bool:
        return self.program == other.program and self.events == other.events


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChangeView(WatchedView):
    """A view whose consumer wants the net change of each transaction, with both signs."""

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def is_asked_at_end(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedView(NetChangeView):
    """One view for subscribers whose conditions differ in constants alone: the constants of each
    are a row of the parameters, and its number is the first column of the view."""

    label: str
    """What is watched; of a shared view, its shape."""
    parameters: Relation | None = None
    """None if only one subscriber has it."""
    looked_up: tuple[int, ...] = ()
    """The columns of the parameters that are compared with columns of the view: they get an
    index."""
    is_moving: bool = False
    """Whether it depends on chance."""

    @property
    def depends_on_time(self) -> bool:
        return self.is_moving

    @property
    def may_be_counted(self) -> bool:
        """Counts would have to follow the parameters, which change without an event."""
        return self.parameters is None
