"""Stored functions written by the system: users may only delete their rows, or only read them.

Laws: every row of the record of detached actions comes from a transaction that triggered it; every
row of a source's mirror comes from the source.
"""

from __future__ import annotations

from harken.database.language_names import SQL
from harken.errors import SafetyFault
from harken.ir.schema import Function

RECORDS = frozenset({"detached_actions(integer)"})
BOARDS = frozenset({"source_update(charstring,charstring)", "source_state(charstring)"})
"""What Harken tells about sources."""
MIRROR = "CREATE SOURCE "
DOMAIN = "CREATE DOMAIN "


def is_record(function: Function | None) -> bool:
    """Are not all changes of its rows allowed?"""
    return function is not None and (function.id in RECORDS or is_read_only(function))


def is_mirror(function: Function) -> bool:
    """Is it the relation of an outside source?"""
    return function.language == SQL and function.text.startswith(MIRROR)


def is_domain(function: Function) -> bool:
    """Is it the view that a group of relations is?"""
    return function.language == SQL and function.text.startswith(DOMAIN)


def is_read_only(function: Function) -> bool:
    return function.id in BOARDS or is_mirror(function)


def refuse_deletion(function: Function | None) -> None:
    """Called before a statement deletes rows."""
    if function is not None and is_read_only(function):
        what = "the rows of a source" if is_mirror(function) else "what Harken tells of sources"
        raise SafetyFault(
            f"{function.name} has {what}, which only Harken changes",
            code="not-updatable",
            hint=f"change them where they come from, and REFRESH SOURCE {function.name}"
            if is_mirror(function)
            else None,
        )


def refuse_redefinition(function: Function | None) -> None:
    """Called before something is dropped, altered or replaced by a statement about tables."""
    if function is not None and is_mirror(function):
        raise SafetyFault(
            f"{function.name} is a source, not a table",
            code="type-mismatch",
            hint=f"DROP SOURCE {function.name}, or ALTER SOURCE {function.name}",
        )
    if function is not None and is_domain(function):
        raise SafetyFault(
            f"{function.name} is a domain, not a view",
            code="type-mismatch",
            hint=f"DROP DOMAIN {function.name}, or ALTER DOMAIN {function.name}",
        )


def refuse_rows(function: Function | None) -> None:
    """Called before a statement adds or changes rows."""
    refuse_deletion(function)
    if function is not None and function.id in RECORDS:
        raise SafetyFault(
            (f"rows of {function.name} are written by detached rules; they can only be deleted"),
            code="not-updatable",
            hint="deleting a row discards the action; db.retry_actions() retries it",
        )
