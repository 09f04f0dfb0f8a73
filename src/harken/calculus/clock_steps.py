"""How a value of the moment goes on as time passes.

`now() - 60` moves with the time. `date(now())` stays the same through cells of time, here days, and
jumps at their boundaries; `now() - INTERVAL 1 MONTH` moves within days and jumps between them. All
of this is UTC, where days have the same length, so boundaries are plain arithmetic. Of what is not
known to be one of these, the next change cannot be told.

Law: between two boundaries of its pace, a value is constant or grows exactly as the time does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harken.calculus.clock import NOW, ClockUses, RangeTest, Test, ValueTest
from harken.ir.clauses import Computation
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import TIMESTAMP

SECOND = 1_000_000
"""In microseconds, as all of this is."""
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
PARTS = {
    "to_date": DAY,
    "year": DAY,
    "month": DAY,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
}
"""What is cut off a timestamp, and for how long the result stays the same."""
PATTERN_CELLS = (("HhkKa", HOUR), ("m", MINUTE))
"""The letters of `date_format` that change within a day."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`moves` says that the value grows with the time inside the cells. `cells` are lengths, each
    with an offset: a boundary is where the moment plus the offset is a multiple of the length.
    `shift` is how far a value that only moves is ahead of the time; None where it also jumps."""

    moves: bool
    cells: frozenset[tuple[int, int]] = frozenset()
    shift: int | None = 0

    def next_boundary(self, moment: int) -> int | None:
        """The first boundary after a moment."""
        found = (moment + cell - (moment + offset) % cell for cell, offset in self.cells)
        return min(found, default=None)


STILL = Pace(moves=False)
"""A constant."""


def paces(uses: ClockUses) -> Mapping[Variable, Pace | None]:
    """The pace of each value of the moment in a clause; None if it is not known."""
    found: dict[Variable, Pace | None] = {NOW: Pace(moves=True)}
    for variable, computation in uses.values.items():
        found[variable] = _pace(computation, found)
    return found


def is_followed(test: Test, known: Mapping[Variable, Pace | None]) -> bool:
    """Whether it can be computed from the data when the outcome of a test changes next."""
    pace = known[test.moment]
    if pace is None:
        return False
    if isinstance(test, ValueTest):
        return not pace.moves
    assert isinstance(test, RangeTest)
    return not pace.moves or test.moment.type.or_null(False) == TIMESTAMP or pace.shift is not None


def _pace(computation: Computation, known: Mapping[Variable, Pace | None]) -> Pace | None:
    """The pace of the result, from those of the arguments."""
    given = [_of_term(each, known) for each in computation.arguments]
    if any(each is None for each in given):
        return None
    here = [each for each in given if each is not None]
    cells = frozenset[tuple[int, int]]().union(*(each.cells for each in here))
    moving = [each for each in here if each.moves]
    if not moving:
        return Pace(moves=False, cells=cells)
    if len(moving) > 1:
        return None
    return _of_moving(computation, moving[0], cells)


def _of_term(term: Term, known: Mapping[Variable, Pace | None]) -> Pace | None:
    return known.get(term) if isinstance(term, Variable) else STILL


def _of_moving(
    computation: Computation, moving: Pace, cells: frozenset[tuple[int, int]]
) -> Pace | None:
    """The pace of what is computed of one moving value, and perhaps of others that stay."""
    match computation.operation, computation.arguments:
        case "+", (_, by) if _is_timestamp(computation.result):
            return _shifted(moving, by, 1, cells)
        case "-", (first, by) if _is_timestamp(first) and not _is_timestamp(by):
            return _shifted(moving, by, -1, cells)
        case "-", (first, second) if _is_timestamp(second) and cells:
            # The time since a boundary: it moves, and is of use only to be added to another.
            own = isinstance(second, Constant) or _is_timestamp(first)
            return Pace(moves=True, cells=cells, shift=None) if own else None
        case "unix_micros", _:
            return moving
    if moving.shift is None or moving.cells:
        return None
    return _cut_off(computation, moving.shift)


def _shifted(moving: Pace, by: Term, sign: int, cells: frozenset[tuple[int, int]]) -> Pace | None:
    if isinstance(by, Constant) and isinstance(by.value, int | float):
        shift = None if moving.shift is None else moving.shift + sign * round(by.value * SECOND)
        return Pace(moves=True, cells=cells, shift=shift)
    return Pace(moves=True, cells=cells, shift=None) if sign > 0 else None


def _cut_off(computation: Computation, shift: int) -> Pace | None:
    """The pace of a part of a moment."""
    cell: int | None = PARTS.get(computation.operation)
    match computation.operation, computation.arguments:
        case (("floor_timestamp" | "div"), (_, Constant(value=int(unit)))) if unit > 0:
            cell = unit
        case "date_format", (_, Constant(value=str(pattern))):
            cell = _cell_of_pattern(pattern)
    return None if cell is None else Pace(moves=False, cells=frozenset({(cell, shift)}))


def _cell_of_pattern(pattern: str) -> int | None:
    """For how long a moment shown by a pattern looks the same; None if for no more than a second,
    which is too often to look."""
    if any(letter in pattern for letter in "sSAnN"):
        return None
    found = (cell for letters, cell in PATTERN_CELLS if any(each in pattern for each in letters))
    return min(found, default=DAY)


def _is_timestamp(term: Term) -> bool:
    return term.type.or_null(False) == TIMESTAMP
