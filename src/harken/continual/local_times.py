"""Which moments a wall clock shows a time at.

In most zones a clock skips an hour each spring and repeats one each autumn. A schedule is written
in local time, so it must say what these hours mean:

- a time that the clock skips is the moment at which it skips;
- a time that the clock shows twice is the first of the two.

Law: every local time is exactly one moment, and a later local time is never an earlier moment.
"""

from __future__ import annotations

import datetime
import zoneinfo
from functools import cache

from harken.errors import ValueFault

UTC = datetime.UTC
DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of a name such as `Europe/Oslo`."""
    try:
        return _zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueFault(
            f"there is no time zone {name}",
            code="bad-value",
            hint="write it as the tz database does: UTC, Europe/Oslo, America/New_York",
        ) from error


@cache
def _zone(name: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(name)


def moment(wall: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The moment, in UTC, that a local time without a zone means."""
    first = _at(wall, zone, fold=0)
    second = _at(wall, zone, fold=1)
    return _transition(second, first, zone) if second < first else first


def moments(wall: datetime.datetime, zone: datetime.tzinfo) -> tuple[datetime.datetime, ...]:
    """All moments at which the clock shows a time: none if it skips it, two if it repeats it."""
    first = _at(wall, zone, fold=0)
    second = _at(wall, zone, fold=1)
    if second < first:
        return ()
    return (first,) if first == second else (first, second)


def wall(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """What the clock shows at a moment, without a zone."""
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def spread(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.timedelta:
    """By how much the clock is changed within a day of a moment: usually not at all."""
    try:
        offsets = [offset(each, zone) for each in (at - DAY, at, at + DAY)]
    except OverflowError:  # at the end of the calendar
        return datetime.timedelta(0)
    return max(offsets) - min(offsets)


def offset(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.timedelta:
    found = at.astimezone(zone).utcoffset()
    assert found is not None
    return found


def _at(wall: datetime.datetime, zone: datetime.tzinfo, fold: int) -> datetime.datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _transition(
    before: datetime.datetime, after: datetime.datetime, zone: datetime.tzinfo
) -> datetime.datetime:
    """The moment between two at which the clock is changed."""
    old = offset(before, zone)
    low, high = before, after
    while high - low > SECOND:
        middle = low + (high - low) // 2
        low, high = (middle, high) if offset(middle, zone) == old else (low, middle)
    return high.replace(microsecond=0)
