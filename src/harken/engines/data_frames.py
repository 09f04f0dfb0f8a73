"""Data frames of pandas and Polars, as the Arrow tables that the rest of Harken takes.

Law: the values are those of the frame; NaN and NaT in pandas are NULL. What Arrow cannot hold, or a
timestamp with nanoseconds, is an error. The index of a pandas frame is left out.
"""

from __future__ import annotations

from typing import Any

from harken.errors import TypeFault
from harken.packages import needs


def as_arrow(value: Any) -> Any:
    """A frame as a table; anything else as it is."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if kind.__name__ == "LazyFrame" and library == "polars":
        value = value.collect()
    elif kind.__name__ != "DataFrame" or library not in ("pandas", "polars"):
        return value
    with needs("arrow"):
        return _plain(_from_pandas(value) if library == "pandas" else value.to_arrow())


def _from_pandas(frame: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise TypeFault(
            f"this data frame has a column of mixed or unknown values: {_first_line(error)}",
            code="type-mismatch",
            hint='give the column one type: frame.astype({"column": ...})',
        ) from error


def _plain(table: Any) -> Any:
    """Categories as their values, timestamps in microseconds."""
    import pyarrow

    fields = []
    for field in table.schema:
        type_ = field.type
        if pyarrow.types.is_dictionary(type_):
            type_ = type_.value_type
        if pyarrow.types.is_timestamp(type_):
            type_ = pyarrow.timestamp("us", type_.tz)
        fields.append(pyarrow.field(field.name, type_))
    try:
        return table.cast(pyarrow.schema(fields))
    except pyarrow.ArrowException as error:
        raise TypeFault(
            f"a timestamp holds microseconds, not nanoseconds: {_first_line(error)}",
            code="type-mismatch",
            hint='round the column first: frame["column"].dt.floor("us")',
        ) from error


def _first_line(error: Exception) -> str:
    return str(error.args[0] if error.args else error).splitlines()[0]
