"""The value of an option, as a kind wants it.

Law: an error names the option and never a secret's value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harken.errors import SourceFault
from harken.sources.outside import Option
from harken.values.parsing import parse_boolean

LONGEST_TEXT = 100_000
"""Characters of an option."""
MOST_NAMES = 10_000
UNITS = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3_600.0),
    **dict.fromkeys(("d", "day"), 86_400.0),
    **dict.fromkeys(("w", "week"), 604_800.0),
    "ms": 0.001,
    "millisecond": 0.001,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)


def option_value(option: Option, given: Any, resolve: Callable[[str], str], kind: str) -> Any:
    if given is None or (given == "" and not option.required):
        if option.required:
            raise SourceFault(
                f"the kind {kind} needs the option {option.name}: {option.about}",
                code="bad-option",
            )
        return option.default
    if isinstance(given, str):
        given = resolve(given)
    elif isinstance(given, list | tuple):
        given = [resolve(each) if isinstance(each, str) else each for each in given]
    found = _CONVERSIONS[option.type](option, given)
    bounds = option.type in ("integer", "number", "duration")
    if bounds and option.least is not None and found < option.least:
        raise _wrong(option, f"at least {option.least:g}")
    if bounds and option.most is not None and found > option.most:
        raise _wrong(option, f"at most {option.most:g}")
    return found


def _text(option: Option, given: Any) -> str:
    if isinstance(given, bool | list | tuple | dict) or len(str(given)) > LONGEST_TEXT:
        raise _wrong(option, "a text")
    return str(given)


def _integer(option: Option, given: Any) -> int:
    found = _number(option, given)
    if found != int(found):
        raise _wrong(option, "a whole number")
    return int(found)


def _number(option: Option, given: Any) -> float:
    try:
        if isinstance(given, bool):
            raise ValueError
        found = float(given)
        if found in (float("inf"), -float("inf")) or found != found:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise _wrong(option, "a number") from None
    return found


def _flag(option: Option, given: Any) -> bool:
    if isinstance(given, bool):
        return given
    try:
        return bool(parse_boolean(str(given)))
    except Exception:
        raise _wrong(option, "true or false") from None


def _duration(option: Option, given: Any) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return _number(option, given)
    parts = [*_DURATION.finditer(str(given).lower())]
    rest = _DURATION.sub("", str(given).lower()).replace(",", "").strip()
    total = 0.0
    for part in parts:
        unit = part[2] if part[2] in UNITS else part[2].removesuffix("s")
        if unit and unit not in UNITS:
            raise _wrong(option, "a length of time, such as '20 minutes'")
        total += float(part[1]) * UNITS.get(unit, 1.0)
    if not parts or rest not in ("", "interval"):
        raise _wrong(option, "a length of time, such as '20 minutes'")
    return total


def _names(option: Option, given: Any) -> list[str]:
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or len(listed) > MOST_NAMES:
        raise _wrong(option, "a list, in text separated by commas")
    return [str(each).strip() for each in listed]


def _choice(option: Option, given: Any) -> str:
    found = str(given).strip().lower()
    if found not in option.choices:
        raise _wrong(option, f"one of {', '.join(option.choices)}")
    return found


_CONVERSIONS: dict[str, Callable[[Option, Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "flag": _flag,
    "duration": _duration,
    "names": _names,
    "choice": _choice,
}


def _wrong(option: Option, wanted: str) -> SourceFault:
    return SourceFault(
        f"the option {option.name} must be {wanted}", code="bad-option", hint=option.about
    )
