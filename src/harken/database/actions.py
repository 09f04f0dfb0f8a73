"""What a rule does, ready to run.

A front end compiles the action of a rule; whoever carries it out knows it by this protocol.
"""

from __future__ import annotations

from typing import Protocol

from harken.database.evaluation import Frame
from harken.database.runtime import Runtime
from harken.errors import IntegrityError


class Action(Protocol):
    def run(self, runtime: Runtime, frame: Frame) -> None: ...


class RollbackRequest(Exception):
    """A `rollback` inside a procedure: unwinds to the session, which undoes the transaction."""


class TransactionUndone(IntegrityError):
    """An action has asked for the whole transaction to be undone, not only its statement."""
