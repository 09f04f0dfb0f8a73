"""Errors about functions and rules that statements and consumers report in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from harken.errors import NameFault, SafetyFault, Span, nearest
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
        f"{function.id} has values for arguments that are nowhere stored, so nobody can see it "
        "change",
        code="unsafe",
        span=span,
        hint="name the stored functions that it is computed from",
    )
