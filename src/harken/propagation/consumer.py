"""The protocol of consumers: those who want the changes of watched views.

A consumer inserts views into the network (`Network.insert`), with itself as their owner. The check
phase delivers each change of its views, asks it for its next action, and notifies it of what
happens to the transaction. The network and the check phase know consumers only by this class. A
consumer overrides what concerns it; only `receive` has no default.

Law: a consumer that restores a snapshot behaves as if nothing had happened since it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from harken.errors import HarkenError
from harken.maintenance.watched import WatchedView
from harken.propagation.wave import ViewChange

IMMEDIATE, DEFERRED = "immediate", "deferred"

InOwnTransaction: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs a function in a transaction of its own, with a check phase, and commits it."""


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An action that a consumer wants to run now. The name is for the error about actions that
    never end."""

    name: str
    run: Callable[[], None]
    is_immediate: bool = False


class Consumer:
    # --- in the check phase ------------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        """A view gained and lost rows."""
        raise NotImplementedError

    def wants_minus(self, view: str) -> bool:
        """Whether the lost rows of a view are needed in this wave; only called for views that do
        not always need them."""
        return False

    def sums_events(self, view: WatchedView) -> bool:
        """Whether the events of a view are only summed up for now, because it considers the
        transaction as a whole."""
        return False

    def is_shared(self, view: WatchedView) -> bool:
        """Whether every session of the file has this view and brings it up to date."""
        return True

    # The next four are called only if a consumer has received anything in this transaction.

    def begin_check(self) -> None:
        """The transaction is about to commit: from here on each wave is a check of its own."""

    def end_check(self) -> None:
        """The check phase of the transaction has ended or failed."""

    def next_action(self, coupling: str) -> PendingAction | None:
        """The most urgent action of this coupling, if any."""
        return None

    def settle(self) -> None:
        """No action is left. An error rolls the transaction back."""

    def note_failure(self, view: WatchedView, error: HarkenError) -> None:
        """The rows of a view that may fail cannot be computed in the state that is committed: they
        count as none."""

    def snapshot(self) -> object:
        """The state that a savepoint restores."""
        return None

    def restore(self, state: object) -> None:
        """After a rollback: return to a snapshot."""

    def forget(self) -> None:
        """The transaction is over: drop all pending work."""

    # --- around the transaction --------------------------------------------------------------

    def synchronise(self) -> None:
        """Make the network watch the views that the catalog defines."""

    def refresh(self) -> None:
        """Another session has committed: read again what the file says is watched."""

    def before_schema_change(self, names: Collection[str] | None) -> None:
        """Functions of these names, or with None any, are about to be redefined."""

    def note_redefined(self, view: WatchedView) -> None:
        """The definitions below a view have changed, though its own clauses are the same."""

    def before_check(self) -> None:
        """Called before the check phase: raise if a view that must be watched is not."""

    def record(self) -> bool:
        """Record what must be done after the commit. Anything recorded is itself a change, and the
        check phase runs again. Called only if a consumer has received anything."""
        return False

    def before_rollback(self) -> list[Any]:
        """What is to be done although the transaction will be rolled back."""
        return []

    def before_commit(self) -> None:
        """Record in the transaction which actions ran."""

    def after_commit(self) -> None:
        """The transaction is committed."""

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        """Carry out what was recorded, each in a transaction of its own; yields the errors."""
        return iter(())

    def tell(self) -> list[HarkenError]:
        """The transaction is over: notify listeners, who may begin a transaction; returns the
        errors."""
        return []

    def after_undo(self) -> None:
        """Tables were rolled back, perhaps including those of the consumer."""

    def after_clearing(self) -> None:
        """The network is empty; `synchronise` is called next."""

    def after_transaction(self) -> None:
        """The transaction was committed or rolled back."""


class Consumers:
    """The registered consumers, in order. A transaction calls a dozen hooks of each, most of which
    do nothing, so those that override a hook are looked up once."""

    def __init__(self) -> None:
        self.all: list[Consumer] = []
        self.overriding: dict[str, list[Consumer]] = {
            hook: [] for hook in vars(Consumer) if not hook.startswith("_")
        }
        """For each hook, by the name of the method, the consumers that have one of their own."""

    def register(self, consumer: Consumer) -> None:
        self.all.append(consumer)
        for hook, overriding in self.overriding.items():
            if getattr(type(consumer), hook) is not getattr(Consumer, hook):
                overriding.append(consumer)
