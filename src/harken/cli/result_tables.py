"""Rows as tables for people and programs: aligned, as CSV, as Markdown, as an Arrow stream.

Law: a table has all rows, and each value in full; characters that would break a line are escaped.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len

from harken.database.objects import Object
from harken.database.results import Result
from harken.errors import counted
from harken.values.builtin_functions import show_number, show_timestamp
from harken.values.types import INTEGER, NUMBER, Type, is_decimal

NULL = "NULL"


def cell(value: Any, result: Result) -> str:
    """A value formatted for people.

    >>> cell(decimal.Decimal("1.50"), Result("rows", (), [])), cell(None, Result("rows", (), []))
    ('1.50', 'NULL')
    """
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return show_number(value)
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.datetime():
            return show_timestamp(value)
        case datetime.date():
            return value.isoformat()
        case Object():
            return result.named(value)
    return str(value)


def one_line(text: str) -> str:
    """The text without line ends and other characters that move the cursor."""
    if text.isprintable():
        return text
    known = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(
        known.get(each, each if each.isprintable() else f"\\x{ord(each):02x}") for each in text
    )


def is_number(type_: Type) -> bool:
    return type_ in (INTEGER, NUMBER) or is_decimal(type_)


def table_lines(result: Result) -> Iterator[str]:
    """A header, and the rows below it; numbers are aligned to the right.

    >>> rows = Result("rows", ("name", "n"), [("pen", 3)], types=(Type("charstring"), INTEGER))
    >>> print("\\n".join(table_lines(rows)))
     name | n
    ------+---
     pen  | 3
    """
    header = [one_line(each) for each in result.columns]
    rows = [[one_line(cell(value, result)) for value in row] for row in result.rows]
    right = [is_number(each) for each in result.types] or [False] * len(header)
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    yield _line(header, widths, [False] * len(header))
    yield "+".join("-" * (width + 2) for width in widths)
    for row in rows:
        yield _line(row, widths, right)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - cell_len(text)) + text if is_right else text + " " * (width - cell_len(text))
        for text, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return f" {' | '.join(padded)}".rstrip()


def count_line(result: Result) -> str:
    return f"({counted(len(result.rows), 'row')})"


def markdown_lines(result: Result) -> Iterator[str]:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(one_line(each).replace('|', chr(92) + '|') for each in cells)} |"

    yield row(result.columns)
    aligned = [is_number(each) for each in result.types] or [False] * len(result.columns)
    yield row(["---:" if each else "---" for each in aligned])
    for values in result.rows:
        yield row([cell(value, result) for value in values])


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula, whoever wrote it."""


def csv_for_spreadsheets(result: Result) -> str:
    """The same as `csv_text`, with an apostrophe before each text that would be a formula."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    rows = [tuple(map(safe, row)) for row in result.rows]
    columns = tuple(map(safe, result.columns))
    return csv_text(replace(result, columns=columns, rows=rows))


def csv_text(result: Result) -> str:
    """With a header. NULL is an empty cell, and an empty text is quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        if None not in row and "" not in row and not any("\r" in str(each) for each in row):
            writer.writerow([cell(value, result) for value in row])
            continue
        cells = [_csv_cell(value, result) for value in row]
        out.write(",".join(cells) + "\n")
    return out.getvalue()


def _csv_cell(value: Any, result: Result) -> str:
    if value is None:
        return ""
    text = cell(value, result)
    needs_quotes = not text or any(each in text for each in ',"\n\r')
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def arrow_bytes(result: Result) -> bytes:
    """A stream in Arrow's IPC format."""
    table = result.to_arrow()
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def print_table(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table of what a command lists."""
    result = Result("rows", (), [])
    shown = [tuple(heading), *(tuple(one_line(cell(v, result)) for v in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())


def plain_values(value: Any) -> Any:
    """Values that JSON has."""
    match value:
        case dict():
            return {name: plain_values(each) for name, each in value.items()}
        case list() | tuple():
            return [plain_values(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
        case datetime.datetime() | datetime.date():
            return value.isoformat()
    return str(value)
