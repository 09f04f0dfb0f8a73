"""Records that are no relations, in tables of their own (`engines.protocol.file_records`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from harken.engines.protocol.file_records import COUNTERS, Above, Conditions, RecordKind
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.sqlite.connection import Connection

COUNT_UP = (
    f"INSERT INTO {COUNTERS.name} VALUES (?, 1) "
    "ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
)


class RecordTables:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def exist(self, kind: RecordKind) -> bool:
        return self._connection.has_table(kind.name, _schema(kind))

    def make_room(self, kind: RecordKind) -> None:
        for sql in _creation(kind):
            self._connection.run(sql)

    def add(self, kind: RecordKind, record: Sequence[Any], *, replace: bool = False) -> None:
        verb = "INSERT OR REPLACE" if replace else "INSERT"
        marks = ", ".join("?" * len(kind.fields))
        self._connection.run(f"{verb} INTO {_table(kind)} VALUES ({marks})", tuple(record))

    def find(
        self,
        kind: RecordKind,
        conditions: Conditions | None = None,
        *,
        above: Above | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        order = ", ".join(map(_quoted, kind.key)) if above is None else _quoted(above[0])
        where, values = _where(conditions or {}, above, ">")
        first = "" if limit is None else f" LIMIT {limit}"
        columns = ", ".join(_quoted(each.name) for each in kind.fields)
        return self._connection.rows(
            f"SELECT {columns} FROM {_table(kind)}{where} ORDER BY {order}{first}", values
        )

    def change(
        self,
        kind: RecordKind,
        conditions: Conditions,
        values: Conditions | None = None,
        *,
        add: Mapping[str, float] | None = None,
        if_none: Conditions | None = None,
    ) -> list[Row]:
        values, add, if_none = values or {}, add or {}, if_none or {}
        sets = [f"{_quoted(each)} = ?" for each in values]
        sets += [f"{_quoted(each)} = {_quoted(each)} + ?" for each in add]
        sets += [f"{_quoted(each)} = coalesce({_quoted(each)}, ?)" for each in if_none]
        where, wanted = _where(conditions)
        columns = ", ".join(_quoted(each.name) for each in kind.fields)
        return self._connection.rows(
            f"UPDATE {_table(kind)} SET {', '.join(sets)}{where} RETURNING {columns}",
            (*values.values(), *add.values(), *if_none.values(), *wanted),
        )

    def remove(
        self, kind: RecordKind, conditions: Conditions, *, up_to: Above | None = None
    ) -> None:
        where, values = _where(conditions, up_to, "<=")
        self._connection.run(f"DELETE FROM {_table(kind)}{where}", values)

    def remove_oldest(self, kind: RecordKind, keep: int) -> None:
        table = _table(kind)
        self._connection.run(
            f"DELETE FROM {table} WHERE rowid <= (SELECT max(rowid) FROM {table}) - ?", (keep,)
        )

    def size(
        self, kind: RecordKind, column: str, conditions: Conditions, *, up_to: Above | None = None
    ) -> tuple[int, int]:
        where, values = _where(conditions, up_to, "<=")
        number, size = self._connection.rows(
            f"SELECT count(*), coalesce(sum(octet_length({_quoted(column)})), 0) "
            f"FROM {_table(kind)}{where}",
            values,
        )[0]
        return number, size

    def count_up(self, key: str) -> int:
        return int(self._connection.value(COUNT_UP, (key,)))


def _schema(kind: RecordKind) -> str:
    return "temp" if kind.temporary else "main"


def _table(kind: RecordKind) -> str:
    return f"{_schema(kind)}.{kind.name}"


def _quoted(column: str) -> str:
    return f'"{column}"'


def _where(
    conditions: Conditions, bound: Above | None = None, comparison: str = ""
) -> tuple[str, tuple[Any, ...]]:
    parts = [f"{_quoted(each)} = ?" for each in conditions]
    values = tuple(conditions.values())
    if bound is not None:
        parts.append(f"{_quoted(bound[0])} {comparison} ?")
        values += (bound[1],)
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


@cache
def _creation(kind: RecordKind) -> tuple[str, ...]:
    def column(name: str, type: str, optional: bool) -> str:
        return f"{_quoted(name)} {type.upper()}{'' if optional else ' NOT NULL'}"

    parts = [column(each.name, each.type, each.optional) for each in kind.fields]
    if kind.numbered:
        parts[0] = f"{_quoted(kind.key[0])} INTEGER PRIMARY KEY"
    else:
        parts.append(f"PRIMARY KEY ({', '.join(map(_quoted, kind.key))})")
    if kind.unique:
        parts.append(f"UNIQUE ({', '.join(map(_quoted, kind.unique))})")
    if kind.parent is not None:
        parts.append(
            f"FOREIGN KEY ({_quoted(kind.key[0])}) REFERENCES {kind.parent.name} "
            f"({_quoted(kind.parent.key[0])}) ON DELETE CASCADE"
        )
    found = [f"CREATE TABLE IF NOT EXISTS {_table(kind)} ({', '.join(parts)}) STRICT"]
    if kind.ordered_by is not None:
        found.append(
            f"CREATE INDEX IF NOT EXISTS {_schema(kind)}.{kind.name}_in_order "
            f"ON {kind.name} ({_quoted(kind.ordered_by)})"
        )
    return tuple(found)
