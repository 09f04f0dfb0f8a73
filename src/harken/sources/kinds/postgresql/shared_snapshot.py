"""The rows of several tables at one moment, each read on a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.copied_rows import copy_batches
from harken.sources.kinds.postgresql.polled_table import BEGIN, rows_of
from harken.sources.kinds.postgresql.postgres_connection import Place, told
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, table_of

MOMENT = """
    SELECT pg_export_snapshot(), pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text
"""


class SharedSnapshot:
    """Held until the rows of every table have been read or closed. The tables cannot be altered
    meanwhile. All transactions that it has seen are in the log before `end`."""

    def __init__(self, place: Place, tables: Sequence[OutsideTable], patience: str) -> None:
        self._place = place
        self._unread = len(tables)
        self._connection = place.connect()
        try:
            with told(place):
                self._begin(tables, patience)
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, tables: Sequence[OutsideTable], patience: str) -> None:
        run = self._connection.execute
        run(BEGIN)
        run(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(patience)))
        for table in tables:  # a lock is taken before the moment of the snapshot
            run(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(table.place))
        row = run(MOMENT).fetchone()
        assert row is not None
        self._name, self.transactions, self.end = row
        for table in tables:
            if table_of(self._connection, table.oid).columns != table.columns:
                raise SourceFault(f"{table.title} is being altered", code="source-down")

    def rows(self, table: OutsideTable, *, refuse_odd: bool) -> SharedRows:
        return SharedRows(self, table, refuse_odd=refuse_odd)

    def read(self, table: OutsideTable, *, refuse_odd: bool) -> Iterator[pa.RecordBatch]:
        connection = self._place.connect()
        try:
            with told(self._place):
                connection.execute(BEGIN)
                moment = sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(self._name))
                connection.execute(moment)
            query = rows_of(table, table.columns)
            yield from copy_batches(
                self._place, connection, query, table.columns, refuse_odd=refuse_odd
            )
        finally:
            connection.close()

    def done(self) -> None:
        """The rows of one more table are not needed any longer."""
        self._unread -= 1
        if self._unread == 0:
            self._connection.close()


class SharedRows(Iterator[pa.RecordBatch]):
    """Of one table. `close` ends the reading early."""

    def __init__(self, snapshot: SharedSnapshot, table: OutsideTable, *, refuse_odd: bool) -> None:
        self._snapshot: SharedSnapshot | None = snapshot
        self._batches = snapshot.read(table, refuse_odd=refuse_odd)

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except BaseException:  # also at the end
            self.close()
            raise

    def close(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            self._batches.close()  # type: ignore[attr-defined]
            snapshot.done()

    def __del__(self) -> None:
        self.close()
