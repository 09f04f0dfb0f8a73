"""How a stored relation is laid out in SQLite: its table and the statements that change it.

A function of one object or integer is keyed by the rowid itself; other keys make a clustered table;
a bag is a plain table with an index on its arguments. A column of a surrogate type references the
extent of its type, so SQLite itself keeps type integrity, and deleting an object deletes every row
that mentions it.

Law: `set` and `add` of a row already present, and `remove` of an absent row, change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.engines.sqlite.sql_expressions import quote
from harken.ir.relations import Relation, extent_name, is_extent
from harken.values.encoding import column_type
from harken.values.types import BOOLEAN, INTEGER


def table_name(relation: Relation) -> str:
    """Extents and functions live in tables of their own name, except for names that SQLite
    reserves."""
    name = relation.name if is_extent(relation) else relation.id
    return f" {name}" if name.lower().startswith("sqlite_") else name


def create_table(
    relation: Relation, supertypes: tuple[str, ...] = (), temporary: bool = False
) -> str:
    """For an extent, `supertypes` are the extents an object must already be in.

    A temporary table references no other: SQLite has no references between files.
    """
    create = "CREATE TEMP TABLE" if temporary else "CREATE TABLE"
    if is_extent(relation):
        references = "".join(
            f", FOREIGN KEY (c0) REFERENCES {quote(extent_name(name))} (c0) ON DELETE CASCADE"
            for name in supertypes
        )
        return f"CREATE TABLE {_table(relation)} (c0 INTEGER PRIMARY KEY{references}) STRICT"
    columns = [_column(relation, position, temporary) for position in range(relation.arity)]
    options = "STRICT"
    if relation.key == ():
        columns.append("k INTEGER PRIMARY KEY CHECK (k = 0)")
    elif relation.key is not None and not _is_rowid_key(relation):
        key = ", ".join(f"c{position}" for position in relation.key)
        columns.append(f"PRIMARY KEY ({key})")
        options = "STRICT, WITHOUT ROWID"
    return f"{create} {_table(relation)} ({', '.join(columns)}) {options}"


def typed_columns(relation: Relation) -> str:
    """The columns of a temporary table, with types: without them SQLite would not search it by
    the values of another table."""
    return ", ".join(
        f"c{i} {column_type(column.type)}" for i, column in enumerate(relation.columns)
    )


def _column(relation: Relation, position: int, temporary: bool = False) -> str:
    type_ = relation.columns[position].type
    text = f"c{position} {column_type(type_)}{'' if type_.nullable else ' NOT NULL'}"
    if _is_rowid_key(relation) and relation.key == (position,):
        text = f"c{position} INTEGER PRIMARY KEY"
    if type_.surrogate and not temporary:
        text += f" REFERENCES {quote(extent_name(type_.name))} (c0) ON DELETE CASCADE"
    if type_ == BOOLEAN:
        text += f" CHECK (c{position} IN (0, 1))"
    return text


def _is_rowid_key(relation: Relation) -> bool:
    if relation.key is None or len(relation.key) != 1:
        return False
    type_ = relation.columns[relation.key[0]].type
    return type_.surrogate or type_ == INTEGER


def create_index(relation: Relation, columns: tuple[int, ...], temporary: bool = False) -> str:
    schema = "temp" if temporary else "main"
    return (
        f"CREATE INDEX IF NOT EXISTS {schema}.{quote(index_name(relation, columns))} "
        f"ON {_table(relation)} ({', '.join(f'c{position}' for position in columns)})"
    )


def index_name(relation: Relation, columns: tuple[int, ...]) -> str:
    return f"index {table_name(relation)} {','.join(map(str, columns))}"


def key_prefixes(relation: Relation) -> set[tuple[int, ...]]:
    """The column lists by which the table itself can be searched."""
    key = relation.key or ()
    return {key[:length] for length in range(1, len(key) + 1)}


@dataclass(frozen=True, slots=True)
class Changes:
    """The statements that change or read a stored relation."""

    set: str
    insert: str
    remove: str
    clear: str
    get: str
    exists: str


def changes(relation: Relation) -> Changes:
    table = _table(relation)
    arity = relation.arity
    columns = ", ".join(f"c{i}" for i in range(arity))
    marks = ", ".join("?" for _ in range(arity))
    all_equal = " AND ".join(_is_value(relation, i) for i in range(arity))
    arguments = " AND ".join(_is_value(relation, i) for i in range(relation.inputs)) or "1"
    results = ", ".join(f"c{i}" for i in range(relation.inputs, arity)) or "1"
    if relation.key == ():
        insert = f"INSERT INTO {table} (k, {columns}) VALUES (0, {marks})"
    else:
        insert = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
    remove = f"DELETE FROM {table} WHERE {all_equal}"
    if not relation.is_set:
        one = f"SELECT rowid FROM {table} WHERE {all_equal} LIMIT 1"
        remove = f"DELETE FROM {table} WHERE rowid = ({one})"
    return Changes(
        set=insert + _on_conflict(relation),
        insert=insert,
        remove=remove,
        clear=f"DELETE FROM {table} WHERE {arguments}",
        get=f"SELECT {results} FROM {table} WHERE {arguments}",
        exists=f"SELECT 1 FROM {table} WHERE {all_equal}",
    )


def insertion(relation: Relation, count: int) -> str:
    """`insert` of `count` rows."""
    insert = changes(relation).insert
    row = insert.rpartition(" VALUES ")[2]
    return insert + f", {row}" * (count - 1)


def addition(relation: Relation, count: int) -> str:
    """`set` of `count` rows."""
    return insertion(relation, count) + _on_conflict(relation)


def removal(relation: Relation, count: int) -> str:
    """`remove` of `count` rows."""
    table, arity = _table(relation), relation.arity
    row = f"({', '.join('?' for _ in range(arity))})"
    columns = ", ".join(f"c{i}" for i in range(arity))
    given = f"WITH given ({columns}) AS (VALUES {', '.join([row] * count)})"
    same = " AND ".join(f"there.c{i} {_same(relation, i)} wanted.c{i}" for i in range(arity))
    if relation.is_set:
        key = _identity(relation)
        found = ", ".join(f"there.{each}" for each in key)
        chosen = f"SELECT {found} FROM given wanted CROSS JOIN {table} there WHERE {same}"
        return f"{given} DELETE FROM {table} WHERE ({', '.join(key)}) IN ({chosen})"
    numbered = (
        "SELECT there.rowid AS id, wanted.copies AS copies, row_number() OVER "
        f"(PARTITION BY {', '.join(f'wanted.c{i}' for i in range(arity))}) AS number "
        f"FROM (SELECT *, count(*) AS copies FROM given GROUP BY {columns}) wanted "
        f"CROSS JOIN {table} there WHERE {same}"
    )
    chosen = f"SELECT id FROM ({numbered}) WHERE number <= copies"
    return f"{given} DELETE FROM {table} WHERE rowid IN ({chosen})"


def _identity(relation: Relation) -> tuple[str, ...]:
    """The columns by which SQLite finds a row directly."""
    if relation.key and not _is_rowid_key(relation):
        return tuple(f"c{i}" for i in relation.key)
    return ("rowid",)


def _is_value(relation: Relation, position: int) -> str:
    return f"c{position} {_same(relation, position)} ?{position + 1}"


def _same(relation: Relation, position: int) -> str:
    return "IS" if relation.columns[position].type.nullable else "="


def identity(relation: Relation) -> str:
    """The expressions of a unique index that tells rows apart, NULLs included."""
    return ", ".join(
        f"coalesce(c{i}, x'')" if column.type.nullable else f"c{i}"
        for i, column in enumerate(relation.columns)
    )


def sorted_by_identity(relation: Relation) -> str:
    """The order in which a unique index over all columns of a set has the rows; "" for others."""
    if not (relation.is_set and relation.arity) or may_be_null(relation):
        return ""
    return f" ORDER BY {', '.join(f'c{i}' for i in range(relation.arity))}"


def may_be_null(relation: Relation) -> bool:
    return any(column.type.nullable for column in relation.columns)


def _on_conflict(relation: Relation) -> str:
    if relation.key is None:
        return ""
    values = [i for i in range(relation.arity) if i not in relation.key]
    target = ", ".join(f"c{i}" for i in relation.key) or "k"
    if not values:
        return f" ON CONFLICT ({target}) DO NOTHING"
    updates = ", ".join(f"c{i} = excluded.c{i}" for i in values)
    differs = " OR ".join(f"c{i} IS NOT excluded.c{i}" for i in values)
    return f" ON CONFLICT ({target}) DO UPDATE SET {updates} WHERE {differs}"


def _table(relation: Relation) -> str:
    return quote(table_name(relation))
