"""Statements about one table, written from names and columns: for forms, and for copies of tables.

Law: a name is always quoted, and a value is never part of a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.ir.relations import Column
from harken.lang.sql.type_names import type_name


def quoted_name(name: str) -> str:
    """
    >>> quoted_name("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def create_text(name: str, columns: Sequence[Column], key: Sequence[int]) -> str:
    parts = [f"{quoted_name(each.name)} {type_name(each.type)}" for each in columns]
    if key:
        parts.append(f"PRIMARY KEY ({_names(columns[at] for at in key)})")
    return f"CREATE TABLE {quoted_name(name)} ({', '.join(parts)})"


def count_text(name: str) -> str:
    return f"SELECT count(*) FROM {quoted_name(name)}"


def insert_text(name: str, columns: Sequence[Column]) -> str:
    """The values come as texts, and are read as those of their columns."""
    places = ", ".join(map(_place, columns))
    return f"INSERT INTO {quoted_name(name)} ({_names(columns)}) VALUES ({places})"


def update_text(name: str, changed: Sequence[Column], identity: Sequence[Column]) -> str:
    """The values of the changed columns, then those that identify the row."""
    sets = ", ".join(f"{quoted_name(each.name)} = {_place(each)}" for each in changed)
    return f"UPDATE {quoted_name(name)} SET {sets} WHERE {_same(identity)}"


def delete_text(name: str, identity: Sequence[Column]) -> str:
    return f"DELETE FROM {quoted_name(name)} WHERE {_same(identity)}"


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(quoted_name(each.name) for each in columns)


def _same(columns: Sequence[Column]) -> str:
    return " AND ".join(f"{quoted_name(each.name)} <=> {_place(each)}" for each in columns)


def _place(column: Column) -> str:
    return f"CAST(? AS {type_name(column.type)})"
