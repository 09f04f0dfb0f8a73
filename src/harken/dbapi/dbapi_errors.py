"""The errors of PEP 249, and which of them each of Harken's errors is.

    Warning
    Error
    ├── InterfaceError             the API was used wrongly: a closed cursor
    └── DatabaseError
        ├── DataError              a value: division by zero, text that is no date
        ├── OperationalError       the machine, the file, limits, Spark, a missing package
        ├── IntegrityError         a key, NULL, a constraint
        ├── InternalError
        ├── ProgrammingError       the text: syntax, unknown names, wrong types, parameters
        └── NotSupportedError      what Harken's SQL does not have

Law: `error.__cause__` is Harken's own error, and its code and hint are on this one too.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

from harken import errors


class Warning(builtins.Warning):
    pass


class Error(Exception):
    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.code = code
        self.hint = hint


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


KINDS: tuple[tuple[type[errors.HarkenError], type[DatabaseError]], ...] = (
    (errors.LanguageError, ProgrammingError),
    (errors.LimitFault, OperationalError),
    (errors.ForeignFault, OperationalError),
    (errors.EvaluationError, DataError),
    (errors.IntegrityError, IntegrityError),
    (errors.EngineError, OperationalError),
    (errors.StorageError, OperationalError),
)
"""The first match is used."""
BY_CODE: dict[str, type[DatabaseError]] = {
    "unsupported": NotSupportedError,
    "parameters": ProgrammingError,
    "transaction": ProgrammingError,
    "stale-snapshot": OperationalError,
    "other-thread": ProgrammingError,
    "syntax": ProgrammingError,
    "closed": ProgrammingError,
}


@contextmanager
def translated() -> Iterator[None]:
    """Harken's errors in the block become those of PEP 249."""
    try:
        yield
    except errors.HarkenError as error:
        raise translation(error) from error


def translation(error: errors.HarkenError) -> DatabaseError:
    kind = BY_CODE.get(error.code)
    if kind is None:
        kind = next((ours for theirs, ours in KINDS if isinstance(error, theirs)), DatabaseError)
    return kind(error.headline(), code=error.code, hint=error.hint)
