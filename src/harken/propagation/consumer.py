"""Who wants the changes of watched views.

A consumer puts views into the network (`Network.insert`), with itself as their owner. The check
phase hands it each change of its views, asks it what it wants to do about them, and tells it what
becomes of the transaction. The network and the check phase know consumers only by this class; a
consumer overrides what concerns it. Only `receive` has no default.

Law: a consumer that restores a snapshot behaves as if nothing had happened since it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from harken.errors import HarkenError
from harken.maintenance.watched import WatchedView
from harken.propagation.wave import ViewChange

IMMEDIATE, DEFERRED = "immediate", "deferred"

InOwnTransaction: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs something in a transaction of its own, with a check phase, and commits it."""


@dataclass(frozen=True, slots=True)
class PendingAction:
    """Something that a consumer wants to do now. The name is for the error that says which actions
    never come to an end."""

    name: str
    run: Callable[[], None]


class Consumer:
    # --- in the check phase ------------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        """A view gained and lost rows."""
        raise NotImplementedError

    def wants_minus(self, view: str) -> bool:
        """Are the rows that a view lost wanted in this wave, though it does not need them every
        time?"""
        return False

    def sums_events(self, view: WatchedView) -> bool:
        """Are the events of a view only summed up for now, because it looks at the transaction as
        a whole?"""
        return False

    def begin_check(self) -> None:
        """The transaction is to be committed: from here on each wave is a check of its own."""

    def end_check(self) -> None:
        """The check phase of the transaction is over, or has failed."""

    def next_action(self, coupling: str) -> PendingAction | None:
        """The most urgent action of this coupling, if there is one."""
        return None

    def settle(self) -> None:
        """No action is left. An error undoes the transaction."""

    def snapshot(self) -> object:
        """What a savepoint must be able to bring back."""
        return None

    def restore(self, state: object) -> None:
        """Something was undone: go back to a snapshot."""

    def forget(self) -> None:
        """The transaction is over: nothing of it is left to do."""

    # --- around the transaction --------------------------------------------------------------

    def synchronise(self) -> None:
        """Let the network have the views that the catalog says there are."""

    def refresh(self) -> None:
        """Another session has committed: look again at what the file says is watched."""

    def before_schema_change(self, names: Collection[str] | None) -> None:
        """Functions of these names, or anything, are about to be defined again."""

    def note_redefined(self, view: WatchedView) -> None:
        """What a view is computed by has changed, though its clauses say the same."""

    def before_check(self) -> None:
        """The check phase is about to run: refuse it if a view that must be watched is not."""

    def record(self) -> bool:
        """Write down what is to be done after the commit. If anything was written, that is a change
        in turn, and the check phase runs again."""
        return False

    def before_commit(self) -> None:
        """Write down, in the transaction, what it did."""

    def after_commit(self) -> None:
        """The transaction is committed."""

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        """Do what was recorded, each in a transaction of its own; what failed."""
        return iter(())

    def tell(self) -> list[HarkenError]:
        """All is over: tell listeners, who may begin a transaction; what failed."""
        return []

    def after_undo(self) -> None:
        """Tables were undone, perhaps with what the consumer keeps in them."""

    def after_clearing(self) -> None:
        """No view is in the network any more; `synchronise` is called next."""

    def after_transaction(self) -> None:
        """The transaction was committed or rolled back."""
