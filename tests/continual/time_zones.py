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


def transitions(name: str, first: int = 2020, last: int = 2030) -> list[datetime.datetime]:
    """The moments in these years at which the offset of a zone changes."""
    zone = zoneinfo.ZoneInfo(name)
    at, found = datetime.datetime(first, 1, 1, tzinfo=UTC), []
    while at.year < last:
        if _offset(at, zone) != _offset(at + DAY, zone):
            low, high = at, at + DAY
            while high - low > MINUTE:
                middle = low + (high - low) // 2
                same = _offset(middle, zone) == _offset(at, zone)
                low, high = (middle, high) if same else (low, middle)
            found.append(high.replace(second=0, microsecond=0))
        at += DAY
    return found


def _offset(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.timedelta | None:
    return at.astimezone(zone).utcoffset()
