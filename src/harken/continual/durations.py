"""A number of units of time, as people say it: 20 minutes, 2 weeks, 6 months.

Seconds, minutes and hours are lengths of time. Days, weeks, months and years are counted on the
calendar of a time zone: a day later the clock shows the same time, even if the day had 23 hours. A
month later it is the same day, or the last day of a month that has no such day.
"""

from __future__ import annotations

import calendar
import datetime
from dataclasses import dataclass
from enum import StrEnum

from harken.continual import local_times
from harken.errors import ValueFault

MOST_UNITS = 1_000_000_000
"""The largest number of units: more than 31 years of seconds."""


class Unit(StrEnum):
    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    YEAR = "YEAR"

    @property
    def is_length(self) -> bool:
        """Is it a length of time, the same on every calendar?"""
        return self in LENGTHS


LENGTHS = {
    Unit.SECOND: datetime.timedelta(seconds=1),
    Unit.MINUTE: datetime.timedelta(minutes=1),
    Unit.HOUR: datetime.timedelta(hours=1),
}
_DAYS = {Unit.DAY: 1, Unit.WEEK: 7}
_MONTHS = {Unit.MONTH: 1, Unit.YEAR: 12}


@dataclass(frozen=True, slots=True)
class Duration:
    """
    >>> print(Duration(2, Unit.WEEK), Duration(1, Unit.DAY))
    2 WEEKS 1 DAY
    """

    amount: int
    unit: Unit

    def __post_init__(self) -> None:
        if not 1 <= self.amount <= MOST_UNITS:
            raise ValueFault(
                f"{self.amount} {self.unit}S is no length of time",
                code="bad-value",
                hint=f"use a whole number from 1 to {MOST_UNITS:,}",
            )

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}{'S' if self.amount > 1 else ''}"

    def after(self, at: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime | None:
        """The moment this long after another; None if it is after the year 9999."""
        return self.times_after(1, at, zone)

    def times_after(
        self, times: int, at: datetime.datetime, zone: datetime.tzinfo
    ) -> datetime.datetime | None:
        """Several times this long after a moment. Months are counted from that moment, so a month
        that is too short does not change the day of the later ones."""
        try:
            if self.unit.is_length:
                return at + LENGTHS[self.unit] * self.amount * times
            shown = self.later(times, local_times.wall(at, zone))
            return None if shown is None else local_times.moment(shown, zone)
        except OverflowError:
            return None

    def later(self, times: int, shown: datetime.datetime) -> datetime.datetime | None:
        """What the calendar shows several times this long after a day: days to years only."""
        try:
            if self.unit in _DAYS:
                return shown + datetime.timedelta(days=_DAYS[self.unit] * self.amount * times)
            month = shown.year * 12 + shown.month - 1 + _MONTHS[self.unit] * self.amount * times
            year, month = divmod(month, 12)
            last = calendar.monthrange(year, month + 1)[1]
            return shown.replace(year=year, month=month + 1, day=min(shown.day, last))
        except (OverflowError, ValueError):
            return None

    def shortest(self) -> datetime.timedelta:
        """A lower bound of this length on any calendar."""
        if self.unit.is_length:
            return LENGTHS[self.unit] * self.amount
        if self.unit in _DAYS:
            return datetime.timedelta(days=_DAYS[self.unit] * self.amount)
        return datetime.timedelta(days=28) * (_MONTHS[self.unit] * self.amount)

    def longest(self) -> datetime.timedelta:
        """An upper bound of this length on any calendar."""
        if self.unit in _MONTHS:
            return datetime.timedelta(days=31) * (_MONTHS[self.unit] * self.amount)
        return self.shortest()
