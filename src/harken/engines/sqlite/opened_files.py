"""The database file itself: whether a path can be opened, whether a file is ours, and whether it is
still there.

Law: nothing is written to a file that is not ours, and nothing is committed to one that was removed
or replaced.
"""

from __future__ import annotations

import os

import apsw

from harken.engines.sqlite import faults
from harken.errors import StorageError

APPLICATION_ID = 0x4841524B
FORMAT = 3
"""The format of the file: raised whenever the catalog's own relations change."""
HEADER = 100


def check_path(path: str, read_only: bool) -> None:
    if "\0" in path:
        raise StorageError(
            "a path cannot hold the character NUL", code="cannot-open", hint="give another path"
        )
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise StorageError(
            f"there is no directory {directory}",
            code="cannot-open",
            hint="create it, or give another path",
        )
    if os.path.isdir(path):
        raise StorageError(
            f"{path} is a directory", code="cannot-open", hint="give the path of a file"
        )
    if os.path.isfile(path) and 0 < os.path.getsize(path) < HEADER:
        raise faults.not_a_database()  # SQLite would take a file of one byte for an empty one
    if read_only and not os.path.exists(path):
        raise StorageError(
            f"there is no database at {path}",
            code="cannot-open",
            hint="check the path; `harken run FILE --db PATH` creates a database",
        )


def identify(raw: apsw.Connection) -> bool:
    """Reject a file that is not ours before anything is written."""
    application = raw.pragma("application_id")
    version = raw.pragma("user_version")
    if application == 0 and version == 0:
        tables = raw.execute("SELECT count(*) FROM sqlite_schema").get
        if tables:
            raise faults.not_a_database()
        return True
    if application != APPLICATION_ID:
        raise faults.not_a_database()
    if version > FORMAT:
        raise StorageError(
            f"the database has format {version}, and this version of Harken knows up to {FORMAT}",
            code="newer-format",
            hint="upgrade Harken",
        )
    if not raw.execute("SELECT count(*) FROM sqlite_schema").get:
        raise faults.not_a_database()
    if version < FORMAT:
        raise StorageError(
            f"the database has format {version}, and this version of Harken reads only {FORMAT}",
            code="older-format",
            hint="create the database again from its programs, or open it with the version "
            "of Harken that made it",
        )
    return False


class OpenedFiles:
    """The files that commits go to, and the identity of each path's file when it was first seen."""

    def __init__(self, raw: apsw.Connection, in_memory: bool) -> None:
        self._raw = raw
        self._in_memory = in_memory
        self._files = {} if in_memory else {raw.filename: _identity(raw.filename)}

    def check(self) -> None:
        """SQLite goes on writing to a file that was removed or replaced, and whatever is
        committed there is lost."""
        if not self._in_memory and len(self._files) == 1:
            self._files[self._raw.filename_wal] = _identity(self._raw.filename_wal)
        lost = self.lost()
        if lost is not None:
            raise StorageError(
                f"{lost} was removed or replaced while the database was open; "
                "the transaction was undone",
                code="file-lost",
                hint="close the database, put the file back, and open it again",
            )

    def lost(self) -> str | None:
        for path, known in self._files.items():
            if _identity(path) != known:
                return path
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """The identity of the file a path leads to now; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
