"""Seeds: the rows that a project puts into a table.

When a seed changes, the rows that it no longer has are deleted, and new or changed rows are
written; rows written by others stay. Law: if nobody else writes, a table has the rows of its seed.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import Span, ValueFault, counted
from harken.project.project_fault import ProjectFault
from harken.project.written_rows import typed_row

if TYPE_CHECKING:
    from harken.api.database import Database
    from harken.api.stored_definitions import Definition
    from harken.project.documents import Node

RawRow = tuple[Any, ...]


@dataclass(slots=True)
class Seed:
    """`rows` are values as written, in the order of `columns`; without columns in the order of the
    table's."""

    table: str
    columns: tuple[str, ...]
    rows: list[RawRow]
    places: list[int] = field(default_factory=list)
    """The line of each row."""
    source: str = ""
    span: Span = field(default_factory=lambda: Span(0, 1))
    text: str = ""

    @property
    def meaning(self) -> str:
        return json.dumps([self.columns, self.rows], default=str)

    file: str = ""
    """The file with the rows, if they are not in the document itself."""

    def wrong_row(self, line: int, message: str) -> ProjectFault:
        fault = ProjectFault(message)
        fault.source, fault.known_line = self.file or self.source, line or None
        return fault

    def wrong(self, message: str, hint: str | None = None) -> ProjectFault:
        fault = ProjectFault(message, span=self.span, hint=hint)
        fault.locate(self.text, self.source)
        return fault


def remembered(table: str, meaning: str) -> Seed:
    columns, rows = json.loads(meaning)
    return Seed(table, tuple(columns), [tuple(row) for row in rows])


# --- reading -------------------------------------------------------------------------------


def read_seed(table: str, node: Node, directory: Path, files: list[Path]) -> Seed:
    """A list of rows, or the name of a file with rows."""
    if not node.is_list:
        path = directory / node.words(
            "a seed: the name of a .csv or .jsonl file, or a list of rows,"
        )
        if not path.is_file():
            node.wrong(f"there is no file {path}")
        files.append(path)
        seed = _read_file(table, path)
        seed.source, seed.text, seed.span = node.source, node.text, node.span
        seed.file = str(path)
        return seed
    columns, rows, places = read_rows(node)
    return Seed(table.lower(), columns, rows, places, node.source, node.span, node.text)


def read_rows(node: Node) -> tuple[tuple[str, ...], list[RawRow], list[int]]:
    """The rows of a list, each a list or a mapping; columns that a mapping leaves out are NULL."""
    items = node.items("rows")
    places = [each.span.position(each.text)[0] for each in items]
    if all(each.is_list for each in items):
        lists = [each.items("a row") for each in items]
        return (), [tuple(e.scalar("a value") for e in row) for row in lists], places
    entries = [each.entries("a row, as all rows here,") for each in items]
    columns = tuple(dict.fromkeys(name.lower() for row in entries for name in row))
    values = [{k.lower(): v.scalar("a value") for k, v in row.items()} for row in entries]
    return columns, [tuple(row.get(name) for name in columns) for row in values], places


def _read_file(table: str, path: Path) -> Seed:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectFault(f"{path} cannot be read: {error}", code="cannot-read") from None
    if path.suffix == ".csv":
        return _read_csv(table, path, text)
    if path.suffix == ".jsonl":
        return _read_json(table, path, text)
    raise ProjectFault(
        f"{path} is no file of rows", code="unknown-suffix", hint="it ends in .csv or .jsonl"
    )


def _read_csv(table: str, path: Path, text: str) -> Seed:
    """The first line names the columns. An empty cell is NULL."""
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[RawRow] = []
    places: list[int] = []
    columns: tuple[str, ...] = ()
    try:
        columns = tuple(name.strip().lower() for name in next(reader, []))
        for cells in reader:
            if len(cells) != len(columns) and cells:
                raise csv.Error(f"{len(cells)} cells, and there are {len(columns)} columns")
            if cells:
                rows.append(tuple(cell or None for cell in cells))
                places.append(reader.line_num)
    except csv.Error as error:
        raise _bad_line(path, text, reader.line_num, str(error)) from None
    return Seed(table.lower(), columns, rows, places)


def _read_json(table: str, path: Path, text: str) -> Seed:
    found: list[dict[str, Any]] = []
    places: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_float=str)
        except ValueError as error:
            raise _bad_line(path, text, number, str(error)) from None
        if not isinstance(row, dict):
            raise _bad_line(path, text, number, "a line is an object: the values by their columns")
        found.append({name.lower(): value for name, value in row.items()})
        places.append(number)
    columns = tuple(dict.fromkeys(name for row in found for name in row))
    rows = [tuple(row.get(name) for name in columns) for row in found]
    return Seed(table.lower(), columns, rows, places)


def _bad_line(path: Path, text: str, number: int, message: str) -> ProjectFault:
    start = sum(len(line) + 1 for line in text.split("\n")[: number - 1])
    fault = ProjectFault(message, code="bad-file", span=Span(start, start + 1))
    fault.locate(text, str(path))
    return fault


# --- what changes --------------------------------------------------------------------------


@dataclass(slots=True)
class Difference:
    """The rows to delete and the rows to insert."""

    leaving: Seed
    coming: Seed

    @property
    def shown(self) -> str:
        parts = [(len(self.coming.rows), "in"), (len(self.leaving.rows), "out")]
        return (
            ", ".join(f"{n:,} {'row' if n == 1 else 'rows'} {way}" for n, way in parts if n)
            or "no rows"
        )


def difference(before: Seed | None, after: Seed) -> Difference:
    if before is None or before.columns != after.columns:
        leaving = before or Seed(after.table, after.columns, [])
        return Difference(leaving, after)
    old, new = (Counter(map(_plain, each.rows)) for each in (before, after))
    gone, come = old - new, new - old
    return Difference(_only(before, gone), _only(after, come))


def _plain(row: RawRow) -> str:
    return json.dumps(row, default=str)


def _only(seed: Seed, wanted: Counter[str]) -> Seed:
    """The rows of a seed that occur in `wanted`, as often as there."""
    left, rows, places = wanted.copy(), [], []
    lines = seed.places or [0] * len(seed.rows)
    for row, line in zip(seed.rows, lines, strict=True):
        if left[_plain(row)] > 0:
            left[_plain(row)] -= 1
            rows.append(row)
            places.append(line)
    return replace(seed, rows=rows, places=places)


def carry_out(db: Database, target: Definition, change: Difference) -> None:
    """Write the rows. A row with a key replaces the one that has it."""
    table = f"`{target.table}`"
    is_empty = not db.sql(f"SELECT 1 FROM {table} LIMIT 1").rows
    if not is_empty:
        _delete(db, target, change.leaving)
        if target.key:
            _delete(db, target, change.coming)
    if change.coming.rows:
        _insert(db, target, change.coming)


def _insert(db: Database, target: Definition, seed: Seed) -> None:
    """A column that no row of the seed has gets its DEFAULT, which only INSERT knows."""
    rows = _typed(target, seed)
    names = list(seed.columns or _names(target))
    if set(names) == set(_names(target)):
        db.load(str(target.table), rows, names)
        return
    listed = ", ".join(f"`{name}`" for name in names)
    marks = ", ".join("?" for _ in names)
    db.sql(f"INSERT INTO `{target.table}` ({listed}) VALUES ({marks})", rows)


def _names(target: Definition) -> list[str]:
    return [column.name for column in target.columns]


def _delete(db: Database, target: Definition, seed: Seed) -> None:
    """By the key; in a table without one, as many copies as the seed has."""
    if not seed.rows:
        return
    names = list(seed.columns or _names(target))
    rows = _typed(target, seed, drop_unknown=True)
    names = [name for name in names if name in _names(target)]
    table = f"`{target.table}`"
    if target.key and set(target.key) <= set(names):
        places = [names.index(name) for name in target.key]
        where = " AND ".join(f"`{name}` = ?" for name in target.key)
        db.sql(
            f"DELETE FROM {table} WHERE {where}", [tuple(row[i] for i in places) for row in rows]
        )
        return
    for row, times in Counter(rows).items():
        same = " AND ".join(f"`{name}` <=> ?" for name in names)
        copies = db.sql(f"SELECT * FROM {table} WHERE {same}", list(row)).rows
        db.sql(f"DELETE FROM {table} WHERE {same}", list(row))
        if copies[times:]:
            db.load(str(target.table), copies[times:], _names(target))


def _typed(target: Definition, seed: Seed, *, drop_unknown: bool = False) -> list[RawRow]:
    """With `drop_unknown`, columns that the table no longer has are left out."""
    known = {column.name: column for column in target.columns}
    names: Sequence[str] = seed.columns or _names(target)
    places = [i for i, name in enumerate(names) if name in known]
    if len(places) < len(names) and not drop_unknown:
        name = next(name for name in names if name not in known)
        raise seed.wrong(f"{seed.table} has no column {name}", f"it has {', '.join(known)}")
    columns = [known[names[i]] for i in places]
    found = []
    for row, line in zip(seed.rows, seed.places or [0] * len(seed.rows), strict=True):
        if len(row) != len(names):
            raise seed.wrong_row(
                line,
                f"this row has {counted(len(row), 'value')}, and there are "
                f"{counted(len(names), 'column')}",
            )
        try:
            found.append(typed_row([row[i] for i in places], columns))
        except ValueFault as error:
            raise seed.wrong_row(line, error.message) from None
    return found
