"""Aggregates of a whole group, in Python: the same bytes on every engine.

    fold(name, settings, rows)  = the aggregate of rows (value, *others) of stored values

Law: the order of the rows does not matter. What is inexact is rounded once, at the end: a variance
is that of the very numbers in the group, however they came there, so it does not drift.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial, reduce
from operator import and_, or_, xor
from typing import Any

from harken.errors import ValueFault
from harken.values.encoding import LARGEST, SMALLEST
from harken.values.failures import too_large
from harken.values.rows import Row
from harken.values.sql_functions import LONGEST

Settings = Sequence[Any]


def fold(name: str, settings: Settings, rows: Sequence[Row]) -> Any:
    """The first of the settings says whether equal rows count once, the second how many digits
    behind the point the values have that are taken as doubles.

    >>> fold("percentile", [False, [1], 0.5, False], [(40,), (15,), (20,)])
    2.0
    >>> fold("listagg", [False, [], ", ", [[True, False]]], [("a", 1), ("b", 2)])
    'b, a'
    """
    distinct, scales, *others = settings
    if distinct:
        rows = list(dict.fromkeys(rows))
    if scales:
        rows = [tuple(map(_double, row, scales)) for row in rows]
    return FOLDS[name](others, rows) if rows else None


def _double(value: float | None, scale: int) -> float | None:
    return None if value is None else value / 10**scale + 0.0  # there is no -0.0


# --- moments -------------------------------------------------------------------------------


def _exact(numbers: Sequence[float]) -> tuple[list[int], int]:
    """The numbers as integers, all over the same power of two."""
    ratios = [each.as_integer_ratio() for each in numbers]
    unit = max(below for _, below in ratios)
    return [above * (unit // below) for above, below in ratios], unit


def _number(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise too_large() from None


def _co_moment(one: Sequence[int], other: Sequence[int]) -> int:
    """n Σxy - Σx Σy, which is n² times the covariance."""
    products = sum(x * y for x, y in zip(one, other, strict=True))
    return len(one) * products - sum(one) * sum(other)


def _covariance(settings: Settings, rows: Sequence[Row], *, sample: bool) -> float | None:
    pairs = [(row[0], row[-1]) for row in rows if row[-1] is not None]
    count = len(pairs)
    if count < 1 + sample:
        return None
    one, unit = _exact([x for x, _ in pairs])
    other, other_unit = _exact([y for _, y in pairs])
    below = count * (count - sample) * unit * other_unit
    return _number(Fraction(_co_moment(one, other), below))


def _deviation(settings: Settings, rows: Sequence[Row], *, sample: bool) -> float | None:
    variance = _covariance(settings, rows, sample=sample)
    return None if variance is None else math.sqrt(variance)


def _correlation(settings: Settings, rows: Sequence[Row]) -> float | None:
    """NULL where one of them is always the same."""
    pairs = [(x, y) for x, y in rows if y is not None]
    if len(pairs) < 2:
        return None
    one, other = (_exact(each)[0] for each in zip(*pairs, strict=True))
    both = _co_moment(one, one) * _co_moment(other, other)
    if not both:
        return None
    together = _co_moment(one, other)
    return math.copysign(math.sqrt(Fraction(together * together, both)), together)


def _deviations(rows: Sequence[Row]) -> list[int]:
    """How far each number is from their mean, in units that do not matter here."""
    numbers, _ = _exact([row[0] for row in rows])
    total = sum(numbers)
    return [len(numbers) * each - total for each in numbers]


def _skewness(settings: Settings, rows: Sequence[Row]) -> float | None:
    """NULL where all are the same."""
    away = _deviations(rows)
    squares, cubes = sum(a**2 for a in away), sum(a**3 for a in away)
    if not squares:
        return None
    return math.copysign(math.sqrt(Fraction(len(away) * cubes**2, squares**3)), cubes)


def _kurtosis(settings: Settings, rows: Sequence[Row]) -> float | None:
    """Beyond that of a normal distribution."""
    away = _deviations(rows)
    squares = sum(a**2 for a in away)
    if not squares:
        return None
    return _number(Fraction(len(away) * sum(a**4 for a in away), squares**2) - 3)


def _regression(settings: Settings, rows: Sequence[Row], *, wanted: str) -> float | None:
    """Of rows (y, x): the line through them, how well it fits, and the sums that it is made of."""
    pairs = [(y, x) for y, x in rows if x is not None]
    if not pairs:
        return None
    (above, unit_y), (right, unit_x) = (_exact(each) for each in zip(*pairs, strict=True))
    yy, xx, xy = _co_moment(above, above), _co_moment(right, right), _co_moment(above, right)
    count = len(pairs)
    match wanted:
        case "sxx":
            return _number(Fraction(xx, count * unit_x**2))
        case "syy":
            return _number(Fraction(yy, count * unit_y**2))
        case "sxy":
            return _number(Fraction(xy, count * unit_x * unit_y))
    if not xx:
        return None
    if wanted == "r2":
        return _number(Fraction(xy**2, xx * yy)) if yy else 1.0
    slope = Fraction(xy * unit_x, xx * unit_y)
    if wanted == "slope":
        return _number(slope)
    middle = Fraction(sum(above), count * unit_y) - slope * Fraction(sum(right), count * unit_x)
    return _number(middle)


def _try_sum(settings: Settings, rows: Sequence[Row]) -> float | None:
    """NULL where it does not fit."""
    values = [row[0] for row in rows]
    if not any(isinstance(each, float) for each in values):
        total: int = sum(values)
        return total if SMALLEST <= total <= LARGEST else None
    try:
        return math.fsum(values)
    except OverflowError:
        return None


# --- places in an order --------------------------------------------------------------------


def _percentile(settings: Settings, rows: Sequence[Row]) -> float:
    """Between two values in proportion, as Spark computes it."""
    share, descending = settings
    values: list[float] = sorted((row[0] for row in rows), reverse=descending)
    place: float = (len(values) - 1) * share
    lower, higher = math.floor(place), math.ceil(place)
    if values[lower] == values[higher]:
        return values[lower]
    return (higher - place) * values[lower] + (place - lower) * values[higher]


def _percentile_disc(settings: Settings, rows: Sequence[Row]) -> Any:
    """The first value with at most this many values after it."""
    share, descending = settings
    values = sorted((row[0] for row in rows), reverse=descending)
    return values[max(math.ceil(share * len(values)), 1) - 1]


def _mode(settings: Settings, rows: Sequence[Row]) -> Any:
    """The most frequent value; of several the least, or the greatest if that is asked for."""
    (descending,) = settings
    counted = Counter(row[0] for row in rows)
    most = max(counted.values())
    found = [value for value, times in counted.items() if times == most]
    return max(found) if descending else min(found)


def _by(settings: Settings, rows: Sequence[Row], *, greatest: bool) -> Any:
    """The other value where this one is the greatest or the least; of several the least."""
    extreme = (max if greatest else min)(row[0] for row in rows)
    found = [row[1] for row in rows if row[0] == extreme and row[1] is not None]
    return min(found, default=None)


def _nth(settings: Settings, rows: Sequence[Row]) -> Any:
    """The value at so manieth place, from the start or the end, of rows (place, value)."""
    count, from_end, without_nulls = settings
    found = sorted(
        (row for row in rows if row[1] is not None or not without_nulls),
        key=lambda row: row[0],
        reverse=from_end,
    )
    return found[int(count) - 1][1] if len(found) >= count else None


def _in_order(rows: Sequence[Row], directions: Sequence[Sequence[bool]]) -> list[Row]:
    """Sorted by what is beside the value, then by the value."""
    found = sorted(rows, key=lambda row: row[0])
    for place in range(len(directions), 0, -1):
        descending, nulls_first = directions[place - 1]
        there = [row for row in found if row[place] is not None]
        missing = [row for row in found if row[place] is None]
        there.sort(key=lambda row, place=place: row[place], reverse=descending)  # type: ignore[misc]
        found = [*missing, *there] if nulls_first else [*there, *missing]
    return found


def _joined(settings: Settings, rows: Sequence[Row]) -> str:
    separator, directions = settings
    size = sum(len(row[0]) for row in rows) + len(str(separator)) * (len(rows) - 1)
    if size > LONGEST:
        raise ValueFault(f"a text would have {size} characters", code="overflow")
    return str(separator).join(row[0] for row in _in_order(rows, directions))


def _bits(operation: Callable[[int, int], int]) -> Callable[[Settings, Sequence[Row]], int]:
    return lambda settings, rows: reduce(operation, (row[0] for row in rows))


FOLDS: dict[str, Callable[[Settings, Sequence[Row]], Any]] = {
    "var_samp": lambda settings, rows: _covariance(settings, rows, sample=True),
    "var_pop": lambda settings, rows: _covariance(settings, rows, sample=False),
    "stddev_samp": lambda settings, rows: _deviation(settings, rows, sample=True),
    "stddev_pop": lambda settings, rows: _deviation(settings, rows, sample=False),
    "covar_samp": lambda settings, rows: _covariance(settings, rows, sample=True),
    "covar_pop": lambda settings, rows: _covariance(settings, rows, sample=False),
    "corr": _correlation,
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    **{
        f"regr_{name}": partial(_regression, wanted=name)
        for name in ("slope", "intercept", "r2", "sxx", "syy", "sxy")
    },
    "try_sum": _try_sum,
    "percentile": _percentile,
    "percentile_disc": _percentile_disc,
    "mode": _mode,
    "max_by": lambda settings, rows: _by(settings, rows, greatest=True),
    "min_by": lambda settings, rows: _by(settings, rows, greatest=False),
    "nth_value": _nth,
    "listagg": _joined,
    "bit_and": _bits(and_),
    "bit_or": _bits(or_),
    "bit_xor": _bits(xor),
}
