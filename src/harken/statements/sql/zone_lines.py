"""The active delta zone of a source, as DESCRIBE SOURCE shows it."""

from __future__ import annotations

from collections.abc import Mapping

from harken.database.changes import moment
from harken.errors import counted
from harken.intake.delta_zones import DeltaZone
from harken.lang.sql.source_statements import every_text


def zone_lines(zone: DeltaZone) -> Mapping[str, str]:
    found = {"delta zone": "empty: every consumer has seen all changes"}
    if zone.claims:
        found["delta zone"] = _size(zone.changes, zone.bytes, zone.since)
    found["retain"] = every_text(zone.retain).lower()
    for each in zone.claims:
        until = "" if each.is_active else f", until {_moment(each.since + zone.retain)}"
        found[f"held by {each.holder}"] = _size(each.changes, each.bytes, each.since) + until
    return found


def _size(changes: int, bytes: int, since: float | None) -> str:
    return f"{counted(changes, 'change')} in {bytes:,} bytes since {_moment(since)}"


def _moment(at: float | None) -> str:
    found = moment(at)
    return "the beginning" if found is None else f"{found:%Y-%m-%d %H:%M:%S} UTC"
