"""A table of PostgreSQL that is read again, and what a query asks of it.

With `changed_when`, a query of the user's own, nothing is read while its answer stays the same. The
answer belongs to the same moment as the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.copied_rows import copy_batches
from harken.sources.kinds.postgresql.postgres_connection import Connection, Place, told
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, TableColumn, read_table
from harken.sources.kinds.postgresql.pushed_conditions import asked, ordered
from harken.sources.outside import (
    Condition,
    Order,
    OutsideSchema,
    Position,
    Question,
    Snapshot,
    until_unique,
)

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
LONGEST_ANSWER = 10_000
"""Characters of the answer of `changed_when`, which is stored."""


class OpenRows(Iterator[pa.RecordBatch]):
    """Batches that come on a connection of their own, which is closed after the last, or by
    `close`."""

    def __init__(self, connection: Connection, batches: Iterator[pa.RecordBatch]) -> None:
        self._connection, self._batches = connection, batches

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except BaseException:  # also at the end
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __del__(self) -> None:
        self.close()


class PolledTable:
    """Polled, and Answering. Rows come on connections of their own, so that several questions can
    be read at once."""

    def __init__(
        self, place: Place, name: str, changed_when: str | None, *, refuse_odd: bool
    ) -> None:
        self._place, self._name, self._changed_when = place, name, changed_when
        self._refuse_odd = refuse_odd
        self._idle: Connection | None = None

    def schema(self) -> OutsideSchema:
        connection = self._take()
        table = self._table(connection)
        self._idle = connection
        return table.schema_of(table.columns)

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        connection = self._take()
        try:
            with told(self._place):
                connection.execute(BEGIN)
            position = self._answer(connection)
            if position is not None and position == since:
                connection.execute("ROLLBACK")
                self._idle = connection
                return None
            table = self._table(connection)
        except BaseException:
            connection.close()
            raise
        return Snapshot(
            table.schema_of(table.columns),
            self._rows(connection, rows_of(table, table.columns), table.columns),
            position,
            expected_rows=table.estimate if table.estimate >= 0 else None,
        )

    def question(
        self,
        columns: Sequence[str],
        conditions: Sequence[Condition],
        limit: int | None = None,
        order: Sequence[Order] = (),
    ) -> Question:
        connection = self._take()
        table = self._table(connection)
        encoding = connection.info.parameter_status("server_encoding") or ""
        self._idle = connection
        known = {each.name: each for each in table.columns}
        missing = [name for name in columns if name not in known]
        if missing:
            raise SourceFault(f"{table.title} has no column {missing[0]}", code="source-changed")
        wanted = tuple(known[name] for name in columns)
        where, pushed, is_exact = asked(conditions, known, encoding)
        query: sql.Composed = rows_of(table, wanted)
        if where is not None:
            query = sql.SQL("{} WHERE {}").format(query, where)
        by = ordered(until_unique(order, table.key), known, encoding)
        limited = limit is not None and is_exact and len(pushed) == len(conditions)
        limited = limited and by is not None
        if limited and order:
            query = sql.SQL("{} ORDER BY {}").format(query, by)
        if limited:
            query = sql.SQL("{} LIMIT {}").format(query, sql.Literal(limit))
        return Question(
            query.as_string(None),
            pushed,
            limited,
            lambda: self._rows(self._take(), query, wanted),
        )

    def close(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None

    def _take(self) -> Connection:
        """The idle connection, or a new one. It is put back when nothing is under way on it."""
        connection, self._idle = self._idle, None
        if connection is not None and not connection.closed:
            return connection
        return self._place.connect()

    def _table(self, connection: Connection) -> OutsideTable:
        try:
            with told(self._place):
                return readable(read_table(connection, self._name))
        except BaseException:
            connection.close()
            raise

    def _answer(self, connection: Connection) -> Position | None:
        if self._changed_when is None:
            return None
        with told(self._place):
            # Prepared, so that it is one statement.
            cursor = connection.execute(self._changed_when.encode(), prepare=True)
            rows = cursor.fetchmany(2) if cursor.description else []
        text = json.dumps([[str(value) for value in row] for row in rows])
        if len(rows) != 1 or len(text) > LONGEST_ANSWER:
            raise SourceFault(
                "the query changed_when does not give one short row",
                code="bad-option",
                hint="for example: SELECT max(changed_at), count(*) FROM orders",
            )
        return text

    def _rows(
        self, connection: Connection, query: sql.Composable, columns: Sequence[TableColumn]
    ) -> OpenRows:
        batches = copy_batches(self._place, connection, query, columns, refuse_odd=self._refuse_odd)
        return OpenRows(connection, batches)


def readable(table: OutsideTable) -> OutsideTable:
    if not table.is_readable:
        raise SourceFault(
            f"the user of the source may not read {table.title}",
            code="not-allowed",
            hint=f"GRANT SELECT ON {table.title} TO ...",
        )
    return table


def rows_of(table: OutsideTable, columns: Sequence[TableColumn]) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier(each.name) for each in columns)
    return sql.SQL("SELECT {} FROM {}").format(names, table.place)
