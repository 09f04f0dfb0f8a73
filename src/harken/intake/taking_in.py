"""Takes a reading into the mirror: the difference becomes changes of an ordinary relation.

All happens in the open transaction, with the new position, so a kill loses nothing and doubles
nothing. A reading that was begun before another one was taken in is of no use, and not taken.

Law: after a reading was taken in, mirror = rows read, save the rows of parts that were set aside.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.errors import SourceFault
from harken.intake.last_readings import LastReadings
from harken.intake.mirror_columns import check_key, mirror_rows
from harken.intake.open_sources import OpenSource, Reading
from harken.intake.row_differences import as_rows, as_table, difference, row_numbers
from harken.intake.source_records import (
    FOLLOWED,
    Layout,
    Progress,
    SourceRecord,
    SourceRecords,
    State,
    read_moment,
    stored_moment,
)
from harken.intake.update_board import UpdateBoard
from harken.ir.relations import Relation
from harken.ir.schema import Function

MEND = "mend these parts, or take them away; their rows of last time stay"
MOST_NAMED = 10
"""Parts that are named in one sentence."""
logger = logging.getLogger("harken.sources")
LEAST_DOUBTED = 5
"""Rows: fewer may vanish without a doubt."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one reading did. `is_stale` ones did nothing, because another came first."""

    name: str
    state: str
    plus: int = 0
    minus: int = 0
    why: str = ""
    recovered: bool = False
    is_stale: bool = False
    rows: int | None = None
    """In the mirror, since then."""
    lag: float | None = None
    """Seconds from the change there to this one here, if the source says when it changed."""
    due: int | None = None
    """When it is read next, in microseconds; None if by no clock."""

    @property
    def next_try(self) -> datetime.datetime | None:
        return read_moment(self.due) if self.due else None


class Intake:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.records = SourceRecords(runtime.engine.connection.records)
        self.board = UpdateBoard(runtime)
        self._last = LastReadings()

    def mirror(self, name: str) -> Function:
        found = SqlTables(self._runtime.catalog).function(name)
        assert found is not None, name
        return found

    # --- in the open transaction ---

    def fill(self, name: str, layout: Layout, reading: Reading) -> tuple[int, str]:
        """The first rows of a new mirror: their number, and the token of the reading."""
        function = self.mirror(name)
        assert reading.rows is not None
        assert function.relation is not None
        table = mirror_rows(function, layout, reading.rows)
        check_key(function, layout, table)
        rows = as_rows(table)
        self._runtime.engine.expect(function.relation, rows)
        self._runtime.engine.insert_many(function.relation, rows)
        return len(rows), "" if layout.followed else self._last.keep(name, table)

    def take(
        self, name: str, source: OpenSource, reading: Reading, *, confirmed: bool = False
    ) -> Taken:
        record = self.records.get(name)
        if record.revision != reading.revision:
            return Taken(name, record.progress.state, is_stale=True)
        now = self._now()
        failed = record.progress.attempts > 0 or record.progress.state == State.SUSPECT
        if reading.rows is None:
            self._keep(record, State.UNCHANGED, now, read=now)
            return Taken(name, State.UNCHANGED, recovered=failed)
        function = self.mirror(name)
        assert function.relation is not None
        new = mirror_rows(function, record.layout, reading.rows)
        before = self._last.find(name, record.progress.token)
        if before is None:
            stored = self._runtime.engine.matching(function.relation, {})
            before = as_table(stored, function.relation.columns)
        kept = _of_parts_set_aside(function.relation, record.layout, reading, before, new)
        after = pa.concat_tables([new, kept])
        if not confirmed:
            doubt(name, before.num_rows, after.num_rows, source)
        gone, come = difference(before, after)
        check_key(function, record.layout, new, come)
        self.apply(function.relation, gone, come)
        changed = gone.num_rows + come.num_rows > 0
        if changed:
            self.board.note(name)
        self._keep(
            record,
            State.OK if changed else State.UNCHANGED,
            now,
            read=now,
            position=reading.position,
            rows=after.num_rows,
            set_aside=self.shown(reading.set_aside),
            changed=now if changed else record.progress.changed,
            offered=offered(record.layout, reading, source),
            why=set_aside_text(self.shown(reading.set_aside)),
            what_to_do=MEND if reading.set_aside else "",
            token="" if record.layout.followed else self._last.keep(name, after),
        )
        told = _newly_set_aside(record, self.shown(reading.set_aside))
        return Taken(
            name,
            State.OK,
            come.num_rows,
            gone.num_rows,
            told,
            recovered=failed,
            rows=after.num_rows,
            lag=lag(reading.at, self.now) if changed else None,
            due=self.next_due(record, now),
        )

    def apply(self, relation: Relation, gone: pa.Table, come: pa.Table) -> None:
        engine = self._runtime.engine
        old, new = as_rows(gone), as_rows(come)
        engine.expect(relation, [*old, *new])
        engine.remove_many(relation, old)
        engine.insert_many(relation, new)

    def _keep(self, record: SourceRecord, state: State, now: int, **more: object) -> None:
        """A paused source that was refreshed is still paused."""
        state = State.PAUSED if record.is_paused else state
        position = more.pop("position", record.position)
        if "set_aside" not in more:  # as it was: what is set aside still is
            aside = record.progress.set_aside
            more |= {"why": set_aside_text(aside), "what_to_do": MEND if aside else ""}
        progress = replace(record.progress, **more)  # type: ignore[arg-type]
        self.keep(
            replace(record, position=position, revision=record.revision + 1),  # type: ignore[arg-type]
            replace(in_state(progress, state, now), attempts=0),
            due=self.next_due(record, now),
        )

    def keep(self, record: SourceRecord, progress: Progress, due: int | None) -> None:
        self.records.write(replace(record, progress=progress, due=due))
        if (progress.state, progress.why) != (record.progress.state, record.progress.why):
            self.board.note_state(record.name, progress)

    def next_due(self, record: SourceRecord, now: int) -> int | None:
        if record.is_paused or record.definition.alone:
            return None
        if record.layout.followed:
            return FOLLOWED
        return now + int(record.definition.every * 1_000_000)

    def shown(self, parts: Mapping[str, str]) -> dict[str, str]:
        """Parts that were set aside, without secrets."""
        redacted = self._runtime.secrets.redacted
        return {redacted(part): redacted(why) for part, why in parts.items()}

    def _now(self) -> int:
        return stored_moment(self._runtime.engine.connection.now())

    @property
    def now(self) -> datetime.datetime:
        return self._runtime.engine.connection.now()


def lag(at: datetime.datetime | None, now: datetime.datetime) -> float | None:
    """Seconds since a moment that the source told."""
    if at is None:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)
    return max(0.0, (now - at).total_seconds())


def set_aside_text(parts: Mapping[str, str]) -> str:
    """The parts that could not be read, in a few words.

    >>> set_aside_text({"2.csv": "no number", "1.csv": "empty"})
    'set aside: 1.csv, 2.csv'
    """
    if not parts:
        return ""
    names = sorted(parts)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"set aside: {', '.join(names[:MOST_NAMED])}{more}"


def _newly_set_aside(record: SourceRecord, parts: Mapping[str, str]) -> str:
    """What is told once: parts that could be read before, or fail for another reason."""
    known = record.progress.set_aside
    new = {part: why for part, why in parts.items() if known.get(part) != why}
    for part, why in list(new.items())[:MOST_NAMED]:
        logger.warning("%s of the source %s is set aside: %s", part, record.name, why)
    return set_aside_text(new)


def in_state(progress: Progress, state: State, now: int) -> Progress:
    """`ok` and `unchanged` are one state as far as its beginning is concerned."""
    good = (State.OK, State.UNCHANGED)
    same = progress.state == state or (progress.state in good and state in good)
    return replace(progress, state=state, since=progress.since if same else now)


def doubt(name: str, before: int, after: int, source: OpenSource) -> None:
    """A reading that lost too many rows may be half a page."""
    lost, share = before - after, float(source.shared["suspect_share"])
    if source.is_whole or lost < LEAST_DOUBTED or lost <= share * before:
        return
    raise SourceFault(
        f"{lost:,} of {before:,} rows are missing from this reading of {name}",
        code="source-suspect",
        hint=f"if they are really gone: REFRESH SOURCE {name} CONFIRM; until then the rows stay. "
        "The option suspect_share says how large a share may vanish",
    )


def _of_parts_set_aside(
    relation: Relation, layout: Layout, reading: Reading, before: pa.Table, new: pa.Table
) -> pa.Table:
    """The rows that stay although they were not read, because their part could not be."""
    if not reading.set_aside:
        return before.slice(0, 0)
    called = dict(zip(layout.outside, layout.names, strict=True)).get(reading.part_column or "")
    if called is not None:
        place = [each.name for each in relation.columns].index(called)
        parts = pa.array(list(reading.set_aside), pa.string())
        return before.filter(pc.is_in(before.column(place), parts))
    if layout.key:  # nobody knows whose rows are missing: only what was read again is replaced
        width = list(range(len(layout.key)))
        numbers = row_numbers(pa.concat_tables([new.select(width), before.select(width)]))
        read_again = pc.is_in(numbers[new.num_rows :], numbers[: new.num_rows])
        return before.filter(pc.invert(read_again))
    return difference(before, new)[0]


def offered(layout: Layout, reading: Reading, source: OpenSource) -> tuple[str, ...]:
    """The columns of the source that the mirror could have, and has not."""
    if reading.schema is None or source.shared["take"]:
        return ()
    known = {each.lower() for each in layout.outside}
    return tuple(n for n in reading.schema.columns.names if n.lower() not in known)
