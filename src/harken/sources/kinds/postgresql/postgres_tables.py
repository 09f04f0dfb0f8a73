"""What the catalog of PostgreSQL says about a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_values import NUMERIC, ValueType, value_type
from harken.sources.outside import OutsideSchema

KINDS = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialised view",
    "f": "foreign table",
}
TYPE = """
    WITH RECURSIVE base(type, modifier) AS (
        SELECT %s::oid, %s::integer
        UNION ALL
        SELECT t.typbasetype, t.typtypmod
        FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
    )
    SELECT b.type, b.modifier, coalesce(nullif(e.typbasetype, 0), e.oid, 0)
    FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
    LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
"""
FIND = "SELECT c.oid FROM pg_class c WHERE c.oid = to_regclass(%s)"
ABOUT = """
    SELECT n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, c.reltuples,
           pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid),
           EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
           has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'),
           has_table_privilege(c.oid, 'TRIGGER')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""
COLUMNS = """
    WITH RECURSIVE base(attnum, type, modifier) AS (
        SELECT a.attnum, a.atttypid, a.atttypmod FROM pg_attribute a
        WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT b.attnum, t.typbasetype, t.typtypmod
        FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
    ), element(type, base) AS (
        SELECT t.oid, coalesce(nullif(e.typbasetype, 0), e.oid)
        FROM pg_type t JOIN pg_type e ON e.oid = t.typelem WHERE t.typcategory = 'A'
    )
    SELECT a.attname, a.attnum, a.atttypid, a.atttypmod, b.type, b.modifier,
           coalesce(e.base, 0), format_type(b.type, b.modifier), format_type(b.type, -1),
           a.attgenerated <> '',
           coalesce(l.collname = 'C', false), coalesce(l.collisdeterministic, true)
    FROM base b
    JOIN pg_attribute a ON a.attrelid = %(oid)s AND a.attnum = b.attnum
    JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
    LEFT JOIN element e ON e.type = b.type
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    ORDER BY a.attnum
"""
KEYS = """
    SELECT x.relname, i.indisprimary, i.indisreplident, i.indimmediate,
           (SELECT array_agg(a.attname ORDER BY k.place)
            FROM unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            WHERE k.place <= i.indnkeyatts)
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
      AND NOT 0 = ANY (i.indkey)
      AND NOT EXISTS (SELECT FROM unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
                      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                      WHERE k.place <= i.indnkeyatts AND NOT a.attnotnull)
    ORDER BY NOT i.indisprimary, NOT i.indisreplident, NOT i.indimmediate, x.relname
"""

IDENTITY_PLACES = {"d": 1, "i": 2}
"""Where a row of `KEYS` says that its index names the rows in the log, by the replica identity."""
NEVER = -1
"""A place that is always false."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    number: int
    type: int
    modifier: int
    value: ValueType
    declared: str
    """The type as PostgreSQL writes it, of a domain its base type."""
    plain: str
    """The same without a length or a precision."""
    is_generated: bool = False
    collates_as_c: bool = False
    is_deterministic: bool = True

    @property
    def identity(self) -> tuple[int, int]:
        """What must stay the same, or the column is another one."""
        return self.type, self.modifier


@dataclass(frozen=True, slots=True)
class OutsideTable:
    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    """Of its rows in the log: d (the primary key), i (an index), f (all columns), n (nothing)."""
    estimate: int = field(compare=False)
    is_ours: bool
    is_restricted: bool
    """Whether row-level security hides rows from the user of the source."""
    has_children: bool
    is_readable: bool
    may_have_triggers: bool
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    index: str | None = None
    """The index of the key, if the key can identify rows in the log."""
    identity_key: tuple[str, ...] = ()
    """The columns by which the log names a row, unless it has the whole row."""
    leaves: dict[int, str] = field(default_factory=dict, compare=False)
    """The partitions that hold the rows."""

    @property
    def place(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def title(self) -> str:
        return f"{self.schema}.{self.name}"

    def schema_of(self, columns: tuple[TableColumn, ...]) -> OutsideSchema:
        fields = [pa.field(each.name, each.value.arrow) for each in columns]
        names = {each.name for each in columns}
        return OutsideSchema(pa.schema(fields), self.key if names.issuperset(self.key) else ())


def vague_key(table: OutsideTable, key: Sequence[str]) -> str:
    """Why the values of a key may be equal here that are not there, if so."""
    for each in table.columns:
        if (
            each.name in key
            and each.value.base == NUMERIC
            and pa.types.is_floating(each.value.arrow)
        ):
            return (
                f"the key of {table.title} has the column {each.name}, a {each.declared} that is a "
                "number with 15 digits here"
            )
    return ""


def read_table(connection: Connection, name: str) -> OutsideTable:
    """The table of this name, written as in a statement of PostgreSQL."""
    found = connection.execute(FIND, [name]).fetchone()
    if found is None:
        raise SourceFault(
            f"the server has no table {name}",
            code="source-changed",
            hint="write schema.table, and quote a name as PostgreSQL needs it: "
            '"Odd name"."My table"',
        )
    return table_of(connection, int(found[0]))


def table_of(connection: Connection, oid: int) -> OutsideTable:
    about = connection.execute(ABOUT, [oid]).fetchone()
    if about is None:
        raise SourceFault("the table has been dropped", code="source-changed")
    schema, name, kind, persistence, identity, estimate, *flags = about
    ours, hidden, parent, readable, triggers = flags
    if kind not in KINDS:
        raise SourceFault(f"{schema}.{name} is not a table or a view", code="source-changed")
    columns = tuple(
        TableColumn(name, number, type, modifier, value_type(base, own, element), *rest)
        for name, number, type, modifier, base, own, element, *rest in connection.execute(
            COLUMNS, {"oid": oid}
        )
    )
    keys = [(*each, False) for each in connection.execute(KEYS, [oid])]
    usable = [each for each in keys if each[3]]  # the log knows rows only by such a key
    chosen = keys[0] if keys and keys[0][1] else next(iter([*usable, *keys]), None)
    place = IDENTITY_PLACES.get(identity, NEVER)
    return OutsideTable(
        oid=oid,
        schema=schema,
        name=name,
        kind=kind,
        persistence=persistence,
        identity=identity,
        estimate=int(estimate),
        is_ours=ours,
        is_restricted=hidden,
        has_children=parent and kind != "p",
        is_readable=readable,
        may_have_triggers=triggers,
        columns=columns,
        key=tuple(chosen[4]) if chosen else (),
        index=chosen[0] if chosen and chosen[3] else None,
        identity_key=next((tuple(each[4]) for each in usable if each[place]), ()),
        leaves=leaves(connection, oid) if kind == "p" else {},
    )


def read_value_type(connection: Connection, type: int, modifier: int) -> ValueType | None:
    """The values of a type that the log names by its number; None if it was dropped."""
    row = connection.execute(TYPE, [type, modifier]).fetchone()
    return None if row is None else value_type(*row)


def leaves(connection: Connection, oid: int) -> dict[int, str]:
    rows = connection.execute(
        "SELECT relid::oid, relid::regclass::text FROM pg_partition_tree(%s) WHERE isleaf", [oid]
    )
    return {int(number): name for number, name in rows}
