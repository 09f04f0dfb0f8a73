"""The parameters of a statement: the caller's values, and the row numbers between which it reads.

A statement numbers its parameters `?1`, `?2` in the order of first use; the caller binds a value
to each. The rules of a recursion read growing tables: the first and last row number to read are
parameters as well, with negative indexes to keep them apart from the caller's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harken.ir.terms import Parameter
from harken.values.types import INTEGER, Type

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_SLOT = re.compile(r"\?(\d+)")


@dataclass(slots=True)
class Slots:
    """The parameters of a statement in the order of their `?n`: (index, type as it is used)."""

    used: list[tuple[int, Type]] = field(default_factory=list)

    def text(self, parameter: Parameter) -> str:
        slot = (parameter.index, parameter.type)
        if slot not in self.used:
            self.used.append(slot)
        return f"?{self.used.index(slot) + 1}"

    def bound_in(self, sql: str) -> tuple[tuple[int, Type], ...]:
        """The parameters a statement binds: all up to the last one that occurs in it.

        A value that was compiled and then not needed leaves its parameter unused.
        """
        numbers = [int(number) for number in _SLOT.findall(_QUOTED.sub("", sql))]
        return tuple(self.used[: max(numbers, default=0)])


FROM_ROW = Parameter(-1, INTEGER)
"""The index of the parameter after whose row number the recent rows begin."""


def last_row(table: int) -> Parameter:
    """The index of the parameter for the last row to read of the table with this number."""
    return Parameter(-2 - table, INTEGER)


def last_row_of(index: int) -> int:
    """The number of the table, from the index of that parameter."""
    return -2 - index
