"""The protocol of compiled actions.

A front end compiles the action of a rule; consumers run it through this protocol.
"""

from __future__ import annotations

from typing import Protocol

from harken.database.evaluation import Frame
from harken.database.runtime import Runtime
from harken.errors import IntegrityError


class Action(Protocol):
    def run(self, runtime: Runtime, frame: Frame) -> None: ...


class RollbackRequest(Exception):
    """Raised by `rollback` inside a procedure. It unwinds to the session, which rolls back the
    transaction."""


class TransactionUndone(IntegrityError):
    """An action asked for the whole transaction to be rolled back, not only its statement."""
