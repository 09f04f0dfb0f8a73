"""What a table was when its snapshot was taken, and what it is now.

The server keeps what it was (in the comment of what Harken installed), so that a table that was
altered meanwhile is noticed also after a restart of either side.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.log_reader import FollowedTable
from harken.sources.kinds.postgresql.postgres_connection import Connection
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, table_of
from harken.sources.outside import OutsideSchema

MEMBERS = """
    SELECT c.oid, n.nspname, c.relname, c.relreplident, c.relfilenode,
           (SELECT coalesce(string_agg(i.indexrelid::text, ',' ORDER BY i.indexrelid), '')
            FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique),
           (SELECT coalesce(jsonb_object_agg(t.tgname, t.tgenabled::text || '/' || t.xmin), '{}')
            FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
           (SELECT jsonb_object_agg(a.attname, a.xmin::text || '/' || a.atttypid)
            FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY (%s::oid[])
"""
ABOUT = "made by Harken, which drops it"
LOCK_PATIENCE = "5s"
"""Adding a table waits for those that change it, while others wait behind it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A table as it is now. `stamps` change with every change of a column or a trigger, and `file`
    when its rows are written anew."""

    oid: int
    schema: str
    name: str
    identity: str
    file: int
    indexes: str
    triggers: Mapping[str, str]
    stamps: Mapping[str, str]

    @property
    def title(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What the server keeps of a table."""

    table: FollowedTable
    file: int
    stamps: Mapping[str, str]
    triggers: Mapping[str, str]
    """Of those of ours."""
    installed: Mapping[str, Any] | None = None
    """What was made for this table alone, by the way of capture."""


def members(connection: Connection, oids: Sequence[int]) -> dict[int, Member]:
    rows = connection.execute(MEMBERS, [list(oids)])
    return {row[0]: Member(*row) for row in rows}


class Alterations:
    """Looks at the tables of one server, thoroughly only if something has changed."""

    def __init__(self, *, by_log: bool) -> None:
        self._by_log = by_log
        self._members: Mapping[int, Member] = {}
        self._found: dict[str, str] = {}
        self.offered: dict[str, tuple[str, ...]] = {}
        """By table: the columns that are not expected."""

    def forget(self) -> None:
        self._members = {}

    def found(
        self,
        connection: Connection,
        known: Mapping[str, KnownTable],
        now: Mapping[int, Member],
        expected: Mapping[str, Sequence[str]],
    ) -> tuple[dict[str, str], dict[str, KnownTable]]:
        """What happened to which table, and what to keep of the others from now on."""
        if now == self._members:
            return self._found, dict(known)
        self._found, fresh = {}, dict(known)
        for name, each in known.items():
            member = now.get(each.table.oid)
            table = replace(each.table, expected=tuple(expected.get(name, ())))
            problem = self._altered(connection, replace(each, table=table), member)
            if problem:
                self._found[name] = problem
            elif member is not None:
                fresh[name] = replace(each, file=member.file, stamps=member.stamps)
                self.offered[name] = tuple(e for e in member.stamps if e not in table.wanted)
        self._members = now
        return self._found, fresh

    def _altered(self, connection: Connection, known: KnownTable, member: Member | None) -> str:
        title = known.table.title
        if member is None:
            return f"{title} was dropped, or taken out of what Harken follows"
        if member.title != title:
            return f"{title} was renamed to {member.title}"
        if self._by_log and member.identity != known.table.identity:
            return f"the replica identity of {title} was changed"
        if not known.triggers.items() <= member.triggers.items():
            return f"the triggers of Harken on {title} were switched off or changed"
        for name in known.table.wanted:
            if name not in member.stamps:
                return f"{title} lost its column {name}"
            if member.file != known.file and member.stamps[name] != known.stamps.get(name):
                return f"the column {name} of {title} was rewritten"
        table = table_of(connection, member.oid)
        if capture_key(table, by_log=self._by_log) != known.table.key:
            return f"the key of {title} was changed"
        types = {each.name: str(each.value.arrow) for each in table.columns}
        for name in known.table.wanted:
            if types.get(name) != known.table.columns[name]:
                return f"the column {name} of {title} got another type"
        return ""


def capture_key(table: OutsideTable, *, by_log: bool) -> tuple[str, ...]:
    """The columns by which a change knows a row; none for a bag."""
    return table.identity_key if by_log and table.identity != "f" else table.key


def followed_schema(table: OutsideTable, *, by_log: bool) -> OutsideSchema:
    return replace(table.schema_of(table.columns), key=capture_key(table, by_log=by_log))


def lock_out_writers(connection: Connection, table: OutsideTable) -> None:
    """Until the transaction ends. The table must be as it was when it was read."""
    wait_briefly(connection)
    lock = sql.SQL("LOCK TABLE ONLY {} IN SHARE ROW EXCLUSIVE MODE").format(table.place)
    connection.execute(lock)
    if table_of(connection, table.oid) != table:
        raise SourceFault(f"{table.title} is being altered", code="source-down")


def wait_briefly(connection: Connection) -> None:
    """For locks, until the transaction ends."""
    patience = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_PATIENCE))
    connection.execute(patience)


def known_table(
    name: str,
    table: OutsideTable,
    member: Member,
    *,
    by_log: bool,
    triggers: Sequence[str] = (),
    installed: Mapping[str, Any] | None = None,
) -> KnownTable:
    columns = {each.name: str(each.value.arrow) for each in table.columns}
    key = capture_key(table, by_log=by_log)
    followed = FollowedTable(name, table.oid, table.title, columns, key, table.identity)
    ours = {each: member.triggers[each] for each in triggers}
    return KnownTable(followed, member.file, member.stamps, ours, installed)


def written(known: Mapping[str, KnownTable]) -> str:
    """As the text of a comment."""
    tables = {name: _written(each) for name, each in known.items()}
    return json.dumps({"about": ABOUT, "tables": tables})


def read_known(comment: str) -> dict[str, KnownTable] | None:
    """By the names that sources have for the tables; None if it is no comment of ours."""
    try:
        given = json.loads(comment)["tables"]
        return {name: _known(name, each) for name, each in given.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


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
        "triggers": dict(known.triggers),
        "installed": None if known.installed is None else dict(known.installed),
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
    return KnownTable(table, given["file"], given["stamps"], given["triggers"], given["installed"])
