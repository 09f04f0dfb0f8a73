"""The rows of a query as Arrow batches: COPY in CSV, which Arrow reads without Python per value.

A block that has a value Arrow cannot read, such as an infinite date, is read value by value.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyarrow import csv

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.postgres_connection import Connection, Place, told
from harken.sources.kinds.postgresql.postgres_tables import TableColumn
from harken.sources.kinds.postgresql.postgres_values import ValueType

BLOCK = 4_000_000
"""Bytes that are read before they become a batch."""
PARSE = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


def copy_batches(
    place: Place,
    connection: Connection,
    query: sql.Composable,
    columns: Sequence[TableColumn],
    *,
    refuse_odd: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a query that gives these columns."""
    reader = BlockReader(columns, refuse_odd=refuse_odd)
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    with told(place), connection.cursor() as cursor, cursor.copy(statement) as copy:
        block = bytearray()  # a list of the parts, one for each row, takes five times as long
        for part in copy:
            block += part
            if len(block) >= BLOCK:
                yield reader.batch(bytes(block))
                block.clear()
        if block:
            yield reader.batch(bytes(block))


class BlockReader:
    def __init__(self, columns: Sequence[TableColumn], *, refuse_odd: bool) -> None:
        self._columns = columns
        self._refuse_odd = refuse_odd
        self._schema = pa.schema([(each.name, each.value.arrow) for each in columns])
        self._places = [f"c{number}" for number in range(len(columns))]

    def batch(self, block: bytes) -> pa.RecordBatch:
        try:
            quick = {
                place: each.value.in_csv or each.value.arrow
                for place, each in zip(self._places, self._columns, strict=True)
            }
            found = self._table(block, quick)
        except pa.ArrowInvalid:
            found = self._table(block, dict.fromkeys(self._places, pa.string()))
        pairs = zip(found.columns, self._columns, strict=True)
        arrays = [self._array(array, column) for array, column in pairs]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _table(self, block: bytes, types: dict[str, pa.DataType]) -> pa.Table:
        return csv.read_csv(
            io.BytesIO(block),
            csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=self._places
            ),
            PARSE,
            csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )

    def _array(self, given: pa.ChunkedArray, column: TableColumn) -> pa.Array:
        wanted = column.value
        found = pa.concat_arrays(given.chunks)
        if found.type != wanted.arrow or wanted.in_csv is not None:
            read = reader_of(column.name, wanted, refuse_odd=self._refuse_odd)
            texts = found.to_pylist()
            return pa.array([None if each is None else read(each) for each in texts], wanted.arrow)
        if pa.types.is_floating(found.type):
            finite = pc.is_finite(found)
            if pc.all(finite).as_py() is False:
                if self._refuse_odd:
                    raise odd(column.name, "NaN or an infinity")
                return pc.if_else(finite, found, pa.scalar(None, found.type))
        return found


def reader_of(name: str, value: ValueType, *, refuse_odd: bool) -> Callable[[str], Any]:
    """Makes values of ours of the texts of a column."""
    if not refuse_odd or value.is_exact:
        return value.read

    def read(text: str) -> Any:
        found = value.read(text)
        if found is None:
            raise odd(name, text)
        return found

    return read


def odd(column: str, value: str) -> SourceFault:
    return SourceFault(
        f"the column {column} has the value {value}, which no type of Harken holds",
        code="source-changed",
        hint="with odd_values 'null' such values become NULL",
    )
