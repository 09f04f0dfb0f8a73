"""The rows of a delta table as changes of transactions.

Law: triggers may have noted the rows of one transaction in another order than they changed, where
triggers of the application change rows, too; the sum of the rows is the change in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.copied_rows import reader_of
from harken.sources.kinds.postgresql.delta_catalog import delta_place
from harken.sources.kinds.postgresql.delta_relation import (
    ALTERED,
    DELETED,
    INSERTED,
    TRUNCATED,
)
from harken.sources.kinds.postgresql.log_positions import Seen
from harken.sources.kinds.postgresql.log_reader import FollowedTable
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_tables import read_value_type
from harken.sources.kinds.postgresql.row_changes import OutsideRow, WholeRows
from harken.sources.kinds.postgresql.table_stamps import KnownTable
from harken.sources.outside import TableChange

ROWS = """
    SELECT transaction::text, operation::text, {columns} FROM {place}
    WHERE transaction = ANY ({numbers}::text[]::xid8[]) ORDER BY transaction, sequence
"""


class NotedRows:
    """Of one transaction and one table."""

    def __init__(self, key: Sequence[int]) -> None:
        self.rows = WholeRows(key)
        self.problem = ""

    def change(self, table: str) -> TableChange:
        return self.rows.change(table)


class NotedReader:
    """Reads one delta table."""

    def __init__(
        self,
        connection: Connection,
        known: KnownTable,
        table: FollowedTable,
        *,
        refuse_odd: bool,
    ) -> None:
        self._connection, self._known, self._table = connection, known, table
        self._key = [table.wanted.index(name) for name in table.key]
        assert known.installed is not None
        self._columns = known.installed["columns"]
        self._readers = [self._reader(name, refuse_odd) for name in table.wanted]
        self._problem = next(
            (
                f"the column {name} of {table.title} has a type that is gone"
                for name, reader in zip(table.wanted, self._readers, strict=True)
                if reader is None
            ),
            "",
        )

    def _reader(self, name: str, refuse_odd: bool) -> Callable[[str], Any] | None:
        type, modifier = self._columns[name][:2]
        value = read_value_type(self._connection, type, modifier)
        return None if value is None else reader_of(name, value, refuse_odd=refuse_odd)

    def transactions(self, numbers: Sequence[int], seen: Seen) -> Iterator[tuple[int, NotedRows]]:
        """Those of these numbers that the table does not have yet."""
        new = [each for each in numbers if not seen.has(each)]
        places = [
            sql.Identifier(self._columns[name][side])
            for side in (2, 3)
            for name in self._table.wanted
        ]
        query = sql.SQL(ROWS).format(
            columns=sql.SQL(", ").join(places),
            place=delta_place(self._known),
            numbers=sql.Literal([str(each) for each in new]),
        )
        result = self._connection.execute(query).pgresult
        assert result is not None
        current, noted = -1, NotedRows(self._key)
        for row in range(result.ntuples):
            number = int(result.get_value(row, 0) or b"")
            if number != current:
                if current >= 0:
                    yield current, noted
                current, noted = number, NotedRows(self._key)
            self._note(noted, str(result.get_value(row, 1) or b"", "ascii"), result, row)
        if current >= 0:
            yield current, noted

    def _note(self, noted: NotedRows, operation: str, result: Any, row: int) -> None:
        if operation == TRUNCATED:
            noted.rows.truncate()
            return
        if operation == ALTERED or self._problem:
            noted.problem = self._problem or f"the columns of {self._table.title} were altered"
            return
        width = len(self._readers)
        if operation != INSERTED:
            noted.rows.delete(self._row(result, row, 2))
        if operation != DELETED:
            noted.rows.insert(self._row(result, row, 2 + width))

    def _row(self, result: Any, row: int, start: int) -> OutsideRow:
        values = []
        for place, read in enumerate(self._readers, start):
            given = result.get_value(row, place)
            values.append(None if given is None else read(str(given, "utf-8")))  # type: ignore[misc]
        for place in self._key:
            if values[place] is None:
                raise SourceFault(
                    f"a row of {self._table.title} has a value in its key column "
                    f"{self._table.wanted[place]} that no type of Harken holds",
                    code="source-changed",
                )
        return tuple(values)
