"""The servers whose transactions a session follows.

Sources that share a server share its log, so that a transaction there stays whole. The first one's
connection serves all. Reading happens in any thread and touches nothing of the session.

Law: what was read is applied only if no other session applied anything of that server meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harken.errors import SourceFault
from harken.intake.open_sources import (
    OpenSource,
    OpenSources,
    Reading,
    Told,
    in_our_words,
    read_rows,
)
from harken.intake.source_records import SourceRecord, State
from harken.sources.outside import Followed, Offering, OutsideSchema, OutsideTransaction, Position

MOST_ROWS = 10_000
"""Rows that are read of a log before they are applied."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """Transactions of one server, in order, and the positions that they were read from."""

    server: str
    names: Mapping[str, str]
    """The sources, by table."""
    positions: Mapping[str, Position]
    """By table."""
    transactions: Sequence[OutsideTransaction]
    offered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By table: columns there that the mirror does not have."""


class FollowedServer:
    """An open server. `leader` is the source whose connection it is."""

    def __init__(self, key: str, name: str, leader: OpenSource) -> None:
        self.key, self.name, self.leader = key, name, leader
        self._expected: dict[str, tuple[str, ...]] = {}
        self._told: set[Position] = set()
        """The positions that this connection told; it may be told to forget no others."""
        self._lock = threading.RLock()

    def schema(self, table: str) -> OutsideSchema:
        with self._lock, in_our_words(self.leader.kind):
            return self._followed.schema(table)

    def start(
        self,
        table: str,
        columns: Sequence[str] | None,
        revision: int,
        told: Told | None = None,
    ) -> Reading:
        """All rows of a table, and the position from which its changes count."""
        with self._lock, in_our_words(self.leader.kind):
            if columns is not None:
                self._expect(table, tuple(columns))
            snapshot = self._followed.start([table])[table]
            return read_rows(snapshot, revision, told)

    def expect(self, table: str, columns: Sequence[str]) -> None:
        with self._lock, in_our_words(self.leader.kind):
            self._expect(table, tuple(columns))

    def read(self, records: Sequence[SourceRecord], release: Position | None) -> LogReading:
        """What follows the positions of these sources. `release` is what is committed here."""
        positions = {each.layout.table: each.position or "" for each in records}
        with self._lock, in_our_words(self.leader.kind):
            self._release(release)
            for each in records:
                self._expect(each.layout.table, each.layout.outside)
            found = list(self._followed.transactions(positions, MOST_ROWS))
            self._told |= {each.position for each in found}
            offered = _offered(self._followed, positions)
        names = {each.layout.table: each.name for each in records}
        return LogReading(self.key, names, positions, found, offered)

    def release(self, position: Position) -> None:
        with self._lock, in_our_words(self.leader.kind):
            self._release(position)

    def _release(self, position: Position | None) -> None:
        if position in self._told:
            self._told.clear()
            self._followed.release(position)

    def lag(self, position: Position) -> float | None:
        with self._lock, in_our_words(self.leader.kind):
            return self._followed.lag(position)

    def stop(self, table: str) -> None:
        with self._lock, in_our_words(self.leader.kind):
            self._expected.pop(table, None)
            self._followed.stop(table)

    @property
    def _followed(self) -> Followed:
        found = self.leader.opened().followed
        if found is None:
            raise SourceFault(f"{self.name} is not followed any more", code="source-lost")
        return found

    def _expect(self, table: str, columns: tuple[str, ...]) -> None:
        if self._expected.get(table) != columns:
            self._followed.expect(table, columns)
            self._expected[table] = columns


def _offered(followed: Followed, tables: Iterable[str]) -> dict[str, Sequence[str]]:
    if not isinstance(followed, Offering):
        return {}
    return {table: followed.offered(table) for table in tables}


class FollowedServers:
    def __init__(self, sources: OpenSources) -> None:
        self._sources = sources
        self._servers: dict[str, FollowedServer] = {}

    def of(self, records: Sequence[SourceRecord]) -> FollowedServer:
        """The open server of these sources, which share one."""
        key = server_key(records[0])
        held = self._servers.get(key)
        leader = next((each for each in records if held and each.name == held.name), records[0])
        source = self._sources.of(leader)
        if held is None or held.leader is not source:
            held = self._servers[key] = FollowedServer(key, leader.name, source)
        return held

    def close(self, key: str) -> None:
        """Connect again at the next use."""
        held = self._servers.pop(key, None)
        if held is not None:
            self._sources.close(held.name)


def server_key(record: SourceRecord) -> str:
    return record.layout.server or f"source {record.name}"


def is_followed(record: SourceRecord) -> bool:
    return record.layout.followed


def is_active(record: SourceRecord) -> bool:
    """Is its log read? A source that stopped begins with all of its rows again."""
    return record.progress.state not in (State.PAUSED, State.CHANGED)
