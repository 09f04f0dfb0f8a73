"""A compiled wave is the body of one trigger: SQLite runs all of it as one prepared statement.

The trigger belongs to an empty temporary view. An INSERT into the view fires it. The body begins
with guards, and an error anywhere rolls back the whole statement (ABORT), so a wave that fails has
no effect.

Changed members of totals, and changed rows of materialised views, are inserted into more such
views. Their triggers apply one row at a time, by its key: for a statement over all changed rows
(`key IN (SELECT ...)`) SQLite may prefer to read the whole table. The changes that consumers read
stay in a scratch table until the next wave.

Temporary names are written without a schema, because a trigger must not name one; SQLite searches
the temporary tables first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import apsw

from harken.calculus.states import delta
from harken.engines import protocol
from harken.engines.protocol import (
    Apply,
    Clear,
    Fill,
    Follow,
    MemberChanges,
    Read,
    Row,
    WaveStep,
)
from harken.engines.sqlite import layout
from harken.engines.sqlite.change_capture import CLEAR_MARKS
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.faults import RAISED, fault
from harken.engines.sqlite.kept import LISTED, VALID, KeptTables, ListedInFile
from harken.engines.sqlite.kept_totals import TotalsTable
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.selectable import selectable
from harken.engines.sqlite.sql_expressions import literal_text, quote
from harken.errors import HarkenError, LimitFault
from harken.ir.relations import Relation

_numbers = count(1)

ABORT = "harken: this wave is not for the compiled program"


class NotCompiled(Exception):
    """A step that cannot be compiled."""


class Waves:
    def __init__(self, connection: Connection, resident: type[protocol.Query]) -> None:
        """Only queries of the class `resident` are a single SELECT that SQLite can run alone."""
        self._connection = connection
        self._resident = resident

    def compile(
        self, steps: Sequence[WaveStep], changed: Sequence[protocol.CapturedDelta], most: int
    ) -> CompiledWave | None:
        wave = CompiledWave(self._connection, self._resident, f"wave {next(_numbers)}")
        try:
            wave.make(steps, changed, most)
        except (NotCompiled, HarkenError):
            wave.drop()
            return None
        return wave


@dataclass(slots=True)
class CompiledWave:
    connection: Connection
    resident: type[protocol.Query]
    name: str
    size: int = 0
    _tables: list[str] = field(default_factory=list)
    _views: list[str] = field(default_factory=list)
    _read: dict[str, str] = field(default_factory=dict)
    """The statement that reads the change of each view, by its name."""
    _versions: int | None = None
    """SQLite's data version for which the state kept in this session is valid."""
    _insert: str = ""
    _listed: list[ListedInFile] = field(default_factory=list)
    """The kept state in the file that it reads."""

    # --- making it ---------------------------------------------------------------------------

    def make(
        self, steps: Sequence[WaveStep], changed: Sequence[protocol.CapturedDelta], most: int
    ) -> None:
        guards = [_size_guard([_delta(each) for each in changed], most)]
        kept = [cast(KeptTables, each.kept) for each in steps if isinstance(each, Follow)]
        if any(not each.in_file for each in kept):
            self._versions = self.connection.data_version()
        self._listed = [e.validity for e in kept if isinstance(e.validity, ListedInFile)]
        guards += _validity_guards(kept, self._versions)
        body = [*guards, *(sql for step in steps for sql in self._body(step))]
        body.append(CLEAR_MARKS.replace("temp.", ""))
        self._make_view(self.name, "NULL AS x", body)
        self._insert = f"INSERT INTO {quote(self.name)} VALUES (1)"

    def _body(self, step: WaveStep) -> Iterator[str]:
        match step:
            case Follow():
                yield from self._follow(step)
            case Fill():
                yield from self._changes(_delta(step.delta), step.change, step.delta.relation)
            case Apply():
                yield from self._apply(step)
            case Read():
                scratch = self._scratch(step.relation)
                yield f"DELETE FROM {scratch}"
                yield from self._changes(scratch, step.change, step.relation)
                self._read[step.name] = f"SELECT * FROM temp.{scratch}"
            case Clear():
                yield from (f"DELETE FROM {_delta(each)}" for each in step.deltas)

    def _follow(self, step: Follow) -> Iterator[str]:
        kept = step.kept
        if not isinstance(kept, TotalsTable):
            raise NotCompiled
        rows = self._row_trigger_view(kept.gathered, kept.taking_in(_delta(step.delta), ABORT))
        for query, weight in step.change:
            yield kept.gathering(query, weight, self._select(query), rows)
        yield kept.settling(_delta(step.delta))

    def _apply(self, step: Apply) -> Iterator[str]:
        """Apply a change to a table. A row with a weight other than 1 or -1 aborts, and the
        interpreter handles it."""
        relation = step.relation
        names = [f"c{i}" for i in range(relation.arity)]
        columns, new = ", ".join(names), ", ".join(f"NEW.{each}" for each in names)
        table = quote(table_name(relation))
        statements = [
            f"SELECT RAISE(ABORT, '{ABORT}') WHERE NEW.w NOT IN (-1, 1)",
            f"DELETE FROM {table} WHERE NEW.w < 0 AND {_the_row(relation)}",
            f"INSERT INTO {table} ({columns}) SELECT {new} WHERE NEW.w > 0",
        ]
        if step.noted is not None:
            noted, weight = table_of(step.noted), f"c{relation.arity}"
            statements.append(
                f"INSERT INTO {_delta(noted)} ({columns}, {weight}) SELECT {new}, NEW.w WHERE 1 "
                f"ON CONFLICT ({noted.key}) DO UPDATE SET {weight} = {weight} + excluded.{weight}"
            )
        rows = self._row_trigger_view([*names, "w"], statements)
        yield from self._changes(rows, step.change, relation)

    def _row_trigger_view(self, columns: Sequence[str], body: Sequence[str]) -> str:
        """Create a view whose trigger runs the body for each inserted row."""
        name = f"{self.name} part {len(self._views)}"
        shown = ", ".join(f"NULL AS {each}" for each in columns)
        self._make_view(name, shown, body)
        return quote(name)

    def _make_view(self, name: str, shown: str, body: Sequence[str]) -> None:
        quoted, run = quote(name), self.connection.run
        run(f"CREATE TEMP VIEW {quoted} AS SELECT {shown}")
        self._views.append(name)
        text = "; ".join(body)
        run(f"CREATE TEMP TRIGGER {quoted} INSTEAD OF INSERT ON {quoted} BEGIN {text}; END")
        self.size += len(body)

    def _changes(self, table: str, change: MemberChanges, relation: Relation) -> Iterator[str]:
        for query, weight in change:
            yield _into(table, self._select(query), weight, relation)

    def _select(self, query: protocol.Query) -> str:
        """The statement of a query that is one SELECT without parameters."""
        found = selectable(query)
        if type(query) is not self.resident or found.slots or found.fixpoints or found.fetch:
            raise NotCompiled
        return query.sql

    def _scratch(self, relation: Relation) -> str:
        if relation.arity == 0:
            raise NotCompiled
        name = f"{self.name} change {len(self._tables)}"
        columns = layout.typed_columns(relation)
        self.connection.run(f"CREATE TEMP TABLE {quote(name)} ({columns}, w INTEGER NOT NULL)")
        self._tables.append(name)
        return quote(name)

    # --- running it --------------------------------------------------------------------------

    def run(self) -> protocol.WaveChanges | None:
        connection = self.connection
        if self._versions is not None and connection.data_version() != self._versions:
            return None
        if any(each.is_revoked for each in self._listed):
            return None
        try:
            connection.execute(self._insert)
        except RAISED as error:
            # Whatever it was, the interpreter meets it again, unless SQLite ended the transaction.
            if not connection.in_transaction or isinstance(error, apsw.InterruptError):
                raise fault(error) from error
            return None
        except LimitFault:
            raise
        except HarkenError:
            if not connection.in_transaction:
                raise
            return None
        return {name: _signed(connection.rows(sql)) for name, sql in self._read.items()}

    def drop(self) -> None:
        run = self.connection.run
        for name in self._views:
            run(f"DROP VIEW IF EXISTS temp.{quote(name)}")  # with its trigger
        for name in self._tables:
            run(f"DROP TABLE IF EXISTS temp.{quote(name)}")


def _signed(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The gains and losses, each row as often as its weight says."""
    plus: list[Row] = []
    minus: list[Row] = []
    for row in rows:
        weight = row[-1]
        if weight > 0:
            plus += [row[:-1]] * weight
        else:
            minus += [row[:-1]] * -weight
    return plus, minus


# --- statements ------------------------------------------------------------------------------


def _delta(given: protocol.Delta) -> str:
    return quote(delta(given.relation).id)


def _size_guard(changed: Sequence[str], most: int) -> str:
    sizes = (f"(SELECT count(*) FROM (SELECT 1 FROM {each} LIMIT {most}))" for each in changed)
    return f"SELECT RAISE(ABORT, '{ABORT}') WHERE {' + '.join(sizes)} >= {most}"


def _validity_guards(kept: Sequence[KeptTables], version: int | None) -> Iterator[str]:
    """Statements that abort unless all kept state is still valid."""
    here = [each.name for each in kept if not each.in_file]
    if here:
        names = ", ".join(map(literal_text, here))
        valid = f"{VALID} WHERE name IN ({names}) AND data_version = {version}"
        yield _count_guard(valid, len(here))
    lists = [each.validity for each in kept if isinstance(each.validity, ListedInFile)]
    if lists:
        rows = ", ".join(f"({literal_text(e.name)}, {literal_text(e.definition)})" for e in lists)
        valid = f"{LISTED} WHERE (name, definition) IN (VALUES {rows})"
        yield _count_guard(valid, len(lists))


def _count_guard(valid: str, wanted: int) -> str:
    return f"SELECT RAISE(ABORT, '{ABORT}') WHERE (SELECT count(*) FROM {valid}) < {wanted}"


def _into(table: str, select: str, weight: int | None, relation: Relation) -> str:
    """The statement that inserts the rows of a query with their weights into a Δ-set."""
    columns = ", ".join(f"c{i}" for i in range(relation.arity))
    if relation.arity == 0:
        raise NotCompiled
    if weight is not None:
        return f"INSERT INTO {table} SELECT {columns}, {weight} FROM ({select})"
    total = f"sum(c{relation.arity})"
    return (
        f"INSERT INTO {table} SELECT {columns}, {total} FROM ({select}) "
        f"GROUP BY {columns} HAVING {total} <> 0"
    )


def _the_row(relation: Relation) -> str:
    """The condition that finds the new row in a table, or one of several equal ones."""
    same = " AND ".join(
        f"c{i} {'IS' if column.type.nullable else '='} NEW.c{i}"
        for i, column in enumerate(relation.columns)
    )
    if relation.is_set:
        return same
    return f"rowid = (SELECT rowid FROM {quote(table_name(relation))} WHERE {same} LIMIT 1)"
