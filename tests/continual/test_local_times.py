"""A local time is the first moment at which the clock shows it or a later time."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest

import harken
from harken.continual.local_times import moment, moments, wall, zone_named
from tests.continual.time_zones import UTC, zones_with_transitions

STEP = datetime.timedelta(minutes=15)
AROUND = 16
"""Steps before and after a transition: no clock of this decade is changed by more than 3 hours."""


def test_every_local_time_around_every_transition_of_a_decade() -> None:
    seen = 0
    for name, moments_of_change in zones_with_transitions():
        zone = zoneinfo.ZoneInfo(name)
        for at in moments_of_change:
            instants = [at + step * STEP for step in range(-AROUND, AROUND + 1)]
            shown = [each.astimezone(zone).replace(tzinfo=None) for each in instants]
            for step in range(-3, 4):
                local = shown[AROUND] + step * STEP
                # Where the clock skips, the local times just before the transition are tried too.
                for tried in (local, shown[AROUND - 1] + step * STEP):
                    reached = [t for t, w in zip(instants, shown, strict=True) if w >= tried]
                    assert moment(tried, zone) == reached[0], (name, at, tried)
                    exact = [t for t, w in zip(instants, shown, strict=True) if w == tried]
                    assert list(moments(tried, zone)) == exact, (name, at, tried)
            seen += 1
    assert seen > 100


def test_a_wall_clock_shows_a_moment_without_its_zone() -> None:
    at = datetime.datetime(2026, 7, 1, 6, tzinfo=UTC)
    assert wall(at, zone_named("Europe/Oslo")) == datetime.datetime(2026, 7, 1, 8)


@pytest.mark.parametrize("name", ["Mars/Base", "", "../etc/passwd", "/etc/passwd", "Europe"])
def test_an_unknown_zone_is_an_error(name: str) -> None:
    with pytest.raises(harken.HarkenError, match="no time zone") as caught:
        zone_named(name)
    assert caught.value.hint
