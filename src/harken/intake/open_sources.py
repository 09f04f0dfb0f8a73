"""The outside sources that a session has open, and reading them.

Kinds keep what makes the next reading cheap (connections, ETags, parsed pages), so a source stays
open until it is altered or the session ends. A reading runs in any thread and touches nothing of
the session; opening looks up secrets, and so belongs to the session's thread.

Law: a reading has all rows of one moment, or says that nothing changed, or is a fault.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pyarrow as pa

from harken.database.runtime import Runtime
from harken.errors import HarkenError, SourceFault
from harken.intake.source_options import checked, refuse_passwords
from harken.intake.source_records import IDENTITY, Layout, SourceDefinition, SourceRecord
from harken.packages import needs
from harken.sources.kinds import outside_kind
from harken.sources.outside import Context, Opened, OutsideKind, OutsideSchema, Position, Snapshot

UNEXPECTED = 300
"""Characters of an error of a driver in a message."""


Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a source gave. Without `rows` it is as it was at the position."""

    revision: int
    """Of the record when it was read."""
    schema: OutsideSchema | None = None
    rows: pa.Table | None = None
    position: Position | None = None
    at: datetime.datetime | None = None
    set_aside: Mapping[str, str] = field(default_factory=dict)
    part_column: str | None = None


def read_rows(snapshot: Snapshot, revision: int, told: Told | None = None) -> Reading:
    """All rows of a snapshot; what it set aside is known only then. Who is `told` hears how many
    rows were read so far, of how many, which is 0 if nobody knows."""
    batches, count = [], 0
    for batch in snapshot.batches:
        batches.append(batch)
        count += batch.num_rows
        if told is not None:
            told(count, snapshot.expected_rows or 0)
    return Reading(
        revision,
        snapshot.schema,
        pa.Table.from_batches(batches, snapshot.schema.columns),
        snapshot.position,
        snapshot.at,
        dict(snapshot.set_aside),
        snapshot.part_column,
    )


class OpenSource:
    """One source of a session. `shared` are the options that every kind has."""

    def __init__(
        self,
        kind: OutsideKind,
        options: Mapping[str, Any],
        shared: Mapping[str, Any],
        context: Context,
        capture: str | None,
    ) -> None:
        self.kind, self.options, self.shared = kind, options, shared
        self._context, self._capture = context, capture
        self._opened: Opened | None = None
        self._lock = threading.Lock()

    @property
    def is_whole(self) -> bool:
        """Are its readings whole or an error, so that vanished rows are no reason for doubt?"""
        return bool(getattr(self.kind, "is_whole", False))

    def alone(self) -> AbstractContextManager[Any]:
        """It is used by one thread at a time."""
        return self._lock

    def opened(self) -> Opened:
        if self._opened is None:
            captures = self.kind.captures
            if self._capture is not None and self._capture not in captures:
                raise SourceFault(
                    f"the kind {self.kind.name} has no capture {self._capture}",
                    code="bad-option",
                    hint=f"write CAPTURE {' or '.join(captures)}, or leave it out",
                )
            with needs("sources"):
                self._opened = self.kind.open(self.options, self._context, self._capture)
        return self._opened

    def schema(self) -> OutsideSchema:
        with self._lock, in_our_words(self.kind):
            opened = self.opened()
            if opened.polled is not None:
                return opened.polled.schema()
            assert opened.followed is not None
            return opened.followed.schema(opened.table)

    def read(self, since: Position | None, revision: int, told: Told | None = None) -> Reading:
        """In any thread."""
        with self._lock, in_our_words(self.kind):
            polled = self.opened().polled
            assert polled is not None
            snapshot = polled.snapshot(since)
            if snapshot is None:
                return Reading(revision, position=since)
            return read_rows(snapshot, revision, told)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        for each in () if opened is None else (opened.polled, opened.followed):
            if each is not None:
                with suppress(Exception):
                    each.close()


class in_our_words:
    """Errors of drivers and of a user's own kinds become faults of the source."""

    def __init__(self, kind: OutsideKind) -> None:
        self._kind = kind

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, HarkenError) or not isinstance(error, Exception):
            return
        said = " ".join(str(error).split())[:UNEXPECTED]
        raise SourceFault(
            f"reading this {self._kind.title} failed with {type(error).__name__}: {said}",
            code="source-down",
        ) from error


class OpenSources:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._open: dict[str, tuple[str, OpenSource]] = {}

    def of(self, record: SourceRecord) -> OpenSource:
        """The open source of a record, opened anew if it was altered."""
        held = self._open.get(record.name)
        meaning = _meaning(record)
        if held is not None and held[0] == meaning:
            return held[1]
        self.close(record.name)
        made = self.make(record.definition, record.layout)
        self._open[record.name] = meaning, made
        return made

    def make(self, definition: SourceDefinition, layout: Layout | None = None) -> OpenSource:
        """`layout` is that of the mirror, if there is one: the way of capture stays as it is."""
        self._import_kinds()
        kind = outside_kind(definition.kind)
        refuse_passwords(kind, definition.options)
        own, shared = checked(kind, definition.options, self._runtime.secrets.resolve)
        known = None if layout is None else layout.known
        capture = definition.capture if layout is None else layout.capture
        return OpenSource(kind, own, shared, self._context(definition.name, known), capture)

    def _import_kinds(self) -> None:
        """The modules that the operator names register kinds of sources."""
        for module in filter(None, self._runtime.settings["source_kinds"].split(",")):
            try:
                import_module(module.strip())
            except ImportError as error:
                raise SourceFault(
                    f"the module {module.strip()} of the setting source_kinds cannot be imported: "
                    f"{error}",
                    code="unknown-kind",
                ) from error

    def is_open(self, name: str) -> bool:
        return name in self._open

    def hold(self, record: SourceRecord, source: OpenSource) -> None:
        """Keep a source open that was opened before there was a record."""
        self.close(record.name)
        self._open[record.name] = _meaning(record), source

    def close(self, name: str) -> None:
        held = self._open.pop(name, None)
        if held is not None:
            held[1].close()

    def close_all(self) -> None:
        for name in list(self._open):
            self.close(name)

    def _context(self, name: str, known: OutsideSchema | None) -> Context:
        settings, engine = self._runtime.settings, self._runtime.engine
        moment = engine.connection.now()
        return Context(
            now=lambda: moment,
            name=name,
            database=f"{engine.numbers.get(IDENTITY) or 0:x}",
            allow_private_addresses=settings["allow_private_addresses"],
            allowed_roots=tuple(settings["source_roots"]),
            redacted=self._runtime.secrets.redacted,
            known=known,
        )


def _meaning(record: SourceRecord) -> str:
    return f"{record.definition!r} {record.layout!r}"
