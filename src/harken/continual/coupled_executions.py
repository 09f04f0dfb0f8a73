"""Executions that belong to the transaction that triggers them: coupled more closely than by the
queue.

With `IN TRANSACTION` (same, synchronous, deferred) a query is executed before the commit, and its
messages commit with the changes; with a separate but synchronous coupling it is executed right
after the commit, before the session goes on. Every firing waits in the queue of the file as well,
so one that is not executed here is executed by whoever does what is due.

Law: a firing is executed once, however its query is coupled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from harken.continual.couplings import Coupling
from harken.errors import HarkenError
from harken.propagation.consumer import Consumer, InOwnTransaction
from harken.propagation.wave import ViewChange


class Executing(Protocol):
    """What is needed of `ContinualQueries`."""

    def step_here(self, number: int) -> None:
        """Do what there is to do for a query, in the open transaction."""

    def fail_here(self, number: int, error: HarkenError) -> None: ...

    def flush(self) -> None: ...


class CoupledExecutions(Consumer):
    def __init__(self, queries: Executing) -> None:
        self._queries = queries
        self._before: tuple[int, ...] = ()
        """The queries to execute before the commit."""
        self._after: tuple[int, ...] = ()
        """The queries to execute right after it."""

    def note(self, number: int, coupling: Coupling) -> None:
        """In a transaction: a query with this coupling to its execution has been triggered."""
        if coupling.deferred:
            self._before = (*self._before, number)
        elif coupling.synchronous:
            self._after = (*self._after, number)

    def receive(self, change: ViewChange) -> None:
        """It has no views of its own."""

    def record(self) -> bool:
        if not self._before:
            return False
        numbers, self._before = dict.fromkeys(self._before), ()
        self._queries.flush()
        for number in numbers:
            try:
                self._queries.step_here(number)
            except HarkenError as error:
                self._queries.fail_here(number, error)
        return True

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        if not self._after:
            return iter(())
        numbers, self._after = dict.fromkeys(self._after), ()
        for number in numbers:
            try:
                run(partial(self._queries.step_here, number))
            except HarkenError as error:
                run(partial(self._queries.fail_here, number, error))
        return iter(())

    def snapshot(self) -> object:
        return self._before, self._after

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._before, self._after = state

    def after_transaction(self) -> None:
        self._before = ()

    def forget(self) -> None:
        self._before, self._after = (), ()
