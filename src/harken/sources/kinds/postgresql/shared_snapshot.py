"""The rows of several tables at one moment, each read on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.copied_rows import copy_batches
from harken.sources.kinds.postgresql.log_positions import Seen
from harken.sources.kinds.postgresql.polled_table import BEGIN, rows_of
from harken.sources.kinds.postgresql.postgres_connection import Place, told
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, table_of
from harken.sources.kinds.postgresql.table_stamps import followed_schema, wait_briefly
from harken.sources.outside import Position, Snapshot

MOMENT = """
    SELECT pg_export_snapshot(), pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text
"""


class SharedSnapshot:
    """Held until the rows of every table have been read or closed. The tables cannot be altered
    meanwhile. All transactions that it has seen are in the log before `end`."""

    def __init__(self, place: Place, tables: Sequence[OutsideTable]) -> None:
        self._place = place
        self._unread = len(tables)
        self._connection = place.connect()
        try:
            with told(place):
                self._begin(tables)
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, tables: Sequence[OutsideTable]) -> None:
        run = self._connection.execute
        run(BEGIN)
        wait_briefly(self._connection)
        for table in tables:  # a lock is taken before the moment of the snapshot
            run(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(table.place))
        row = run(MOMENT).fetchone()
        assert row is not None
        self._name, transactions, self.end = row
        self.seen = Seen.read(transactions)
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


def first_rows(
    place: Place,
    tables: Mapping[str, OutsideTable],
    position: Callable[[str, SharedSnapshot], Position],
    *,
    by_log: bool,
    refuse_odd: bool,
) -> Mapping[str, Snapshot]:
    """The rows of tables that are followed from now on. `position` says where a table begins."""
    shared = SharedSnapshot(place, list(tables.values()))
    return {
        name: Snapshot(
            followed_schema(table, by_log=by_log),
            shared.rows(table, refuse_odd=refuse_odd),
            position(name, shared),
            expected_rows=table.estimate if table.estimate >= 0 else None,
        )
        for name, table in tables.items()
    }
