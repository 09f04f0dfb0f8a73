"""Errors of the lake's files, in our words: what is wrong with which table, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import StorageError


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Whatever fails below here failed at the table in this directory."""
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise fault(error, path) from error


def fault(error: Exception, path: str) -> StorageError:
    number = getattr(error, "errno", None)
    text = str(error)
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in text:
        return StorageError(
            f"there is no room for {path}",
            code="disk-full",
            hint="free some space, then db.flush()",
        )
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or "denied" in text.lower():
        return StorageError(
            f"{path} may not be written or read by this process",
            code="not-permitted",
            hint="give it the right to, then db.flush()",
        )
    if number == errno.ENOENT or "not found" in text.lower() or "No such file" in text:
        return missing(path)
    return StorageError(
        f"the lake table {path} is damaged: {text.splitlines()[0] if text else error!r}",
        code="lake-damaged",
        hint="restore the directory from a backup of the same time as the database",
    )


def missing(path: str) -> StorageError:
    return StorageError(
        f"files of the lake table {path} are gone",
        code="no-lake-table",
        hint="a database and its .lake directory belong together: move, copy and restore both",
    )
