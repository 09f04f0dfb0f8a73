"""What the resident file knows about the lake: where each relation is, and which version is read.

`version` is the version of the Delta table that the database stands on; −1 before there is one.
What has been committed here and is not in that version yet lies in the relation's pending table,
row by row with its weight:

    state of a lake relation = its table at `version` + pending

so that a commit of the resident file is a commit of everything, whatever happens to the lake after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.relations import Relation
from harken.sources.place import Place
from harken.sources.registry import kinds_that_keep_files
from harken.values.rows import Row

PLACES = "harken_lake"
GONE = "harken_lake_gone"
SIGNATURE = "harken_lake_signature"
"""Signs this database's commits to the lake, so that it recognises its own."""

CREATE = (
    f"CREATE TABLE IF NOT EXISTS {PLACES} (name TEXT PRIMARY KEY, path TEXT NOT NULL, "
    "kind TEXT NOT NULL, version INTEGER NOT NULL, commits INTEGER NOT NULL, "
    "options TEXT NOT NULL) STRICT",
    f"CREATE TABLE IF NOT EXISTS {GONE} (path TEXT PRIMARY KEY) STRICT",
    f"CREATE TABLE IF NOT EXISTS {SIGNATURE} (name TEXT NOT NULL) STRICT",
    f"INSERT INTO {SIGNATURE} SELECT hex(randomblob(8)) WHERE NOT EXISTS "
    f"(SELECT 1 FROM {SIGNATURE})",
)


class Places:
    """The lake relations of a database, as its file has them.

    What lies in the database's own lake directory is kept relative to it, so that the two can be
    moved together.
    """

    def __init__(self, connection: Connection, directory: Callable[[], Path]) -> None:
        self._connection = connection
        self._directory = directory
        self._may_have_gone = True
        """May there be files to remove? A process that died may have left some, so the first
        commit of a session checks; after that only this session's own `remove` causes a check."""

    def exist(self) -> bool:
        return self._connection.has_table(PLACES)

    def __iter__(self) -> Iterator[Place]:
        if self.exist():
            columns = "name, path, kind, version, commits, options"
            rows = self._connection.rows(f"SELECT {columns} FROM {PLACES}")
            for name, path, kind, version, commits, options in rows:
                yield Place(name, self._absolute(path), kind, version, commits, json.loads(options))

    def find(self, name: str) -> Place | None:
        return next((place for place in self if place.name == name), None)

    def add(self, place: Place) -> None:
        for statement in CREATE:
            self._connection.run(statement)
        path = self._relative(place.path)
        values = (place.name, path, place.kind, place.version, place.commits)
        self._connection.run(
            f"INSERT INTO {PLACES} VALUES (?, ?, ?, ?, ?, ?)", (*values, json.dumps(place.options))
        )

    def remove(self, name: str) -> None:
        """The relation's files are deleted after the commit: see `gone`."""
        self._may_have_gone = True
        kinds = kinds_that_keep_files()
        marks = ", ".join("?" for _ in kinds)
        self._connection.run(
            f"INSERT OR IGNORE INTO {GONE} SELECT path FROM {PLACES} WHERE name = ? "
            f"AND kind IN ({marks})",
            (name, *kinds),
        )
        self._connection.run(f"DELETE FROM {PLACES} WHERE name = ?", (name,))

    def advance(self, name: str, version: int, commits: int) -> None:
        self._connection.run(
            f"UPDATE {PLACES} SET version = ?, commits = ? WHERE name = ?", (version, commits, name)
        )

    def describe(self, name: str, options: dict[str, Any]) -> None:
        self._connection.run(
            f"UPDATE {PLACES} SET options = ? WHERE name = ?", (json.dumps(options), name)
        )

    def signature(self) -> str:
        return f"harken {self._connection.value(f'SELECT name FROM {SIGNATURE}')}"

    def has_gone(self) -> bool:
        """Are there files to remove? Called at every commit, so it rarely queries the file."""
        self._may_have_gone = self._may_have_gone and bool(self.gone())
        return self._may_have_gone

    def gone(self) -> list[str]:
        if not self.exist():
            return []
        return [
            self._absolute(path) for (path,) in self._connection.rows(f"SELECT path FROM {GONE}")
        ]

    def forget_gone(self, path: str) -> None:
        self._connection.run(f"DELETE FROM {GONE} WHERE path = ?", (self._relative(path),))

    def forget_all_gone(self) -> None:
        """In a copy of the file: what is to be removed is the business of the original."""
        if self.exist():
            self._connection.run(f"DELETE FROM {GONE}")

    def make_absolute(self) -> None:
        """Refer to the tables where they are, wherever this file is moved."""
        for place in list(self):
            self._connection.run(
                f"UPDATE {PLACES} SET path = ? WHERE name = ?", (place.path, place.name)
            )

    def _absolute(self, path: str) -> str:
        return path if "/" in path else str(self._directory() / path)

    def _relative(self, path: str) -> str:
        return Path(path).name if Path(path).parent == self._directory() else path


class Pending:
    """What a lake relation has gained and lost since the version that is written.

    Changes of the open transaction go to a temporary table and move to the file's table at its
    end: if a trigger on the fetched rows named the file's table, even fetching would have to
    wait for the write lock.
    """

    def __init__(self, connection: Connection, relation: Relation) -> None:
        self._connection = connection
        self._relation = relation
        self.name = f"pending {table_name(relation)}"
        self.table = quote(self.name)
        self._changed = quote(f"changed {table_name(relation)}")
        self.columns = ", ".join(f"c{i}" for i in range(relation.arity))
        self._key = layout.identity(relation)

    def create(self) -> None:
        self._create(f"TABLE IF NOT EXISTS main.{self.table}")

    def create_changed(self) -> None:
        """Create the session's own part."""
        self._create(f"TEMP TABLE {self._changed}")

    def _create(self, what: str) -> None:
        columns = f"{layout.typed_columns(self._relation)}, weight INTEGER NOT NULL"
        if not layout.may_be_null(self._relation):
            key = f"PRIMARY KEY ({self.columns})"
            self._connection.run(f"CREATE {what} ({columns}, {key}) WITHOUT ROWID")
            return
        self._connection.run(f"CREATE {what} ({columns})")
        schema, table = ("temp", self._changed) if "TEMP" in what else ("main", self.table)
        index = quote(f"rows of {table}")
        self._connection.run(
            f"CREATE UNIQUE INDEX IF NOT EXISTS {schema}.{index} ON {table} ({self._key})"
        )

    def drop(self) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS main.{self.table}")

    def drop_changed(self) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS temp.{self._changed}")

    def counting(self, values: str, weight: int) -> str:
        """The statement, for a trigger, that adds a weight to the row of these values."""
        return (
            f"INSERT INTO {self._changed} ({self.columns}, weight) VALUES ({values}, {weight}) "
            f"ON CONFLICT ({self._key}) DO UPDATE SET weight = weight + ({weight});"
        )

    def settle(self) -> None:
        """Before the commit: move the transaction's changes into the file."""
        changed = f"SELECT {self.columns}, weight FROM temp.{self._changed} WHERE weight <> 0"
        if self._connection.value(f"SELECT EXISTS ({changed})"):
            self.add(self._connection.rows(changed))
        self._connection.run(f"DELETE FROM temp.{self._changed}")

    def rows(self) -> list[Row]:
        """Each row with its weight as the last column."""
        return self._connection.rows(self._all("1"))

    def matching(self, columns: tuple[int, ...], values: Row) -> list[Row]:
        where = " AND ".join(f"c{i} IS ?{n}" for n, i in enumerate(columns, start=1))
        return self._connection.rows(self._all(where), values)

    def among(self, columns: tuple[int, ...], values: Iterable[Row]) -> list[Row]:
        """The pending changes of rows with one of many values, none of them NULL."""
        width = len(columns)
        wanted = f"temp.harken_wanted_{width}"
        names = ", ".join(f"k{i}" for i in range(width))
        run = self._connection.run
        run(f"CREATE TABLE IF NOT EXISTS {wanted} ({names}, PRIMARY KEY ({names})) WITHOUT ROWID")
        run(f"DELETE FROM {wanted}")  # an earlier query may have been broken off
        marks = ", ".join("?" for _ in columns)
        self._connection.run_many(f"INSERT OR IGNORE INTO {wanted} VALUES ({marks})", values)
        shown = ", ".join(f"c{i}" for i in columns)
        return self._connection.rows(self._all(f"({shown}) IN (SELECT {names} FROM {wanted})"))

    def _all(self, where: str) -> str:
        parts = " UNION ALL ".join(
            f"SELECT {self.columns}, weight FROM {table} WHERE {where}"
            for table in (f"main.{self.table}", f"temp.{self._changed}")
        )
        return (
            f"SELECT {self.columns}, sum(weight) FROM ({parts}) "
            f"GROUP BY {self.columns} HAVING sum(weight) <> 0"
        )

    def is_unused(self) -> bool:
        """Is the table empty, even of rows that cancel out?"""
        tables = (f"main.{self.table}", f"temp.{self._changed}")
        some = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
        return not self._connection.value(f"SELECT {some}")

    def is_empty(self) -> bool:
        return not self._connection.value(f"SELECT EXISTS ({self._all('1')})")

    def size(self) -> int:
        return int(self._connection.value(f"SELECT count(*) FROM ({self._all('1')})"))

    def balance(self) -> int:
        """Number of rows that pending changes of earlier transactions add to the table."""
        return int(self._connection.value(f"SELECT total(weight) FROM main.{self.table}"))

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows with their weights, which may cancel out rows already there."""
        marks = ", ".join("?" for _ in range(self._relation.arity + 1))
        self._connection.run_many(
            f"INSERT INTO main.{self.table} ({self.columns}, weight) VALUES ({marks}) "
            f"ON CONFLICT ({self._key}) DO UPDATE SET weight = weight + excluded.weight",
            rows,
        )
        self._connection.run(f"DELETE FROM main.{self.table} WHERE weight = 0")

    def forget(self, rows: Iterable[Row]) -> None:
        same = " AND ".join(f"c{i} IS ?" for i in range(self._relation.arity))
        self._connection.run_many(f"DELETE FROM main.{self.table} WHERE {same}", rows)

    def clear(self) -> None:
        self._connection.run(f"DELETE FROM main.{self.table}")
