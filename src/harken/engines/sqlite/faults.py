"""SQLite's and the operating system's errors, as ours.

A user never sees an apsw exception: each becomes a Harken error with a code and a hint.
"""

from __future__ import annotations

import apsw

from harken.engines.protocol import damaged
from harken.engines.sqlite import heap
from harken.errors import HarkenError, SafetyFault, StorageError, ValueFault
from harken.limits import out_of_memory
from harken.values.failures import overflow


def wrong_object() -> ValueFault:
    return ValueFault(
        "an object is not of the type that the function is defined for, or was deleted",
        code="wrong-object",
        hint="`add T to :x` gives an object another type",
    )


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
    ("too many references", "this needs one function or type too many times", _SPLIT),
    ("pattern too complex", "a pattern of LIKE is too long", "use a shorter one"),
    ("parser stack overflow", "this is nested too deeply", _SPLIT),
)
"""Statements that are valid but exceed a limit of SQLite: SQLite's message, what there is too
much of, and the hint."""


RAISED = (apsw.Error, UnicodeError)
"""What apsw raises for a failed statement, apart from exceptions of our own functions."""


class translated:  # it reads as a verb: with translated(): ...
    """Run a block and turn SQLite's errors into Harken errors. It is entered for each transaction,
    so it is no generator."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, RAISED):
            raise fault(error) from error


def fault(error: Exception) -> HarkenError:
    text = str(error)
    match error:
        case UnicodeEncodeError():
            return ValueFault("a text holds half of a surrogate pair", code="bad-value")
        case apsw.ConnectionClosedError():
            return StorageError("the database is closed", code="closed")
        case apsw.BusyError() if is_stale(error):
            return StorageError(
                "another process has committed since this transaction first read, "
                "so it cannot change anything",
                code="stale-snapshot",
                hint="roll it back and begin again; one that changes something before it reads "
                "holds the write lock from then on",
            )
        case apsw.BusyError() | apsw.LockedError():
            return StorageError(
                "another process is writing to this database",
                code="locked",
                hint="wait until its transaction has ended and try again",
            )
        case apsw.NotADBError():
            return not_a_database()
        case apsw.FullError():
            return StorageError(
                "the disk is full; the transaction was undone",
                code="disk-full",
                hint="make room and run it again",
            )
        case apsw.ReadOnlyError():
            return read_only()
        case apsw.CantOpenError():
            return StorageError(
                "the database file cannot be opened",
                code="cannot-open",
                hint="check that the directory exists and that you may read and write the file",
            )
        case apsw.CorruptError() | UnicodeDecodeError():
            return damaged(text)
        case apsw.IOError():
            return StorageError(
                f"the disk failed ({text}); the transaction was undone",
                code="disk-error",
                hint="check the disk and its limits, and run it again",
            )
        case apsw.ConstraintError() | apsw.MismatchError():
            # NULL for a key of one whole number is a mismatch of types to SQLite.
            return _constraint(text)
        case apsw.TooBigError():
            return ValueFault(
                "a value is too large", code="bad-value", hint="text_limit is the limit"
            )
        case apsw.NoMemError():
            return out_of_memory(heap.limit())
    if "integer overflow" in text:
        return overflow()
    for sign, words, hint in _LIMITS:
        if sign in text:
            return too_complex(words, hint)
    return StorageError(f"the database engine refused the work ({text})", code="storage")


def is_stale(error: apsw.BusyError) -> bool:
    """Did a transaction that has read ask for the write lock after another process committed?"""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_BUSY_SNAPSHOT


def too_complex(words: str, hint: str | None = None) -> SafetyFault:
    return SafetyFault(words, code="too-complex", hint=hint)


def read_only() -> StorageError:
    return StorageError(
        "this database is open for reading only",
        code="read-only",
        hint="`harken query` only reads: `harken run` and `harken shell` write; in Python open it "
        "without read_only; and check that you may write the file's directory",
    )


def not_a_database() -> StorageError:
    return StorageError(
        "the file is not a Harken database",
        code="not-a-database",
        hint="give the path of a database that Harken made, or of a new file",
    )


def _constraint(text: str) -> HarkenError:
    if "FOREIGN KEY" in text:
        return wrong_object()
    return ValueFault(f"a stored value was refused ({text})", code="bad-value")
