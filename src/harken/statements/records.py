"""Stored functions written by the system, from which users may only delete rows.

Law: every row of the record of detached actions comes from a transaction that triggered it.
"""

from __future__ import annotations

from harken.errors import SafetyFault
from harken.ir.schema import Function

RECORDS = frozenset({"detached_actions(integer)"})


def is_record(function: Function | None) -> bool:
    return function is not None and function.id in RECORDS


def refuse_rows(function: Function | None) -> None:
    """Called before a statement adds or changes rows."""
    if function is not None and function.id in RECORDS:
        raise SafetyFault(
            (f"rows of {function.name} are written by detached rules; they can only be deleted"),
            code="not-updatable",
            hint="deleting a row discards the action; db.retry_actions() retries it",
        )
