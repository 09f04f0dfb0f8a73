"""CREATE, ALTER, DROP, REFRESH, DESCRIBE and SHOW of outside sources.

The mirror of a source is a stored function like a table, whose text is CREATE SOURCE. Reading a
source takes as long as the network takes, so it comes before the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from harken.database.audit_log import note_change
from harken.database.function_tables import SqlTables, is_asked, is_table, table_of
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.database.transactions import Transactions
from harken.errors import HarkenError, NameFault
from harken.intake.column_changes import ColumnChange
from harken.intake.lake_inputs import described, lake_input, lake_inputs, refuse_input
from harken.intake.session_sources import SessionSources
from harken.intake.source_needs import Need
from harken.intake.source_options import checked, refuse_passwords
from harken.intake.source_records import (
    FOLLOW_EVERY,
    FOLLOWED,
    SourceDefinition,
    SourceRecord,
    read_moment,
    stored_moment,
)
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement
from harken.lang.sql.source_statements import SourceWords, every_text
from harken.lang.sql.type_names import type_name
from harken.lang.sql.word_reader import quoted
from harken.sources.kinds import outside_kind
from harken.statements.declaring import check_name
from harken.statements.dependents import recheck
from harken.statements.records import is_mirror
from harken.statements.redefinition import together
from harken.statements.sql.altered_sources import (
    altered,
    may_become,
    refuse_fixed,
    with_definition,
    without_take,
)
from harken.statements.sql.asked_key_values import AskedKeys
from harken.statements.sql.asked_needs import ask, key_queries, needs_of
from harken.statements.sql.definition_words import definition_of
from harken.statements.sql.delta_inputs import DELTA, create_input
from harken.statements.sql.dropping import drop_function
from harken.statements.sql.mirror_alteration import column_change, remake_mirror, with_text
from harken.statements.sql.view_clauses import kind_of
from harken.statements.sql.zone_lines import zone_lines
from harken.values.types import INTEGER, TEXT, TIMESTAMP

if TYPE_CHECKING:
    from harken.intake.prepared_source import Prepared
    from harken.intake.taking_in import Taken

LISTED = (
    ("name", TEXT),
    ("kind", TEXT),
    ("state", TEXT),
    ("since", TIMESTAMP),
    ("rows", INTEGER),
    ("read_at", TIMESTAMP),
    ("changed_at", TIMESTAMP),
    ("next_try", TIMESTAMP),
    ("why", TEXT),
    ("capture", TEXT),
)


class SourceDefinitions:
    """The statements of one session about sources."""

    def __init__(
        self, runtime: Runtime, transactions: Transactions, sources: SessionSources
    ) -> None:
        self._runtime, self._transactions, self._sources = runtime, transactions, sources
        self._epoch, self._has_asked = -1, False
        self._keys = AskedKeys(runtime)

    def run(self, words: SourceWords) -> None:
        match words.verb:
            case "create":
                self.create(words)
            case "alter":
                self.alter(words)
            case "drop":
                self.drop(words)
            case "refresh":
                self.refresh(words.name, confirmed=words.confirmed)
            case "show":
                self._transactions.look()
                self._show()
            case "describe":
                self._transactions.look()
                self._describe(words.name)

    # --- changes ---

    def create(self, words: SourceWords) -> bool:
        """False if it is there already, and may be."""
        self._transactions.look()
        check_name(words.name, None)
        known = SqlTables(self._runtime.catalog).function(words.name)
        if known is not None and words.alters and is_mirror(known):
            self._become(self._sources.records.get(words.name), definition_of(words))
            return False
        if known is not None:
            if words.if_exists and is_mirror(known):
                return False
            what = "source" if is_mirror(known) else kind_of(known)
            raise NameFault(
                f"there is already a {what} {words.name}",
                code="exists",
                hint=f"DROP {what.upper()} {words.name} first, or choose another name",
            )
        if words.kind == DELTA:
            with self._changing():
                create_input(self._runtime, words)
                self._runtime.reactions.synchronise()
            return True
        self._identify()
        prepared = self._sources.work.prepare(definition_of(words))
        try:
            with self._changing():
                self._install(prepared)
                note_change(self._runtime, "create source", words.name, words.kind)
        except BaseException:
            self._sources.work.undo(prepared)
            raise
        return True

    def _become(self, record: SourceRecord, wanted: SourceDefinition) -> None:
        """CREATE OR ALTER of a source that is there: altered, if ALTER SOURCE could do that, and
        otherwise rebuilt in its place."""
        known = record.definition
        if wanted.text == known.text:
            return
        take = wanted.options.get("take")
        plain = replace(wanted, options=without_take(wanted), poll=None, text="")
        if replace(known, options=without_take(known), poll=None, text="") != plain:
            if not may_become(record, wanted):
                self._rebuild(record, wanted)
                return
            self._check_options(wanted)
        if take != known.options.get("take"):
            words = SourceWords(verb="alter", name=record.name, options={"take": take})
            change = column_change(record, words)
            assert change is not None
            self._change_columns(record, change)
        with self._changing():
            self._redefine(record.name, lambda each: with_definition(each, wanted))

    def _rebuild(self, record: SourceRecord, wanted: SourceDefinition) -> None:
        name = record.name
        with self._changing(), self._in_one_piece():
            function = SqlTables(self._runtime.catalog).function(name)
            before = None if function is None else function.oid
            if function is not None:
                drop_function(self._runtime, function, False, None)
            self._sources.work.forget(name)
            self._sources.work.open.close(name)
            prepared = self._sources.work.prepare(wanted)
            try:
                self._install(prepared)
            except BaseException:
                self._sources.work.undo(prepared)
                raise
            made = SqlTables(self._runtime.catalog).function(name)
            if before is not None and made is not None and made.oid is not None:
                self._runtime.permissions.move(before, made.oid)
        if not self._transactions.active:
            self._sources.work.leftovers.remove()

    def _in_one_piece(self) -> AbstractContextManager[None]:
        """What reads a source is compiled again when it is there again."""
        return together(self._runtime) if self._runtime.redefined is None else nullcontext()

    def _redefine(self, name: str, change: Callable[[SourceRecord], SourceRecord]) -> None:
        """In a transaction."""
        self._sources.work.change(name, change)
        function = SqlTables(self._runtime.catalog).function(name)
        text = self._sources.records.get(name).definition.text
        if function is not None and function.text != text:
            self._runtime.catalog.revise_function(replace(function, text=text), Dependencies())

    def _identify(self) -> None:
        """What is installed in servers is named after this database, before there is a source."""
        if not self._sources.work.is_identified:
            with self._changing():
                self._sources.work.identify()

    def _install(self, prepared: Prepared) -> None:
        runtime, name = self._runtime, prepared.definition.name
        runtime.reactions.before_schema_change({name})
        self._sources.work.intake.board.declare()
        definition = prepared.definition
        if definition.alone:
            made = runtime.catalog.add_function(prepared.function, Dependencies())
            ask(runtime, made)
        else:
            made = store(
                runtime, prepared.function, in_lake=self._is_large(prepared), resident=True
            )
        self._sources.work.fill(prepared)
        recheck(runtime, name, skip=made.id)
        runtime.reactions.synchronise()

    def _is_large(self, prepared: Prepared) -> bool:
        """Does its mirror go to the lake?"""
        most = self._runtime.settings["source_lake_rows"]
        rows = prepared.reading.rows
        return prepared.definition.in_lake or bool(most and rows is not None and len(rows) > most)

    def drop(self, words: SourceWords) -> None:
        self._transactions.look()
        record = self._sources.records.find(words.name)
        if record is None:
            if words.if_exists and lake_input(self._runtime, words.name) is None:
                return
            if not self._drop_input(words):
                self._known(words.name)
            return
        with self._changing():
            function = SqlTables(self._runtime.catalog).function(words.name)
            if function is not None:
                drop_function(self._runtime, function, words.cascade, None)
            self._sources.work.forget(words.name)
            note_change(self._runtime, "drop source", words.name)
            self._runtime.reactions.synchronise()
        if not self._transactions.active:
            self._sources.work.leftovers.remove()
            self._sources.work.open.close(words.name)

    def _drop_input(self, words: SourceWords) -> bool:
        """An input of the lake is a table to SQL; False for one that SQL does not drop."""
        function = SqlTables(self._runtime.catalog).function(words.name)
        if function is None or not is_table(function):
            return False
        if lake_input(self._runtime, words.name) is None:
            return False
        with self._changing():
            drop_function(self._runtime, function, words.cascade, None)
            self._runtime.reactions.synchronise()
        return True

    def _known(self, name: str) -> SourceRecord:
        if self._sources.records.find(name) is None:
            refuse_input(self._runtime, name)
        return self._sources.records.get(name)

    def alter(self, words: SourceWords) -> None:
        self._transactions.look()
        record = self._known(words.name)
        if words.options:
            refuse_fixed(record, words)
            self._check_options(altered(record, words).definition)
        change = column_change(record, words)
        if change is not None:
            self._change_columns(record, change)
            return
        with self._changing():
            note_change(self._runtime, "alter source", words.name)
            self._redefine(words.name, lambda record: altered(record, words))

    def _change_columns(self, record: SourceRecord, change: ColumnChange) -> None:
        work = self._sources.work
        prepared = with_text(work.columns.prepare(record, change))
        if work.open.is_open(record.name) and not record.layout.followed:
            work.open.close(record.name)
        try:
            with self._changing():
                remake_mirror(self._runtime, prepared, lambda: work.refill(prepared))
        except BaseException:
            prepared.source.close()
            raise

    def _check_options(self, definition: SourceDefinition) -> None:
        kind = outside_kind(definition.kind)
        refuse_passwords(kind, definition.options)
        checked(kind, definition.options, self._runtime.secrets.resolve)

    def refresh(self, name: str, *, confirmed: bool = False) -> Taken:
        self._transactions.look()
        self._known(name)
        try:
            return self._sources.work.refresh(name, confirmed=confirmed)
        except HarkenError as error:
            error.message = self._runtime.secrets.redacted(error.message)
            raise

    def _changing(self) -> AbstractContextManager[None]:
        if self._transactions.active:
            return self._transactions.statement()
        return self._transactions.block()

    # --- sources without a mirror ---

    @property
    def failures(self) -> Mapping[str, str]:
        """When and why sources that are asked could not be read."""
        return self._sources.work.asked.failures if self.has_asked else {}

    @property
    def has_asked(self) -> bool:
        """Are there sources that queries ask?"""
        epoch = self._runtime.catalog.epoch
        if epoch != self._epoch:
            self._epoch = epoch
            self._has_asked = any(map(is_asked, self._runtime.catalog.functions()))
        return self._has_asked

    @contextmanager
    def asking(self, statement: Statement) -> Iterator[None]:
        """A statement that may read them: what it needs is asked for."""
        if not self.has_asked:
            yield
            return
        needs = needs_of(statement, self._runtime)
        with (
            self._with_keys(statement, needs),
            self._sources.work.asked.statement(needs) as answers,
        ):
            yield
            if statement.explained:
                found = [(line,) for each in answers for line in each.lines()]
                if found:
                    self._runtime.emit("rows", ("sources",), found, (TEXT,))

    @contextmanager
    def _with_keys(self, statement: Statement, needs: dict[str, Need]) -> Iterator[None]:
        """What a query joins a source with is read before, in the same state of the database."""
        is_query = isinstance(statement.node, exp.Query)
        queries = dict(key_queries(statement, self._runtime)) if needs and is_query else {}
        if not queries:
            yield
            return
        self._transactions.look()
        with self._runtime.engine.connection.snapshot():
            for name, each in queries.items():
                needs[name] = self._keys.added(needs[name], each)
            yield

    # --- answers ---

    def _show(self) -> None:
        rows = [self._row(each) for each in self._sources.records.all()]
        rows = [each for each in [*rows, *self._inputs()] if self._may_see(each[0])]
        names = tuple(name for name, _ in LISTED)
        self._runtime.emit("rows", names, rows, tuple(type_ for _, type_ in LISTED))

    def _may_see(self, name: str) -> bool:
        permissions = self._runtime.permissions
        function = SqlTables(self._runtime.catalog).function(name)
        return permissions.user is None or (function is not None and permissions.may_see(function))

    def _inputs(self) -> list[tuple[Any, ...]]:
        """The inputs in the lake, which steps read."""
        return [
            (
                *(each.name, each.kind, str(each.state), None, each.rows, None),
                None if each.changed is None else read_moment(int(each.changed * 1_000_000)),
                *(None, each.why or "read by steps", "versions"),
            )
            for each in lake_inputs(self._runtime)
        ]

    def _row(self, record: SourceRecord) -> tuple[Any, ...]:
        progress = record.progress
        return (
            record.name,
            record.definition.kind,
            record.state_at(self._now),
            _moment(progress.since),
            progress.rows,
            _moment(progress.read),
            _moment(progress.changed),
            _moment(record.due or None),
            progress.why,
            "asked" if record.definition.alone else record.layout.capture,
        )

    @property
    def _now(self) -> int:
        return stored_moment(self._runtime.engine.connection.now())

    def _describe(self, name: str) -> None:
        rows = [(title, str(value)) for title, value in self.described(name).items()]
        self._runtime.emit("rows", ("property", "value"), rows, (TEXT, TEXT))

    def described(self, name: str) -> Mapping[str, Any]:
        """What DESCRIBE SOURCE shows, of a source or an input of the lake."""
        found = None
        if self._sources.records.find(name) is None:
            found = lake_input(self._runtime, name)
        if found is None:
            return self.details(self._sources.records.get(name))
        function = SqlTables(self._runtime.catalog).function(found.name)
        return dict(described(found, ", ".join(_columns(function))))

    def details(self, record: SourceRecord) -> Mapping[str, Any]:
        """What DESCRIBE SOURCE shows."""
        definition, layout, progress = record.definition, record.layout, record.progress
        function = SqlTables(self._runtime.catalog).function(record.name)
        found = {
            "name": record.name,
            "kind": definition.kind,
            "statement": definition.text,
            "columns": ", ".join(_columns(function)),
            "key": ", ".join(layout.key) or "none: equal rows are counted",
            "capture": f"{layout.capture}{': ' if layout.why else ''}{layout.why}",
            "read": _how_often(record),
            "server": layout.server or "",
            "position": record.position if layout.followed and record.position else "",
            "state": record.state_at(self._now),
            "since": _shown(progress.since),
            "rows": f"{progress.rows:,}",
            "last read": _shown(progress.read),
            "changed": _shown(progress.changed),
            "next try": "" if record.due in (FOLLOWED, None) else _shown(record.due),
        }
        if function is not None and is_asked(function):
            found["mirror"] = "none: queries read the source"
            if record.name in self.failures:
                found["could not be read"] = self.failures[record.name]
        elif function is not None and function.relation is not None:
            in_lake = self._runtime.engine.is_in_lake(function.relation)
            found["mirror"] = "in the lake" if in_lake else "in the database file"
        if not definition.alone:
            found |= zone_lines(self._sources.work.zones.of(record))
        if progress.why:
            found["why"] = progress.why
            found["what to do"] = progress.what_to_do
        found = {title: value for title, value in found.items() if value != ""}
        for part, why in progress.set_aside.items():
            found[f"set aside: {part}"] = why
        if progress.offered:
            offered = ", ".join(map(quoted, (each.lower() for each in progress.offered)))
            found["new columns"] = (
                f"{', '.join(progress.offered)}: to have them, ALTER SOURCE {record.name} ADD "
                f"COLUMN {offered}"
            )
        return found


def _how_often(record: SourceRecord) -> str:
    definition = record.definition
    if definition.alone:
        return "by each query"
    if record.layout.followed:
        every = FOLLOW_EVERY if definition.poll is None else definition.poll
        return f"its changes are read every {every_text(every).lower()}"
    return f"all of it every {every_text(definition.every).lower()}"


def _columns(function: Function | None) -> list[str]:
    table = None if function is None else table_of(function)
    return [] if table is None else [f"{c.name} {type_name(c.type)}" for c in table.columns]


def _moment(at: int | None) -> Any:
    return None if at is None else read_moment(at)


def _shown(at: int | None) -> str:
    return "never" if at is None else f"{read_moment(at):%Y-%m-%d %H:%M:%S} UTC"
