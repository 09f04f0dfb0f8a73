"""The options of a source, as its kind wants them: checked, converted, secrets resolved.

Besides its own, a kind's sources have the options `take`, `suspect_share` and `retain`.

Law: an error names the option and never a secret's value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from harken.database.secrets import has_password, is_reference
from harken.errors import SourceFault, offered
from harken.sources.outside import Option, OutsideKind
from harken.values.parsing import parse_boolean

SHARED = (
    Option("take", "The columns to keep; all of them by default.", "names"),
    Option(
        "suspect_share",
        "The share of the rows that may vanish at once before the reading is doubted; with 1 none "
        "is.",
        "number",
        0.5,
        least=0,
        most=1,
    ),
    Option(
        "retain",
        "How long changes are kept for consumers that have not seen them.",
        "duration",
        7 * 86_400.0,
        least=0,
    ),
)
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


def checked(
    kind: OutsideKind, given: Mapping[str, Any], resolve: Callable[[str], str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the kind with their defaults, and the shared ones."""
    known = {option.name: option for option in (*kind.options, *SHARED)}
    for name in given:
        if name not in known:
            raise SourceFault(
                f"the kind {kind.name} has no option {name}",
                code="bad-option",
                hint=offered(name, known, "options"),
            )
    found = {
        name: _value(option, given.get(name), resolve, kind.name) for name, option in known.items()
    }
    shared = {option.name for option in SHARED}
    own = {name: value for name, value in found.items() if name not in shared}
    return own, {name: found[name] for name in shared}


def refuse_passwords(kind: OutsideKind, given: Mapping[str, Any]) -> None:
    """Definitions are stored and shown: a secret in one must be a reference."""
    secret = {option.name for option in kind.options if option.secret}
    for name, value in given.items():
        texts = value if isinstance(value, list | tuple) else [value]
        for each in texts:
            if not isinstance(each, str) or is_reference(each):
                continue
            if name in secret or has_password(each):
                raise SourceFault(
                    f"the option {name} holds a secret, which the database would show",
                    code="bad-option",
                    hint=f"write {name} 'secret:a_name', and set HARKEN_SECRET_A_NAME in the "
                    "environment",
                )


def _value(option: Option, given: Any, resolve: Callable[[str], str], kind: str) -> Any:
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
