"""Functions of stored dates and timestamps that only SQL has, with the meaning of Spark's."""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Callable
from typing import Any

from harken.errors import ValueFault
from harken.values.date_patterns import DAYS, read, written
from harken.values.encoding import decode_date, decode_timestamp, encode_date, encode_timestamp
from harken.values.failures import bad_argument, outside_calendar
from harken.values.pattern_size import shown

MONTH = 31 * 86_400
"""The seconds of a month, for fractions of a month."""
MINUTE = 60_000_000
EARLIEST, LATEST = (
    encode_timestamp(each.replace(tzinfo=datetime.UTC))
    for each in (datetime.datetime.min, datetime.datetime.max)
)


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


def _date_format(micros: int, pattern: str) -> str:
    return written(decode_timestamp(micros), pattern)


def _read_moment(text: str, pattern: str) -> int:
    found = _try_read_moment(text, pattern)
    if found is None:
        raise ValueFault(
            f"{text!r} is not what the format {shown(pattern)!r} says",
            code="bad-value",
            hint="leave such texts out, or use try_to_timestamp",
        )
    return found


def _try_read_moment(text: str, pattern: str) -> int | None:
    found = read(text, pattern)
    return None if found is None else encode_timestamp(found)


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, micros: int) -> int:
    """Of the microseconds of a minute, which may be all of it, but no more."""
    try:
        start = datetime.datetime(year, month, day, hour, minute, tzinfo=datetime.UTC)
        if not 0 <= micros <= MINUTE:
            raise ValueError(micros)
        return encode_timestamp(start + datetime.timedelta(microseconds=micros))
    except (ValueError, OverflowError):
        shown = f"{year}-{month}-{day} {hour}:{minute}:{micros / 1e6:g}"
        raise bad_argument(f"there is no timestamp {shown}") from None


def _timestamp_micros(micros: int) -> int:
    if not EARLIEST <= micros <= LATEST:
        raise outside_calendar("timestamp")
    return micros


DATE_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "make_date": (_make_date, 3),
    "next_day": (_next_day, 2),
    "months_between": (_months_between, 2),
    "whole_months": (_whole_months, 2),
    "date_format": (_date_format, 2),
    "read_moment": (_read_moment, 2),
    "try_read_moment": (_try_read_moment, 2),
    "make_timestamp": (_make_timestamp, 6),
    "unix_micros": (lambda micros: micros, 1),
    "timestamp_micros": (_timestamp_micros, 1),
    "floor_timestamp": (lambda micros, unit: micros - micros % unit, 2),
    "iso_week": (lambda days: decode_date(days).isocalendar().week, 1),
    "iso_year": (lambda days: decode_date(days).isocalendar().year, 1),
}
