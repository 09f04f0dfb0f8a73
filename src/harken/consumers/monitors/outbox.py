"""Durable monitors: stored in the file, with the changes that were not acknowledged yet.

Every session on the file attaches them, so whoever changes the data records the change, in the same
transaction. The tables are created with the first durable monitor.

An outbox has limits (`outbox_bytes`, `outbox_changes` and `outbox_seconds` in `harken.settings`),
in case a subscriber never comes back. The transaction that exceeds one drops all changes in the
outbox, and the subscriber gets all rows instead, in a `fresh` change.

Law: the changes of a durable monitor are numbered 1, 2, 3, ..., and a change is there exactly if
its transaction was committed, it was not acknowledged, and its number is above `dropped`.
"""

from __future__ import annotations

import datetime
import logging
from dataclasses import dataclass, field

from harken.consumers.monitors.view import Watched
from harken.database.changes import NO_SHAPE, Change, RowShape, StoredChange, moment, read_change
from harken.engines.protocol import Connection
from harken.errors import agreeing, counted
from harken.settings import Settings

MONITORS, OUTBOX, OUTBOXES = "harken_monitors", "harken_outbox", "harken_outboxes"
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {MONITORS} (name TEXT PRIMARY KEY, view TEXT NOT NULL, "
    "function TEXT NOT NULL, last INTEGER NOT NULL) STRICT",
    f"CREATE TABLE IF NOT EXISTS {OUTBOX} (name TEXT NOT NULL REFERENCES {MONITORS} (name) "
    'ON DELETE CASCADE, number INTEGER NOT NULL, view TEXT NOT NULL, "transaction" INTEGER '
    "NOT NULL, change TEXT NOT NULL, PRIMARY KEY (name, number)) STRICT",
)
CREATE_FILLING = (
    f"CREATE TABLE IF NOT EXISTS {OUTBOXES} (name TEXT PRIMARY KEY REFERENCES {MONITORS} (name) "
    "ON DELETE CASCADE, changes INTEGER NOT NULL, bytes INTEGER NOT NULL, since REAL, "
    "dropped INTEGER NOT NULL, lost INTEGER NOT NULL, dropped_at REAL) STRICT",
    f"INSERT OR IGNORE INTO {OUTBOXES} SELECT name, count(number), "
    "coalesce(sum(octet_length(change)), 0), CASE WHEN count(number) THEN ?1 END, 0, 0, NULL "
    f"FROM {MONITORS} LEFT JOIN {OUTBOX} USING (name) GROUP BY name",
)
"""The fill level of each outbox. Files made by earlier versions get it with the next change."""

logger = logging.getLogger("harken.monitors")


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable monitor; `view` is the name of the function in its changes."""

    name: str
    view: str
    function: str

    @property
    def watched(self) -> Watched:
        return Watched(self.function)

    @property
    def title(self) -> str:
        return f"the durable monitor {self.name} of {self.function}"

    @property
    def ending(self) -> str:
        return f'db.monitor("{self.view}", durable="{self.name}").delete() in Python'


@dataclass(frozen=True, slots=True)
class OutboxStatus:
    """The fill level of a durable monitor's outbox."""

    name: str
    view: str
    changes: int
    """The number of changes not acknowledged."""
    bytes: int
    """Their size as JSON."""
    waiting_since: datetime.datetime | None
    """When a change was last acknowledged, or when the first of them was recorded."""
    filled: float
    """The largest fraction of a limit in use; 1 is full, and 0 means there are no limits."""
    lost: int
    """The number of dropped changes not yet replaced by a fresh one."""
    dropped_at: datetime.datetime | None
    """When changes were last dropped."""
    nearly_full: bool

    @property
    def alarm(self) -> str | None:
        """A sentence for the operator; None if all is well."""
        if self.lost:
            return (
                f"{counted(self.lost, 'change', 'was')} dropped, because nobody "
                "acknowledged: the subscriber gets all rows instead"
            )
        if self.nearly_full:
            return f"{self.filled:.0%} full, and nobody acknowledges: it will be emptied"
        return None

    def __str__(self) -> str:
        waiting = f"{self.changes:,} changes of {self.view} in {self.bytes:,} bytes wait"
        since = f" since {self.waiting_since:%Y-%m-%d %H:%M:%S}" if self.waiting_since else ""
        alarm = f"; {self.alarm}" if self.alarm else ""
        return f"the durable monitor {self.name}: {waiting}{since}{alarm}"

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "outbox",
            "name": self.name,
            "view": self.view,
            "changes": self.changes,
            "bytes": self.bytes,
            "waiting_since": self.waiting_since and self.waiting_since.isoformat(),
            "filled": self.filled,
            "lost": self.lost,
            "dropped_at": self.dropped_at and self.dropped_at.isoformat(),
            "alarm": self.alarm,
        }


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an outbox; 0 means no limit."""

    bytes: int
    changes: int
    seconds: float
    alarm: float

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(
            settings["outbox_bytes"],
            settings["outbox_changes"],
            settings["outbox_seconds"],
            settings["outbox_alarm"],
        )

    def filled(self, changes: int, bytes: int, waited: float) -> float:
        """The largest fraction of a limit in use."""
        pairs = ((changes, self.changes), (bytes, self.bytes), (waited, self.seconds))
        return max((value / limit for value, limit in pairs if limit), default=0.0)


@dataclass(slots=True)
class Outbox:
    _connection: Connection
    _settings: Settings = field(default_factory=Settings)
    _counts: bool = False
    """Whether the table of fill levels is known to exist."""
    has_deleted: bool = False
    """Whether anything was deleted, so that the file may have free pages."""

    def durables(self) -> dict[str, Durable]:
        """The durable monitors of the file, by name."""
        self._counts = False
        if not self._connection.has_table(MONITORS):
            return {}
        self._counts = self._connection.has_table(OUTBOXES)
        rows = self._connection.rows(f"SELECT name, view, function FROM {MONITORS} ORDER BY name")
        return {row[0]: Durable(*row) for row in rows}

    def status(self) -> list[OutboxStatus]:
        """The fill level of each outbox."""
        if not self._connection.has_table(OUTBOXES):
            return []
        rows = self._connection.rows(
            "SELECT name, view, changes, bytes, since, lost, dropped_at "
            f"FROM {OUTBOXES} JOIN {MONITORS} USING (name) ORDER BY name"
        )
        return [self._status(*row) for row in rows]

    def _status(
        self,
        name: str,
        view: str,
        changes: int,
        bytes: int,
        since: float | None,
        lost: int,
        dropped_at: float | None,
    ) -> OutboxStatus:
        limits = Limits.of(self._settings)
        filled = limits.filled(changes, bytes, 0.0 if since is None else self._now - since)
        return OutboxStatus(
            name,
            view,
            changes,
            bytes,
            moment(since),
            filled,
            lost,
            moment(dropped_at),
            nearly_full=filled >= limits.alarm,
        )

    @property
    def _now(self) -> float:
        return self._connection.now().timestamp()

    def last(self, name: str) -> int:
        """The number of the last recorded change."""
        return int(self._connection.value(f"SELECT last FROM {MONITORS} WHERE name = ?", (name,)))

    # --- in a transaction ------------------------------------------------------------------

    def add(self, durable: Durable) -> None:
        for sql in CREATE:
            self._connection.run(sql)
        self._connection.run(
            f"INSERT INTO {MONITORS} VALUES (?, ?, ?, 0)",
            (durable.name, durable.view, durable.function),
        )
        self._count_all()

    def _count_all(self) -> None:
        create, fill = CREATE_FILLING
        self._connection.run(create)
        self._connection.run(fill, (self._now,))

    def remove(self, name: str) -> None:
        """Delete a durable monitor with the changes not delivered."""
        self._connection.run(f"DELETE FROM {MONITORS} WHERE name = ?", (name,))
        self.has_deleted = True

    def write(self, durable: Durable, transaction: int, change: StoredChange) -> None:
        if not self._counts:
            self._count_all()
        number = self._connection.value(
            f"UPDATE {MONITORS} SET last = last + 1 WHERE name = ? RETURNING last", (durable.name,)
        )
        text = change.text()
        self._connection.run(
            f"INSERT INTO {OUTBOX} VALUES (?, ?, ?, ?, ?)",
            (durable.name, number, durable.view, transaction, text),
        )
        self._limit(durable, number, len(text.encode()))

    def _limit(self, durable: Durable, number: int, size: int) -> None:
        """Add up what was written, and drop everything if it exceeds a limit."""
        limits, now = Limits.of(self._settings), self._now
        changes, bytes, since = self._connection.rows(
            f"UPDATE {OUTBOXES} SET changes = changes + 1, bytes = bytes + ?, "
            "since = coalesce(since, ?) WHERE name = ? RETURNING changes, bytes, since",
            (size, now, durable.name),
        )[0]
        filled = limits.filled(changes, bytes, now - since)
        if filled > 1:
            self._drop(durable, number, changes)
        elif filled >= limits.alarm > limits.filled(changes - 1, bytes - size, now - since):
            logger.warning("the outbox of %s is %.0f%% full", durable.title, 100 * filled)

    def _drop(self, durable: Durable, number: int, changes: int) -> None:
        """Drop changes up to this number. Later ones are recorded: a subscriber that got all rows
        resumes from there."""
        self._connection.run(f"DELETE FROM {OUTBOX} WHERE name = ?", (durable.name,))
        self._connection.run(
            f"UPDATE {OUTBOXES} SET changes = 0, bytes = 0, since = NULL, dropped = ?, "
            "lost = lost + ?, dropped_at = ? WHERE name = ?",
            (number, changes, self._now, durable.name),
        )
        self.has_deleted = True
        logger.warning(
            "the outbox of %s was full, and nobody acknowledged its changes: %d of them "
            "%s dropped, and its subscriber gets all rows instead",
            durable.title,
            changes,
            agreeing(changes, "was"),
        )

    def acknowledge(self, name: str, number: int) -> None:
        """Delete changes up to this number. A subscriber that was sent all rows acknowledges the
        drop as well."""
        if not self._counts:
            self._count_all()
        gone = "WHERE name = ? AND number <= ?"
        changes, bytes = self._connection.rows(
            f"SELECT count(*), coalesce(sum(octet_length(change)), 0) FROM {OUTBOX} {gone}",
            (name, number),
        )[0]
        self._connection.run(f"DELETE FROM {OUTBOX} {gone}", (name, number))
        self._connection.run(
            f"UPDATE {OUTBOXES} SET changes = changes - ?1, bytes = bytes - ?2, "
            "since = CASE WHEN changes > ?1 THEN ?3 END, "
            "lost = CASE WHEN dropped <= ?4 THEN 0 ELSE lost END, "
            "dropped = CASE WHEN dropped <= ?4 THEN 0 ELSE dropped END WHERE name = ?5",
            (changes, bytes, self._now, number, name),
        )
        self.has_deleted |= bool(changes)

    # --- reading ---------------------------------------------------------------------------

    def after(
        self, name: str, number: int, home: str, shape: RowShape = NO_SHAPE
    ) -> list[tuple[int, Change]] | None:
        """The changes after this number, each with its own; None if some of them were dropped."""
        with self._connection.snapshot():
            if self._dropped(name) > number:
                return None
            rows = self._connection.rows(
                f'SELECT number, view, "transaction", change FROM {OUTBOX} '
                "WHERE name = ? AND number > ? ORDER BY number",
                (name, number),
            )
        return [
            (each, read_change(text).change(view, transaction, home, shape))
            for each, view, transaction, text in rows
        ]

    def _dropped(self, name: str) -> int:
        """The number up to which changes were dropped and not yet replaced."""
        if not self._counts:
            self._counts = self._connection.has_table(OUTBOXES)
        if not self._counts:
            return 0
        found = self._connection.value(f"SELECT dropped FROM {OUTBOXES} WHERE name = ?", (name,))
        return int(found or 0)
