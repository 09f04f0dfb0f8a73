"""The limits of SQLite, in the user's words.

A statement that is right but larger than SQLite takes is not a failure of the disk: it is the error
`too-complex`, and says what there is too much of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import HarkenError, SafetyFault, StorageError

REFUSED = "the database engine refused the work"

_SPLIT = "keep an intermediate result in a stored function, and go on from that"
_LIMITS = (
    (
        "too many columns",
        "this has more than the 2000 columns that a query or a function can have",
        "ask for fewer values at once",
    ),
    ("tables in a join", "this joins more than 64 functions and types", _SPLIT),
    ("FROM clause terms", "this joins more than 64 functions and types", _SPLIT),
    (
        "terms in compound SELECT",
        "this has more than 500 alternatives",
        "keep the values in a `bag of` function, and use `in` instead of many `or`",
    ),
    ("Expression tree", "this joins too many parts in one expression", _SPLIT),
    ("too many SQL variables", "this has too many constants", _SPLIT),
    ("parser stack overflow", "this is nested too deeply", _SPLIT),
)


@contextmanager
def explained() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise too_complex(error) from error.__cause__


def too_complex(error: HarkenError) -> HarkenError:
    """The error itself, unless SQLite met one of its limits."""
    if not isinstance(error, StorageError) or REFUSED not in error.message:
        return error
    for sign, words, hint in _LIMITS:
        if sign in error.message:
            before = error.message.partition(REFUSED)[0]
            fault = SafetyFault(before + words, code="too-complex", span=error.span, hint=hint)
            fault.text, fault.source = error.text, error.source
            return fault
    return error
