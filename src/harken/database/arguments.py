"""Checks of the arguments that Python code passes to public methods.

Each error says what the argument is for, what it must be, and what was passed, before anything is
done.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from harken.errors import NameFault, Span, StorageError, SyntaxFault, TypeFault, ValueFault, nearest

P = ParamSpec("P")
R = TypeVar("R")

MAX_SHOWN = 60
"""Characters of a wrong value that an error shows."""
MAX_NAME_BYTES = 255
"""Bytes of the longest file name on all common file systems."""
LONGEST_TIME = 1e6
"""The longest timeout in seconds, about 11 days: SQLite and sockets count milliseconds in 32
bits."""


def check_text(value: object, what: str) -> None:
    """Raise unless the argument is a str."""
    if not isinstance(value, str):
        shown = repr(value) if len(repr(value)) <= 60 else type(value).__name__
        raise TypeFault(
            f"{what} must be a text, not {shown}",
            code="type-mismatch",
            hint="pass a Python str",
        )
    refuse_half_characters(value, what)


def refuse_half_characters(text: str, what: str) -> None:
    """Raise if a text contains half of a surrogate pair, which no file and no connection can
    hold."""
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
    """Raise unless the argument is a list of whole numbers."""
    found = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else None
    if found is None or not all(type(each) is int for each in found):
        shown = repr(values) if len(repr(values)) <= 60 else type(values).__name__
        raise TypeFault(
            f"expected a list of whole numbers, not {shown}",
            code="type-mismatch",
            hint="pass a list, even for one number: [3]",
        )
    return found


def check_name(name: object, what: str) -> None:
    """Raise unless the argument is a name that AMOSQL can spell."""
    check_text(name, what)
    if not re.fullmatch(r"[^\W\d]\w*", str(name)):
        raise NameFault(
            f"{what} cannot be {name!r}",
            code="bad-name",
            hint=(
                "a name consists of letters, digits and underscores, and does not start with "
                "a digit"
            ),
        )


def check_path(value: object, what: str, code: str = "bad-path") -> None:
    try:
        place = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        raise wrong(value, what, "a path", "pass a Python str or a pathlib.Path") from None
    check_text(place, what)
    if "\0" in place:
        raise StorageError(f"{what} cannot contain the character NUL", code=code)
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in place.split(os.sep)):
        raise StorageError(f"{what} has a part of more than {MAX_NAME_BYTES} bytes", code=code)


def check_callable(value: object, what: str) -> None:
    if not callable(value):
        raise wrong(value, what, "a Python function", "pass a callable")


def check_flag(value: object, what: str) -> None:
    if not isinstance(value, bool):
        raise wrong(value, what, "True or False", None)


def check_number(
    value: object, what: str, *, least: float = 0, most: float = math.inf, above: bool = False
) -> None:
    """Raise unless the argument is a finite number from `least`, or `above` it, to `most`."""
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
    """Raise unless the argument is several texts; a single str is not a list of its letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(value, what, "a list of texts", 'as ["a", "b"]')
    found = list(value)
    for each in found:
        check_text(each, f"each of {what}")
    return found


def wrong_call(
    function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> TypeFault | None:
    """The error for arguments that a function does not have, or lacks; None if they fit.

    >>> def monitor(self, name, *, strategy="auto"): ...
    >>> print(wrong_call(monitor, (None, "v"), {"strateg": 1}).report())
    [arity] monitor has no argument strateg
    hint: did you mean strategy? It is called as monitor(name, *, strategy='auto')
    """
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        own = [each for each in signature.parameters.values() if each.name != "self"]
        plain = [each.replace(annotation=inspect.Parameter.empty) for each in own]
        shape = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
        called = f"it is called as {function.__name__}{shape}"
        unknown = next((name for name in named if name not in signature.parameters), None)
        if unknown is None:
            message, near = f"{function.__name__}: {error}", None
        else:
            message = f"{function.__name__} has no argument {unknown}"
            near = nearest(unknown, [each.name for each in own])
        hint = f"did you mean {near}? I{called[1:]}" if near else called
        return TypeFault(message, code="arity", hint=hint)
    return None


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function of the public interface: a call that does not fit is our error."""

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except TypeError as error:
            fault = wrong_call(function, given, named)
            if fault is None:
                raise
            raise fault from error

    return called


def wrong(value: object, what: str, wanted: str, hint: str | None) -> TypeFault:
    return TypeFault(f"{what} must be {wanted}, not {shown(value)}", hint=hint)


def shown(value: object) -> str:
    """A value as an error shows it; only its type if it is long or cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # a user's __repr__ may do anything, and a number may have 5,000 digits
        text = "?" * (MAX_SHOWN + 1)
    return text if len(text) <= MAX_SHOWN else f"of type {type(value).__name__}"


def _out_of_range(value: Any, what: str, least: float, most: float, above: bool) -> ValueFault:
    bound = f"above {least:g}" if above else f"at least {least:g}"
    upper = f" and at most {most:g}" if most < math.inf else ""
    return ValueFault(f"{what} must be {bound}{upper}, not {shown(value)}", code="bad-value")


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
