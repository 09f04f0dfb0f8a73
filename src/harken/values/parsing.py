"""Booleans, dates and timestamps as Spark reads them from texts.

Law: a constant of a query and a function of an engine read the same.
"""

from __future__ import annotations

import datetime
import re

from harken.errors import ValueFault

_BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), 1)
_BOOLEANS |= dict.fromkeys(("f", "false", "n", "no", "0"), 0)
_DATE = r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})"
_DAY = re.compile(_DATE + r"(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_ZONE = r"Z|UTC|GMT|[+-]\d{1,2}(?::\d{1,2})?|[+-]\d{4}"
_SECONDS = rf"(\d{{1,2}})(?:\.(\d*))?(?: *({_ZONE}))?"
_MOMENT = re.compile(rf"{_DATE}(?:[ T](\d{{1,2}})(?::(\d{{1,2}})(?::{_SECONDS})?)?)?)?)?", re.ASCII)


def _unreadable(text: str, kind: str) -> ValueFault:
    return ValueFault(
        f'"{text}" is not a {kind}', code="bad-value", hint="leave such texts out, or use TRY_CAST"
    )


def parse_boolean(text: str) -> int:
    """As Spark reads one: `true`, `Yes`, `t`, `1`."""
    found = _BOOLEANS.get(text.strip().lower())
    if found is None:
        raise _unreadable(text, "boolean")
    return found


def parse_date(text: str) -> datetime.date:
    """As Spark reads one: `2020-1-5`, also with a time of day behind it, which is left out."""
    found = _DAY.fullmatch(text.strip())
    if found is not None:
        try:
            return datetime.date(*(int(each or 1) for each in found.groups()))
        except (ValueError, OverflowError):
            pass
    raise _unreadable(text, "date")


def parse_timestamp(text: str) -> datetime.datetime:
    """As Spark reads one, in UTC unless it says otherwise: `2020-1-5 9:30`."""
    found = _MOMENT.fullmatch(text.strip())
    if found is not None:
        *day, hour, minute, second, fraction, zone = found.groups()
        hour, minute, second = (int(each or 0) for each in (hour, minute, second))
        micros = int((fraction or "").ljust(6, "0")[:6])
        try:
            date = datetime.date(*(int(each or 1) for each in day))
            time = datetime.time(hour, minute, second, micros, datetime.UTC)
            return datetime.datetime.combine(date, time) - _offset(zone or "Z")
        except (ValueError, OverflowError):
            pass
    raise _unreadable(text, "timestamp")


def _offset(zone: str) -> datetime.timedelta:
    if zone[0] not in "+-":
        return datetime.timedelta()
    hours, _, minutes = zone[1:].partition(":")
    if len(hours) == 4:
        hours, minutes = hours[:2], hours[2:]
    if int(hours) > 18 or int(minutes or 0) > 59:
        raise ValueError(zone)
    away = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -away if zone[0] == "-" else away
