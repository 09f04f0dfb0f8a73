"""The zones of the tz database, each once, and when their clocks are changed."""

from __future__ import annotations

import datetime
import zoneinfo
from functools import cache
from importlib import resources
from pathlib import Path

UTC = datetime.UTC
DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)


@cache
def zones() -> list[str]:
    """One name for each set of rules: most names are aliases."""
    found: dict[bytes, str] = {}
    for name in sorted(zoneinfo.available_timezones()):
        found.setdefault(_rules(name), name)
    return sorted(found.values())


def _rules(name: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        if (path := Path(folder, name)).is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def zones_with_transitions(
    first: int = 2020, last: int = 2030
) -> list[tuple[str, list[datetime.datetime]]]:
    """The zones with the moments at which they change in these years: one for each set of changes,
    since many zones differ in other years only."""
    found = {}
    for name in zones():
        zone, moments = zoneinfo.ZoneInfo(name), transitions(name, first, last)
        offsets = (
            _offset(at, zone) for at in (datetime.datetime(first, 1, 1, tzinfo=UTC), *moments)
        )
        if moments:
            found.setdefault((*moments, *offsets), (name, moments))
    return list(found.values())


def transitions(name: str, first: int = 2020, last: int = 2030) -> list[datetime.datetime]:
    """The moments in these years at which the offset of a zone changes."""
    zone = zoneinfo.ZoneInfo(name)
    at, found = datetime.datetime(first, 1, 1, tzinfo=UTC), []
    before = _offset(at, zone)
    while at.year < last:
        if (after := _offset(at + DAY, zone)) != before:
            low, high = at, at + DAY
            while high - low > MINUTE:
                middle = low + (high - low) // 2
                low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
            found.append(high.replace(second=0, microsecond=0))
            before = after
        at += DAY
    return found


def _offset(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.timedelta | None:
    return at.astimezone(zone).utcoffset()
