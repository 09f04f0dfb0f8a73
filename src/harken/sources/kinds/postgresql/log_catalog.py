"""What Harken installs in a server to follow its log: a publication with the tables, and a slot.

The comment of the publication says what each table was when its snapshot was taken, so that a table
that was altered meanwhile is noticed also after a restart of either side.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.log_positions import lsn_number
from harken.sources.kinds.postgresql.log_reader import FollowedTable
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable

STATE = """
    SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text,
           s.confirmed_flush_lsn::text, s.plugin, s.wal_status, s.database = current_database()
    FROM (SELECT) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""
SERVER = """
    SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    FROM pg_control_system()
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
    SELECT r.prrelid, n.nspname, c.relname, c.relreplident, c.relfilenode,
           (SELECT coalesce(string_agg(i.indexrelid::text, ',' ORDER BY i.indexrelid), '')
            FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique),
           (SELECT jsonb_object_agg(a.attname, a.xmin::text || '/' || a.atttypid)
            FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
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


@dataclass(frozen=True, slots=True)
class Member:
    """A table of the publication as it is now. `stamps` change with every change of a column, and
    `file` when its rows are written anew."""

    oid: int
    schema: str
    name: str
    identity: str
    file: int
    indexes: str
    stamps: Mapping[str, str]

    @property
    def title(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What the comment says of a table."""

    table: FollowedTable
    file: int
    stamps: Mapping[str, str]


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

    def server(self, connection: Connection) -> str:
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        if row is not None and row[0]:
            raise SourceFault("the server is a standby, or is still recovering", code="source-down")
        row = connection.execute(SERVER).fetchone()
        assert row is not None
        return str(row[0])

    def known(self, connection: Connection) -> dict[str, KnownTable] | None:
        """By the names that sources have for them; None without a publication of ours."""
        row = connection.execute(COMMENT, [self.name]).fetchone()
        if row is None:
            return None
        try:
            given = json.loads(row[0])["tables"]
            return {name: _known(name, each) for name, each in given.items()}
        except (ValueError, KeyError, TypeError):
            return None

    def members(self, connection: Connection) -> dict[int, Member]:
        rows = connection.execute(MEMBERS, [self.name])
        return {row[0]: Member(*row) for row in rows}

    def write(self, connection: Connection, known: Mapping[str, KnownTable]) -> None:
        tables = {name: _written(each) for name, each in known.items()}
        comment = json.dumps({"about": "made by Harken, which drops it", "tables": tables})
        statement = "COMMENT ON PUBLICATION {} IS {}"
        connection.execute(_filled(statement, self.name, sql.Literal(comment)))

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


def altered(known: KnownTable, member: Member | None) -> str:
    """What happened to a table that its rows in the log cannot show."""
    title = known.table.title
    if member is None:
        return f"{title} was dropped, or taken out of the publication of Harken"
    if member.title != title:
        return f"{title} was renamed to {member.title}"
    if member.identity != known.table.identity:
        return f"the replica identity of {title} was changed"
    for name in known.table.wanted:
        if name not in member.stamps:
            return f"{title} lost its column {name}"
        if member.file != known.file and member.stamps[name] != known.stamps.get(name):
            return f"the column {name} of {title} was rewritten"
    return ""


def log_key(table: OutsideTable) -> tuple[str, ...]:
    """The columns by which a row is known; none for a bag."""
    return table.key if table.identity == "f" else table.identity_key


def followed_table(name: str, table: OutsideTable) -> FollowedTable:
    columns = {each.name: str(each.value.arrow) for each in table.columns}
    return FollowedTable(name, table.oid, table.title, columns, log_key(table), table.identity)


def _filled(statement: str, name: str, *more: sql.Composable) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(name), *more)


def _written(known: KnownTable) -> dict[str, Any]:
    table = known.table
    return {
        "oid": table.oid,
        "title": table.title,
        "columns": dict(table.columns),
        "key": list(table.key),
        "identity": table.identity,
        "file": known.file,
        "stamps": dict(known.stamps),
    }


def _known(name: str, given: Mapping[str, Any]) -> KnownTable:
    table = FollowedTable(
        name,
        given["oid"],
        given["title"],
        given["columns"],
        tuple(given["key"]),
        given["identity"],
    )
    return KnownTable(table, given["file"], given["stamps"])


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
        return ""
    if not table.identity_key:
        return (
            f"the log cannot name the rows of {title}, which has no primary key "
            f"(ALTER TABLE {title} REPLICA IDENTITY FULL gives it whole rows)"
        )
    return ""


def not_permitted(title: str, reason: str) -> SourceFault:
    return SourceFault(
        f"the log cannot be followed: {reason}",
        code="not-allowed",
        hint=f"CAPTURE poll reads {title} again; CAPTURE triggers installs triggers on it",
    )
