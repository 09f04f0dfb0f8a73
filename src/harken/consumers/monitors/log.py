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

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from harken.consumers.monitors.view import Watched
from harken.database.arguments import check_number, check_whole
from harken.database.changes import StoredChange, read_change
from harken.database.delta_claims import DeltaClaim
from harken.engines.protocol import COUNTERS, Connection, Field, RecordKind
from harken.errors import StorageError

LOGS = RecordKind(
    "harken_logs",
    (
        Field("id", "integer"),
        Field("view", "text"),
        Field("function", "text"),
        Field("condition", "text"),
        Field("floor", "integer"),
        Field("size", "integer"),
        Field("oldest", "real", optional=True),
        Field("seconds", "real"),
        Field("bytes", "integer"),
        Field("asked", "real"),
    ),
    key=("id",),
    numbered=True,
    unique=("function", "condition"),
)
CHANGES = RecordKind(
    "harken_changes",
    (
        Field("log", "integer"),
        Field("position", "integer"),
        Field("at", "real"),
        Field("size", "integer"),
        Field("change", "text"),
    ),
    key=("log", "position"),
    parent=LOGS,
    ordered_by="position",
)
POSITION, VERSION = "transaction", "watching"
"""The counters of the file that are ours."""

POSITIONS_OF_A_FILE = 10**9
"""The number of positions that a file has for itself before a restored copy of it begins."""
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

    def is_expired(self, now: float) -> bool:
        return now - self.asked > self.keep.seconds

    def wants_renewal(self, now: float) -> bool:
        return now - self.asked > self.keep.seconds / 4


class Logs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._records = connection.records
        self.has_deleted = False
        """Whether anything was deleted, so that the file may have free pages."""

    @property
    def now(self) -> float:
        return self._connection.now().timestamp()

    def position(self) -> int:
        """The number of the last transaction that changed anything monitored."""
        return self._counter(POSITION)

    def version(self) -> int:
        """Increases whenever a log or a durable monitor is created, deleted or reconfigured."""
        return self._counter(VERSION)

    def _counter(self, key: str) -> int:
        found = self._records.find(COUNTERS, {"key": key})
        return int(found[0][1]) if found else 0

    def all(self) -> dict[Watched, Log]:
        if not self._records.exist(LOGS):
            return {}
        return {log.watched: log for log in map(_log, self._records.find(LOGS))}

    def find(self, watched: Watched) -> Log | None:
        if not self._records.exist(LOGS):
            return None
        rows = self._records.find(
            LOGS, {"function": watched.function, "condition": watched.where or ""}
        )
        return _log(rows[0]) if rows else None

    # --- in a transaction ------------------------------------------------------------------

    def next_position(self) -> int:
        return self._records.count_up(POSITION)

    def next_version(self) -> int:
        return self._records.count_up(VERSION)

    def add(self, watched: Watched, view: str, keep: Keep) -> None:
        """Create a log. It starts after all existing positions, because nobody knows what happened
        before."""
        self._records.make_room(LOGS)
        self._records.make_room(CHANGES)
        self._records.add(
            LOGS,
            (
                None,
                view,
                watched.function,
                watched.where or "",
                self.next_position(),
                0,
                None,
                keep.seconds,
                keep.bytes,
                self.now,
            ),
        )

    def remove(self, log: Log) -> None:
        """Delete a log. This takes a position of its own, so that followers notice."""
        self.next_position()
        self._records.remove(LOGS, {"id": log.id})
        self.has_deleted = True

    def forget(self, watched: Watched) -> None:
        log = self.find(watched)
        if log is not None:
            self.remove(log)

    def keep(self, log: Log, keep: Keep) -> None:
        """Change how long and how much a log keeps."""
        self._records.change(LOGS, {"id": log.id}, {"seconds": keep.seconds, "bytes": keep.bytes})

    def renew(self, logs: Iterable[Log]) -> None:
        """Record that the logs were read."""
        for log in logs:
            self._records.change(LOGS, {"id": log.id}, {"asked": self.now})

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
        self._records.add(CHANGES, (log.id, position, now, size, text))
        counted = self._records.change(
            LOGS, {"id": log.id}, add={"size": size}, if_none={"oldest": now}
        )
        stored = _log(counted[0])
        oldest = now if stored.oldest is None else stored.oldest
        if stored.size > log.keep.bytes or oldest < now - log.keep.seconds:
            self._trim(log, stored.size, now)

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
            found = self._records.find(
                CHANGES, {"log": log.id}, above=("position", rows[-1][0]), limit=50
            )
            rows = [(position, at, size) for _, position, at, size, _ in found]
            yield from rows

    def claims(self, views: Collection[str]) -> Iterator[DeltaClaim]:
        """Of the logs of these views, for clients that may come back."""
        for log in self.all().values():
            if log.size and log.view.partition("(")[0] in views:
                since = self.now if log.oldest is None else log.oldest
                changes, bytes = self._records.size(CHANGES, "change", {"log": log.id})
                yield DeltaClaim(
                    f"the log of {log.view}", changes, bytes, since, partial(self._forget, log)
                )

    def _forget(self, log: Log, before: float) -> None:
        """In a transaction: forget what changed before this moment."""
        floor, total, oldest = 0, log.size, None
        for position, at, size in self._oldest(log):
            if at >= before:
                oldest = at
                break
            floor, total = position, total - size
        self._cut(log, floor, total, oldest)

    def restart(self, log: Log, position: int) -> None:
        """The meaning of the view has changed: nobody can resume from an earlier position."""
        self._cut(log, position, 0, None)

    def _cut(self, log: Log, floor: int, size: int, oldest: float | None) -> None:
        self._records.remove(CHANGES, {"log": log.id}, up_to=("position", floor))
        self.has_deleted = True
        stored = self._records.find(LOGS, {"id": log.id})
        for each in map(_log, stored):
            values = {"floor": max(each.floor, floor), "size": size, "oldest": oldest}
            self._records.change(LOGS, {"id": log.id}, values)

    def begin_anew(self) -> None:
        """In a restored file: delete all logs, and go on at the next billion, beyond any position
        that the original can have reached, so that no position ever has two meanings."""
        for log in self.all().values():
            self.remove(log)
        self._records.count_up(POSITION)
        following = (self.position() // POSITIONS_OF_A_FILE + 1) * POSITIONS_OF_A_FILE
        self._records.change(COUNTERS, {"key": POSITION}, {"value": following})

    # --- reading ---------------------------------------------------------------------------

    def after(self, watched: Watched, position: int) -> list[tuple[int, StoredChange]] | None:
        """The changes after a position, each with its own position; None if a client cannot resume
        there."""
        with self._connection.snapshot():
            log = self.find(watched)
            if log is None or position < log.floor or position > self.position():
                return None
            rows = self._records.find(CHANGES, {"log": log.id}, above=("position", position))
        return [(each, read_change(text)) for _, each, _, _, text in rows]

    def news(self, after: int) -> LogChanges:
        """The changes of all logs after a position; the number of statements does not depend on the
        number of logs."""
        with self._connection.snapshot():
            position = self.position()
            if not self._records.exist(LOGS):
                return LogChanges(position, {}, {})
            logs = [_log(row) for row in self._records.find(LOGS)]
            rows = self._records.find(CHANGES, above=("position", after))
        watched = {log.id: log.watched for log in logs}
        changes: dict[Watched, list[tuple[int, StoredChange]]] = {}
        for log, at, _, _, text in rows:
            changes.setdefault(watched[log], []).append((at, read_change(text)))
        return LogChanges(position, {log.watched: log.floor for log in logs}, changes)


@dataclass(frozen=True, slots=True)
class LogChanges:
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
