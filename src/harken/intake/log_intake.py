"""Takes the transactions of followed servers into the mirrors.

The position of a table is written with the rows it stands for, and checked before: what another
session has applied meanwhile is not applied again. The server may forget a transaction only after
it is committed here.

Law: killed at any moment, each transaction of the server is applied once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harken.database.runtime import Runtime
from harken.errors import HarkenError, SourceFault
from harken.intake.followed_servers import (
    FollowedServer,
    FollowedServers,
    LogReading,
    is_active,
    is_followed,
    server_key,
)
from harken.intake.mirror_changes import MirrorChanges
from harken.intake.open_sources import OpenSources
from harken.intake.source_records import FOLLOWED, Progress, SourceRecord, State, stored_moment
from harken.intake.taking_in import Intake, Taken, in_state, lag
from harken.sources.outside import OutsideTransaction, Position, TableChange


class Overtaken(HarkenError):
    """Another session has applied some of this already, or the source was altered."""


class LogIntake:
    def __init__(self, runtime: Runtime, intake: Intake, sources: OpenSources) -> None:
        self._runtime, self._intake = runtime, intake
        self._sources = sources
        self.servers = FollowedServers(sources)
        self._mirrors: dict[str, tuple[int, MirrorChanges]] = {}
        self._done: dict[str, Position] = {}
        """By server: how far its log was applied, and the server was not told yet."""
        self._applied: dict[str, Position] = {}
        """By server: the last position that tables have for it."""

    def groups(self) -> dict[str, list[SourceRecord]]:
        """The sources that are followed, by server."""
        found: dict[str, list[SourceRecord]] = {}
        for record in self._intake.records.all():
            if is_followed(record) and is_active(record):
                found.setdefault(server_key(record), []).append(record)
        return found

    def to_release(self, key: str, records: Sequence[SourceRecord]) -> Position | None:
        """What the server may forget, if it is committed."""
        position, needed = self._done.pop(key, None), self._applied.get(key)
        if needed is not None and all(each.position != needed for each in records):
            return None  # it was rolled back, or another session has gone on
        return position

    def note_done(self, key: str, transaction: OutsideTransaction, taken: Sequence[Taken]) -> None:
        self._done[key] = transaction.position
        if any(each.state == State.OK for each in taken):
            self._applied[key] = transaction.position

    def forget_done(self, key: str) -> None:
        """What was committed may not be on the disk: the server keeps it."""
        self._done.pop(key, None)

    def has_server(self, record: SourceRecord) -> bool:
        """Is its server followed for another source already?"""
        return any(each.name != record.name for each in self.groups().get(server_key(record), []))

    def stop(self, record: SourceRecord) -> None:
        """Remove from the server what was installed for a source that is dropped."""
        key = server_key(record)
        others = [each for each in self.groups().get(key, []) if each.name != record.name]
        self.servers.of([*others, record]).stop(record.layout.table)
        self._done.pop(key, None)
        if not others:
            self.servers.close(key)

    def name_there(self, record: SourceRecord) -> None:
        """What is installed for a source has its name, also if another source's connection is
        used."""
        self._sources.of(record).opened()

    def server(self, records: list[SourceRecord]) -> FollowedServer:
        return self.servers.of(records)

    # --- in the open transaction ---

    def apply(
        self, reading: LogReading, transaction: OutsideTransaction, expected: Mapping[str, Position]
    ) -> tuple[list[Taken], dict[str, Position]]:
        """One transaction of the server; `expected` are the positions of the tables before it.
        Returns the positions after it; a table that cannot go on has none."""
        positions = dict(expected)
        taken: list[Taken] = []
        for table, why in transaction.altered.items():
            if table in positions:
                taken.append(self._stop(reading.names[table], why))
                del positions[table]
        moved: dict[str, Moved] = {}
        for change in transaction.changes:
            table = change.table
            if table not in positions:
                continue
            held = moved.get(table)
            if held is None:
                record = self._checked(reading.names[table], expected[table])
                held = moved[table] = Moved(record, self._mirror(record))
            try:
                held.apply(change)
            except SourceFault as error:
                raise Misfit(held.record.name, error) from error
        for table, held in moved.items():
            taken.append(self._advance(held, transaction))
            positions[table] = transaction.position
        return taken, positions

    def _checked(self, name: str, position: Position) -> SourceRecord:
        record = self._intake.records.find(name)
        if record is None or record.position != position or not is_active(record):
            raise Overtaken("another session follows this server", code="source-lost")
        return record

    def _mirror(self, record: SourceRecord) -> MirrorChanges:
        epoch = self._runtime.catalog.epoch
        held = self._mirrors.get(record.name)
        if held is None or held[0] != epoch:
            function = self._intake.mirror(record.name)
            held = epoch, MirrorChanges(self._runtime, function, record.layout)
            self._mirrors[record.name] = held
        return held[1]

    def _advance(self, moved: Moved, transaction: OutsideTransaction) -> Taken:
        record, name = moved.record, moved.record.name
        now = stored_moment(self._intake.now)
        recovered = record.progress.attempts > 0
        changed = bool(moved.plus or moved.minus)
        progress = replace(
            in_state(record.progress, State.OK, now),
            why="",
            what_to_do="",
            attempts=0,
            read=now,
            changed=now if changed else record.progress.changed,
            rows=record.progress.rows + moved.plus - moved.minus,
        )
        self._intake.records.advance(
            replace(
                record,
                progress=progress,
                position=transaction.position,
                revision=record.revision + 1,
                due=FOLLOWED,
            )
        )
        if progress.state != record.progress.state:
            self._intake.board.note_state(name, progress)
        if changed:
            self._intake.board.note(name)
        return Taken(
            name,
            State.OK,
            moved.plus,
            moved.minus,
            recovered=recovered,
            rows=progress.rows,
            lag=lag(transaction.at, self._intake.now) if changed else None,
        )

    def _stop(self, name: str, why: str) -> Taken:
        """The columns of a table changed: its rows stay as they are until someone decides."""
        record = self._intake.records.get(name)
        now = stored_moment(self._intake.now)
        progress = replace(
            in_state(record.progress, State.CHANGED, now),
            why=why,
            what_to_do=f"REFRESH SOURCE {name}, if the columns of the mirror are still there; "
            f"otherwise ALTER SOURCE {name} RENEW COLUMNS takes them as they are there now",
        )
        stopped = replace(record, position=None, revision=record.revision + 1)
        self._intake.keep(stopped, progress, None)
        return Taken(name, State.CHANGED, why=why)

    def note_misfit(self, name: str, error: SourceFault) -> Taken:
        return self._stop(name, error.message)

    def newly_offered(self, reading: LogReading) -> dict[str, tuple[str, ...]]:
        """By source: the columns that it could have, where that has changed."""
        found = {}
        for table, columns in reading.offered.items():
            record = self._intake.records.find(reading.names[table])
            if record is not None and "take" not in record.definition.options:
                known = {each.lower() for each in record.layout.outside}
                offered = tuple(each for each in columns if each.lower() not in known)
                if offered != record.progress.offered:
                    found[record.name] = offered
        return found

    def note_offered(self, offered: Mapping[str, tuple[str, ...]]) -> None:
        for name, columns in offered.items():
            record = self._intake.records.get(name)
            progress = replace(record.progress, offered=columns)
            self._intake.keep(record, progress, record.due)

    def recover(self, names: Iterable[str]) -> list[Taken]:
        """The server answers again: those that were failing are not any more."""
        found = []
        now = stored_moment(self._intake.now)
        for name in names:
            record = self._intake.records.find(name)
            if record is None or record.progress.state != State.FAILING:
                continue
            progress: Progress = replace(
                in_state(record.progress, State.UNCHANGED, now),
                why="",
                what_to_do="",
                attempts=0,
                read=now,
            )
            self._intake.keep(record, progress, FOLLOWED)
            found.append(Taken(name, State.UNCHANGED, recovered=True))
        return found


@dataclass(slots=True)
class Moved:
    """What one transaction did to the mirror of one table."""

    record: SourceRecord
    mirror: MirrorChanges
    plus: int = 0
    minus: int = 0

    def apply(self, change: TableChange) -> None:
        plus, minus = self.mirror.apply(change)
        self.plus += plus
        self.minus += minus


class Misfit(Exception):
    """A change of one table cannot be applied."""

    def __init__(self, name: str, error: SourceFault) -> None:
        super().__init__(name)
        self.name, self.error = name, error
