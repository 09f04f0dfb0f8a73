"""Checks of the values that Python code gives to the public methods.

Each says what the argument is for, what it must be and what it is, before anything is done.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from typing import Any

from harken.errors import NameFault, Span, StorageError, SyntaxFault, TypeFault, ValueFault

LONGEST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""
LONGEST_NAME = 255
"""Bytes of the longest name of a file, on all common file systems."""
LONGEST_TIME = 1e6
"""Seconds of the longest timeout, about 11 days: SQLite and sockets count milliseconds in 32
bits."""


def check_text(value: object, what: str) -> None:
    """Refuse what Python code gave for a text, such as a name, if it is none."""
    if not isinstance(value, str):
        shown = repr(value) if len(repr(value)) <= 60 else type(value).__name__
        raise TypeFault(
            f"{what} is a text, and this is {shown}",
            code="type-mismatch",
            hint="give a Python str",
        )
    refuse_half_characters(value, what)


def refuse_half_characters(text: str, what: str) -> None:
    """No file and no connection can hold half of a surrogate pair."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        fault = SyntaxFault(
            f"{what} holds half of a surrogate pair, which is not a character",
            code="bad-value",
            span=Span(error.start, error.start + 1),
        )
        raise fault.locate(text) from None


def check_numbers(values: object) -> list[int]:
    """Refuse what Python code gave for a list of whole numbers, if it is none."""
    found = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else None
    if found is None or not all(type(each) is int for each in found):
        shown = repr(values) if len(repr(values)) <= 60 else type(values).__name__
        raise TypeFault(
            f"a list of whole numbers is needed here, and this is {shown}",
            code="type-mismatch",
            hint="give a list, also of one: [3]",
        )
    return found


def check_name(name: object, what: str) -> None:
    """Refuse a name given by Python code that AMOSQL could not spell."""
    check_text(name, what)
    if not re.fullmatch(r"[^\W\d]\w*", str(name)):
        raise NameFault(
            f"{what} cannot be {name!r}",
            code="bad-name",
            hint="a name is letters, digits and underscores, and does not begin with a digit",
        )


def check_path(value: object, what: str, code: str = "bad-path") -> None:
    try:
        place = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        raise wrong(value, what, "a path", "give a Python str or a pathlib.Path") from None
    check_text(place, what)
    if "\0" in place:
        raise StorageError(f"{what} cannot hold the character NUL", code=code)
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in place.split(os.sep)):
        raise StorageError(f"{what} has a part of more than {LONGEST_NAME} bytes", code=code)


def check_callable(value: object, what: str) -> None:
    if not callable(value):
        raise wrong(value, what, "a Python function", "give something that can be called")


def check_flag(value: object, what: str) -> None:
    if not isinstance(value, bool):
        raise wrong(value, what, "True or False", None)


def check_number(
    value: object, what: str, *, least: float = 0, most: float = math.inf, above: bool = False
) -> None:
    """A finite number from `least`, or `above` it, to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(value, what, "a number", None)
    if math.isnan(value) or value < least or value > most or (above and value == least):
        raise _out_of_range(value, what, least, most, above)


def check_whole(value: object, what: str, *, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(value, what, "a whole number", None)
    if not least <= value < 2**63:
        raise _out_of_range(value, what, least - 1, math.inf, above=True)


def check_names(value: object, what: str) -> list[str]:
    """Several texts; one alone is not meant as the list of its letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(value, what, "a list of texts", 'as ["a", "b"]')
    found = list(value)
    for each in found:
        check_text(each, f"each of {what}")
    return found


def wrong(value: object, what: str, wanted: str, hint: str | None) -> TypeFault:
    return TypeFault(f"{what} is {wanted}, and this is {shown(value)}", hint=hint)


def shown(value: object) -> str:
    """A value as an error repeats it: by its type if it is long, or cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # whatever a user's __repr__ does, or a number of 5,000 digits
        text = "?" * (LONGEST_SHOWN + 1)
    return text if len(text) <= LONGEST_SHOWN else f"of type {type(value).__name__}"


def _out_of_range(value: Any, what: str, least: float, most: float, above: bool) -> ValueFault:
    bound = f"above {least:g}" if above else f"at least {least:g}"
    upper = f" and at most {most:g}" if most < math.inf else ""
    return ValueFault(f"{what} is {bound}{upper}, and this is {shown(value)}", code="bad-value")


__all__ = [
    "check_callable",
    "check_flag",
    "check_names",
    "check_number",
    "check_path",
    "check_text",
    "check_whole",
    "refuse_half_characters",
    "shown",
    "wrong",
]
