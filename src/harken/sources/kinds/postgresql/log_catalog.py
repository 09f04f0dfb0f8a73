"""What Harken installs in a server to follow its log: a publication with the tables, and a slot.

The comment of the publication says what each table was when its snapshot was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.log_positions import lsn_number
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, vague_key
from harken.sources.kinds.postgresql.table_stamps import (
    KnownTable,
    Member,
    members,
    read_known,
    written,
)

STATE = """
    SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text,
           s.confirmed_flush_lsn::text, s.plugin, s.wal_status, s.database = current_database()
    FROM (SELECT) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""
PERMITS = """
    SELECT current_setting('wal_level'), pg_is_in_recovery(),
           (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
           has_database_privilege(current_database(), 'CREATE'), current_user::text,
           (SELECT count(*) FROM pg_replication_slots WHERE slot_name <> %s)
               < current_setting('max_replication_slots')::int
"""
COMMENT = """
    SELECT coalesce(obj_description(p.oid, 'pg_publication'), '')
    FROM pg_publication p WHERE p.pubname = %s
"""
MEMBERS = """
    SELECT r.prrelid FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    WHERE p.pubname = %s
"""
PLUGIN = "pgoutput"


@dataclass(frozen=True, slots=True)
class LogState:
    """Of the log and our slot."""

    inserted: int
    """Where the next record will be: the end of another one, always."""
    flushed: int
    """How far the log can be read. This may be inside of a record."""
    confirmed: int | None
    """How far the slot was released; None if there is no slot of ours."""
    problem: str = ""


class LogCatalog:
    """The publication `name` and the slot of the same name, over a connection that commits after
    each statement."""

    def __init__(self, name: str) -> None:
        self.name = name

    def state(self, connection: Connection) -> LogState:
        row = connection.execute(STATE, [self.name]).fetchone()
        assert row is not None
        inserted, flushed, confirmed, plugin, status, is_here = row
        problem = ""
        if plugin is None:
            problem = f"the server has no replication slot {self.name}"
        elif plugin != PLUGIN or not is_here:
            problem = f"the replication slot {self.name} is not one of Harken"
        elif status == "lost":
            problem = f"the server has removed the log that the slot {self.name} needs"
        place = None if confirmed is None else lsn_number(confirmed)
        return LogState(lsn_number(inserted), lsn_number(flushed), place, problem)

    def refusal(self, connection: Connection) -> str:
        """Why the server does not let its log be followed, if so."""
        row = connection.execute(PERMITS, [self.name]).fetchone()
        assert row is not None
        level, is_standby, may_replicate, may_create, user, has_room = row
        if is_standby:
            return "the server is a standby"
        if level != "logical":
            return f"its wal_level is {level}, not logical"
        if not may_replicate:
            return f"{user} has no right to replicate (ALTER ROLE {user} REPLICATION)"
        if not may_create:
            return f"{user} may not make a publication (GRANT CREATE ON DATABASE ... TO {user})"
        return "" if has_room else "all its replication slots are taken (max_replication_slots)"

    def known(self, connection: Connection) -> dict[str, KnownTable] | None:
        """By the names that sources have for them; None without a publication of ours."""
        row = connection.execute(COMMENT, [self.name]).fetchone()
        return None if row is None else read_known(row[0])

    def members(self, connection: Connection) -> dict[int, Member]:
        return members(connection, [row[0] for row in connection.execute(MEMBERS, [self.name])])

    def write(self, connection: Connection, known: Mapping[str, KnownTable]) -> None:
        comment = sql.Literal(written(known))
        connection.execute(_filled("COMMENT ON PUBLICATION {} IS {}", self.name, comment))

    def create(self, connection: Connection) -> None:
        """The publication must be older than the slot: the log is read with the catalog of its
        time."""
        connection.execute(_filled("CREATE PUBLICATION {}", self.name))
        self.write(connection, {})
        create_slot = "SELECT pg_create_logical_replication_slot(%s, %s)"
        connection.execute(create_slot, [self.name, PLUGIN])

    def drop(self, connection: Connection) -> None:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s AND database = current_database()",
            [self.name],
        )
        connection.execute(_filled("DROP PUBLICATION IF EXISTS {}", self.name))

    def add(self, connection: Connection, table: OutsideTable) -> None:
        statement = "ALTER PUBLICATION {} ADD TABLE ONLY {}"
        connection.execute(_filled(statement, self.name, table.place))

    def remove(self, connection: Connection, member: Member) -> None:
        statement = "ALTER PUBLICATION {} DROP TABLE ONLY {}"
        place = sql.Identifier(member.schema, member.name)
        connection.execute(_filled(statement, self.name, place))

    def advance(self, connection: Connection, place: str) -> None:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s)", [self.name, place])


def _filled(statement: str, name: str, *more: sql.Composable) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(name), *more)


def refused_for_log(table: OutsideTable) -> str:
    """Why the log cannot tell of all changes of this table, if so; and what would help."""
    title = table.title
    if table.kind == "p":
        return f"{title} is partitioned, and the log does not tell when partitions come and go"
    if table.kind != "r":
        return f"{title} is not a table, so the log has no rows of it"
    if table.persistence != "p":
        return f"{title} is not logged"
    if table.has_children:
        return f"{title} has tables that inherit from it"
    if not table.is_ours:
        return f"the user of the source does not own {title}, so it cannot publish the table"
    if table.is_restricted:
        return f"row-level security hides rows of {title} that the log shows"
    generated = [each.name for each in table.columns if each.is_generated]
    if generated:
        return f"the log does not have the generated column {generated[0]} of {title}"
    if table.identity == "f":
        return vague_key(table, table.key)
    if not table.identity_key:
        return (
            f"the log cannot name the rows of {title}, which has no primary key "
            f"(ALTER TABLE {title} REPLICA IDENTITY FULL gives it whole rows)"
        )
    return vague_key(table, table.identity_key)


def not_permitted(title: str, reason: str) -> SourceFault:
    return SourceFault(
        f"the log cannot be followed: {reason}",
        code="not-allowed",
        hint=f"CAPTURE poll reads {title} again; CAPTURE triggers installs triggers on it",
    )
