"""What the database file knows of its sources: what was declared, and how it goes.

A source is one record. Its definition changes only with statements; its progress changes with each
reading, in the transaction that takes the rows in.

Law: a position in the file belongs to the rows of the mirror in the same file.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from harken.engines.protocol import Field, RecordKind, Records
from harken.errors import NameFault, nearest
from harken.packages import needs
from harken.sources.outside import OutsideSchema

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
STALE_AFTER = 3
"""Polls that were missed."""
FOLLOWED = 0
"""The moment at which a source is due that is followed: always."""
FOLLOW_EVERY = 1.0
"""Seconds between two looks at the log of a server."""
DEFAULT_POLL = 300.0
"""Seconds between two readings."""
SOURCES = RecordKind(
    "harken_sources",
    (
        Field("name", "text"),
        Field("definition", "text"),
        Field("layout", "text"),
        Field("position", "text", optional=True),
        Field("revision", "integer"),
        Field("due", "integer", optional=True),
        Field("progress", "text"),
    ),
    key=("name",),
    ordered_by="due",
)

LEFTOVERS = RecordKind(
    "harken_source_leftovers",
    (
        Field("server", "text"),
        Field("table_there", "text"),
        Field("definition", "text"),
        Field("layout", "text"),
    ),
    key=("server", "table_there"),
)
"""What dropped sources have left in their servers."""
IDENTITY = "source_identity"
"""The number that tells this database from others in the names of what is installed in servers."""


class State(StrEnum):
    NEW = "new"
    OK = "ok"
    UNCHANGED = "unchanged"
    STALE = "stale"
    FAILING = "failing"
    SUSPECT = "suspect"
    CHANGED = "schema changed"
    PAUSED = "paused"


@dataclass(frozen=True)
class SourceDefinition:
    """What CREATE SOURCE says. `text` is the statement, and holds no secret."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """As they were given: `secret:name` for a secret."""
    key: tuple[str, ...] | None = None
    capture: str | None = None
    poll: float | None = None
    """Seconds between two readings; None is the default."""
    alone: bool = False
    """MIRROR none: the rows stay where they are."""
    in_lake: bool = False
    text: str = ""

    @cached_property
    def stored(self) -> str:
        return _text(asdict(self))

    @property
    def every(self) -> float:
        """Seconds between two readings of a polled source."""
        return DEFAULT_POLL if self.poll is None else self.poll


@dataclass(frozen=True)
class Layout:
    """The columns of the mirror as the source has them, and what it may be asked for."""

    names: tuple[str, ...]
    """The columns of the mirror, in the order of declaration."""
    outside: tuple[str, ...]
    """The same as the source calls them."""
    key: tuple[str, ...]
    """Of the mirror; a bag has none."""
    types: str
    """The schema of these columns in the source: Arrow's own form, in base64."""
    capture: str = "poll"
    why: str = ""
    server: str | None = None
    table: str = ""
    followed: bool = False
    """Are its changes read from the server's log?"""

    @cached_property
    def schema(self) -> pa.Schema:
        with needs("sources"):
            import pyarrow as pa

        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.types)))

    @cached_property
    def stored(self) -> str:
        return _text(asdict(self))

    @property
    def known(self) -> OutsideSchema:
        places = dict(zip(self.names, self.outside, strict=True))
        return OutsideSchema(self.schema, tuple(places[each] for each in self.key))


def schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


@dataclass(frozen=True)
class Progress:
    """How it goes. Moments are in microseconds since 1970."""

    state: str = State.NEW
    since: int = 0
    """When this state began."""
    why: str = ""
    what_to_do: str = ""
    attempts: int = 0
    """Failed ones since the last success."""
    read: int | None = None
    """When the source was last read, or found unchanged."""
    changed: int | None = None
    """When rows were last taken in."""
    rows: int = 0
    set_aside: Mapping[str, str] = field(default_factory=dict)
    offered: tuple[str, ...] = ()
    """New columns of the source that the mirror does not have."""
    token: str = ""
    """Of the reading whose rows the mirror has, if it is a polled source."""


@dataclass(frozen=True)
class SourceRecord:
    definition: SourceDefinition
    layout: Layout
    progress: Progress
    position: str | None = None
    revision: int = 0
    """Counts what was taken in: a reading from before another one is of no use."""
    due: int | None = None
    """When it is read next; None if by no clock."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_paused(self) -> bool:
        return self.progress.state == State.PAUSED

    def state_at(self, now: int) -> str:
        """What people are told. A source that nobody reads is stale after a while."""
        progress = self.progress
        good = progress.state in (State.OK, State.UNCHANGED)
        is_polled = not (self.definition.alone or self.layout.followed)
        if good and is_polled and progress.read is not None:
            age = (now - progress.read) / 1_000_000
            if age > STALE_AFTER * max(self.definition.every, 1.0):
                return str(State.STALE)
        return str(progress.state)


class SourceRecords:
    def __init__(self, records: Records) -> None:
        self._records = records

    def all(self) -> list[SourceRecord]:
        if not self._records.exist(SOURCES):
            return []
        return [_read(row) for row in self._records.find(SOURCES)]

    def find(self, name: str) -> SourceRecord | None:
        if not self._records.exist(SOURCES):
            return None
        found = self._records.find(SOURCES, {"name": name})
        return _read(found[0]) if found else None

    def get(self, name: str) -> SourceRecord:
        found = self.find(name)
        if found is None:
            known = [each.name for each in self.all()]
            near = nearest(name, known)
            raise NameFault(
                f"there is no source {name}",
                code="unknown-source",
                hint=f"did you mean {near}?"
                if near
                else f"the sources are {', '.join(known[:8])}"
                if known
                else "CREATE SOURCE makes one",
            )
        return found

    def write(self, record: SourceRecord) -> None:
        self._records.make_room(SOURCES)
        row = (
            record.name,
            record.definition.stored,
            record.layout.stored,
            record.position,
            record.revision,
            record.due,
            _text(vars(record.progress)),
        )
        self._records.add(SOURCES, row, replace=True)

    def advance(self, record: SourceRecord) -> None:
        """Write how it goes with a source whose definition and columns stay as they are."""
        values = {
            "position": record.position,
            "revision": record.revision,
            "due": record.due,
            "progress": _text(vars(record.progress)),
        }
        self._records.change(SOURCES, {"name": record.name}, values)

    def remove(self, name: str) -> None:
        if self._records.exist(SOURCES):
            self._records.remove(SOURCES, {"name": name})

    def next_due(self) -> int | None:
        """When a source is to be read next; those that are followed do not count."""
        return self._first_due(FOLLOWED)

    def has_followed(self) -> bool:
        return self._first_due(FOLLOWED - 1) == FOLLOWED

    def _first_due(self, after: int) -> int | None:
        if not self._records.exist(SOURCES):
            return None
        found = self._records.find(SOURCES, above=("due", after), limit=1)
        return None if not found else found[0][5]

    def due(self, now: int) -> list[SourceRecord]:
        """Those that are to be read now, the one that waits longest first."""
        if not self._records.exist(SOURCES):
            return []
        rows = self._records.find(SOURCES, above=("due", FOLLOWED))
        return [_read(row) for row in rows if row[5] <= now]


@lru_cache(maxsize=1_000)
def _read(row: tuple[Any, ...]) -> SourceRecord:
    """Every second all sources are looked at, and mostly nothing has changed."""
    _, definition, layout, position, revision, due, progress = row
    found = Progress(**json.loads(progress))
    return SourceRecord(
        read_definition(definition),
        read_layout(layout),
        replace(found, offered=tuple(found.offered)),
        position,
        revision,
        due,
    )


def _text(given: Mapping[str, Any]) -> str:
    return json.dumps(given, ensure_ascii=False)


@lru_cache(maxsize=1_000)
def read_definition(text: str) -> SourceDefinition:
    given = json.loads(text)
    key = given["key"]
    return SourceDefinition(**(given | {"key": None if key is None else tuple(key)}))


@lru_cache(maxsize=1_000)
def read_layout(text: str) -> Layout:
    given = json.loads(text)
    listed = {name: tuple(given[name]) for name in ("names", "outside", "key")}
    return Layout(**(given | listed))


def stored_moment(at: datetime.datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def read_moment(at: int) -> datetime.datetime:
    return EPOCH + at * MICROSECOND
