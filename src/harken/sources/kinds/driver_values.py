"""Values of drivers as values of ours."""

from __future__ import annotations

import datetime
import uuid
from typing import Any


def plain_value(value: Any) -> Any:
    """What no type of ours holds, as text.

    >>> plain_value(b"\\x01\\xff"), plain_value(datetime.timedelta(hours=-1, seconds=2))
    ('\\\\x01ff', '-00:59:58')
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(value).hex()
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, datetime.time | uuid.UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        return ",".join(sorted(map(str, value)))
    return value


def _duration(value: datetime.timedelta) -> str:
    sign, rest = ("-", -value) if value < datetime.timedelta() else ("", value)
    seconds = rest.days * 86_400 + rest.seconds
    fraction = f".{rest.microseconds:06}" if rest.microseconds else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
