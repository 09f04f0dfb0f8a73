"""Outside sources, as `db.sources`: listed, looked at, refreshed, altered, dropped.

`db.source(...)` makes one. Each does what the statement of SQL does.
"""

from __future__ import annotations

import builtins
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harken.api.internals import Internals
from harken.database.arguments import check_flag, check_names, check_text
from harken.database.exclusive import SessionLock, exclusive
from harken.database.function_tables import SqlTables
from harken.errors import TypeFault
from harken.intake.lake_inputs import LakeInput, lake_input, lake_inputs
from harken.intake.source_records import SourceRecord, read_moment, stored_moment
from harken.lang.sql.source_statements import LONGEST_POLL, SourceWords, text_of
from harken.lang.sql.type_names import type_name
from harken.statements.sql.definition_words import definition_of
from harken.statements.sql.source_definitions import SourceDefinitions

if TYPE_CHECKING:
    from harken.intake.source_work import Checked
    from harken.intake.taking_in import Taken

Every = float | datetime.timedelta | None


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How a source goes. `next_try` is None while it is read by no clock."""

    name: str
    kind: str
    state: str
    since: datetime.datetime
    why: str
    what_to_do: str
    rows: int
    read_at: datetime.datetime | None
    changed_at: datetime.datetime | None
    next_try: datetime.datetime | None
    capture: str
    key: tuple[str, ...]
    set_aside: Mapping[str, str]
    """The parts that could not be read, and why."""
    offered: tuple[str, ...]
    """New columns of the source."""
    statement: str


@dataclass(frozen=True, slots=True)
class SourceColumn:
    name: str
    type: str
    """As SQL calls it."""


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """What a source would be; nothing was installed."""

    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    """As the source itself says."""
    key_candidates: tuple[tuple[str, ...], ...]
    """Columns that identify the rows that were read."""
    rows: builtins.list[tuple[Any, ...]]
    """The first ones."""
    count: int
    capture: str
    why: str
    set_aside: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a reading did: the rows inserted and deleted in the mirror, and the state since."""

    name: str
    state: str
    plus: int
    minus: int
    why: str
    recovered: bool
    rows: int | None = None
    """In the mirror, since then."""
    lag: float | None = None
    """Seconds from the change there to this one here, if the source says when it changed."""
    next_try: datetime.datetime | None = None
    """When it is read next; None if by no clock."""


class Sources:
    """The outside sources of a session: `db.sources`."""

    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock
        self._sources = internals.sources
        self._statements = SourceDefinitions(
            internals.runtime, internals.transactions, internals.sources
        )

    @exclusive
    def list(self) -> builtins.list[SourceStatus]:
        """The state of each source, in the order of their names. A user sees those that the user
        may read."""
        self._internals.look()
        records = self._sources.records.all()
        found = [self._status(each) for each in records if self._sees(each.name)]
        inputs = lake_inputs(self._internals.runtime)
        return found + [self._status_of_input(each) for each in inputs if self._sees(each.name)]

    def _sees(self, name: str) -> bool:
        runtime = self._internals.runtime
        if runtime.permissions.user is None:
            return True
        function = SqlTables(runtime.catalog).function(name)
        return function is not None and runtime.permissions.may_see(function)

    @exclusive
    def news(self) -> builtins.list[Refreshed]:
        """What the readings by the clock did since the last call, oldest first."""
        found = [_refreshed(each) for each in self._sources.news]
        self._sources.news.clear()
        return found

    @exclusive
    def describe(self, name: str) -> Mapping[str, Any]:
        """What DESCRIBE SOURCE shows."""
        self._internals.look()
        return self._statements.described(_name(name))

    @exclusive
    def create(
        self,
        /,
        name: str,
        kind: str,
        options: Mapping[str, Any] | None = None,
        *,
        key: Sequence[str] | str | None = None,
        capture: str | None = None,
        every: Every = None,
        mirror: bool = True,
        in_lake: bool = False,
        **more: Any,
    ) -> SourceStatus:
        """Make outside data a read-only relation: CREATE SOURCE. The options of the kind are a
        mapping, or given by name: `db.source("weather", "html", url=..., key="station")`.

        `every` is how often a source is read that is polled, in seconds. With `mirror=False`
        nothing is stored, and the source is asked when a query reads it.
        """
        self._internals.check_open()
        words = source_words(
            name,
            kind,
            options,
            key=key,
            capture=capture,
            every=every,
            mirror=mirror,
            in_lake=in_lake,
            more=more,
        )
        self._statements.create(words)
        record = self._sources.records.find(words.name)
        if record is not None:
            return self._status(record)
        made = lake_input(self._internals.runtime, words.name)
        assert made is not None
        return self._status_of_input(made)

    @exclusive
    def check(
        self,
        /,
        kind: str,
        options: Mapping[str, Any] | None = None,
        *,
        capture: str | None = None,
        key: Sequence[str] | None = None,
        **more: Any,
    ) -> SourceCheck:
        """Read a source once, without installing anything: its columns with their types, what could
        be its key, and the first rows. The arguments are those of `db.source`."""
        self._internals.look()
        words = source_words("check", kind, options, key=key, capture=capture, more=more)
        return _checked(self._sources.work.check(definition_of(words)))

    @exclusive
    def scripts(
        self,
        /,
        name: str,
        kind: str,
        options: Mapping[str, Any] | None = None,
        *,
        capture: str | None = None,
        **more: Any,
    ) -> tuple[str, str]:
        """The scripts that create in the server what capture needs there, and drop it. The
        arguments are those of `db.source`."""
        self._internals.look()
        words = source_words(name, kind, options, capture=capture, more=more)
        return self._sources.work.scripts(definition_of(words))

    @exclusive
    def refresh(self, name: str, *, confirm: bool = False) -> Refreshed:
        """Read a source now and take in what changed. With `confirm`, rows that seem to be missing
        are really gone."""
        self._internals.check_open()
        check_flag(confirm, "confirm")
        return _refreshed(self._statements.refresh(_name(name), confirmed=confirm))

    @exclusive
    def alter(
        self, name: str, options: Mapping[str, Any] | None = None, *, every: Every = None
    ) -> None:
        """Set options of a source, None for the default, or how often it is read."""
        self._internals.check_open()
        words = SourceWords(
            verb="alter", name=_name(name), options=_options(options or {}), poll=_seconds(every)
        )
        self._statements.alter(words)

    @exclusive
    def add_columns(self, name: str, *columns: str) -> None:
        """Take in columns that the source has got: ALTER SOURCE ... ADD COLUMN."""
        self._change_columns("add", name, columns)

    @exclusive
    def drop_columns(self, name: str, *columns: str) -> None:
        """Leave columns out, such as those that the source has lost."""
        self._change_columns("drop", name, columns)

    @exclusive
    def renew_columns(self, name: str) -> None:
        """Take the columns as they are there now, with their types."""
        self._change_columns("renew", name, ())

    def _change_columns(
        self, change: Literal["add", "drop", "renew"], name: str, columns: Sequence[str]
    ) -> None:
        self._internals.check_open()
        names = tuple(each.lower() for each in check_names(list(columns), "the columns"))
        if change != "renew" and not names:
            raise TypeFault("there are no columns", code="arity", hint="name at least one")
        words = SourceWords(verb="alter", name=_name(name), change=change, columns=names)
        self._statements.alter(words)

    @exclusive
    def pause(self, name: str) -> None:
        """Read a source no more, until `resume`. Its rows stay."""
        self._internals.check_open()
        self._statements.alter(SourceWords(verb="alter", name=_name(name), paused=True))

    @exclusive
    def resume(self, name: str) -> None:
        self._internals.check_open()
        self._statements.alter(SourceWords(verb="alter", name=_name(name), paused=False))

    @exclusive
    def drop(self, name: str, *, cascade: bool = False) -> None:
        """Drop a source with its rows; with `cascade`, also the views over it."""
        self._internals.check_open()
        check_flag(cascade, "cascade")
        self._statements.drop(SourceWords(verb="drop", name=_name(name), cascade=cascade))

    def _status_of_input(self, each: LakeInput) -> SourceStatus:
        changed = None if each.changed is None else read_moment(int(each.changed * 1_000_000))
        return SourceStatus(
            name=each.name,
            kind=each.kind,
            state=str(each.state),
            since=changed or read_moment(0),
            why=each.why,
            what_to_do=each.what_to_do,
            rows=each.rows,
            read_at=None,
            changed_at=changed,
            next_try=None,
            capture="versions",
            key=each.key,
            set_aside=dict(each.set_aside),
            offered=(),
            statement="",
        )

    def _status(self, record: SourceRecord) -> SourceStatus:
        progress = record.progress
        return SourceStatus(
            name=record.name,
            kind=record.definition.kind,
            state=record.state_at(stored_moment(self._internals.connection.now())),
            since=read_moment(progress.since),
            why=progress.why,
            what_to_do=progress.what_to_do,
            rows=progress.rows,
            read_at=None if progress.read is None else read_moment(progress.read),
            changed_at=None if progress.changed is None else read_moment(progress.changed),
            next_try=None if not record.due else read_moment(record.due),
            capture=record.layout.capture,
            key=record.layout.key,
            set_aside=dict(progress.set_aside),
            offered=progress.offered,
            statement=record.definition.text,
        )


def source_words(
    name: str,
    kind: str,
    options: Mapping[str, Any] | None,
    *,
    key: Sequence[str] | str | None = None,
    capture: str | None = None,
    every: Every = None,
    mirror: bool = True,
    in_lake: bool = False,
    more: Mapping[str, Any],
) -> SourceWords:
    """The statement that the arguments of `db.source` stand for."""
    check_text(kind, "the kind of a source")
    check_flag(mirror, "mirror")
    check_flag(in_lake, "in_lake")
    if capture is not None:
        check_text(capture, "the capture")
    given = {**(options or {}), **more}
    if key is not None:
        key = [key] if isinstance(key, str) else check_names(key, "the key")
    words = SourceWords(
        verb="create",
        name=_name(name),
        kind=kind.lower(),
        options=_options(given),
        key=None if not key else tuple(dict.fromkeys(each.lower() for each in key)),
        capture=None if capture is None else capture.lower(),
        poll=_seconds(every),
        alone=not mirror,
        in_lake=in_lake,
    )
    text_of(words)
    return words


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in given.items():
        check_text(name, "the name of an option")
        if isinstance(value, str):
            check_text(value, f"the option {name}")
        elif isinstance(value, list | tuple):
            value = ", ".join(check_names(value, f"the option {name}"))
        elif isinstance(value, datetime.timedelta):
            value = value.total_seconds()
        elif hasattr(value, "__fspath__"):
            value = str(value)
        elif value is not None and not isinstance(value, bool | int | float):
            raise TypeFault(
                f"the option {name} is a {type(value).__name__}",
                code="type-mismatch",
                hint="give a text, a number, a boolean or a list of texts",
            )
        found[name.lower()] = value
    return found


def _name(name: str) -> str:
    check_text(name, "the name of a source")
    return name.lower()


def _seconds(every: Every) -> float | None:
    if every is None:
        return None
    seconds = every.total_seconds() if isinstance(every, datetime.timedelta) else every
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST_POLL:
        raise TypeFault(
            "every is how often the source is read: a number of seconds, or a timedelta",
            code="bad-value",
        )
    return float(seconds)


def _checked(found: Checked) -> SourceCheck:
    return SourceCheck(
        tuple(SourceColumn(each.name, type_name(each.type)) for each in found.columns),
        found.key,
        found.candidates,
        list(zip(*(each.to_pylist() for each in found.rows.columns), strict=True)),
        found.count,
        found.capture,
        found.why,
        found.set_aside,
    )


def _refreshed(taken: Taken) -> Refreshed:
    return Refreshed(
        taken.name,
        str(taken.state),
        taken.plus,
        taken.minus,
        taken.why,
        taken.recovered,
        taken.rows,
        taken.lag,
        taken.next_try,
    )
