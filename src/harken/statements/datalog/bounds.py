"""What a relation of Datalog cannot hold, though its columns could.

An unsigned number is not below zero, and the one column of a relation without attributes is true.
Law: whatever language adds rows, Datalog finds only such as it could have stated itself.
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
    """Rows as they are stored, which are going to be added."""
    for position, name in _unsigned(function.text):
        for row in rows:
            if row[position] < 0:
                raise IntegrityError(
                    f"{function.name}.{name} is unsigned, and {row[position]} is below zero",
                    code="bad-value",
                )
    if not kept(function.text).declaration.attributes and any(not row[0] for row in rows):
        raise IntegrityError(
            f"{function.name} has no attributes: its column is true",
            code="bad-value",
            hint="where it does not hold there is no row: delete it",
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
