"""When a time trigger is due: calendars, zones, clocks that are changed, and missed due times."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.continual.durations import Duration, Unit
from harken.continual.local_times import moment, moments
from harken.continual.schedules import (
    MOST_COUNTED,
    Cron,
    Every,
    Once,
    Schedule,
    due,
    on_day_of_month,
    on_weekdays,
)
from harken.continual.time_texts import schedule_of
from tests.continual.time_zones import DAY, UTC, zones, zones_with_transitions

OSLO = zoneinfo.ZoneInfo("Europe/Oslo")


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


def upcoming(
    schedule: Schedule, start: str, count: int, zone: datetime.tzinfo = UTC
) -> list[datetime.datetime]:
    found, last = [], at(start)
    for _ in range(count):
        following = schedule.next_after(last, at(start), zone)
        assert following is not None
        assert following > last
        found.append(following)
        last = following
    return found


def shown(schedule: Schedule, start: str, count: int, zone: datetime.tzinfo = UTC) -> list[str]:
    return [
        f"{each.astimezone(zone):%Y-%m-%d %H:%M}" for each in upcoming(schedule, start, count, zone)
    ]


def every(amount: int, unit: Unit, time: datetime.time | None = None) -> Every:
    return Every(Duration(amount, unit), time)


def test_every_20_minutes_counts_from_the_installation() -> None:
    twenty = every(20, Unit.MINUTE)
    assert shown(twenty, "2026-01-01 10:07", 2) == ["2026-01-01 10:27", "2026-01-01 10:47"]


def test_every_day_at_a_time() -> None:
    daily = every(1, Unit.DAY, datetime.time(8))
    assert shown(daily, "2026-01-01 10:07", 2) == ["2026-01-02 08:00", "2026-01-03 08:00"]
    assert shown(daily, "2026-01-01 07:07", 1) == ["2026-01-01 08:00"]


def test_every_monday_at_8_in_oslo_stays_at_8_when_summer_comes() -> None:
    monday = on_weekdays((1,), datetime.time(8), "EVERY MONDAY AT 08:00")
    assert str(monday) == "EVERY MONDAY AT 08:00"
    assert upcoming(monday, "2026-03-22 00:00", 2, OSLO) == [
        at("2026-03-23 07:00"),
        at("2026-03-30 06:00"),
    ]


def test_every_first_and_last_day_of_the_month() -> None:
    first = on_day_of_month("1", datetime.time(10), "")
    assert shown(first, "2026-01-01 10:07", 2) == ["2026-02-01 10:00", "2026-03-01 10:00"]
    last = on_day_of_month("L", datetime.time(0), "")
    assert shown(last, "2028-02-01 10:07", 2) == ["2028-02-29 00:00", "2028-03-31 00:00"]


def test_a_month_without_the_day_takes_its_last_and_the_next_month_has_it_again() -> None:
    assert shown(every(1, Unit.MONTH), "2027-12-31 09:00", 3) == [
        "2028-01-31 09:00",
        "2028-02-29 09:00",
        "2028-03-31 09:00",
    ]


def test_a_year_after_a_leap_day() -> None:
    assert shown(every(1, Unit.YEAR), "2028-02-29 09:00", 4) == [
        "2029-02-28 09:00",
        "2030-02-28 09:00",
        "2031-02-28 09:00",
        "2032-02-29 09:00",
    ]


def test_a_day_on_the_calendar_may_have_23_or_25_hours() -> None:
    assert upcoming(every(1, Unit.DAY), "2026-03-28 11:00", 1, OSLO) == [at("2026-03-29 10:00")]
    assert upcoming(every(24, Unit.HOUR), "2026-03-28 11:00", 1, OSLO) == [at("2026-03-29 11:00")]


def test_the_two_rows_of_the_table_in_the_thesis() -> None:
    # Its second row prints "0 0,30", hour 30, for every half hour.
    either = Cron("0 0 1,15 * 1-5")
    assert shown(either, "2026-08-13 12:00", 4) == [
        "2026-08-14 00:00",
        "2026-08-15 00:00",
        "2026-08-17 00:00",
        "2026-08-18 00:00",
    ]
    half_hours = Cron("0,30 * * * 6,0")
    assert shown(half_hours, "2026-08-15 23:10", 2) == ["2026-08-15 23:30", "2026-08-16 00:00"]


def test_once() -> None:
    point = Once(datetime.datetime(1998, 6, 2, 16, 25))
    assert upcoming(point, "1998-01-01 00:00", 1, OSLO) == [at("1998-06-02 14:25")]
    assert point.next_after(at("1998-06-02 14:25"), at("1998-01-01 00:00"), OSLO) is None
    exact = Once(datetime.datetime.fromisoformat("1998-06-02 16:25+05:00"))
    assert upcoming(exact, "1998-01-01 00:00", 1, OSLO) == [at("1998-06-02 11:25")]


def test_a_fixed_time_that_the_clock_skips_is_due_when_it_skips() -> None:
    assert upcoming(Cron("30 2 * * *"), "2026-03-28 12:00", 2, OSLO) == [
        at("2026-03-29 01:00"),
        at("2026-03-30 00:30"),
    ]


def test_a_fixed_time_that_the_clock_shows_twice_is_due_once() -> None:
    assert upcoming(Cron("30 2 * * *"), "2026-10-24 12:00", 2, OSLO) == [
        at("2026-10-25 00:30"),
        at("2026-10-26 01:30"),
    ]


def test_a_schedule_of_every_hour_runs_in_both_hours_that_are_shown_twice() -> None:
    assert upcoming(Cron("0 * * * *"), "2026-10-24 23:30", 4, OSLO) == [
        at("2026-10-25 00:00"),
        at("2026-10-25 01:00"),
        at("2026-10-25 02:00"),
        at("2026-10-25 03:00"),
    ]


FIXED = [Cron("15 2 * * *"), Cron("0,45 0,1,2,3 * * 0-6"), every(1, Unit.DAY, datetime.time(2, 30))]
MOVING = [Cron("*/15 * * * *"), Cron("30 * * * *")]


def times_of(schedule: Schedule) -> list[tuple[int, int]]:
    """The times of day, written down here again, at which a schedule is due."""
    return {
        0: [(2, 15)],
        1: [(hour, minute) for hour in range(4) for minute in (0, 45)],
        2: [(2, 30)],
        3: [(hour, minute) for hour in range(24) for minute in (0, 15, 30, 45)],
        4: [(hour, 30) for hour in range(24)],
    }[(FIXED + MOVING).index(schedule)]


def test_every_transition_of_every_zone_in_two_years() -> None:
    for name, moments_of_change in zones_with_transitions(2026, 2028):
        zone = zoneinfo.ZoneInfo(name)
        for transition in moments_of_change:
            for schedule in FIXED + MOVING:
                around = DAY if schedule in FIXED else DAY / 6
                start, end = transition - around, transition + around
                expected = set()
                for days in range(-3, 4):
                    date = transition.astimezone(zone).date() + days * DAY
                    for hour, minute in times_of(schedule):
                        local = datetime.datetime.combine(date, datetime.time(hour, minute))
                        expected |= (
                            {moment(local, zone)}
                            if schedule in FIXED
                            else set(moments(local, zone))
                        )
                found, last = [], start
                while (following := schedule.next_after(last, start - 3 * DAY, zone)) is not None:
                    if following > end:
                        break
                    assert following > last
                    found.append(following)
                    last = following
                assert found == sorted(t for t in expected if start < t <= end), (name, schedule)


FIELD = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "month": (1, 12),
    "weekday": (0, 6),
}


def field_text(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    between = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.one_of(
        st.just("*"), st.lists(st.one_of(number.map(str), between), min_size=1).map(",".join)
    )


MOMENTS = st.datetimes(
    datetime.datetime(2019, 1, 1), datetime.datetime(2031, 1, 1), timezones=st.just(UTC)
)


@given(
    st.tuples(*(field_text(*limits) for limits in FIELD.values())).map(" ".join),
    st.sampled_from(zones()),
    MOMENTS,
    MOMENTS,
)
def test_the_next_due_time_is_later_and_grows_with_the_moment(
    fields: str, zone: str, one: datetime.datetime, other: datetime.datetime
) -> None:
    try:
        schedule = Cron(fields)
    except harken.HarkenError:
        return  # a day that no month has
    low, high = min(one, other), max(one, other)
    installed = datetime.datetime(2018, 1, 1, tzinfo=UTC)
    first = schedule.next_after(low, installed, zoneinfo.ZoneInfo(zone))
    second = schedule.next_after(high, installed, zoneinfo.ZoneInfo(zone))
    if first is None or second is None:
        assert second is None
        return
    assert low < first <= second
    assert second > high
    if first > high:
        assert first == second


def test_what_was_missed_is_run_once_and_late() -> None:
    hourly = every(1, Unit.HOUR)
    installed = at("2026-01-01 00:00")
    assert due(hourly, installed, at("2026-01-01 00:59"), installed, UTC) is None
    found = due(hourly, installed, at("2026-01-01 05:10"), installed, UTC)
    assert found is not None
    assert (found.at, found.missed) == (at("2026-01-01 01:00"), 4)
    long_off = due(every(1, Unit.SECOND), installed, at("2026-02-01 00:00"), installed, UTC)
    assert long_off is not None
    assert long_off.missed == MOST_COUNTED


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Cron("0 0,30 * * 6,0"), "hour"),
        (lambda: Cron("* * * *"), "five fields"),
        (lambda: Cron("* * * 13 *"), "month"),
        (lambda: Cron("0 0 30 2 *"), "day"),
        (lambda: Duration(0, Unit.DAY), "no length"),
        (lambda: every(2, Unit.HOUR, datetime.time(8)), "no time of day"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_an_error(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(harken.HarkenError, match=says) as caught:
        make()
    assert caught.value.hint


def test_a_schedule_ends_with_the_calendar() -> None:
    last = at("9999-12-31 23:00")
    for schedule in (every(1, Unit.DAY), every(9, Unit.YEAR), Cron("0 0 1 1 *")):
        assert schedule.next_after(last, last, UTC) is None
    assert every(1, Unit.DAY, datetime.time(8)).next_after(last, last, OSLO) is None


def test_several_times_of_day() -> None:
    """Section 6.2.1.5 of the thesis: at midnight and noon every weekday."""
    schedule = schedule_of("at midnight and noon every weekday")
    assert str(schedule) == "EVERY WEEKDAY AT '00:00' AND '12:00'"
    assert schedule_of(str(schedule)) == schedule
    after, found = at("2026-01-09 06:00"), []  # a Friday
    for _ in range(2):
        following = schedule.next_after(after, after, UTC)
        assert following is not None
        after = following
        found.append(after)
    assert found == [at("2026-01-09 12:00"), at("2026-01-12 00:00")]
