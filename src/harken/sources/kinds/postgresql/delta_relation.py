"""The delta table of a table, `DELTA_<source>_<table>`, and the triggers that fill it.

It has the old and the new values of each change in columns `OLD_...` and `NEW_...`, and a
`TIMESTAMP` (Liu, section 5.6), beside the number of the transaction and a sequence that all delta
tables of this database file share. Names are those of a statement without quotes, so in small
letters.

Law: a transaction that changed the table has its rows in the delta table, or none of both happened.
The triggers never make a statement of the application fail: where the columns are no longer those
that the delta table has, they note only that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from harken.sources.kinds.postgresql.postgres_connection import short_id
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, vague_key

LONGEST = 63
"""Bytes of a name in PostgreSQL."""
INSERTED, UPDATED, DELETED, TRUNCATED, ALTERED = "I", "U", "D", "T", "A"
OWN_COLUMNS = ("sequence", "transaction", "operation", "timestamp")


def short_name(text: str, end: str = "") -> str:
    """A name that PostgreSQL does not cut off.

    >>> short_name("delta_orders", "_x"), len(short_name("é" * 60))
    ('delta_orders_x', 37)
    """
    if len((text + end).encode()) <= LONGEST:
        return text + end
    kept = text.encode()[: LONGEST - len(end.encode()) - 13].decode(errors="ignore")
    return f"{kept}_{short_id(text)}{end}"


@dataclass(frozen=True, slots=True)
class DeltaRelation:
    """The names of everything that is installed for one table."""

    table: OutsideTable
    source: str
    catalog: str
    """The name of the table that lists what was installed, and its schema."""
    schema: str
    is_taken: bool = False
    """Does another database of ours have a delta table of this name?"""

    @property
    def name(self) -> str:
        end = f"_{self.catalog}" if self.is_taken else ""
        return short_name(f"delta_{self.source}_{self.table.name}".lower(), end)

    @property
    def place(self) -> sql.Identifier:
        return sql.Identifier(self.table.schema, self.name)

    @property
    def function(self) -> sql.Identifier:
        return sql.Identifier(self.table.schema, self.function_name)

    @property
    def function_name(self) -> str:
        return short_name(self.name, "_note")

    @property
    def sequence(self) -> sql.Identifier:
        return sql.Identifier(self.schema, f"{self.catalog}_sequence")

    @property
    def triggers(self) -> tuple[str, str]:
        """The last ones in the order of names, so that they see what others have done."""
        name = f"zz_{self.catalog}_{self.source}"
        return short_name(name), short_name(name, "_truncate")

    @property
    def names(self) -> dict[str, Any]:
        """All that is needed to read and to remove it."""
        pairs = zip(self.columns_of("old"), self.columns_of("new"), strict=True)
        return {
            "schema": self.table.schema,
            "delta": self.name,
            "function": self.function_name,
            "columns": {
                each.name: [each.type, each.modifier, *pair]
                for each, pair in zip(self.table.columns, pairs, strict=True)
            },
        }

    def columns_of(self, prefix: str) -> list[str]:
        return [short_name(f"{prefix}_{each.name}") for each in self.table.columns]


def create_script(delta: DeltaRelation) -> sql.Composed:
    """Everything, in one text of several statements."""
    return sql.SQL("\n").join(
        [
            _table(delta),
            _function(delta),
            *_triggers(delta),
        ]
    )


def drop_script(delta: DeltaRelation) -> sql.Composed:
    """The triggers go first: they must never write into a table that is gone."""
    return sql.SQL(
        "DROP TRIGGER IF EXISTS {trigger} ON {table};\n"
        "DROP TRIGGER IF EXISTS {truncate} ON {table};\n"
        "DROP FUNCTION IF EXISTS {function};\n"
        "DROP TABLE IF EXISTS {place};"
    ).format(
        trigger=sql.Identifier(delta.triggers[0]),
        truncate=sql.Identifier(delta.triggers[1]),
        table=delta.table.place,
        function=delta.function,
        place=delta.place,
    )


def _table(delta: DeltaRelation) -> sql.Composed:
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column.plain))
        for prefix in ("old", "new")
        for name, column in zip(delta.columns_of(prefix), delta.table.columns, strict=True)
    ]
    text = (
        "CREATE TABLE {place} (\n"
        "    sequence bigint NOT NULL DEFAULT nextval({sequence}),\n"
        "    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),\n"
        '    operation "char" NOT NULL,\n'
        '    "timestamp" timestamptz NOT NULL DEFAULT clock_timestamp(),\n'
        "    {columns}\n"
        ");\n"
        "CREATE INDEX ON {place} (transaction);\n"
        "COMMENT ON TABLE {place} IS {comment};"
    )
    name = sql.Literal(delta.sequence.as_string(None))
    return sql.SQL(text).format(
        place=delta.place,
        sequence=sql.SQL("{}::regclass").format(name),
        columns=sql.SQL(",\n    ").join(columns),
        comment=sql.Literal(f"Changes of {delta.table.title}, for Harken"),
    )


def _function(delta: DeltaRelation) -> sql.Composed:
    """Runs with the rights of its owner, so that those who write need no more than before."""
    names = [each.name for each in delta.table.columns]
    old, new = (
        sql.SQL(", ").join(sql.SQL("{}.{}").format(sql.SQL(row), sql.Identifier(n)) for n in names)
        for row in ("OLD", "NEW")
    )
    expected = sql.SQL(", ").join(
        sql.SQL("({}, {})").format(sql.Literal(each.name), sql.Literal(each.type))
        for each in delta.table.columns
    )
    body = sql.SQL(
        "BEGIN\n"
        "    IF TG_OP = 'TRUNCATE' THEN\n"
        "        INSERT INTO {place} (operation) VALUES ('T');\n"
        "    ELSIF {number} <> (SELECT count(*) FROM pg_catalog.pg_attribute\n"
        "        WHERE attrelid = TG_RELID AND attnum > 0 AND NOT attisdropped\n"
        "        AND (attname, atttypid) IN ({expected})) THEN\n"
        "        INSERT INTO {place} (operation) VALUES ('A');\n"
        "    ELSIF TG_OP = 'INSERT' THEN\n"
        "        INSERT INTO {place} (operation, {new_names}) VALUES ('I', {new});\n"
        "    ELSIF TG_OP = 'UPDATE' THEN\n"
        "        INSERT INTO {place} (operation, {old_names}, {new_names})\n"
        "        VALUES ('U', {old}, {new});\n"
        "    ELSE\n"
        "        INSERT INTO {place} (operation, {old_names}) VALUES ('D', {old});\n"
        "    END IF;\n"
        "    RETURN NULL;\n"
        "END"
    ).format(
        place=delta.place,
        number=sql.Literal(len(names)),
        expected=expected,
        old=old,
        new=new,
        old_names=_list(delta.columns_of("old")),
        new_names=_list(delta.columns_of("new")),
    )
    return sql.SQL(
        "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER\n"
        "SET search_path = pg_catalog AS {body};"
    ).format(function=delta.function, body=sql.Literal(body.as_string(None)))


def _triggers(delta: DeltaRelation) -> list[sql.Composed]:
    """`ENABLE ALWAYS`, so that rows that a replication brings count, too."""
    texts = [
        "CREATE TRIGGER {trigger} AFTER INSERT OR UPDATE OR DELETE ON {table}\n"
        "FOR EACH ROW EXECUTE FUNCTION {function}();",
        "CREATE TRIGGER {truncate} AFTER TRUNCATE ON {table}\n"
        "FOR EACH STATEMENT EXECUTE FUNCTION {function}();",
    ]
    if delta.table.is_ours:
        texts += [
            "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger};",
            "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {truncate};",
        ]
    return [
        sql.SQL(text).format(
            trigger=sql.Identifier(delta.triggers[0]),
            truncate=sql.Identifier(delta.triggers[1]),
            table=delta.table.place,
            function=delta.function,
        )
        for text in texts
    ]


def _list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def refused_for_triggers(table: OutsideTable) -> str:
    """Why triggers cannot tell of all changes of this table, if so."""
    title = table.title
    if table.kind == "p":
        return f"{title} is partitioned, and no trigger tells when partitions come and go"
    if table.kind != "r":
        return f"{title} is not a table"
    if table.persistence != "p":
        return f"{title} is not logged, so a crash empties it without a trigger"
    if table.has_children:
        return f"{title} has tables that inherit from it"
    if table.is_restricted:
        return f"row-level security hides rows of {title} that its triggers see"
    if not table.may_have_triggers:
        return f"the user of the source may not create triggers on {title}"
    return vague_key(table, table.key)
