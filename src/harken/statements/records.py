"""Stored functions that the system writes, from which users may only delete rows.

Law: what stands in the record of detached actions was triggered by a transaction.
"""

from __future__ import annotations

from harken.errors import SafetyFault
from harken.ir.schema import Function

RECORDS = frozenset({"detached_actions(integer)"})


def is_record(function: Function | None) -> bool:
    return function is not None and function.id in RECORDS


def refuse_rows(function: Function | None) -> None:
    """Rows are about to be added or changed by a statement."""
    if function is not None and function.id in RECORDS:
        raise SafetyFault(
            f"rows of {function.name} are written by detached rules; they can be deleted only",
            code="not-updatable",
            hint="to delete a row discards the action; db.retry_actions() tries it again",
        )
