"""Rows as tables of other libraries: Arrow, pandas, Polars, and HTML for a notebook.

The others are made from Arrow, so that types and NULLs are the same in all of them. Each library is
imported on first use: Harken itself needs none of them.

Law: the table has exactly the rows, in their order. An object becomes the text that it prints as.
"""

from __future__ import annotations

import datetime
import html
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from harken.errors import TypeFault
from harken.packages import missing_package
from harken.values.rows import Row
from harken.values.types import INTEGER, TEXT, TIMESTAMP, Type

SHOWN_ROWS = 20
"""The number of rows that a notebook shows."""


def to_arrow(
    columns: Sequence[str], types: Sequence[Type], rows: Sequence[Row], name: Callable[[Any], str]
) -> Any:
    arrow = library("pyarrow")
    fields = [arrow.field(*pair) for pair in zip(columns, map(_arrow_type, types), strict=True)]
    if rows and len(rows[0]) != len(fields):
        raise TypeFault("the columns of these rows are not known", code="arity")
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    try:
        arrays = [
            arrow.array(
                [_named(each, name) for each in column] if type_.surrogate else column, of.type
            )
            for column, type_, of in zip(values, types, fields, strict=True)
        ]
    except arrow.ArrowException as error:  # a change that redefined its view has rows of two kinds
        raise TypeFault(
            f"the rows have values of other types than their columns: {error}",
            code="type-mismatch",
            hint="take them as Python values",
        ) from error
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))


CHANGE_TYPES = {1: "insert", -1: "delete"}


def changes_to_arrow(
    columns: Sequence[str],
    types: Sequence[Type],
    rows: Sequence[tuple[int, Row]],
    version: int,
    at: datetime.datetime | None,
) -> Any:
    """Rows with their signs, with the columns that Spark has for changes."""
    signed = [(*row, CHANGE_TYPES[sign], version, at) for sign, row in rows]
    names = (*columns, "_change_type", "_commit_version", "_commit_timestamp")
    return to_arrow(names, (*types, TEXT, INTEGER, TIMESTAMP), signed, repr)


def _named(value: Any, name: Callable[[Any], str]) -> str | None:
    return None if value is None else name(value)


def _arrow_type(type_: Type) -> Any:
    import pyarrow

    from harken.engines.arrow_rows import arrow_type

    if type_.surrogate:
        return pyarrow.string()
    if type_ == TIMESTAMP:
        return pyarrow.timestamp("us", tz="UTC")
    return arrow_type(type_)


def to_pandas(table: Any) -> Any:
    """Integer and boolean columns keep their type even with NULLs: pandas' default would make them
    floats and lose digits."""
    pandas, arrow = library("pandas"), library("pyarrow")
    frame = table.to_pandas(date_as_object=True)
    kept = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    for place, column in enumerate(table.columns):
        if column.null_count and column.type in kept:
            exact = column.to_pandas(types_mapper=kept.get)
            frame.isetitem(place, exact)
    return frame


def to_polars(table: Any) -> Any:
    return library("polars").from_arrow(table)


def library(package: str) -> Any:
    """Import an optional package."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None


def to_html(
    columns: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[str]], count: int
) -> str:
    """A table for a notebook: the first rows as text, and the number of all rows."""
    typed = [*map(str, types), *[""] * (len(columns) - len(types))]
    head = "".join(
        f"<th>{html.escape(name)}<br><small>{html.escape(type_)}</small></th>"
        for name, type_ in zip(columns, typed, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(value)}</td>" for value in row) + "</tr>"
        for row in rows
    )
    more = f", the first {len(rows):,} shown" if count > len(rows) else ""
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{count:,} {'row' if count == 1 else 'rows'}{more}</p>"
    )
