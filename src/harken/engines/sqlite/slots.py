"""The parameters of a statement: the caller's values, and the rows up to which tables are read.

A statement numbers what it uses, `?1`, `?2`, in the order in which it is met; whoever runs it binds
a value to each. The rules of a recursion read tables that grow: from which row and up to which one
are parameters as well, with negative indexes, for they are never the caller's.
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
        """The slots a statement binds: those up to the last that occurs in it.

        A value that was computed and then not needed leaves its slot unused.
        """
        numbers = [int(number) for number in _SLOT.findall(_QUOTED.sub("", sql))]
        return tuple(self.used[: max(numbers, default=0)])


FROM_ROW = Parameter(-1, INTEGER)
"""Behind which row the recent rows of a table are."""


def last_row(table: int) -> Parameter:
    """The row up to which the table of this number is read."""
    return Parameter(-2 - table, INTEGER)


def last_row_of(index: int) -> int:
    """The number of the table, by the index of that parameter."""
    return -2 - index
