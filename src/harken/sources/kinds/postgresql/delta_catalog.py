"""What Harken keeps in a server whose changes triggers note, besides the delta tables: a sequence
that gives all changes an order, and a table that says which delta tables there are, and what was
trimmed from each.
"""

from __future__ import annotations

from dataclasses import replace

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.delta_relation import DeltaRelation, create_script
from harken.sources.kinds.postgresql.log_positions import Seen
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable
from harken.sources.kinds.postgresql.table_stamps import KnownTable, read_known, written

FIND = """
    SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = %s AND c.relkind = 'r'
"""
PERMITS = """
    SELECT pg_is_in_recovery(), has_schema_privilege(%s, 'CREATE'), current_user::text,
           current_setting('server_version_num')::int
"""
OLDEST_VERSION = 130_000
"""The first with numbers of transactions that never begin again."""


class DeltaCatalog:
    """`name` identifies the database file of ours, and is a part of the names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._schema: str | None = None

    def relation(self, connection: Connection, table: OutsideTable, source: str) -> DeltaRelation:
        """What is or would be installed for a table of a source."""
        known = self.known(connection)
        delta = DeltaRelation(table, source, self.name, self._schema or table.schema)
        is_ours = any(
            each.installed is not None
            and (each.installed["schema"], each.installed["delta"]) == (table.schema, delta.name)
            for each in known.values()
        )
        return replace(delta, is_taken=not is_ours and self._is_there(connection, delta))

    @staticmethod
    def _is_there(connection: Connection, delta: DeltaRelation) -> bool:
        place = delta.place.as_string(None)
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [place]).fetchone()
        return row is not None and bool(row[0])

    def exists(self, connection: Connection) -> bool:
        row = connection.execute(FIND, [self.name]).fetchone()
        self._schema = None if row is None else str(row[0])
        return row is not None

    @property
    def _place(self) -> sql.Identifier:
        assert self._schema is not None
        return sql.Identifier(self._schema, self.name)

    @property
    def _sequence(self) -> sql.Identifier:
        assert self._schema is not None
        return sql.Identifier(self._schema, f"{self.name}_sequence")

    def refusal(self, connection: Connection, table: OutsideTable) -> str:
        """Why nothing can be installed beside this table, if so."""
        row = connection.execute(PERMITS, [table.schema]).fetchone()
        assert row is not None
        is_standby, may_create, user, version = row
        if is_standby:
            return "the server is a standby"
        if version < OLDEST_VERSION:
            return "triggers need PostgreSQL 13 or newer"
        if not may_create:
            return f"{user} may not create tables in the schema {table.schema}"
        return ""

    def known(self, connection: Connection) -> dict[str, KnownTable]:
        if not self.exists(connection):
            return {}
        query = sql.SQL("SELECT name, known FROM {}").format(self._place)
        found: dict[str, KnownTable] = {}
        for _, text in connection.execute(query):
            found |= read_known(text) or {}
        return found

    def trimmed(self, connection: Connection) -> dict[str, Seen]:
        if self._schema is None:
            return {}
        query = sql.SQL("SELECT name, trimmed FROM {} WHERE trimmed <> ''").format(self._place)
        return {name: Seen.read(text) for name, text in connection.execute(query)}

    def last_number(self, connection: Connection) -> int | None:
        """That was drawn from the sequence."""
        if self._schema is None and not self.exists(connection):
            return None
        # a new sequence has the last value 1, and still has it when 1 was drawn
        query = sql.SQL("SELECT last_value - (NOT is_called)::int FROM {}").format(self._sequence)
        row = connection.execute(query).fetchone()
        return None if row is None else int(row[0])

    def prepare(self, connection: Connection, default: str) -> None:
        """The catalog itself, before the first table."""
        if not self.exists(connection):
            self._schema = default
            connection.execute(self.script(default))

    def script(self, schema: str) -> sql.Composed:
        return sql.SQL(
            "CREATE SEQUENCE IF NOT EXISTS {sequence};\n"
            "CREATE TABLE IF NOT EXISTS {place} (name text PRIMARY KEY, known text NOT NULL,\n"
            "    trimmed text NOT NULL DEFAULT '');\n"
            "COMMENT ON TABLE {place} IS 'The delta tables of Harken, which drops this table';"
        ).format(
            sequence=sql.Identifier(schema, f"{self.name}_sequence"),
            place=sql.Identifier(schema, self.name),
        )

    def install(self, connection: Connection, delta: DeltaRelation) -> None:
        if self._is_there(connection, delta):
            raise SourceFault(
                f"the table {delta.table.schema}.{delta.name} exists already, and is not one of "
                "this database",
                code="not-allowed",
                hint="name the source differently, or drop that table if nobody needs it",
            )
        connection.execute(create_script(delta))

    def write(self, connection: Connection, name: str, known: KnownTable) -> None:
        query = sql.SQL(
            "INSERT INTO {} (name, known) VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET known = excluded.known"
        ).format(self._place)
        connection.execute(query, [name, written({name: known})])

    def note_trimmed(self, connection: Connection, name: str, seen: Seen) -> None:
        query = sql.SQL("UPDATE {} SET trimmed = %s WHERE name = %s").format(self._place)
        connection.execute(query, [seen.text, name])

    def remove(self, connection: Connection, name: str, known: KnownTable) -> None:
        """The delta table, its function, and with that the triggers; with the last one all."""
        assert known.installed is not None
        names = known.installed
        for statement in (
            sql.SQL("DROP FUNCTION IF EXISTS {} CASCADE").format(
                sql.Identifier(names["schema"], names["function"])
            ),
            sql.SQL("DROP TABLE IF EXISTS {}").format(delta_place(known)),
            sql.SQL("DELETE FROM {} WHERE name = {}").format(self._place, sql.Literal(name)),
        ):
            connection.execute(statement)

    def remove_empty(self, connection: Connection) -> None:
        if not self.known(connection):
            assert self._schema is not None
            connection.execute(self.drop_script(self._schema))
            self._schema = None

    def drop_script(self, schema: str) -> sql.Composed:
        return sql.SQL("DROP TABLE IF EXISTS {};\nDROP SEQUENCE IF EXISTS {};").format(
            sql.Identifier(schema, self.name), sql.Identifier(schema, f"{self.name}_sequence")
        )


def delta_place(known: KnownTable) -> sql.Identifier:
    assert known.installed is not None
    return sql.Identifier(known.installed["schema"], known.installed["delta"])
