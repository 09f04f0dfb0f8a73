"""When a query with a time trigger is due: once, every so often, or by a calendar.

A schedule knows only when it is due next after a moment. It never looks at a clock.

Law: `next_after(t)` is later than t, no due time lies between the two, and a larger t never has an
earlier one. Where a clock skips or repeats an hour, a schedule with a fixed time of day is due once
(see local_times); one that is due several times a day follows the clock: it has nothing to do in an
hour that is skipped, and runs in both hours that are shown twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cronsim import CronSim, CronSimError

from harken.continual import local_times
from harken.continual.durations import Duration, Unit
from harken.errors import ValueFault

MOST_COUNTED = 100
"""More missed due times than this are not counted."""


class Schedule:
    """When something is due, given when it was installed and in which time zone."""

    def next_after(
        self, after: datetime.datetime, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        """The first due time after a moment; None if there is none."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Due:
    """A due time that has come, and how many others have passed since: they are run once, late."""

    at: datetime.datetime
    missed: int


def due(
    schedule: Schedule,
    last: datetime.datetime,
    now: datetime.datetime,
    installed: datetime.datetime,
    zone: datetime.tzinfo,
) -> Due | None:
    """What a schedule that was last looked at some time ago is due for now, if anything."""
    first = schedule.next_after(last, installed, zone)
    if first is None or first > now:
        return None
    missed, at = 0, first
    while missed < MOST_COUNTED:
        following = schedule.next_after(at, installed, zone)
        if following is None or following > now:
            break
        missed, at = missed + 1, following
    return Due(first, missed)


@dataclass(frozen=True, slots=True)
class Once(Schedule):
    """`AT '1998-06-02 16:25'`: a local time of the query's zone, or with an offset any moment."""

    at: datetime.datetime

    def __str__(self) -> str:
        return f"AT '{self.at.isoformat(sep=' ')}'"

    def next_after(
        self, after: datetime.datetime, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        found = instant(self.at, zone)
        return found if found > after else None


def instant(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The moment of a time that is local if it has no offset."""
    return local_times.moment(at, zone) if at.tzinfo is None else at.astimezone(datetime.UTC)


@dataclass(frozen=True, slots=True)
class Every(Schedule):
    """`EVERY 20 MINUTES`, `EVERY 2 WEEKS AT 08:00`: counted from the installation."""

    duration: Duration
    at: datetime.time | None = None

    def __post_init__(self) -> None:
        if self.at is not None and self.duration.unit.is_length:
            raise ValueFault(
                f"EVERY {self.duration} has no time of day",
                code="bad-value",
                hint="AT belongs to days, weeks, months and years",
            )

    def __str__(self) -> str:
        unit = self.duration
        said = str(unit.unit) if unit.amount == 1 else str(unit)
        return f"EVERY {said}" + ("" if self.at is None else f" AT '{shown_time(self.at)}'")

    def next_after(
        self, after: datetime.datetime, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        after = max(after, installed)
        # A lower bound first: from there on the due times are tried one by one.
        times = max(0, (after - installed) // self.duration.longest() - 2)
        while (found := self._due(times, installed, zone)) is not None and found <= after:
            times += 1
        return found

    def _due(
        self, times: int, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        if self.at is None:
            return self.duration.times_after(times, installed, zone)
        try:
            first_day = datetime.datetime.combine(local_times.wall(installed, zone), self.at)
            shown = self.duration.later(times, first_day)
            return None if shown is None else local_times.moment(shown, zone)
        except OverflowError:
            return None


@dataclass(frozen=True)
class Cron(Schedule):
    """Five fields: minute, hour, day of the month, month (1 to 12), day of the week (0 or 7 is
    Sunday). If both day fields are given, either suffices. `EVERY MONDAY AT 08:00` is one, too."""

    fields: str
    said: str = ""
    """How the user said it, if not as five fields."""

    def __post_init__(self) -> None:
        if len(self.fields.split()) != 5:
            raise self._fault("it must have five fields")
        try:
            CronSim(self.fields, datetime.datetime(2000, 1, 1))
        except CronSimError as error:
            raise self._fault(str(error).replace("Bad", "there is something wrong with the")) from (
                error
            )

    def __str__(self) -> str:
        return self.said or f"CRON '{self.fields}'"

    def _fault(self, what: str) -> ValueFault:
        return ValueFault(
            f"'{self.fields}' is no cron schedule: {what}",
            code="bad-value",
            hint="the fields are minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-6; "
            "each is *, a number, a-b, a list with commas, or one of these with /step",
        )

    @cached_property
    def _follows_clock(self) -> bool:
        """Whether it is due several times a day, as in cron: its hours or minutes are a star."""
        minute, hour, *_ = self.fields.split()
        return minute.startswith("*") or hour.startswith("*")

    def next_after(
        self, after: datetime.datetime, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        after = max(after, installed)
        best: datetime.datetime | None = None
        start = local_times.wall(after, zone) - local_times.spread(after, zone)
        start -= datetime.timedelta(seconds=1)
        for shown in self._shown_after(start):
            if best is not None:
                latest = local_times.wall(best, zone) + local_times.spread(best, zone)
                if shown > latest:
                    break
            try:
                for each in self._moments(shown, zone):
                    if each > after and (best is None or each < best):
                        best = each
            except OverflowError:
                break
        return best

    def _moments(
        self, shown: datetime.datetime, zone: datetime.tzinfo
    ) -> tuple[datetime.datetime, ...]:
        if self._follows_clock:
            return local_times.moments(shown, zone)
        return (local_times.moment(shown, zone),)

    def _shown_after(self, shown: datetime.datetime) -> Iterator[datetime.datetime]:
        """The local times at which it is due."""
        try:
            yield from CronSim(self.fields, shown)
        except OverflowError:
            return


@dataclass(frozen=True, slots=True)
class Several(Schedule):
    """`EVERY WEEKDAY AT '00:00' AND '12:00'`: due whenever one of these is."""

    parts: tuple[Schedule, ...]
    said: str

    def __str__(self) -> str:
        return self.said

    def next_after(
        self, after: datetime.datetime, installed: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        found = [each.next_after(after, installed, zone) for each in self.parts]
        return min((each for each in found if each is not None), default=None)


DAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")


def on_weekdays(days: tuple[int, ...], at: datetime.time, said: str) -> Cron:
    """
    >>> on_weekdays((1,), datetime.time(8), "EVERY MONDAY AT 08:00").fields
    '0 8 * * 1'
    """
    return Cron(f"{at.minute} {at.hour} * * {','.join(map(str, days))}", said)


def on_day_of_month(day: str, at: datetime.time, said: str) -> Cron:
    return Cron(f"{at.minute} {at.hour} {day} * *", said)


def on_nth_weekday(day: str, at: datetime.time, said: str) -> Cron:
    """`5#2` is the second Friday of a month, `5L` the last."""
    return Cron(f"{at.minute} {at.hour} * * {day}", said)


def shown_time(at: datetime.time) -> str:
    return at.isoformat("seconds" if at.second else "minutes")


DAILY = Every(Duration(1, Unit.DAY))
"""When a query without a trigger is due."""
