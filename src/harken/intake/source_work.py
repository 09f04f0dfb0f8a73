"""What a session does with its sources: look at one, make one, read one again, note how it goes.

Reading is done outside of transactions, because it takes as long as the network takes; what was
read is taken in in one. A source that fails keeps its rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pyarrow as pa

from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, SourceFault
from harken.intake.mirror_columns import column_type, key_candidates, layout_of, mirror_function
from harken.intake.open_sources import IDENTITY, OpenSource, OpenSources, Reading
from harken.intake.source_records import (
    Layout,
    Progress,
    SourceDefinition,
    SourceRecord,
    SourceRecords,
    State,
    stored_moment,
)
from harken.intake.taking_in import Intake, Taken
from harken.ir.relations import Column
from harken.ir.schema import Function

FIRST_RETRY = 15.0
"""Seconds after the first failure, if the source is not polled sooner."""
LAST_RETRY = 3_600.0
"""Seconds between two tries, unless it is polled less often."""
JITTER = 0.2
"""The share by which the time of a retry varies, so that sources do not come back together."""
SAMPLE = 10
LONGEST_WHY = 1_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source that was read for the first time, and is not there yet."""

    definition: SourceDefinition
    layout: Layout
    function: Function
    reading: Reading
    source: OpenSource


@dataclass(frozen=True, slots=True)
class Checked:
    """What a source would be."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """As the source itself says."""
    candidates: tuple[tuple[str, ...], ...]
    """Columns that identify the rows that were read."""
    rows: pa.Table
    """The first ones."""
    count: int
    capture: str
    why: str
    set_aside: dict[str, str]


class SourceWork:
    def __init__(self, runtime: Runtime, transactions: Transactions) -> None:
        self._runtime, self._transactions = runtime, transactions
        self.open = OpenSources(runtime)
        self.intake = Intake(runtime)

    @property
    def records(self) -> SourceRecords:
        return self.intake.records

    # --- before there is a source ---

    def check(self, definition: SourceDefinition) -> Checked:
        """Look at a source; installs nothing."""
        source = self.open.make(definition)
        try:
            schema = source.schema()
            reading = source.read(None, 0)
            opened = source.opened()
            layout = layout_of(definition, schema, source.shared["take"] or (), opened)
            assert reading.rows is not None
            rows = reading.rows.select(list(layout.outside)).rename_columns(list(layout.names))
            return Checked(
                tuple(map(column_type, rows.schema)),
                tuple(each.lower() for each in schema.key),
                tuple(key_candidates(rows)),
                rows.slice(0, SAMPLE),
                rows.num_rows,
                opened.capture,
                opened.why,
                dict(reading.set_aside),
            )
        finally:
            source.close()

    def scripts(self, definition: SourceDefinition) -> tuple[str, str]:
        """What an operator runs in the server, so that its changes can be captured there."""
        source = self.open.make(definition)
        try:
            scripts = source.opened().scripts
            if scripts is None:
                raise SourceFault(
                    f"the capture {source.opened().capture} of this {source.kind.title} installs "
                    "nothing, so there are no scripts",
                    code="bad-option",
                )
            return scripts()
        finally:
            source.close()

    def prepare(self, definition: SourceDefinition) -> Prepared:
        source = self.open.make(definition)
        try:
            opened = source.opened()
            if opened.polled is None:
                raise SourceFault(
                    "sources that are only followed cannot be made yet", code="bad-option"
                )
            reading = source.read(None, 1)
            assert reading.schema is not None
            layout = layout_of(definition, reading.schema, source.shared["take"] or (), opened)
            return Prepared(
                definition, layout, mirror_function(definition, layout), reading, source
            )
        except BaseException:
            source.close()
            raise

    # --- in a transaction ---

    def identify(self) -> None:
        """Give this database a number of its own, the first time."""
        numbers = self._runtime.engine.numbers
        if numbers.get(IDENTITY) is None:
            numbers.set(IDENTITY, random.SystemRandom().getrandbits(48))

    def fill(self, prepared: Prepared) -> None:
        """The mirror exists and is empty: give it its first rows, and write the record."""
        intake, reading, name = self.intake, prepared.reading, prepared.definition.name
        count = intake.fill(intake.mirror(name), prepared.layout, reading)
        now = stored_moment(intake.now)
        progress = Progress(
            State.OK, now, read=now, changed=now, rows=count, set_aside=dict(reading.set_aside)
        )
        record = SourceRecord(
            prepared.definition, prepared.layout, progress, reading.position, reading.revision
        )
        self.records.write(replace(record, due=intake.next_due(record, now)))
        intake.board.note(name)
        intake.board.note_state(name, progress)

    def forget(self, name: str) -> None:
        self.records.remove(name)
        self.intake.board.remove(name)
        self.open.close(name)

    def change(self, name: str, change: Callable[[SourceRecord], SourceRecord]) -> None:
        """Alter a source: what was read under the old definition is not taken in."""
        record = self.records.get(name)
        found = change(record)
        now = stored_moment(self.intake.now)
        due = None if found.is_paused else now
        found = replace(found, revision=record.revision + 1)
        self.intake.keep(replace(found, progress=record.progress), found.progress, due)

    # --- reading again ---

    def reader(self, name: str) -> Callable[[], Reading]:
        """What reads a source, in any thread."""
        record = self.records.get(name)
        source = self.open.of(record)
        return lambda: source.read(record.position, record.revision)

    def take(self, name: str, reading: Reading, *, confirmed: bool = False) -> Taken:
        """In a transaction."""
        source = self.open.of(self.records.get(name))
        return self.intake.take(name, source, reading, confirmed=confirmed)

    def note_failure(self, name: str, error: HarkenError) -> Taken | None:
        """In a transaction: the source stays as it is, and its state says why."""
        record = self.records.find(name)
        if record is None:
            return None
        now = stored_moment(self.intake.now)
        attempts = record.progress.attempts + 1
        state = _STATES.get(error.code, State.FAILING)
        why = self._runtime.secrets.redacted(error.message)[:LONGEST_WHY]
        progress = replace(
            record.progress,
            state=State.PAUSED if record.is_paused else state,
            since=record.progress.since if record.progress.state == state else now,
            why=why,
            what_to_do=self._runtime.secrets.redacted(error.hint or "")[:LONGEST_WHY],
            attempts=attempts,
        )
        due: int | None = now + int(self._wait(record, attempts, error) * 1_000_000)
        stops = state is State.CHANGED and self.open.of(record).is_whole
        if record.is_paused or record.definition.alone or stops:
            due = None
        self.intake.keep(record, progress, due)
        return Taken(name, progress.state, why=why)

    def _wait(self, record: SourceRecord, attempts: int, error: HarkenError) -> float:
        every = record.definition.every
        doubled = min(every, FIRST_RETRY) * 2 ** min(attempts - 1, 30)
        wait = min(doubled, max(every, LAST_RETRY))
        asked = getattr(error, "retry_after", None) or 0.0
        varied = random.Random(f"{record.name} {attempts}").uniform(1 - JITTER, 1 + JITTER)
        return float(max(wait * varied, min(asked, 86_400.0)))

    def refresh(self, name: str, *, confirmed: bool = False) -> Taken:
        """Read a source now and take in what changed, in the open transaction or in one of its
        own."""
        try:
            for _ in range(3):  # another session may take changes in meanwhile
                reading = self.reader(name)()
                with self._statement():
                    taken = self.take(name, reading, confirmed=confirmed)
                if not taken.is_stale:
                    break
            return taken
        except SourceFault as error:
            if not self._transactions.active:
                with self._transactions.block():
                    self.note_failure(name, error)
            raise

    def _statement(self) -> AbstractContextManager[None]:
        if self._transactions.active:
            return self._transactions.statement()
        return self._transactions.block()

    def close(self) -> None:
        self.open.close_all()


_STATES = {"source-suspect": State.SUSPECT, "source-changed": State.CHANGED}
