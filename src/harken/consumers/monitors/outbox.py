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
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

from harken.consumers.monitors.view import Watched
from harken.database.changes import NO_SHAPE, Change, RowShape, StoredChange, moment, read_change
from harken.database.delta_claims import DeltaClaim
from harken.engines.protocol import Connection, Field, RecordKind, Records
from harken.errors import agreeing, counted
from harken.settings import Settings

MONITORS = RecordKind(
    "harken_monitors",
    (
        Field("name", "text"),
        Field("view", "text"),
        Field("function", "text"),
        Field("last", "integer"),
    ),
    key=("name",),
)
OUTBOX = RecordKind(
    "harken_outbox",
    (
        Field("name", "text"),
        Field("number", "integer"),
        Field("view", "text"),
        Field("transaction", "integer"),
        Field("change", "text"),
    ),
    key=("name", "number"),
    parent=MONITORS,
)
OUTBOXES = RecordKind(
    "harken_outboxes",
    (
        Field("name", "text"),
        Field("changes", "integer"),
        Field("bytes", "integer"),
        Field("since", "real", optional=True),
        Field("dropped", "integer"),
        Field("lost", "integer"),
        Field("dropped_at", "real", optional=True),
    ),
    key=("name",),
    parent=MONITORS,
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

    @property
    def _records(self) -> Records:
        return self._connection.records

    def durables(self) -> dict[str, Durable]:
        """The durable monitors of the file, by name."""
        self._counts = False
        if not self._records.exist(MONITORS):
            return {}
        self._counts = self._records.exist(OUTBOXES)
        return {row[0]: Durable(*row[:3]) for row in self._records.find(MONITORS)}

    def claims(self, views: Collection[str]) -> Iterator[DeltaClaim]:
        """Of the durable monitors of these views that have not seen all changes."""
        for each in self.status():
            if each.changes and each.view.partition("(")[0] in views:
                since = each.waiting_since
                yield DeltaClaim(
                    f"the monitor {each.name} of {each.view}",
                    each.changes,
                    each.bytes,
                    self._now if since is None else since.timestamp(),
                    partial(self._give_up, each.name),
                )

    def _give_up(self, name: str, before: float) -> None:
        """In a transaction: its subscriber gets all rows instead of the changes."""
        durable = self.durables()[name]
        (counts,) = self._records.find(OUTBOXES, {"name": name})
        self._drop(durable, self.last(name), counts[1])

    def status(self) -> list[OutboxStatus]:
        """The fill level of each outbox."""
        if not self._records.exist(OUTBOXES):
            return []
        views = {name: view for name, view, *_ in self._records.find(MONITORS)}
        return [
            self._status(name, views[name], changes, bytes, since, lost, dropped_at)
            for name, changes, bytes, since, _, lost, dropped_at in self._records.find(OUTBOXES)
        ]

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
        return int(self._records.find(MONITORS, {"name": name})[0][3])

    # --- in a transaction ------------------------------------------------------------------

    def add(self, durable: Durable) -> None:
        self._records.make_room(MONITORS)
        self._records.make_room(OUTBOX)
        self._records.add(MONITORS, (durable.name, durable.view, durable.function, 0))
        self._count_all()

    def _count_all(self) -> None:
        self._records.make_room(OUTBOXES)
        counted = {name for name, *_ in self._records.find(OUTBOXES)}
        for name, *_ in self._records.find(MONITORS):
            if name not in counted:
                changes, bytes = self._records.size(OUTBOX, "change", {"name": name})
                since = self._now if changes else None
                self._records.add(OUTBOXES, (name, changes, bytes, since, 0, 0, None))

    def remove(self, name: str) -> None:
        """Delete a durable monitor with the changes not delivered."""
        self._records.remove(MONITORS, {"name": name})
        self.has_deleted = True

    def write(self, durable: Durable, transaction: int, change: StoredChange) -> None:
        if not self._counts:
            self._count_all()
        number = self._records.change(MONITORS, {"name": durable.name}, add={"last": 1})[0][3]
        text = change.text()
        self._records.add(OUTBOX, (durable.name, number, durable.view, transaction, text))
        self._limit(durable, number, len(text.encode()))

    def _limit(self, durable: Durable, number: int, size: int) -> None:
        """Add up what was written, and drop everything if it exceeds a limit."""
        limits, now = Limits.of(self._settings), self._now
        counted = self._records.change(
            OUTBOXES,
            {"name": durable.name},
            add={"changes": 1, "bytes": size},
            if_none={"since": now},
        )
        _, changes, bytes, since, *_ = counted[0]
        filled = limits.filled(changes, bytes, now - since)
        if filled > 1:
            self._drop(durable, number, changes)
        elif filled >= limits.alarm > limits.filled(changes - 1, bytes - size, now - since):
            logger.warning("the outbox of %s is %.0f%% full", durable.title, 100 * filled)

    def _drop(self, durable: Durable, number: int, changes: int) -> None:
        """Drop changes up to this number. Later ones are recorded: a subscriber that got all rows
        resumes from there."""
        self._records.remove(OUTBOX, {"name": durable.name})
        empty = {"changes": 0, "bytes": 0, "since": None}
        dropped = {"dropped": number, "dropped_at": self._now}
        self._records.change(
            OUTBOXES, {"name": durable.name}, empty | dropped, add={"lost": changes}
        )
        self.has_deleted = True
        logger.warning(
            "the outbox of %s was full, and nobody acknowledged its changes: %d of them "
            "%s dropped, and its subscriber gets all rows instead",
            durable.title,
            changes,
            agreeing(changes, "was"),
        )

    def begin_anew(self) -> None:
        """In a restored file: every subscriber gets all rows once, because it may have seen changes
        that the original made after the backup."""
        for durable in self.durables().values():
            self._count_all()
            number = self._records.change(MONITORS, {"name": durable.name}, add={"last": 1})[0][3]
            self._records.remove(OUTBOX, {"name": durable.name})
            values = {"changes": 0, "bytes": 0, "since": None, "dropped": number}
            self._records.change(OUTBOXES, {"name": durable.name}, values)
            self.has_deleted = True

    def acknowledge(self, name: str, number: int) -> None:
        """Delete changes up to this number. A subscriber that was sent all rows acknowledges the
        drop as well."""
        if not self._counts:
            self._count_all()
        up_to = ("number", number)
        changes, bytes = self._records.size(OUTBOX, "change", {"name": name}, up_to=up_to)
        self._records.remove(OUTBOX, {"name": name}, up_to=up_to)
        for _, waiting, held, _, dropped, *_ in self._records.find(OUTBOXES, {"name": name}):
            values = {
                "changes": waiting - changes,
                "bytes": held - bytes,
                "since": self._now if waiting > changes else None,
            }
            if dropped <= number:
                values |= {"lost": 0, "dropped": 0}
            self._records.change(OUTBOXES, {"name": name}, values)
        self.has_deleted |= bool(changes)

    # --- reading ---------------------------------------------------------------------------

    def after(
        self, name: str, number: int, home: str, shape: RowShape = NO_SHAPE
    ) -> list[tuple[int, Change]] | None:
        """The changes after this number, each with its own; None if some of them were dropped."""
        with self._connection.snapshot():
            if self._dropped(name) > number:
                return None
            rows = self._records.find(OUTBOX, {"name": name}, above=("number", number))
        return [
            (each, read_change(text).change(view, transaction, home, shape))
            for _, each, view, transaction, text in rows
        ]

    def _dropped(self, name: str) -> int:
        """The number up to which changes were dropped and not yet replaced."""
        if not self._counts:
            self._counts = self._records.exist(OUTBOXES)
        if not self._counts:
            return 0
        found = self._records.find(OUTBOXES, {"name": name})
        return int(found[0][4]) if found else 0
