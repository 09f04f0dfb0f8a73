"""Fact files: a line for each row, its values separated by tabs, as Soufflé reads and writes them.

Symbols stand as they are, without quotes. A relation without attributes has the line `()`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.engines.builtin import show_number
from harken.engines.sqlite.values import encode_integer, encode_number, encode_text
from harken.errors import HarkenError, LanguageError, Span, StorageError, ValueFault
from harken.lang.datalog.kinds import FLOAT, NUMBER_KIND, SYMBOL, UNSIGNED, Kind
from harken.lang.datalog.known import Known, counted

Row = tuple[Any, ...]
NOTHING = "()"
KNOWN = {
    "input": ("IO", "filename", "name", "delimiter", "headers", "rfc4180"),
    "output": ("IO", "filename", "name", "delimiter", "headers", "rfc4180"),
}
FORMS = {"input": ("file",), "output": ("file", "stdout")}


@dataclass(frozen=True, slots=True)
class Form:
    """How a file is written, and where it is: the parameters of `.input` or `.output`."""

    path: Path
    delimiter: str
    headers: bool
    quoted: bool
    to_stdout: bool


def form_of(
    kind: str, relation: str, parameters: Mapping[str, str], directory: Path, span: Span
) -> Form:
    for name in parameters:
        if name not in KNOWN[kind]:
            raise LanguageError(
                f"the parameter {name} of .{kind} is not in Harken's Datalog",
                code="unsupported",
                span=span,
                hint="there are " + ", ".join(KNOWN[kind]),
            )
    form = parameters.get("IO", "file")
    if form not in FORMS[kind]:
        raise LanguageError(
            f"IO={form}: .{kind} has {' and '.join(FORMS[kind])}",
            code="unsupported",
            span=span,
            hint="read the rows into a table, and use that",
        )
    suffix = "facts" if kind == "input" else "csv"
    named = parameters.get("filename", f"{parameters.get('name', relation)}.{suffix}")
    quoted = _is_true(parameters.get("rfc4180"))
    return Form(
        path=directory / named,
        delimiter=parameters.get("delimiter", "," if quoted else "\t"),
        headers=_is_true(parameters.get("headers")),
        quoted=quoted,
        to_stdout=form == "stdout",
    )


def _is_true(given: str | None) -> bool:
    return given is not None and given.lower() in ("true", "1", "yes")


# --- reading -------------------------------------------------------------------------------


def read_rows(form: Form, known: Known, span: Span) -> list[Row]:
    """The rows of a file as they are stored; an error says in which line it is wrong."""
    try:
        text = form.path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(
            f"the facts of {known.name} cannot be read from {form.path}: {reason}",
            code="cannot-read",
            span=span,
            hint="-F says in which directory fact files are",
        ) from None
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{form.path} is not UTF-8: byte 0x{error.object[error.start]:02x}",
            code="not-utf-8",
            span=span,
        ) from None
    readers = [_READERS.get(kind, _unreadable(kind)) for kind in known.kinds]
    found: list[Row] = []
    for number, values in _lines(text, form):
        if not readers:
            found.append(_nothing(values, form, number, span))
            continue
        if len(values) != len(readers):
            raise _in_file(
                form,
                number,
                f"{known.name} has {counted(len(readers), 'attribute')}, and this line has "
                f"{counted(len(values), 'value')}",
                span,
            )
        try:
            found.append(tuple(read(value) for read, value in zip(readers, values, strict=True)))
        except HarkenError as error:
            raise _in_file(form, number, error.message, span) from None
    return found


def _lines(text: str, form: Form) -> Iterator[tuple[int, list[str]]]:
    """The values of each line that has any, and its number."""
    if form.quoted:
        rows: Iterator[list[str]] = csv.reader(io.StringIO(text), delimiter=form.delimiter)
    else:
        # A line ends with a line feed and nothing else: symbols may hold any other character.
        lines = text.split("\n")
        rows = (
            line.removesuffix("\r").split(form.delimiter)
            for line in (lines[:-1] if lines[-1] == "" else lines)
        )
    for number, values in enumerate(rows, start=1):
        if not (form.headers and number == 1):
            yield number, values


def _nothing(values: Sequence[str], form: Form, number: int, span: Span) -> Row:
    if list(values) != [NOTHING]:
        raise _in_file(form, number, f"a relation without attributes has {NOTHING}", span)
    return ()


def _in_file(form: Form, number: int, message: str, span: Span) -> ValueFault:
    return ValueFault(f"{form.path}, line {number}: {message}", code="bad-value", span=span)


def _whole(text: str) -> int:
    try:
        return encode_integer(int(text, 0) if text[:2] in ("0x", "0b") else int(text))
    except ValueError:
        raise ValueFault(f'"{text}" is not a number') from None


def _unsigned(text: str) -> int:
    value = _whole(text.removesuffix("u"))
    if value < 0:
        raise ValueFault(f"{value} is not unsigned")
    return value


def _float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueFault(f'"{text}" is not a float') from None
    if not math.isfinite(value):
        raise ValueFault(f'"{text}" is not a finite float')
    return encode_number(value)


def _unreadable(kind: Kind) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        raise ValueFault(f"values of type {kind} are not read from files")

    return read


_READERS: dict[Kind, Callable[[str], Any]] = {
    NUMBER_KIND: _whole,
    UNSIGNED: _unsigned,
    FLOAT: _float,
    SYMBOL: encode_text,
}


# --- writing -------------------------------------------------------------------------------


def write_rows(form: Form, known: Known, rows: Sequence[Row], span: Span) -> None:
    text = "".join(f"{line}\n" for line in lines_of(form, known, rows))
    try:
        form.path.parent.mkdir(parents=True, exist_ok=True)
        form.path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(
            f"{known.name} cannot be written to {form.path}: {reason}",
            code="cannot-write",
            span=span,
            hint="-D says in which directory output files are",
        ) from None


def lines_of(form: Form, known: Known, rows: Sequence[Row]) -> Iterator[str]:
    if form.headers:
        yield form.delimiter.join(known.attributes)
    written = _quoted if form.quoted else shown
    for row in rows:
        yield form.delimiter.join(written(value) for value in row) if row else NOTHING


def _quoted(value: Any) -> str:
    """Every symbol is in quotes, as Soufflé writes it."""
    if not isinstance(value, str):
        return shown(value)
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def shown(value: Any) -> str:
    """A value as it stands in a file."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return show_number(value)
        case None:
            return ""
    return str(value)
