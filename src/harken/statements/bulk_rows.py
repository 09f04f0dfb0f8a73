"""Many rows passed by Python code (tuples, Arrow tables, data frames), split into columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import Any

from harken.engines.data_frames import as_arrow
from harken.errors import TypeFault, counted

CHUNK = 50_000
"""Rows in memory at a time."""

_NOT_ROWS = (str, bytes, Mapping)


def as_table(rows: Any) -> Any:
    """A data frame, a record batch, or a reader of them, as an Arrow table; anything else
    unchanged."""
    rows = as_arrow(rows)
    if hasattr(rows, "read_all"):
        return rows.read_all()
    if hasattr(rows, "column_names") and not hasattr(rows, "to_batches"):
        import pyarrow

        return pyarrow.Table.from_batches([rows])
    return rows


def select(table: Any, names: Sequence[str]) -> Any:
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise TypeFault(
            f"the table has no column {missing[0]}",
            code="arity",
            hint="it has " + ", ".join(table.column_names),
        )
    return table.select(list(names))


def chunks(rows: Any, width: int) -> Iterator[tuple[list[Sequence[Any]], int]]:
    """The rows as lists of columns, chunk by chunk."""
    if hasattr(rows, "to_batches"):
        for batch in rows.to_batches(max_chunksize=CHUNK):
            yield [batch.column(i).to_pylist() for i in range(width)], batch.num_rows
        return
    try:
        iterator = iter(rows)
    except TypeError:
        raise TypeFault(
            f"{type(rows).__name__} has no rows",
            code="arity",
            hint="pass an iterable of tuples, a data frame or an Arrow table",
        ) from None
    while chunk := list(islice(iterator, CHUNK)):
        yield _columns(chunk, width), len(chunk)


def _columns(chunk: list[Any], width: int) -> list[Sequence[Any]]:
    columns: list[Sequence[Any]] = []
    kinds = set(map(type, chunk))
    if kinds <= {tuple, list} and set(map(len, chunk)) == {width}:
        return [tuple(map(itemgetter(index), chunk)) for index in range(width)]
    if not any(issubclass(kind, _NOT_ROWS) for kind in kinds):
        with suppress(TypeError, ValueError):
            columns = list(zip(*chunk, strict=True))
    if len(columns) != width:
        raise TypeFault(
            f"each row needs {counted(width, 'value')}, one for each property",
            code="arity",
            hint="a row must be a tuple, even with one value: (5,)",
        )
    return columns
