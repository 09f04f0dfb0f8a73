"""Errors about functions and rules that several statements and consumers report."""

from __future__ import annotations

from collections.abc import Iterable

from harken.errors import IntegrityError, NameFault, SafetyFault, Span, nearest
from harken.ir.schema import Function


def unknown_rule(name: str, known: Iterable[str], span: Span | None) -> NameFault:
    meant = nearest(name, known)
    return NameFault(
        f"there is no rule {name}",
        code="unknown-rule",
        span=span,
        hint=f"did you mean {meant}?" if meant else "create it first with `create rule`",
    )


def cannot_be_watched(function: Function, span: Span | None) -> SafetyFault:
    return SafetyFault(
        f"changes of {function.id} cannot be watched: it has values for arguments that are not "
        "stored anywhere",
        code="unsafe",
        span=span,
        hint="use the stored functions that it is computed from",
    )


def block_rolled_back() -> IntegrityError:
    return IntegrityError(
        "the block `with db.transaction()` was rolled back",
        code="rolled-back",
        hint="let this error pass, or raise one of your own, to leave the block",
    )


def statement_interrupted() -> IntegrityError:
    return IntegrityError(
        (
            "a statement was interrupted during its rollback, so its whole transaction was rolled "
            "back"
        ),
        code="rolled-back",
        hint="start the transaction again",
    )
