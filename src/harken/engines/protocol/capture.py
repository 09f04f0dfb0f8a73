"""Capturing changes: the Δ-sets of relations, as handles.

A Δ-set holds rows, each with the weight by which its multiplicity changed. Where the rows lie is
the engine's business: in a table, in memory, or in the lake, so that only their number is known
here. Plans read a Δ-set by the relation `calculus.states.delta` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from harken.engines.protocol.prepared_queries import Query
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.planner.screen import Alternative, Screener
from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class LargeChange:
    """A change with too many rows to copy them."""

    size: int


class Delta(Protocol):
    """The change of one relation: a handle, which plans read by its relation.

    Law: a row has one weight, the sum of all it was given; a rollback, also to a savepoint, takes
    back what came since.
    """

    @property
    def relation(self) -> Relation: ...

    def create(self) -> None:
        """Make room for it, unless there is some; a rollback may have taken it."""

    def drop(self) -> None: ...

    def fill(self, query: Query, weight: int) -> None:
        """Take in the rows of a query, each with this weight."""

    def fill_weighted(self, query: Query) -> None:
        """Take in the rows of a query whose last column is the weight."""

    def rows(self) -> tuple[list[Row], list[Row]]:
        """What was added and what was removed, each row once."""

    def size(self) -> int: ...

    def has_lost(self) -> bool:
        """Was any row removed?"""

    def clear(self) -> None: ...


class CapturedDelta(Delta, Protocol):
    """The change of a stored relation since it was last settled, kept as it happens.

    Law: the rows with a weight that passed the row tests of the screener are the difference
    between the relation now and when it was last settled.
    """

    @property
    def is_reported(self) -> bool:
        """Do its changes come by `note` alone?"""

    @property
    def screener(self) -> Screener: ...

    def screen(self, screener: Screener) -> None:
        """From now on, let this be the screener."""

    def note(self, rows: Sequence[Row] | LargeChange) -> None:
        """Take in a change that the engine does not see happen: rows, the last value of each its
        weight, or the number of those that stay elsewhere."""

    def add(self, rows: Sequence[Row]) -> None:
        """The same for rows, but the relation does not become pending: whoever propagates them
        knows of them."""

    def capture(self) -> None:
        """Capture changes, also after a rollback that undid how they were captured."""

    def unwatch(self) -> None:
        """Stop capturing, and drop the captured change."""


class Capture(Protocol):
    """Captures the changes of stored relations.

    Law: a relation is pending if and only if a row of it that passed the row tests has changed
    since it was last settled; a rollback takes that back.
    """

    def delta(self, relation: Relation) -> Delta:
        """The handle of a Δ-set that a node fills; nothing is made before `create`."""

    def watch(self, relation: Relation, *, reported: bool = False) -> CapturedDelta:
        """Capture the changes of a relation from now on. Those of one that is `reported` come by
        `note`."""

    def pending(self) -> Mapping[str, bool]:
        """The ids of the relations that have changed; true if a change passed the moment tests of
        its screener."""

    def settle(self, changes: Iterable[CapturedDelta]) -> None:
        """All readers are done: drop these changes, so that nothing is pending."""

    def forget_large(self, changes: Iterable[CapturedDelta]) -> None:
        """Changes that stayed elsewhere are undone."""

    def can_take_back(self, relation: Relation) -> bool:
        """Can a change of the relation be taken back for a while, by `before`?"""

    def before(self, changes: Iterable[CapturedDelta]) -> AbstractContextManager[None]:
        """In the block, the relations have the rows they had before these changes."""

    def explain_screener(self, alternatives: tuple[Alternative, ...] | None) -> str:
        """The test that a changed row has to pass, as the engine runs it, for people to read."""


class Histories(Protocol):
    """The net changes of stored relations since the transaction, or the statement, began. Plans
    read them by the relation that `ir.past_relations.history` gives; the engine keeps what the
    plans that it compiles read.

    Law: the rows with a weight are the difference between the relation now and then.
    """

    def ensure(self, program: Program) -> None:
        """Keep the histories that a program reads, from now on."""

    def began_late(self, program: Program) -> Relation | None:
        """A relation of which the open transaction does not know all changes."""

    def forget(self, since: str | None = None) -> None:
        """The transaction, or only the statement, is over."""

    def follow(self) -> None:
        """Tables may have come, gone, or been rolled back."""
