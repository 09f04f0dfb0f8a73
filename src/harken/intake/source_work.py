"""What a session does with its sources: look at one, make one, read one again, note how it goes.

Reading is done outside of transactions, because it takes as long as the network takes; what was
read is taken in in one. A source that fails keeps its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, SourceFault
from harken.intake.asked_sources import AskedSources
from harken.intake.copied_sources import new_identity
from harken.intake.delta_zones import DeltaZones
from harken.intake.followed_servers import FollowedServer, is_followed, server_key
from harken.intake.log_intake import LogIntake
from harken.intake.mirror_columns import column_type, key_candidates, layout_of, mirror_function
from harken.intake.new_columns import NewColumns
from harken.intake.open_sources import OpenSource, OpenSources, Reading, Told
from harken.intake.prepared_source import Prepared
from harken.intake.source_failures import SourceFailures
from harken.intake.source_leftovers import SourceLeftovers
from harken.intake.source_records import (
    FOLLOWED,
    IDENTITY,
    Layout,
    Progress,
    SourceDefinition,
    SourceRecord,
    SourceRecords,
    State,
    stored_moment,
)
from harken.intake.source_rounds import SourceRounds
from harken.intake.taking_in import MEND, Intake, Taken, in_state, offered, set_aside_text
from harken.ir.relations import Column
from harken.sources.outside import OutsideSchema

SAMPLE = 10
POLL = "poll"


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
        self.failures = SourceFailures(runtime, self.intake, self.open)
        self.log = LogIntake(runtime, self.intake, self.open)
        self.columns = NewColumns(self.open, self.log)
        self.asked = AskedSources(runtime, self.intake.records, self.open)
        self.leftovers = SourceLeftovers(runtime.engine.connection.records, transactions, self.log)
        self.zones = DeltaZones(runtime, transactions, self.records)
        self.rounds = SourceRounds(
            runtime,
            transactions,
            self.intake,
            self.log,
            self.failures,
            self._reader,
            self._take,
        )

    @property
    def records(self) -> SourceRecords:
        return self.intake.records

    # --- before there is a source ---

    def check(self, definition: SourceDefinition) -> Checked:
        """Look at a source; installs nothing."""
        source = self.open.make(definition)
        try:
            schema = source.schema()
            opened = source.opened()
            reading = source.read(None, 0) if opened.polled else _without_rows(schema)
            layout = layout_of(definition, schema, source.shared["take"] or (), opened)
            assert reading.rows is not None
            rows = reading.rows.select(list(layout.outside)).rename_columns(list(layout.names))
            return Checked(
                tuple(map(column_type, rows.schema)),
                tuple(each.lower() for each in schema.key),
                tuple(key_candidates(rows)),
                rows.slice(0, SAMPLE),
                rows.num_rows,
                layout.capture,
                layout.why,
                self.intake.shown(reading.set_aside),
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
            if definition.alone:
                return self._prepare_asked(definition, source)
            followed = opened.followed is not None
            told = self._told(definition.name)
            if followed:
                reading = self._start(definition, source, told)
            else:
                reading = source.read(None, 1, told)
            assert reading.schema is not None
            layout = layout_of(definition, reading.schema, source.shared["take"] or (), opened)
            function = mirror_function(definition, layout)
            prepared = Prepared(definition, layout, function, reading, source)
            if followed:
                self._check_log(prepared, reading.schema)
            return prepared
        except BaseException:
            source.close()
            raise

    def _prepare_asked(self, definition: SourceDefinition, source: OpenSource) -> Prepared:
        """A source without a mirror is only looked at."""
        opened, schema = source.opened(), source.schema()
        if opened.polled is None:
            raise SourceFault(
                f"a {source.kind.title} cannot be asked, only followed: leave MIRROR none out",
                code="bad-option",
            )
        layout = layout_of(definition, schema, source.shared["take"] or (), opened)
        layout = replace(layout, followed=False, capture=POLL)
        return Prepared(
            definition, layout, mirror_function(definition, layout), _without_rows(schema), source
        )

    def _check_log(self, prepared: Prepared, schema: OutsideSchema) -> None:
        try:
            _check_key_of_log(prepared.definition, schema, prepared.layout)
        except SourceFault:
            self.undo(prepared)
            raise

    def _told(self, name: str) -> Told | None:
        """Whoever shows how far a load is."""
        progress = self._runtime.engine.progress
        return None if progress is None else partial(progress, name)

    def _start(
        self, definition: SourceDefinition, source: OpenSource, told: Told | None
    ) -> Reading:
        """Begin to follow a table, over the connection that its server has already."""
        opened = source.opened()
        key = opened.server or f"source {definition.name}"
        group = self.log.groups().get(key, [])
        same = next((each for each in group if each.layout.table == opened.table), None)
        if same is not None:
            raise SourceFault(
                f"the source {same.name} follows {opened.table} of this server already",
                code="bad-option",
                hint=f"make a view over {same.name}, or add CAPTURE poll",
            )
        columns = _columns_to_take(source)
        if group:
            return self.log.server(group).start(opened.table, columns, 1, told)
        return FollowedServer(key, definition.name, source).start(opened.table, columns, 1, told)

    def undo(self, prepared: Prepared) -> None:
        """A source that was prepared was not made after all."""
        with suppress(HarkenError):
            if prepared.layout.followed:
                self.log.stop(_record_of(prepared))
        prepared.source.close()

    # --- in a transaction ---

    @property
    def is_identified(self) -> bool:
        return self._runtime.engine.numbers.get(IDENTITY) is not None

    def identify(self) -> None:
        """Give this database a number of its own, the first time."""
        numbers = self._runtime.engine.numbers
        if numbers.get(IDENTITY) is None:
            numbers.set(IDENTITY, new_identity())

    def fill(self, prepared: Prepared) -> None:
        """The mirror exists and is empty: give it its first rows, and write the record."""
        intake, reading, name = self.intake, prepared.reading, prepared.definition.name
        alone = prepared.definition.alone
        count, token = (0, "") if alone else intake.fill(name, prepared.layout, reading)
        now = stored_moment(intake.now)
        progress = Progress(
            State.OK,
            now,
            read=now,
            changed=now,
            rows=count,
            why=set_aside_text(self.intake.shown(reading.set_aside)),
            what_to_do=MEND if reading.set_aside else "",
            set_aside=self.intake.shown(reading.set_aside),
            token=token,
        )
        record = replace(_record_of(prepared), progress=progress)
        record = replace(record, due=intake.next_due(record, now))
        self.records.write(record)
        self.leftovers.adopt(record)
        if record.layout.followed and not self.log.has_server(record):
            self.open.hold(record, prepared.source)
        else:  # a polled one is opened again with the columns of the mirror
            prepared.source.close()
        intake.board.note(name)
        intake.board.note_state(name, progress)

    def refill(self, prepared: Prepared) -> None:
        """The mirror has new columns and is empty: give it its rows, and write the record."""
        intake, reading, name = self.intake, prepared.reading, prepared.definition.name
        record, progress = self.records.get(name), self.records.get(name).progress
        if record.revision != reading.revision:
            raise SourceFault(
                f"{name} was read by another session meanwhile",
                code="source-down",
                hint="try again",
            )
        count, token = progress.rows, ""
        if not prepared.definition.alone:
            count, token = intake.fill(name, prepared.layout, reading)
        now = stored_moment(intake.now)
        progress = replace(
            in_state(progress, State.PAUSED if record.is_paused else State.OK, now),
            why=set_aside_text(self.intake.shown(reading.set_aside)),
            what_to_do=MEND if reading.set_aside else "",
            attempts=0,
            read=now,
            changed=now,
            rows=count,
            set_aside=self.intake.shown(reading.set_aside),
            offered=offered(prepared.layout, reading, prepared.source),
            token=token,
        )
        found = replace(
            record,
            definition=prepared.definition,
            layout=prepared.layout,
            position=reading.position,
            revision=record.revision + 1,
        )
        intake.keep(found, progress, intake.next_due(found, now))
        intake.board.note(name)
        prepared.source.close()

    def forget(self, name: str) -> None:
        record = self.records.get(name)
        if record.layout.followed:
            self.leftovers.add(record)
        self.records.remove(name)
        self.intake.board.remove(name)

    def change(self, name: str, change: Callable[[SourceRecord], SourceRecord]) -> None:
        """Alter a source: what was read under the old definition is not taken in."""
        record = self.records.get(name)
        found = change(record)
        now = stored_moment(self.intake.now)
        due = None if found.is_paused else FOLLOWED if record.layout.followed else now
        if found.progress.state != record.progress.state:
            found = replace(found, progress=replace(found.progress, since=now))
        found = replace(found, revision=record.revision + 1)
        if record.layout.followed and found.progress.state != record.progress.state:
            # its log was not read, or is not from now on: it begins again with all rows
            found = replace(found, position=None)
        self.intake.keep(replace(found, progress=record.progress), found.progress, due)

    # --- reading again ---

    def refresh(self, name: str, *, confirmed: bool = False) -> Taken:
        """Read a source now and take in what changed, in the open transaction or in one of its
        own. Of a server that is followed, all of its sources: its transactions stay whole."""
        record = self.records.get(name)
        if record.definition.alone:
            raise SourceFault(
                f"{name} has no mirror, so there is nothing to refresh: queries read it",
                code="bad-option",
            )
        gathered = self.rounds.gather([name])
        try:
            if gathered.faults:
                raise gathered.faults[0][1]
            with self._statement():
                taken = Taken(name, record.progress.state)
                for _, reading in gathered.readings:
                    taken = self._take(name, reading, confirmed=confirmed)
                if is_followed(record):
                    found = {
                        each.name: each for each in self.rounds.take_logs([server_key(record)])
                    }
                    taken = found.get(name, taken)
                    if taken.state == State.FAILING:
                        raise SourceFault(taken.why, code="source-down")
        except SourceFault as error:
            if not self._transactions.active:
                with self._transactions.block():
                    self.failures.note(name, error)
            raise
        if not self._transactions.active:
            self.rounds.release()
            self.zones.collect()
        if taken.is_stale:
            return self.refresh(name, confirmed=confirmed)
        if taken.state == State.CHANGED:  # what came before is taken in, and the state is kept
            hint = self.records.get(name).progress.what_to_do
            raise SourceFault(taken.why, code="source-changed", hint=hint)
        return taken

    def _take(self, name: str, reading: Reading, *, confirmed: bool = False) -> Taken:
        source = self.open.of(self.records.get(name))
        return self.intake.take(name, source, reading, confirmed=confirmed)

    def _reader(self, name: str) -> Callable[[], Reading]:
        """What reads a source, in any thread."""
        record = self.records.get(name)
        source = self.open.of(record)
        return lambda: source.read(record.position, record.revision)

    def _statement(self) -> AbstractContextManager[None]:
        if self._transactions.active:
            return self._transactions.statement()
        return self._transactions.block()

    def close(self) -> None:
        self.open.close_all()


def _check_key_of_log(definition: SourceDefinition, schema: OutsideSchema, layout: Layout) -> None:
    """The log of a server names rows by a key of its own."""
    known = {each.lower() for each in schema.key}
    if not known <= set(layout.names):
        raise SourceFault(
            f"the option take leaves out {', '.join(sorted(known - set(layout.names)))}, by which "
            "the server names the rows that change",
            code="bad-option",
            hint="take the key, too, or add CAPTURE poll",
        )
    if definition.key is not None and set(definition.key) != known:
        raise SourceFault(
            f"the KEY of {definition.name} must be ({', '.join(schema.key)}), by which the server "
            "names the rows that change"
            if known
            else f"{definition.name} has no key in the server, which counts equal rows",
            code="bad-option",
            hint="leave KEY out, or add CAPTURE poll",
        )


def _columns_to_take(source: OpenSource) -> list[str] | None:
    """As the source calls them, if not all are taken."""
    taken = {each.lower() for each in source.shared["take"] or ()}
    names = source.schema().columns.names if taken else []
    return [each for each in names if each.lower() in taken] or None


def _record_of(prepared: Prepared) -> SourceRecord:
    reading = prepared.reading
    return SourceRecord(
        prepared.definition, prepared.layout, Progress(), reading.position, reading.revision
    )


def _without_rows(schema: OutsideSchema) -> Reading:
    return Reading(0, schema, schema.columns.empty_table())
