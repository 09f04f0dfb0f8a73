"""Errors of the lake's files as Harken errors: which table, what is wrong, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import StorageError
from harken.sources.place import Place
from harken.sources.registry import kind_named


@contextmanager
def translated(place: Place) -> Iterator[None]:
    """Attribute any failure in the block to the table at this place."""
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise fault(error, place) from error


def fault(error: Exception, place: Place) -> StorageError:
    path = place.path
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
    if isinstance(error, FileNotFoundError) or "No such file" in text:
        return missing(path) if kind_named(place.kind).keeps_files else vacuumed(place)
    said = text.splitlines()[0] if text else repr(error)
    if not kind_named(place.kind).keeps_files:
        return StorageError(
            f"the Delta table {path} cannot be read: {said}",
            code="lake-damaged",
            hint="mend it where it comes from, then step again",
        )
    return StorageError(
        f"the lake table {path} is damaged: {said}",
        code="lake-damaged",
        hint="restore the directory from a backup of the same time as the database",
    )


def vacuumed(place: Place) -> StorageError:
    return StorageError(
        f"files of {place.path} are gone, of version {place.version}, which Harken reads, or of "
        "one since then",
        code="no-such-version",
        hint="put them back, and step again. Versions must be kept until the next step has been "
        "taken (VACUUM's retention); "
        "to go on with what is there now, delete the function and register it again",
    )


def missing(path: str) -> StorageError:
    return StorageError(
        f"files of the lake table {path} are gone",
        code="no-lake-table",
        hint="a database and its .lake directory belong together: move, copy and restore both",
    )
