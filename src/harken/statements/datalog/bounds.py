"""Limits of Datalog relations beyond their column types.

An unsigned number is never negative, and the one column of a relation without attributes is true.
Law: whichever language adds rows, a Datalog relation holds only rows that Datalog could have
stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from harken.errors import IntegrityError
from harken.ir.schema import Function
from harken.lang.datalog.kinds import UNSIGNED, Types
from harken.statements.datalog.text import kept
from harken.values.rows import Row


def check_bounds(function: Function, rows: Sequence[Row]) -> None:
    """Check rows, in stored form, that are going to be added."""
    for position, name in _unsigned(function.text):
        for row in rows:
            if row[position] < 0:
                raise IntegrityError(
                    (f"{function.name}.{name} is unsigned, but {row[position]} is below zero"),
                    code="bad-value",
                )
    if not kept(function.text).declaration.attributes and any(not row[0] for row in rows):
        raise IntegrityError(
            f"{function.name} has no attributes: its column is true",
            code="bad-value",
            hint="to say that it does not hold, delete the row",
        )


@lru_cache(maxsize=1024)
def _unsigned(text: str) -> tuple[tuple[int, str], ...]:
    known = kept(text)
    types = Types()
    types.declare(known.types)
    return tuple(
        (position, each.name)
        for position, each in enumerate(known.declaration.attributes)
        if types.kind(each.type, each.span) is UNSIGNED
    )
