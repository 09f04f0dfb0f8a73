"""Errors that arise inside Spark, as ours.

A failing expression calls `raise_error` with a marked text, and a Python function that fails on a
worker hands its error back as such a text; `translated` finds the mark in whatever Spark makes of
it. An error without our mark becomes a sentence of ours with Spark's condition in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harken import errors
from harken.errors import ArithmeticFault, EvaluationError, HarkenError, StorageError
from harken.values import failures


def _outside_calendar(what: str) -> Callable[[], HarkenError]:
    return lambda: failures.outside_calendar(what)


def _negative_root() -> HarkenError:
    return ArithmeticFault(
        "the square root of a negative number",
        code="bad-value",
        hint="add a condition that leaves such values out",
    )


FAULTS: dict[str, Callable[[], HarkenError]] = {
    "overflow": failures.overflow,
    "decimal-overflow": failures.decimal_overflow,
    "number-overflow": failures.too_large,
    "division-by-zero": failures.division_by_zero,
    "date-overflow": _outside_calendar("date"),
    "timestamp-overflow": _outside_calendar("timestamp"),
    "negative-root": _negative_root,
    "many-values": failures.many_rows,
}

RAISING = frozenset({"pyspark", "py4j"})
"""The packages whose exceptions come from Spark."""

CAUSE = "Caused by: "
"""So begins the line of an exception that led to the one before, in what Java prints."""

_MARK = re.compile(r"harken:([a-z-]+);([0-9A-Fa-f]*);")


def raising(name: str) -> str:
    """The expression that fails with one of `FAULTS`."""
    if name not in FAULTS:
        raise ValueError(name)
    return f"raise_error('harken:{name};;')"


def raising_ambiguity(candidates: str) -> str:
    """The expression that fails because several functions apply."""
    return f"raise_error(concat('harken:ambiguous;', hex({candidates}), ';'))"


def packed(error: HarkenError) -> str:
    """An error as a text that can travel through Spark."""
    told = [type(error).__name__, error.message, error.code, error.hint]
    return f"harken:fault;{json.dumps(told).encode().hex()};"


def unpacked(text: str) -> HarkenError | None:
    """The error in a text of Spark's, if it is one of ours."""
    found = _MARK.search(text)
    if found is None:
        return None
    name, detail = found[1], bytes.fromhex(found[2]).decode()
    if name == "fault":
        kind, message, code, hint = json.loads(detail)
        known = getattr(errors, kind, EvaluationError)
        error: HarkenError = known(message, code=code, hint=hint)
        return error
    if name == "ambiguous":
        try:
            failures.ambiguous(detail)
        except HarkenError as error:
            return error
    return FAULTS[name]()


@contextmanager
def translated() -> Iterator[None]:
    """Run a block and turn what Spark raises into Harken errors."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in RAISING:
            raise
        raise fault(error) from error


def fault(error: Exception) -> HarkenError:
    known = unpacked(str(error))
    if known is not None:
        return known
    return StorageError(
        f"Spark could not do the work ({_told(error)})",
        code="storage",
        hint="the exception that caused this one has all that Spark says",
    )


def _told(error: Exception) -> str:
    """What Spark says of it in a line: its name for it, or what the innermost of Java's exceptions
    says. (What Java raises begins with the name of the call that failed, which tells nobody
    anything.)"""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return str(condition)
    first, *others = str(error).splitlines() or [type(error).__name__]
    raised = [line.removeprefix(": ") for line in others[:1] if line.startswith(": ")]
    causes = [line.removeprefix(CAUSE) for line in others if line.startswith(CAUSE)]
    return [first, *raised, *causes][-1]
