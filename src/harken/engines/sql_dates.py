"""Functions of stored dates and timestamps that only SQL has, with the meaning of Spark's."""

from __future__ import annotations

import calendar
import datetime
import math
import re
from collections.abc import Callable
from typing import Any

from harken.engines.failures import bad_argument
from harken.engines.sqlite.values import (
    decode_date,
    decode_timestamp,
    encode_date,
)

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
MONTH = 31 * 86_400
"""So many seconds a month has where parts of one are counted."""
_RUN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.S)


def _make_date(year: int, month: int, day: int) -> int:
    try:
        return encode_date(datetime.date(year, month, day))
    except (ValueError, OverflowError):
        raise bad_argument(f"there is no date {year}-{month}-{day}") from None


def _next_day(days: int, name: str) -> int:
    """A day of the week by its first two or three letters, or all of them."""
    given = name.strip().upper()
    places = [i for i, day in enumerate(DAYS) if given in (day, day[:2], day[:3])]
    if not places:
        raise bad_argument(f"there is no day of the week {name!r}")
    ahead = (places[0] - decode_date(days).weekday() - 1) % 7 + 1
    return encode_date(decode_date(days) + datetime.timedelta(days=ahead))


def _is_last(moment: datetime.datetime) -> bool:
    return moment.day == calendar.monthrange(moment.year, moment.month)[1]


def _months_between(later: int, earlier: int) -> float:
    """Whole months between the same days of months, or the last ones; else also a part of 31 days,
    to eight digits."""
    one, other = decode_timestamp(later), decode_timestamp(earlier)
    months = (one.year - other.year) * 12 + one.month - other.month
    if one.day == other.day or (_is_last(one) and _is_last(other)):
        return float(months)
    seconds = (one.day - other.day) * 86_400
    for moment, sign in ((one, 1), (other, -1)):
        seconds += sign * (moment.hour * 3_600 + moment.minute * 60 + moment.second)
    return math.floor((months + seconds / MONTH) * 1e8 + 0.5) / 1e8


def _whole_months(later: int, earlier: int) -> int:
    """The months that are over between two moments; a month is over on the same day of the next,
    at the same time, and the 31st not in a month that has 30 days."""
    one, other = decode_timestamp(later), decode_timestamp(earlier)
    months = (one.year - other.year) * 12 + one.month - other.month
    past, before = ((m.day, m.hour, m.minute, m.second, m.microsecond) for m in (one, other))
    if months > 0 and past < before:
        return months - 1
    return months + 1 if months < 0 and past > before else months


def _part(letters: str, moment: datetime.datetime) -> str:
    width = len(letters)
    numbers = {
        "M": moment.month,
        "L": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "h": moment.hour % 12 or 12,
        "m": moment.minute,
        "s": moment.second,
        "D": moment.timetuple().tm_yday,
    }
    match letters[0]:
        case "y" if width == 2:
            return f"{moment.year % 100:02}"
        case "y" if width <= 6:
            return f"{moment.year:0{width}}"
        case "M" | "L" if width in (3, 4):
            name = calendar.month_name[moment.month]
            return name if width == 4 else name[:3]
        case "E" if width <= 4:
            name = DAYS[moment.weekday()].capitalize()
            return name if width == 4 else name[:3]
        case "S" if width <= 9:
            return f"{moment.microsecond:06}000"[:width]
        case "a" if width == 1:
            return "AM" if moment.hour < 12 else "PM"
        case letter if letter in numbers and width <= (3 if letter == "D" else 2):
            return f"{numbers[letter]:0{width}}"
    raise bad_argument(f"{letters} in a format of dates is not there")


def _date_format(micros: int, pattern: str) -> str:
    """As Java's patterns say it: `yyyy-MM-dd HH:mm:ss`, with texts in quotes."""
    moment, found = decode_timestamp(micros), []
    for run in _RUN.finditer(pattern):
        quoted, letter = run.groups()
        if letter:
            found.append(_part(run.group(), moment))
        else:
            found.append((quoted.replace("''", "'") or "'") if quoted is not None else run.group())
    return "".join(found)


DATE_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "make_date": (_make_date, 3),
    "next_day": (_next_day, 2),
    "months_between": (_months_between, 2),
    "whole_months": (_whole_months, 2),
    "date_format": (_date_format, 2),
    "floor_timestamp": (lambda micros, unit: micros - micros % unit, 2),
    "iso_week": (lambda days: decode_date(days).isocalendar().week, 1),
    "iso_year": (lambda days: decode_date(days).isocalendar().year, 1),
}
