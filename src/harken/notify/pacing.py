"""How often one person wants to hear: the options of a NOTIFY clause that hold messages back.

    NOTIFY EMAIL 'me@example.org' DIGEST '1 hour' QUIET '22:00-07:00 Europe/Oslo'
           AT_MOST '5 per day' GROUP 'stocks'

- DIGEST gathers the results of an interval, which begins with the first of them.
- QUIET lets nothing out between two times of day, in a zone (UTC if none is named).
- AT_MOST caps the messages of an interval; the rest waits, and comes as one.
- GROUP puts what several queries tell one address into one message.

Law: `Pacing.next_moment` is never before the moment that it is given, and lies outside quiet hours.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.errors import ValueFault
from harken.notify.texts import one_line

UNITS = {
    "second": datetime.timedelta(seconds=1),
    "minute": datetime.timedelta(minutes=1),
    "hour": datetime.timedelta(hours=1),
    "day": datetime.timedelta(days=1),
    "week": datetime.timedelta(weeks=1),
}
LONGEST_DIGEST = datetime.timedelta(days=31)
OPTIONS = ("digest", "quiet", "at_most", "group")
_UNIT = rf"({'|'.join(UNITS)})s?"
_LENGTH = re.compile(rf"(\d{{1,6}})\s+{_UNIT}", re.IGNORECASE)
_RATE = re.compile(rf"(\d{{1,6}})\s+per\s+(?:(\d{{1,6}})\s+)?{_UNIT}", re.IGNORECASE)
_QUIET = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)(?:\s+(\S+))?")


@dataclass(frozen=True, slots=True)
class Quiet:
    """From one time of day to another, perhaps over midnight, as the clocks of a zone show it."""

    begins: datetime.time
    ends: datetime.time
    zone: zoneinfo.ZoneInfo

    def end_after(self, at: datetime.datetime) -> datetime.datetime | None:
        """When the quiet hours end that this moment lies in; None if it lies in none."""
        local = at.astimezone(self.zone)
        shown = local.time().replace(tzinfo=None)
        over_midnight = self.begins > self.ends
        if over_midnight:
            is_quiet = shown >= self.begins or shown < self.ends
        else:
            is_quiet = self.begins <= shown < self.ends
        if not is_quiet:
            return None
        day = local.date()
        if over_midnight and shown >= self.begins:
            day += datetime.timedelta(days=1)
        end = datetime.datetime.combine(day, self.ends, self.zone).astimezone(datetime.UTC)
        # Where the clock is set back, the hour comes a second time.
        return end if end > at else end + datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pacing:
    digest: datetime.timedelta | None = None
    quiet: Quiet | None = None
    most: int | None = None
    per: datetime.timedelta = UNITS["day"]
    group: str = ""

    @property
    def holds(self) -> bool:
        """Whether messages may have to wait or to be put together."""
        return bool(self.digest or self.quiet or self.most or self.group)

    def next_moment(self, at: datetime.datetime) -> datetime.datetime:
        """The moment from which on one may be told, by the quiet hours."""
        end = None if self.quiet is None else self.quiet.end_after(at)
        return at if end is None else end


def pacing_of(options: Mapping[str, Any]) -> Pacing:
    """The pacing that the options of a NOTIFY clause ask for; raises if one makes no sense."""
    most, per = _rate(options.get("at_most"))
    return Pacing(
        _length(options.get("digest")),
        _quiet(options.get("quiet")),
        most,
        per,
        one_line(str(options.get("group", "")), 200),
    )


def _length(given: Any) -> datetime.timedelta | None:
    if given is None:
        return None
    found = _LENGTH.fullmatch(str(given).strip())
    length = int(found[1]) * UNITS[found[2].lower()] if found else None
    if length is None or not UNITS["second"] <= length <= LONGEST_DIGEST:
        raise _wrong("DIGEST", given, "as DIGEST '1 hour', from a second to 31 days")
    return length


def _rate(given: Any) -> tuple[int | None, datetime.timedelta]:
    if given is None:
        return None, UNITS["day"]
    found = _RATE.fullmatch(str(given).strip())
    if found is None or int(found[1]) < 1 or int(found[2] or 1) < 1:
        raise _wrong("AT_MOST", given, "as AT_MOST '5 per day' or '1 per 10 minutes'")
    per = int(found[2] or 1) * UNITS[found[3].lower()]
    if per > LONGEST_DIGEST:
        raise _wrong("AT_MOST", given, "count over 31 days at most")
    return int(found[1]), per


def _quiet(given: Any) -> Quiet | None:
    if given is None:
        return None
    found = _QUIET.fullmatch(str(given).strip())
    hint = "as QUIET '22:00-07:00 Europe/Oslo'; without a zone it is UTC"
    if found is None:
        raise _wrong("QUIET", given, hint)
    try:
        begins = datetime.time(int(found[1]), int(found[2]))
        ends = datetime.time(int(found[3]), int(found[4]))
        zone = zoneinfo.ZoneInfo(found[5] or "UTC")
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise _wrong("QUIET", given, hint) from error
    if begins == ends:
        raise _wrong("QUIET", given, "the two times must differ: a whole day would never end")
    return Quiet(begins, ends, zone)


def _wrong(option: str, given: Any, hint: str) -> ValueFault:
    return ValueFault(f"{option} cannot be {str(given)!r}", code="bad-value", hint=hint)
