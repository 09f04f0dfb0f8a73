"""Fact files: one line for each row, with values separated by tabs, as Soufflé reads and writes
them.

Symbols are written without quotes. A relation without attributes has the line `()`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.errors import HarkenError, LanguageError, Span, StorageError, ValueFault, counted
from harken.lang.datalog.kinds import FLOAT, NUMBER_KIND, SYMBOL, UNSIGNED, Kind
from harken.lang.datalog.known_relations import KnownRelation
from harken.values.builtin_functions import show_number
from harken.values.encoding import encode_integer, encode_number, encode_text
from harken.values.rows import Row

NOTHING = "()"
TRUE, FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})
KNOWN = {
    "input": ("IO", "filename", "name", "delimiter", "headers", "rfc4180", "columns"),
    "output": ("IO", "filename", "name", "delimiter", "headers", "rfc4180"),
}
STANDARD = {"input": "stdin", "output": "stdout"}


@dataclass(frozen=True, slots=True)
class Form:
    """Where a file is and how it is written: the parameters of `.input` or `.output`."""

    path: Path
    delimiter: str
    headers: bool
    quoted: bool
    standard: bool
    """Whether it is standard input or output instead of a file."""
    columns: tuple[int, ...] | None
    """The columns of the file that hold the attributes, counted from 0, if they are not the first
    ones."""

    @property
    def shown(self) -> str:
        return "standard input" if self.standard else str(self.path)


def form_of(
    kind: str, relation: str, parameters: Mapping[str, str], directory: Path, span: Span
) -> Form:
    for name in parameters:
        if name not in KNOWN[kind]:
            raise LanguageError(
                f"the parameter {name} of .{kind} is not supported",
                code="unsupported",
                span=span,
                hint="there are " + ", ".join(KNOWN[kind]),
            )
    form = parameters.get("IO", "file")
    if form not in ("file", STANDARD[kind]):
        raise LanguageError(
            f"IO={form}: .{kind} has file and {STANDARD[kind]}",
            code="unsupported",
            span=span,
            hint="read the rows into a table, and use that",
        )
    suffix = "facts" if kind == "input" else "csv"
    named = parameters.get("filename", f"{parameters.get('name', relation)}.{suffix}")
    quoted = _flag(parameters, "rfc4180", span)
    return Form(
        path=directory / named,
        delimiter=_delimiter(parameters, quoted, span),
        headers=_flag(parameters, "headers", span),
        quoted=quoted,
        standard=form == STANDARD[kind],
        columns=_columns(parameters.get("columns"), span),
    )


def _delimiter(parameters: Mapping[str, str], quoted: bool, span: Span) -> str:
    given = parameters.get("delimiter", "," if quoted else "\t")
    if not given or "\n" in given or (quoted and '"' in given):
        raise ValueFault(
            f'values cannot be separated by "{given}"',
            code="bad-value",
            span=span,
            hint='another delimiter: ","',
        )
    return given


def _columns(given: str | None, span: Span) -> tuple[int, ...] | None:
    if given is None:
        return None
    parts = given.split(":")
    plain = all(re.fullmatch("[0-9]{1,9}", part) for part in parts)
    if not plain or len(set(parts)) < len(parts):
        raise ValueFault(
            f'"{given}" does not say which columns of the file to read',
            code="bad-value",
            span=span,
            hint='the columns of the attributes, counted from 0: columns="2:0"',
        )
    return tuple(int(part) for part in parts)


def _flag(parameters: Mapping[str, str], name: str, span: Span) -> bool:
    given = parameters.get(name, "false").lower()
    if given not in TRUE | FALSE:
        raise LanguageError(
            f"{name} must be true or false, not {parameters[name]}",
            code="bad-value",
            span=span,
        )
    return given in TRUE


# --- reading -------------------------------------------------------------------------------


def read_rows(
    form: Form, known: KnownRelation, span: Span, warn: Callable[[str], None]
) -> list[Row]:
    """The rows of a file in stored form; an error names the line."""
    readers = [_READERS.get(kind, _unreadable(kind)) for kind in known.kinds]
    places = _places(form, known, span)
    found: list[Row] = []
    surplus: int | None = None
    for number, values in _lines(_text(form, known, span), form, span):
        if not readers:
            found.append(_nothing(values, form, number, span))
            continue
        if len(values) <= max(places):
            raise _in_file(form, number, _too_few(form, known, values), span)
        if form.columns is None and len(values) > len(readers) and surplus is None:
            surplus = number
            warn(f"{form.shown}, line {number}: {_counts(known, values)}: the first are read")
        try:
            found.append(tuple(read(values[at]) for read, at in zip(readers, places, strict=True)))
        except HarkenError as error:
            raise _in_file(form, number, error.message, span) from None
    return found


def _too_few(form: Form, known: KnownRelation, values: Sequence[str]) -> str:
    if form.columns is None:
        return _counts(known, values)
    return f"there is no column {max(form.columns)}, counted from 0"


def _counts(known: KnownRelation, values: Sequence[str]) -> str:
    return (
        f"{known.name} has {counted(len(known.attributes), 'attribute')}, but this line "
        f"has {counted(len(values), 'value')}"
    )


def _places(form: Form, known: KnownRelation, span: Span) -> tuple[int, ...]:
    if form.columns is None:
        return tuple(range(len(known.attributes)))
    if len(form.columns) != len(known.attributes):
        raise ValueFault(
            f"{known.name} has {counted(len(known.attributes), 'attribute')}, but "
            f"{counted(len(form.columns), 'column')} of the file "
            f"{'is' if len(form.columns) == 1 else 'are'} named",
            code="bad-value",
            span=span,
        )
    return form.columns


def _text(form: Form, known: KnownRelation, span: Span) -> str:
    try:
        data = sys.stdin.buffer.read() if form.standard else form.path.read_bytes()
        return data.decode("utf-8-sig")  # Windows programs start a file with a byte-order mark
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{form.shown} is not UTF-8: byte 0x{error.object[error.start]:02x}",
            code="not-utf-8",
            span=span,
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a character that no path can hold
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise StorageError(
            f"the facts of {known.name} cannot be read from {form.shown}: {reason}",
            code="cannot-read",
            span=span,
            hint="-F gives the directory of fact files",
        ) from None


def _lines(text: str, form: Form, span: Span) -> Iterator[tuple[int, list[str]]]:
    """The number and the values of each line."""
    rows = _quoted_lines(text, form, span) if form.quoted else _plain_lines(text, form)
    for place, numbered in enumerate(rows):
        if not (form.headers and place == 0):
            yield numbered


def _plain_lines(text: str, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Only a line feed ends a line: symbols may hold any other character."""
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, start=1):
        yield number, line.removesuffix("\r").split(form.delimiter)


def _quoted_lines(text: str, form: Form, span: Span) -> Iterator[tuple[int, list[str]]]:
    """Values may be quoted, and then contain line feeds; the number is that of the first line."""
    value = re.compile(
        r'(?:"(?P<quoted>[^"]*(?:""[^"]*)*)"|(?P<plain>(?!")[^\n]*?))'
        rf"(?P<end>{re.escape(form.delimiter)}|\r?\n|\Z)"
    )
    place, number, reached, values = 0, 1, 1, list[str]()
    while place < len(text) or values:
        match = value.match(text, place)
        if match is None:
            message = "a value in quotes ends before a delimiter or the end of a line"
            raise _in_file(form, reached, message, span)
        quoted = match["quoted"]
        values.append(match["plain"] if quoted is None else quoted.replace('""', '"'))
        reached += text.count("\n", place, match.end())
        place = match.end()
        if match["end"] != form.delimiter:
            yield number, values
            number, values = reached, []


def _nothing(values: Sequence[str], form: Form, number: int, span: Span) -> Row:
    """A line states the fact, even an empty one, as in Soufflé."""
    if list(values) not in ([NOTHING], [""]):
        raise _in_file(form, number, f"a relation without attributes has {NOTHING}", span)
    return ()


def _in_file(form: Form, number: int, message: str, span: Span) -> ValueFault:
    return ValueFault(f"{form.shown}, line {number}: {message}", code="bad-value", span=span)


LONGEST_NUMBER = 100
"""Characters of the longest number in a fact file: 64 bits in binary, with room for zeros."""
_WHOLE = re.compile(
    r" *[-+]?(?:0x(?P<hexadecimal>[0-9a-fA-F]+)|0b(?P<binary>[01]+)|[0-9]+)", re.ASCII
)


def _whole(text: str) -> int:
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueFault(f'"{text}" is not a number')
    base = 16 if match["hexadecimal"] else 2 if match["binary"] else 10
    if len(text) > LONGEST_NUMBER:
        raise ValueFault(f"a number of {len(text):,} digits does not fit in 64 bits")
    return encode_integer(int(text, base))


def _unsigned(text: str) -> int:
    value = _whole(text.removesuffix("u"))
    if value < 0:
        raise ValueFault(f"{value} is not unsigned")
    return value


def _float(text: str) -> float:
    try:
        value = float(text if text.isascii() and "_" not in text else "")
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


def write_rows(form: Form, known: KnownRelation, rows: Sequence[Row], span: Span) -> None:
    first = [heading(form, known)] if form.headers else []
    text = "".join(f"{line}\n" for line in (*first, *lines_of(form, rows)))
    try:
        form.path.parent.mkdir(parents=True, exist_ok=True)
        form.path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(
            f"{known.name} cannot be written to {form.path}: {reason}",
            code="cannot-write",
            span=span,
            hint="-D gives the directory of output files",
        ) from None


def heading(form: Form, known: KnownRelation) -> str:
    return form.delimiter.join(known.attributes)


def lines_of(form: Form, rows: Sequence[Row]) -> Iterator[str]:
    written = _quoted if form.quoted else shown
    for row in rows:
        yield form.delimiter.join(written(value) for value in row) if row else NOTHING


def _quoted(value: Any) -> str:
    """Every symbol is quoted, as Soufflé writes it."""
    if not isinstance(value, str):
        return shown(value)
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def shown(value: Any) -> str:
    """A value as it is written to a file."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return show_number(value)
        case None:
            return ""
    return str(value)
