"""Logs of changes, kept in the file for a time, so that a client that was away can resume.

A log belongs to a view, or to a view with a condition, and is shared by all its clients. Every
session on the file attaches it, so whoever changes the data writes the change, in the same
transaction. A position is the number of a transaction, taken from a counter in the file.

Law: for a position p not below the `floor` of a log, the rows of the view at p plus the changes of
the log after p are the present rows.

A log is deleted when nobody has read it for as long as it keeps changes, because then no client
could resume from it. It never prevents a commit or a change of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harken.consumers.monitors.view import Watched
from harken.database.arguments import check_number, check_whole
from harken.database.changes import StoredChange, read_change
from harken.database.system import META
from harken.engines.protocol import Connection
from harken.errors import StorageError

LOGS, CHANGES = "harken_logs", "harken_changes"
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {LOGS} (id INTEGER PRIMARY KEY, view TEXT NOT NULL, "
    "function TEXT NOT NULL, condition TEXT NOT NULL, floor INTEGER NOT NULL, "
    "size INTEGER NOT NULL, oldest REAL, seconds REAL NOT NULL, bytes INTEGER NOT NULL, "
    "asked REAL NOT NULL, UNIQUE (function, condition)) STRICT",
    f"CREATE TABLE IF NOT EXISTS {CHANGES} (log INTEGER NOT NULL REFERENCES {LOGS} (id) "
    "ON DELETE CASCADE, position INTEGER NOT NULL, at REAL NOT NULL, size INTEGER NOT NULL, "
    "change TEXT NOT NULL, "
    "PRIMARY KEY (log, position)) STRICT",
    f"CREATE INDEX IF NOT EXISTS harken_changes_in_order ON {CHANGES} (position)",
)
COLUMNS = "id, view, function, condition, floor, size, oldest, seconds, bytes, asked"
POSITION = f"SELECT value FROM {META} WHERE key = 'transaction'"
VERSION = f"SELECT value FROM {META} WHERE key = 'watching'"
NEXT = (
    f"INSERT INTO {META} VALUES (?, 1) "
    "ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
)


FOREVER = 1e10
"""The longest time in seconds that changes can be kept, 300 years."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How long changes are kept for clients that are away, and how many bytes of them, counted as
    text in the file."""

    seconds: float = 3600.0
    bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        check_number(self.seconds, "the time that changes are kept", above=True, most=FOREVER)
        check_whole(self.bytes, "the size of the changes that are kept", least=1)


@dataclass(frozen=True, slots=True)
class Log:
    id: int
    view: str
    watched: Watched
    floor: int
    """The first position from which a client can resume."""
    size: int
    oldest: float | None
    keep: Keep
    asked: float
    """When the log was last read."""

    def is_forsaken(self, now: float) -> bool:
        return now - self.asked > self.keep.seconds

    def wants_renewal(self, now: float) -> bool:
        return now - self.asked > self.keep.seconds / 4


class Logs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.has_deleted = False
        """Whether anything was deleted, so that the file may have free pages."""

    @property
    def now(self) -> float:
        return self._connection.now().timestamp()

    def position(self) -> int:
        """The number of the last transaction that changed anything monitored."""
        return int(self._connection.value(POSITION) or 0)

    def version(self) -> int:
        """Increases whenever a log or a durable monitor is created, deleted or reconfigured."""
        return int(self._connection.value(VERSION) or 0)

    def all(self) -> dict[Watched, Log]:
        if not self._connection.has_table(LOGS):
            return {}
        rows = self._connection.rows(f"SELECT {COLUMNS} FROM {LOGS} ORDER BY id")
        return {log.watched: log for log in map(_log, rows)}

    def find(self, watched: Watched) -> Log | None:
        if not self._connection.has_table(LOGS):
            return None
        rows = self._connection.rows(
            f"SELECT {COLUMNS} FROM {LOGS} WHERE function = ? AND condition = ?",
            (watched.function, watched.where or ""),
        )
        return _log(rows[0]) if rows else None

    # --- in a transaction ------------------------------------------------------------------

    def next_position(self) -> int:
        return int(self._connection.value(NEXT, ("transaction",)))

    def next_version(self) -> int:
        return int(self._connection.value(NEXT, ("watching",)))

    def add(self, watched: Watched, view: str, keep: Keep) -> None:
        """Create a log. It starts after all existing positions, because nobody knows what happened
        before."""
        for sql in CREATE:
            self._connection.run(sql)
        self._connection.run(
            f"INSERT INTO {LOGS} VALUES (NULL, ?, ?, ?, ?, 0, NULL, ?, ?, ?)",
            (
                view,
                watched.function,
                watched.where or "",
                self.next_position(),
                keep.seconds,
                keep.bytes,
                self.now,
            ),
        )

    def remove(self, log: Log) -> None:
        """Delete a log. This takes a position of its own, so that followers notice."""
        self.next_position()
        self._connection.run(f"DELETE FROM {LOGS} WHERE id = ?", (log.id,))
        self.has_deleted = True

    def forget(self, watched: Watched) -> None:
        log = self.find(watched)
        if log is not None:
            self.remove(log)

    def keep(self, log: Log, keep: Keep) -> None:
        """Change how long and how much a log keeps."""
        self._connection.run(
            f"UPDATE {LOGS} SET seconds = ?, bytes = ? WHERE id = ?",
            (keep.seconds, keep.bytes, log.id),
        )

    def renew(self, logs: Iterable[Log]) -> None:
        """Record that the logs were read."""
        for log in logs:
            self._connection.run(f"UPDATE {LOGS} SET asked = ? WHERE id = ?", (self.now, log.id))

    def renew_if_free(self, logs: Iterable[Log]) -> None:
        """In a transaction of its own, unless another process is writing: it can wait."""
        try:
            with self._connection.without_waiting():
                self._connection.begin()
                self.renew(logs)
                self._connection.commit()
        except StorageError:
            self._connection.rollback()

    def write(self, log: Log, position: int, change: StoredChange) -> None:
        text, now = change.text(), self.now
        size = len(text.encode())
        self._connection.run(
            f"INSERT INTO {CHANGES} VALUES (?, ?, ?, ?, ?)", (log.id, position, now, size, text)
        )
        total, oldest = self._connection.rows(
            f"UPDATE {LOGS} SET size = size + ?, oldest = coalesce(oldest, ?) WHERE id = ? "
            "RETURNING size, oldest",
            (size, now, log.id),
        )[0]
        if total > log.keep.bytes or oldest < now - log.keep.seconds:
            self._trim(log, total, now)

    def _trim(self, log: Log, total: int, now: float) -> None:
        """Delete the oldest changes until the rest is neither too old nor too large."""
        floor, oldest = 0, None
        for position, at, size in self._oldest(log):
            if total <= log.keep.bytes and at >= now - log.keep.seconds:
                oldest = at
                break
            floor, total = position, total - size
        self._cut(log, floor, total, oldest)

    def _oldest(self, log: Log) -> Iterator[tuple[int, float, int]]:
        rows: list[tuple[int, float, int]] = [(0, 0.0, 0)]
        while rows:
            rows = self._connection.rows(
                f"SELECT position, at, size FROM {CHANGES} WHERE log = ? AND position > ? "
                "ORDER BY position LIMIT 50",
                (log.id, rows[-1][0]),
            )
            yield from rows

    def restart(self, log: Log, position: int) -> None:
        """The meaning of the view has changed: nobody can resume from an earlier position."""
        self._cut(log, position, 0, None)

    def _cut(self, log: Log, floor: int, size: int, oldest: float | None) -> None:
        self._connection.run(
            f"DELETE FROM {CHANGES} WHERE log = ? AND position <= ?", (log.id, floor)
        )
        self.has_deleted = True
        self._connection.run(
            f"UPDATE {LOGS} SET floor = max(floor, ?), size = ?, oldest = ? WHERE id = ?",
            (floor, size, oldest, log.id),
        )

    # --- reading ---------------------------------------------------------------------------

    def after(self, watched: Watched, position: int) -> list[tuple[int, StoredChange]] | None:
        """The changes after a position, each with its own position; None if a client cannot resume
        there."""
        with self._connection.snapshot():
            log = self.find(watched)
            if log is None or position < log.floor or position > self.position():
                return None
            rows = self._connection.rows(
                f"SELECT position, change FROM {CHANGES} WHERE log = ? AND position > ? "
                "ORDER BY position",
                (log.id, position),
            )
        return [(each, read_change(text)) for each, text in rows]

    def news(self, after: int) -> News:
        """The changes of all logs after a position; the number of statements does not depend on the
        number of logs."""
        with self._connection.snapshot():
            position = self.position()
            if not self._connection.has_table(LOGS):
                return News(position, {}, {})
            logs = self._connection.rows(f"SELECT id, function, condition, floor FROM {LOGS}")
            rows = self._connection.rows(
                f"SELECT log, position, change FROM {CHANGES} WHERE position > ? ORDER BY position",
                (after,),
            )
        watched = {id: Watched(function, where or None) for id, function, where, _ in logs}
        changes: dict[Watched, list[tuple[int, StoredChange]]] = {}
        for log, at, text in rows:
            changes.setdefault(watched[log], []).append((at, read_change(text)))
        return News(position, {watched[id]: floor for id, *_, floor in logs}, changes)


@dataclass(frozen=True, slots=True)
class News:
    """The changes of all logs after a position."""

    position: int
    """The position that they lead to."""
    floors: dict[Watched, int]
    changes: dict[Watched, list[tuple[int, StoredChange]]]

    def after(self, watched: Watched, position: int) -> list[tuple[int, StoredChange]] | None:
        """Like `Logs.after`, for a position not before the one that was asked for."""
        if position < self.floors.get(watched, self.position + 1) or position > self.position:
            return None
        found = self.changes.get(watched, [])
        return [each for each in found if each[0] > position]


def _log(row: tuple[object, ...]) -> Log:
    id, view, function, condition, floor, size, oldest, seconds, bytes, asked = row
    watched = Watched(str(function), str(condition) or None)
    keep = Keep(float(seconds), int(bytes))  # type: ignore[arg-type, call-overload]
    return Log(id, str(view), watched, floor, size, oldest, keep, asked)  # type: ignore[arg-type]
