"""Times, lengths of time and schedules, from text: `EVERY MONDAY AT 08:00`, `6:00pm everyday`.

Law: the text of a schedule, a duration or a stop (`str`) is read as an equal one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from harken.continual.durations import Duration, Unit
from harken.continual.schedules import (
    DAYS,
    Cron,
    Every,
    Once,
    Schedule,
    Several,
    on_day_of_month,
    on_nth_weekday,
    on_weekdays,
    shown_time,
)
from harken.continual.words import Reader
from harken.errors import Span, ValueFault

NUMBERS = (
    *("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE", "TEN"),
    *("ELEVEN", "TWELVE"),
)
ORDINALS = ("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH")
MONTHS = (
    *("JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER"),
    *("OCTOBER", "NOVEMBER", "DECEMBER"),
)
UNITS = {
    **{f"{unit}{end}": unit for unit in Unit for end in ("", "S")},
    "SEC": Unit.SECOND,
    "SECS": Unit.SECOND,
    "MIN": Unit.MINUTE,
    "MINS": Unit.MINUTE,
    "HR": Unit.HOUR,
    "HRS": Unit.HOUR,
}
MIDNIGHT = datetime.time()
Daily = Callable[[datetime.time | None], Schedule]
"""A schedule, given the time of day."""
_TIME = re.compile(
    r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:(am|pm)\b|([ap])\.m\.)\.?", re.IGNORECASE
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?![\d:])")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?")
_AMERICAN = re.compile(r"(\d{1,2})-(\d{1,2})-(\d{4})(?![\d-])")
_FIELDS = re.compile(r"[\d*][\d*/,-]*(?:\s+[\d*][\d*/,-]*){4}(?=[\s;.]*\Z)")
"""The five fields of cron, without quotes."""
_OFFSET = re.compile(r"\s*(?:([+-])(\d{2}):?(\d{2})?|(Z|UTC|GMT)\b)", re.IGNORECASE)
_SPOKEN = re.compile(rf"({'|'.join(m[:3] for m in MONTHS)})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?"
                     r",?\s+(\d{4})", re.IGNORECASE)  # fmt: skip


# --- moments and times of day ---------------------------------------------------------------------


def take_time(reader: Reader) -> datetime.time | None:
    """A time of day: 08:00, '08:00:30', 6:00pm, 6 pm, noon."""
    word = reader.word
    if word is None:
        return None
    if word.kind == "text":
        inner = Reader(word.value, reader.base + word.start + 1)
        found = take_time(inner)
        if found is None or not inner.is_done:
            return None
        reader.at += 1
        return found
    if reader.takes_one(("NOON",)):
        return datetime.time(12)
    if reader.takes_one(("MIDNIGHT",)):
        return MIDNIGHT
    match = reader.takes_pattern(_TIME)
    half = None
    if match is not None:
        half = (match[4] or f"{match[5]}m").lower()
    else:
        match = reader.takes_pattern(_CLOCK)
    if match is None:
        return None
    hour, minute, second = (int(match[i] or 0) for i in (1, 2, 3))
    if half is not None:
        if not 1 <= hour <= 12:
            raise reader.fault(f"{match[0].strip()} is no time of day", "1am to 12pm", word)
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        return datetime.time(hour, minute, second)
    except ValueError as error:
        raise reader.fault(
            f"{match[0].strip()} is no time of day", "from 00:00 to 23:59", word
        ) from error


def need_time(reader: Reader) -> datetime.time:
    found = take_time(reader)
    if found is None:
        raise reader.fault("a time of day is missing", "write AT '08:00'")
    return found


def take_moment(reader: Reader) -> datetime.datetime | None:
    """A date with or without a time: '1998-06-02 16:25', 9:00:00 am, Oct. 26, 1998. Without an
    offset it is local."""
    word = reader.word
    if word is None:
        return None
    start = reader.at
    if word.kind == "text":
        inner = Reader(word.value, reader.base + word.start + 1)
        found = take_moment(inner)
        if found is None or not inner.is_done:
            return None
        reader.at += 1
        return found
    try:
        found = _iso(reader) or _spoken(reader)
    except ValueError as error:
        raise ValueFault(
            f"there is no such date: {error}",
            code="bad-value",
            span=Span(reader.base + word.start, reader.base + word.end),
        ) from error
    if found is None:
        reader.at = start
    return found


def _iso(reader: Reader) -> datetime.datetime | None:
    match = reader.takes_pattern(_ISO)
    if match is None:
        return None
    year, month, day, hour, minute = (int(match[i] or 0) for i in range(1, 6))
    seconds = float(match[6] or 0)
    found = datetime.datetime(year, month, day, hour, minute) + datetime.timedelta(seconds=seconds)
    return _with_offset(reader, found)


def _spoken(reader: Reader) -> datetime.datetime | None:
    """A time of day before or after a date: 7:30 pm, March 30, 1998; 10-26-1998 09:00 -05;
    midnight of December 31, 1998."""
    at = take_time(reader)
    reader.takes_one((",", "OF", "ON"))
    day = _date(reader)
    if day is None:
        return None
    reader.takes(",")
    at = at or take_time(reader) or MIDNIGHT
    return _with_offset(reader, datetime.datetime.combine(day, at))


def _date(reader: Reader) -> datetime.date | None:
    match = reader.takes_pattern(_AMERICAN)
    if match is not None:
        return datetime.date(int(match[3]), int(match[1]), int(match[2]))
    match = reader.takes_pattern(_SPOKEN)
    if match is None:
        return None
    names = [each[:3] for each in MONTHS]
    return datetime.date(int(match[3]), names.index(match[1].upper()) + 1, int(match[2]))


def _with_offset(reader: Reader, found: datetime.datetime) -> datetime.datetime:
    match = reader.takes_pattern(_OFFSET)
    if match is None:
        return found
    if match[4]:
        return found.replace(tzinfo=datetime.UTC)
    ahead = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    zone = datetime.timezone(ahead if match[1] == "+" else -ahead)
    return found.replace(tzinfo=zone)


# --- lengths of time ------------------------------------------------------------------------------


def take_duration(reader: Reader) -> Duration | None:
    """2 weeks, six months, week."""
    start, word = reader.at, reader.word
    amount = 1
    if word is not None and word.whole is not None:
        amount, reader.at = word.whole, reader.at + 1
    else:
        said = reader.takes_one((*NUMBERS, "A", "AN"))
        if said in NUMBERS:
            amount = NUMBERS.index(said) + 1
    unit = reader.takes_one(UNITS)
    if unit is None:
        reader.at = start
        return None
    try:
        return Duration(amount, UNITS[unit])
    except ValueFault as error:
        error.span = (
            None if word is None else Span(reader.base + word.start, reader.base + word.end)
        )
        raise


def need_duration(reader: Reader) -> Duration:
    found = take_duration(reader)
    if found is None:
        raise reader.fault("a length of time is missing", "write 20 MINUTES, 2 WEEKS, 6 MONTHS")
    return found


def duration_of(text: str) -> Duration:
    """
    >>> print(duration_of("two weeks"))
    2 WEEKS
    """
    reader = Reader(text)
    found = need_duration(reader)
    reader.need_end("the length of time")
    return found


# --- schedules ------------------------------------------------------------------------------------


def take_schedule(reader: Reader) -> Schedule | None:
    """A time trigger; None if the text begins like none."""
    start = reader.at
    try:
        found = _schedule(reader)
    except ValueFault as error:
        word = reader.words[start]
        error.span = error.span or Span(
            reader.base + word.start, reader.base + reader.words[-1].end
        )
        raise
    if found is None:
        reader.at = start
    return found


def _schedule(reader: Reader) -> Schedule | None:
    if reader.takes("CRON"):
        return Cron(reader.need_text("the five fields"))
    if any(word.text == "&&" for word in reader.words):
        return _fields(reader)
    fields = reader.takes_pattern(_FIELDS)
    if fields is not None:
        return Cron(" ".join(fields[0].split()))
    word = reader.word
    if word is not None and word.kind == "text" and len(word.value.split()) == 5:
        reader.at += 1
        return Cron(word.value)
    said_at = reader.takes("AT")
    moment = take_moment(reader)
    if moment is not None:
        return Once(moment)
    times = _take_times(reader)
    if said_at and not times:
        raise reader.fault("a time is missing after AT", "write AT '1998-06-02 16:25'")
    make = _repeated(reader)
    if make is None and times:
        raise reader.fault("EVERY DAY is missing after the time", "or give a date: AT '1998-06-02'")
    if make is None:
        return None
    if not times and reader.takes("AT"):
        times = _take_times(reader) or [need_time(reader)]
    return _at_each(make, times)


def _repeated(reader: Reader) -> Daily | None:
    if reader.takes("EVERYDAY") or reader.takes("DAILY"):
        return lambda at: Every(Duration(1, Unit.DAY), at)
    return _every(reader) if reader.takes("EVERY") else None


def _take_times(reader: Reader) -> list[datetime.time]:
    """Times of day: 08:00; midnight and noon; 8:00, 12:00 and 16:00."""
    found, here = [], reader.at
    while (at := take_time(reader)) is not None:
        found.append(at)
        here = reader.at
        if not (reader.takes(",", "AND") or reader.takes_one((",", "AND"))):
            break
    reader.at = here
    return found


def _at_each(make: Daily, times: list[datetime.time]) -> Schedule:
    if not times:
        return make(None)
    first, *others = sorted(set(times))
    if not others:
        return make(first)
    said = "".join(f" AND '{shown_time(at)}'" for at in others)
    return Several(tuple(make(at) for at in (first, *others)), f"{make(first)}{said}")


def _fields(reader: Reader) -> Cron:
    """`0 && 18 && null && null && 1-5`, as in appendix A."""
    text, _ = reader.rest()
    parts = [part.strip().strip("'\"").replace(" ", "") for part in text.split("&&")]
    fields = ["*" if part.lower() in ("", "null", "*") else part for part in parts]
    return Cron(" ".join(fields))


def _every(reader: Reader) -> Daily:
    duration = take_duration(reader)
    if duration is not None:
        return lambda at: Every(duration, at)
    days = _weekdays(reader)
    if days:
        names = {(1, 2, 3, 4, 5): "WEEKDAY", (0, 6): "WEEKEND"}
        said = names.get(days) or ", ".join(DAYS[each] for each in days)
        return lambda at: on_weekdays(days, at or MIDNIGHT, f"EVERY {said} {_shown(at)}")
    return _day_of_month(reader)


def _shown(at: datetime.time | None) -> str:
    return f"AT '{shown_time(at or MIDNIGHT)}'"


def _weekdays(reader: Reader) -> tuple[int, ...]:
    if reader.takes("WEEKDAY"):
        return (1, 2, 3, 4, 5)
    if reader.takes("WEEKEND"):
        return (0, 6)
    names = {name: i for i, day in enumerate(DAYS) for name in (day, f"{day}S", day[:3])}
    found: set[int] = set()
    while (name := reader.takes_one(names)) is not None:
        found.add(names[name])
        here = reader.at
        if not (reader.takes(",") or reader.takes("AND")):
            break
        word = reader.word
        if word is None or word.upper not in names:
            reader.at = here
            break
    return tuple(sorted(found))


def _day_of_month(reader: Reader) -> Daily:
    """FIRST DAY OF MONTH, LAST DAY OF THE MONTH, 15TH DAY OF MONTH, SECOND FRIDAY OF MONTH."""
    here = reader.at
    ordinal = _ordinal(reader)
    if ordinal is None:
        raise reader.fault(
            "EVERY needs a length of time or a day",
            "EVERY 20 MINUTES, EVERY MONDAY AT '08:00', EVERY FIRST DAY OF MONTH",
        )
    days = {day: i for i, day in enumerate(DAYS)}
    kind = reader.takes_one(("DAY", *days))
    if kind is None:
        raise reader.unknown("day", ("DAY", *DAYS))
    reader.need("OF")
    reader.takes_one(("THE", "EVERY", "EACH", "A"))
    if reader.takes_one(("MONTH", "MONTHS")) is None:
        raise reader.fault("MONTH is missing")
    name = ORDINALS[ordinal - 1] if 0 < ordinal <= len(ORDINALS) else f"{ordinal}TH"
    said = f"EVERY {'LAST' if ordinal == 0 else name} {kind} OF MONTH"
    if ordinal > (most := 31 if kind == "DAY" else 5):
        raise reader.fault(f"a month has at most {most} {kind}S".lower(), word=reader.words[here])
    if kind == "DAY":
        day = "L" if ordinal == 0 else str(ordinal)
        return lambda at: on_day_of_month(day, at or MIDNIGHT, f"{said} {_shown(at)}")
    nth = f"{days[kind]}{'L' if ordinal == 0 else f'#{ordinal}'}"
    return lambda at: on_nth_weekday(nth, at or MIDNIGHT, f"{said} {_shown(at)}")


_NTH = re.compile(r"(\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE)


def _ordinal(reader: Reader) -> int | None:
    """FIRST is 1, LAST is 0."""
    if reader.takes("LAST"):
        return 0
    said = reader.takes_one(ORDINALS)
    if said is not None:
        return ORDINALS.index(said) + 1
    match = reader.takes_pattern(_NTH)
    return None if match is None or match[1] == "0" else int(match[1])


def schedule_of(text: str) -> Schedule:
    """
    >>> schedule_of("6:00pm everyday").at, schedule_of("EVERY FIRST DAY OF MONTH").fields
    (datetime.time(18, 0), '0 0 1 * *')
    """
    reader = Reader(text)
    found = take_schedule(reader)
    if found is None:
        raise reader.fault(f"{text} is no schedule", "write EVERY DAY AT '08:00'")
    reader.need_end("the schedule")
    return found
