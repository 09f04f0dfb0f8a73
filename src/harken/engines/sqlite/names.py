"""The names of tables, indexes and triggers in SQLite, which takes `Edge` and `edge` for the same.

Before each capital letter stands a mark, so that names which differ in case only are two tables.
Databases of before this was so are brought to it when they are opened.

Law: `plain_name(stored_name(n)) == n`, and no two names are the same to SQLite.
"""

from __future__ import annotations

import re

from harken.engines.sqlite.connection import Connection
from harken.errors import StorageError

_CAPITAL = re.compile(r"[A-Z^]")
_MARKED = re.compile(r"\^(.)", re.DOTALL)
_UNMARKED = (
    "SELECT type, name FROM main.sqlite_schema WHERE name GLOB '*[A-Z]*' "
    "AND (type = 'table' OR type = 'index' AND name GLOB 'index *')"
)


def stored_name(name: str) -> str:
    """What SQLite calls it: `Edge` and `edge` are the same to SQLite, and not to us.

    >>> stored_name("edge()"), stored_name("insert Edge()")
    ('edge()', 'insert ^Edge()')
    """
    return _CAPITAL.sub(r"^\g<0>", name)


def plain_name(stored: str) -> str:
    """
    >>> plain_name("insert ^Edge()")
    'insert Edge()'
    """
    return _MARKED.sub(r"\1", stored)


def mark_capitals(connection: Connection) -> None:
    """Rename what an earlier version made. Indexes are made again by whoever needs them."""
    found = [
        (kind, name)
        for kind, name in connection.rows(_UNMARKED)
        if stored_name(plain_name(name)) != name
    ]
    if not found:
        return
    if connection.read_only:
        raise StorageError(
            "an earlier version of Harken made this database",
            code="read-only",
            hint="open it without read_only once",
        )
    connection.begin()
    try:
        for kind, name in found:
            old, new = (each.replace('"', '""') for each in (name, stored_name(name)))
            if kind == "index":
                connection.run(f'DROP INDEX IF EXISTS main."{old}"')
            else:
                connection.run(f'ALTER TABLE main."{old}" RENAME TO "{new}"')
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
