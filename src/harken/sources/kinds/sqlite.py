"""A table or view of an SQLite file.

While a connection stays open, `data_version` says whether anyone has written; after a reopen the
states of the file and of its log do. So an idle file costs nothing.

| declared there                          | here                                          |
| --------------------------------------- | --------------------------------------------- |
| INT..., BOOL...                         | integer, boolean                              |
| REAL, FLOA..., DOUB...                  | number                                        |
| DECIMAL(p, s), NUMERIC(p, s)            | decimal(p, s)                                 |
| DATE, DATETIME, TIMESTAMP as ISO texts  | date, timestamp                               |
| BLOB                                    | text: its bytes, written `\\x01ff`            |
| nothing, NUMERIC, expressions of views  | what the first values are                     |
| all others                              | text                                          |

Law: a value that its column's type does not hold is an error, and never another value.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import pyarrow as pa

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.column_types import TEXT, infer
from harken.sources.kinds.driver_values import plain_value
from harken.sources.kinds.sqlite_texts import FileColumn, condition_text, order_text, quoted
from harken.sources.local_files import existing, is_unchanged, permitted, stamp_of
from harken.sources.outside import (
    Condition,
    Context,
    Opened,
    Option,
    Order,
    OutsideSchema,
    Position,
    Question,
    Snapshot,
    until_unique,
)
from harken.sources.typed_rows import BATCH, TypedRows, declared_types

BUSY_MILLISECONDS = 5_000
FIRST_ROWS = 1_000
"""Rows that are looked at for the type of a column that has none."""
COLUMNS = 'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1'
_DIGITS = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


class SqliteTable:
    """Polled, and Answering."""

    def __init__(self, path: str, table: str, types: Sequence[str], context: Context) -> None:
        self._path, self._table, self._context = path, table, context
        self._declared = declared_types(types)
        self._connection: apsw.Connection | None = None
        self._seen: tuple[Position, int] | None = None
        """A position, and the version of the data that it stands for on this connection."""

    def schema(self) -> OutsideSchema:
        with self._errors():
            columns, key = self._columns()
            return OutsideSchema(pa.schema([(each.name, each.type) for each in columns]), key)

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        with self._errors():
            connection = self._opened()
            version = _one(connection, "PRAGMA data_version")
            if since is not None and self._seen == (since, version):
                return None
            stamps = self._stamps()
            if since is not None and self._is_same(since):
                self._seen = since, version
                return None
            position = json.dumps(stamps)
            reading = self._open()
            reading.execute("BEGIN")
            schema = self.schema()
            rows = reading.execute(self._query(schema.columns.names))
        self._seen = position, version  # of before: what is written meanwhile is read again
        return Snapshot(schema, self._batches(reading, rows, schema.columns), position)

    def question(
        self,
        columns: Sequence[str],
        conditions: Sequence[Condition],
        limit: int | None = None,
        order: Sequence[Order] = (),
    ) -> Question:
        with self._errors():
            every, key = self._columns()
            is_utf8 = _one(self._opened(), "PRAGMA encoding") == "UTF-8"
        known = {each.name: each for each in every}
        missing = [name for name in columns if name not in known]
        if missing:
            raise SourceFault(f"{self._table} has no column {missing[0]}", code="source-changed")
        pushed, values = [], []
        texts: tuple[list[str], list[str]] = [], []
        for each in conditions:
            column = known.get(each.column)
            found = None if column is None else condition_text(each, column, is_utf8=is_utf8)
            if found is not None:
                pushed.append(each)
                texts[0].append(found[0])
                texts[1].append(found[2])
                values += found[1]
        by = order_text(until_unique(order, key), known, is_utf8=is_utf8)
        limited = limit is not None and by is not None and len(pushed) == len(conditions)
        query, shown = (
            self._query(columns)
            + (f" WHERE {' AND '.join(each)}" if each else "")
            + (f" ORDER BY {by}" if limited and by else "")
            + (f" LIMIT {limit}" if limited else "")
            for each in texts
        )
        schema = pa.schema([(name, known[name].type) for name in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            with self._errors():
                reading = self._open()
                rows = reading.execute(query, values)
            return self._batches(reading, rows, schema)

        return Question(shown, tuple(pushed), limited, batches)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- the file --------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return existing(permitted(self._path, self._context.allowed_roots))

    def _open(self) -> apsw.Connection:
        found = apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READONLY)
        found.set_busy_timeout(BUSY_MILLISECONDS)
        return found

    def _opened(self) -> apsw.Connection:
        """One that stays open, as long as the path leads to the same file."""
        if self._connection is not None and self._same_file():
            return self._connection
        self.close()
        self._seen = None
        self._connection = self._open()
        status = self._file.stat()
        self._inode = status.st_dev, status.st_ino
        return self._connection

    def _same_file(self) -> bool:
        status = self._file.stat()
        return (status.st_dev, status.st_ino) == self._inode

    def _stamps(self) -> dict[str, str]:
        """Of the file, and of its write-ahead log, if it has one."""
        found = {"file": stamp_of(self._file)}
        log = Path(f"{self._file}-wal")
        if log.exists() and log.stat().st_size:
            found["log"] = stamp_of(log)
        return found

    def _is_same(self, since: Position) -> bool:
        before = json.loads(since)
        log = Path(f"{self._file}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        return (
            has_log == ("log" in before)
            and is_unchanged(self._file, before["file"])
            and (not has_log or is_unchanged(log, before["log"]))
        )

    # --- columns and rows ------------------------------------------------------------------

    def _columns(self) -> tuple[list[FileColumn], tuple[str, ...]]:
        connection = self._opened()
        rows = list(connection.execute(COLUMNS, (self._table,)))
        if not rows:
            raise SourceFault(
                f"{self._path} has no table {self._table}",
                code="source-changed",
                hint="names are as in SQLite, without quotes",
            )
        names = [row[0] for row in rows]
        strange = [name for name in self._declared if name not in names]
        if strange:
            raise SourceFault(
                f"the option types names the column {strange[0]}, which {self._table} has not",
                code="bad-option",
            )
        known = self._context.known
        mirror = {} if known is None else {each.name: each.type for each in known.columns}
        untyped = [
            name
            for name, declared, *_ in rows
            if name not in mirror and name not in self._declared and declared_type(declared) is None
        ]
        inferred = self._inferred(untyped) if untyped else {}
        columns = [
            FileColumn(
                name,
                mirror.get(name)
                or self._declared.get(name)
                or declared_type(declared)
                or inferred[name],
                "INT" in declared.upper(),
                any(part in declared.upper() for part in ("CHAR", "CLOB", "TEXT")),
            )
            for name, declared, _, _ in rows
        ]
        return columns, self._key(rows)

    def _key(self, rows: Sequence[Any]) -> tuple[str, ...]:
        """The primary key. SQLite lets it be NULL, if that is not forbidden."""
        parts = sorted((row for row in rows if row[3]), key=lambda row: row[3])
        is_rowid = len(parts) == 1 and parts[0][1].upper() == "INTEGER"
        if is_rowid or all(row[2] for row in parts):
            return tuple(row[0] for row in parts)
        text = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ? COLLATE NOCASE"
        is_without_rowid = _one(self._opened(), text, (self._table,))
        return tuple(row[0] for row in parts) if is_without_rowid else ()

    def _inferred(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        query = f"{self._query(names)} LIMIT {FIRST_ROWS}"
        rows = [tuple(map(plain_value, row)) for row in self._opened().execute(query)]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return {name: infer(column) for name, column in zip(names, columns, strict=True)}

    def _query(self, names: Sequence[str]) -> str:
        return f"SELECT {', '.join(map(quoted, names))} FROM {quoted(self._table)}"

    def _batches(
        self, connection: apsw.Connection, rows: Iterator[Any], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        typed = TypedRows(
            declared=dict(zip(schema.names, schema.types, strict=True)), known=self._known()
        )
        flags = [pa.types.is_boolean(each) for each in schema.types]

        def plain(row: Any) -> tuple[Any, ...]:
            """SQLite has 0 and 1 for booleans."""
            return tuple(
                bool(value) if flag and value in (0, 1) else plain_value(value)
                for flag, value in zip(flags, row, strict=True)
            )

        try:
            while True:
                check()
                with self._errors():
                    part = [plain(row) for row in itertools.islice(rows, BATCH)]
                if not part:
                    return
                yield from typed.table(schema.names, part).cast(schema).to_batches()
        finally:
            connection.close()

    def _known(self) -> Mapping[str, pa.DataType]:
        known = self._context.known
        return {} if known is None else {each.name: each.type for each in known.columns}

    def _errors(self) -> FileErrors:
        return FileErrors(self._path)


class FileErrors:
    """A block whose errors of SQLite become errors of ours."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            raise SourceFault(
                f"{self._path} is not a file of SQLite: {error}", code="source-suspect"
            ) from error
        if isinstance(error, apsw.Error):
            raise SourceFault(f"{self._path}: {error}", code="source-down") from error


def declared_type(declared: str) -> pa.DataType | None:
    """
    >>> declared_type("DECIMAL(8, 2)"), declared_type("varchar(9)"), declared_type("")
    (Decimal128Type(decimal128(8, 2)), DataType(string), None)
    """
    text = declared.upper()
    if "INT" in text:
        return pa.int64()
    if "BOOL" in text:
        return pa.bool_()
    if any(part in text for part in ("REAL", "FLOA", "DOUB")):
        return pa.float64()
    if text.startswith(("DECIMAL", "NUMERIC", "NUMBER")):
        digits = _DIGITS.search(text)
        if digits is None or int(digits[1]) > 38:
            return None
        return pa.decimal128(int(digits[1]), int(digits[2] or 0))
    if text.startswith(("DATETIME", "TIMESTAMP")):
        return pa.timestamp("us")
    if text == "DATE":
        return pa.date32()
    return TEXT if text else None


def _one(connection: apsw.Connection, query: str, values: Sequence[Any] = ()) -> Any:
    row = connection.execute(query, tuple(values)).fetchone()
    return None if row is None else row[0]


class SqliteKind:
    name = "sqlite"
    title = "SQLite file"
    captures = ("poll",)
    is_whole = True
    options: tuple[Option, ...] = (
        Option("path", "The file.", required=True),
        Option("table", "The table or view.", required=True),
        Option("types", "Types of columns: `price decimal(8, 2), day date`.", "names", ()),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        table = SqliteTable(options["path"], options["table"], options["types"] or (), context)
        return Opened(polled=table, table=options["table"])


KIND = SqliteKind()
