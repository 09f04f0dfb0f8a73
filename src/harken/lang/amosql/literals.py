"""What a literal token stands for.

A value that cannot be (the 31st of June, an integer beyond 64 bits) is a SyntaxFault at the
literal. In every function here, `start` is the place in the text where the token begins.
"""

from __future__ import annotations

import datetime
import math
import re

from harken.errors import Span, SyntaxFault

LARGEST_INTEGER = 2**63 - 1

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[/T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?Z?)?"
)


def integer_value(token: str, start: int = 0, sign: int = 1) -> int:
    """
    >>> integer_value("9223372036854775808", sign=-1)
    -9223372036854775808
    """
    digits = token.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > LARGEST_INTEGER + (sign < 0):
        raise SyntaxFault(
            "this integer does not fit in 64 bits",
            code="overflow",
            span=Span(start, start + len(token)),
            hint=f"integers go from {-LARGEST_INTEGER - 1} to {LARGEST_INTEGER}; "
            "a larger number must be a real, such as 1e20",
        )
    return sign * int(digits)


def real_value(token: str, start: int = 0, sign: int = 1) -> float:
    """
    >>> real_value(".5"), real_value("1e3", sign=-1)
    (0.5, -1000.0)
    """
    value = float(token)
    if math.isinf(value):
        raise SyntaxFault(
            "this real number is too large",
            code="overflow",
            span=Span(start, start + len(token)),
            hint="the largest real is about 1.79e308",
        )
    return sign * value


def string_value(token: str, start: int = 0) -> str:
    """The characters that a string, given with its quotes, stands for.

    >>> string_value('"shoe\\\\u006cace"')
    'shoelace'
    """
    value = token[1:-1]
    if "\\" in value:
        value = _ESCAPE.sub(lambda match: _unescaped(match, start + 1), value)
        # Two \uXXXX escapes may together be one character beyond U+FFFF.
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if not value.isascii() and _SURROGATE.search(value):
        raise SyntaxFault(
            "this string holds half of a surrogate pair, which is not a character",
            code="bad-value",
            span=Span(start, start + len(token)),
            hint="write both halves, as in \\ud83d\\ude00, or the character itself",
        )
    return value


def _unescaped(match: re.Match[str], start: int) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2] in _ESCAPES:
        return _ESCAPES[match[2]]
    raise SyntaxFault(
        f"{shown(match[0])} is not an escape that a string can hold",
        code="bad-value",
        span=Span(start + match.start(), start + match.end()),
        hint="the escapes are \\\" \\' \\\\ \\n \\t and \\uXXXX; a backslash itself is \\\\",
    )


def time_value(token: str, start: int = 0) -> datetime.date | datetime.datetime:
    """`|2026-11-15|` is a date; with a time of day it is a moment, in UTC.

    >>> time_value("|2026-11-15/08:30:00|").isoformat()
    '2026-11-15T08:30:00+00:00'
    """
    match = _TIME.fullmatch(token[1:-1])
    reason = ""
    if match:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        try:
            if match[4] is None:
                return datetime.date(year, month, day)
            micro = int((match[7] or "").ljust(6, "0"))
            zone = datetime.UTC
            return datetime.datetime(year, month, day, hour, minute, second, micro, zone)
        except ValueError as error:
            reason = f": {error}"
    raise SyntaxFault(
        f"{shown(token)} is not a date or a time{reason}",
        code="bad-value",
        span=Span(start, start + len(token)),
        hint="write a date as |2026-11-15| and a time, in UTC, as |2026-11-15/08:30:00|",
    )


def shown(token: str) -> str:
    """A piece of the user's text as a message quotes it: short, on one line, printable.

    >>> shown("where"), shown("\\x00")
    ('`where`', '`\\\\x00`')
    """
    line = " ".join(token.split()) or token
    line = line if len(line) <= 30 else line[:29] + "…"
    return "`" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) + "`"
