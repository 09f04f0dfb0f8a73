"""Calls of procedures from other languages than the one that they are written in.

A language whose procedures can be called registers how when its module is imported, so languages
need not know each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harken.database.runtime import Runtime
from harken.errors import TypeFault
from harken.values.rows import Row
from harken.values.types import Type


class ProcedureCall(Protocol):
    def __call__(self, runtime: Runtime, name: str, values: Row, types: Sequence[Type]) -> None:
        """Call the procedure of a name that takes stored values of these types."""


_CALLS: list[ProcedureCall] = []


def register(call: ProcedureCall) -> None:
    _CALLS.append(call)


def is_procedure(runtime: Runtime, name: str) -> bool:
    named = runtime.catalog.named(name)
    return bool(named) and all(each.has_effects for each in named)


def call_procedure(runtime: Runtime, name: str, values: Row, types: Sequence[Type]) -> None:
    if not is_procedure(runtime, name) or not _CALLS:
        raise TypeFault(f"there is no procedure {name}", code="unknown-function")
    _CALLS[0](runtime, name, values, types)
