"""A PostgreSQL server whose tables note their changes by triggers: `Followed`, over delta tables.

A table gets its triggers under a lock that waits for those who write to it, and its rows are read
after that. So a transaction that changed it is either seen by the snapshot, or is whole in the
delta table. What was taken in is deleted there.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.delta_catalog import DeltaCatalog, delta_place
from harken.sources.kinds.postgresql.delta_positions import covers, moved_on, position, taken
from harken.sources.kinds.postgresql.delta_relation import refused_for_triggers
from harken.sources.kinds.postgresql.kept_connection import KeptConnection
from harken.sources.kinds.postgresql.log_catalog import not_permitted
from harken.sources.kinds.postgresql.log_positions import Seen
from harken.sources.kinds.postgresql.logical_server import MOST_ROWS
from harken.sources.kinds.postgresql.noted_rows import NotedReader, NotedRows
from harken.sources.kinds.postgresql.polled_table import BEGIN
from harken.sources.kinds.postgresql.postgres_connection import (
    Connection,
    Place,
)
from harken.sources.kinds.postgresql.postgres_tables import OutsideTable, read_table
from harken.sources.kinds.postgresql.shared_snapshot import SharedSnapshot, first_rows
from harken.sources.kinds.postgresql.table_stamps import (
    Alterations,
    KnownTable,
    followed_schema,
    known_table,
    lock_out_writers,
    members,
    wait_briefly,
)
from harken.sources.outside import OutsideSchema, OutsideTransaction, Position, Snapshot

PENDING = """
    SELECT transaction::text::bigint AS number, count(*) AS rows,
           max(sequence) AS last, max("timestamp") AS at
    FROM {place} WHERE transaction >= {oldest}::text::xid8
        AND NOT pg_visible_in_snapshot(transaction, {seen}::text::pg_snapshot)
    GROUP BY transaction
"""
IN_ORDER = """
    SELECT number, sum(rows)::bigint, max(at) FROM ({pending}) each
    GROUP BY number ORDER BY max(last) LIMIT {limit}
"""
END_OF_LOG = """
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn()::text END
"""
TRIM = "DELETE FROM {} WHERE transaction = ANY (%s::text[]::xid8[])"
TRIM_SEEN = "DELETE FROM {} WHERE pg_visible_in_snapshot(transaction, %s::text::pg_snapshot)"


@dataclass(frozen=True, slots=True)
class PendingTransaction:
    number: int
    rows: int
    at: datetime.datetime


def end_of_log(connection: Connection) -> str:
    row = connection.execute(END_OF_LOG).fetchone()
    return "" if row is None else str(row[0])


class TriggerServer:
    """The tables of one database of a server, for one database file of ours."""

    def __init__(
        self,
        place: Place,
        catalog: DeltaCatalog,
        source_of: Callable[[str], str],
        *,
        refuse_odd: bool,
    ) -> None:
        self._place, self._catalog, self._source_of = place, catalog, source_of
        self._refuse_odd = refuse_odd
        self._kept = KeptConnection(place, self._forget)
        self._expected: dict[str, tuple[str, ...]] = {}
        self._alterations = Alterations(by_log=False)
        self._nothing_at: tuple[int, str, Mapping[str, Position]] | None = None
        """The last number of the sequence and the end of the server's log when nothing was to be
        told, for these positions. Statements that alter a table or drop our triggers write the
        log, and draw no number."""
        self._known: dict[str, KnownTable] = {}
        self._fresh: dict[str, KnownTable] = {}
        self._told: list[tuple[Position, Mapping[str, int]]] = []
        """The transactions that were told and are not trimmed, by the delta tables of each."""
        self._old: dict[str, Seen] | None = None
        """What the tables had at the first reading, whose rows may still be there."""

    def schema(self, table: str) -> OutsideSchema:
        with self._kept.used() as connection:
            found = read_table(connection, table)
        return followed_schema(found, by_log=False)

    def expect(self, table: str, columns: Sequence[str]) -> None:
        self._expected[table] = tuple(columns)

    # --- to start and stop -----------------------------------------------------------------

    def offered(self, table: str) -> Sequence[str]:
        return self._alterations.offered.get(table, ())

    def start(self, tables: Sequence[str]) -> Mapping[str, Snapshot]:
        with self._kept.used() as connection:
            found = {name: self._permitted(connection, name) for name in tables}
            for name, table in found.items():
                self._install(connection, name, table)
        self._nothing_at = None

        def start(name: str, shared: SharedSnapshot) -> str:
            return position(self._kept.server, {name: shared.seen})

        return first_rows(self._place, found, start, by_log=False, refuse_odd=self._refuse_odd)

    def _permitted(self, connection: Connection, name: str) -> OutsideTable:
        table = read_table(connection, name)
        reason = refused_for_triggers(table) or self._catalog.refusal(connection, table)
        if reason:
            raise not_permitted(table.title, reason)
        return table

    def _install(self, connection: Connection, name: str, table: OutsideTable) -> None:
        """Anew, if it is there already: the rows are read afterwards in any case."""
        with connection.transaction():
            lock_out_writers(connection, table)
            self._catalog.prepare(connection, table.schema)
            known = self._catalog.known(connection)
            if name in known:
                self._catalog.remove(connection, name, known[name])
            wanted = self._expected.get(name, ())
            noted = tuple(c for c in table.columns if not wanted or c.name in wanted)
            noted_table = replace(table, columns=noted)  # others may go, and nobody minds
            delta = self._catalog.relation(connection, noted_table, self._source_of(name))
            self._catalog.install(connection, delta)
            member = members(connection, [table.oid])[table.oid]
            made = known_table(
                name, table, member, by_log=False, triggers=delta.triggers, installed=delta.names
            )
            self._catalog.write(connection, name, made)

    def stop(self, table: str) -> None:
        self._expected.pop(table, None)
        with self._kept.used() as connection, connection.transaction():
            wait_briefly(connection)
            known = self._catalog.known(connection)
            if table in known:
                self._catalog.remove(connection, table, known[table])
                self._catalog.remove_empty(connection)
        self._nothing_at = None

    # --- to read ---------------------------------------------------------------------------

    def transactions(
        self, positions: Mapping[str, Position], limit: int = 10_000
    ) -> Iterator[OutsideTransaction]:
        if not positions:
            return
        with self._kept.used() as connection:
            last = self._catalog.last_number(connection)
            end = end_of_log(connection)
            if last is not None and self._nothing_at == (last, end, positions):
                return
            connection.execute(BEGIN)
            seen = self._seen(positions)
            self._told = [each for each in self._told if _is_taken(each[1], seen)]
            self._old = dict(seen) if self._old is None else self._old
            found, is_calm = self._pass(connection, seen, limit)
            connection.execute("ROLLBACK")
            for name, each in self._fresh.items():
                if each != self._known[name]:
                    self._catalog.write(connection, name, each)
        if not found and is_calm and last is not None:
            self._nothing_at = (last, end, dict(positions))
        yield from found

    def _seen(self, positions: Mapping[str, Position]) -> dict[str, Seen]:
        seen = {}
        for name, text in positions.items():
            server, seen[name] = taken(text, name)
            if server != self._kept.server:
                raise SourceFault(
                    "the server is another one than before, or has failed over",
                    code="source-lost",
                    hint="all rows are read again",
                )
        return seen

    def _pass(
        self, connection: Connection, seen: Mapping[str, Seen], limit: int
    ) -> tuple[list[OutsideTransaction], bool]:
        """The transactions, and whether no other one was under way."""
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        now = Seen.read(row[0])
        known = self._checked(connection, seen)
        stamps = members(connection, [each.table.oid for each in known.values()])
        altered, self._fresh = self._alterations.found(connection, known, stamps, self._expected)
        altered = {name: why for name, why in altered.items() if name in seen}
        pending = self._pending(connection, known, seen, limit)
        rows = self._rows(connection, known, seen, _first(pending, limit))
        if len(pending) >= limit:
            pending = self._pending(connection, known, seen, None)
        found = list(self._in_order(rows, seen, now, sorted(each.number for each in pending)))
        told_before = {name for each in found for name in each.altered}
        late = {name: why for name, why in altered.items() if name not in told_before}
        if late:
            place = position(self._kept.server, {name: seen[name] for name in late})
            found.append(OutsideTransaction(place, (), altered=late))
        return found, not now.open

    def _checked(self, connection: Connection, seen: Mapping[str, Seen]) -> dict[str, KnownTable]:
        """The tables, of which nothing was trimmed that the positions do not have."""
        known, trimmed = self._catalog.known(connection), self._catalog.trimmed(connection)
        for name, each in seen.items():
            problem = ""
            if name not in known:
                problem = f"{name} has no delta table there"
            elif name in trimmed and not covers(each, trimmed[name]):
                problem = f"the delta table of {name} no longer has what came after the position"
            if problem:
                raise SourceFault(problem, code="source-lost", hint="all rows are read again")
        self._known = known
        return known

    def _pending(
        self,
        connection: Connection,
        known: Mapping[str, KnownTable],
        seen: Mapping[str, Seen],
        limit: int | None,
    ) -> list[PendingTransaction]:
        """In the order in which they are told."""
        pending = sql.SQL(" UNION ALL ").join(
            sql.SQL(PENDING).format(
                place=delta_place(known[name]),
                oldest=sql.Literal(str(each.oldest)),
                seen=sql.Literal(each.text),
            )
            for name, each in seen.items()
        )
        most = sql.SQL("ALL") if limit is None else sql.Literal(limit)
        query = sql.SQL(IN_ORDER).format(pending=pending, limit=most)
        return [PendingTransaction(*row) for row in connection.execute(query)]

    def _rows(
        self,
        connection: Connection,
        known: Mapping[str, KnownTable],
        seen: Mapping[str, Seen],
        chosen: Sequence[PendingTransaction],
    ) -> dict[PendingTransaction, dict[str, NotedRows]]:
        """Of each transaction, by table."""
        found: dict[PendingTransaction, dict[str, NotedRows]] = {each: {} for each in chosen}
        if not chosen:
            return found
        by_number = {each.number: each for each in chosen}
        for name, each in seen.items():
            table = replace(known[name].table, expected=self._expected.get(name, ()))
            reader = NotedReader(connection, known[name], table, refuse_odd=self._refuse_odd)
            for number, noted in reader.transactions(list(by_number), each):
                found[by_number[number]][name] = noted
        return found

    def _in_order(
        self,
        rows: Mapping[PendingTransaction, Mapping[str, NotedRows]],
        seen: Mapping[str, Seen],
        now: Seen,
        untold: list[int],
    ) -> Iterator[OutsideTransaction]:
        altered: set[str] = set()
        reached = 0
        for each, tables in rows.items():
            del untold[bisect_left(untold, each.number)]
            reached = max(reached, each.number)
            gone = {
                name: noted.problem
                for name, noted in tables.items()
                if noted.problem and name not in altered
            }
            altered |= gone.keys()
            changes = tuple(
                noted.change(name) for name, noted in tables.items() if name not in altered
            )
            if not changes and not gone:
                continue
            touched = [change.table for change in changes] or list(gone)
            place = position(
                self._kept.server,
                {name: moved_on(seen[name], now, reached, untold) for name in touched},
            )
            if changes:
                self._told.append((place, dict.fromkeys(touched, each.number)))
            yield OutsideTransaction(place, changes, each.at, gone)

    # --- to forget -------------------------------------------------------------------------

    def release(self, position: Position) -> None:
        number = next((i for i, (place, _) in enumerate(self._told) if place == position), None)
        if number is None:
            return
        done, self._told = self._told[: number + 1], self._told[number + 1 :]
        numbers: dict[str, list[int]] = {}
        last: dict[str, Seen] = {}
        for place, tables in done:
            for name, each in tables.items():
                numbers.setdefault(name, []).append(each)
                last[name] = taken(place, name)[1]
        old, self._old = self._old or {}, {}
        with self._kept.used() as connection, connection.transaction():
            for name in {*numbers, *old}:
                if name in self._known:
                    self._trim(connection, name, numbers.get(name, []), old.get(name))
                    self._catalog.note_trimmed(connection, name, last.get(name) or old[name])

    def _trim(
        self, connection: Connection, name: str, numbers: Sequence[int], old: Seen | None
    ) -> None:
        place = delta_place(self._known[name])
        connection.execute(sql.SQL(TRIM).format(place), [list(map(str, numbers))])
        if old is not None:
            connection.execute(sql.SQL(TRIM_SEEN).format(place), [old.text])

    def lag(self, position: Position) -> float | None:
        return None

    def close(self) -> None:
        self._kept.close()

    def _forget(self) -> None:
        self._alterations.forget()
        self._nothing_at = None


def _is_taken(numbers: Mapping[str, int], seen: Mapping[str, Seen]) -> bool:
    """What was told and not taken will be told again."""
    return all(name in seen and seen[name].has(each) for name, each in numbers.items())


def _first(pending: Sequence[PendingTransaction], limit: int) -> list[PendingTransaction]:
    """The first transactions, until about that many rows."""
    found: list[PendingTransaction] = []
    rows = 0
    for each in pending:
        if each.rows > MOST_ROWS:
            raise SourceFault(
                f"a transaction there has more than {MOST_ROWS} rows",
                code="source-lost",
                hint="the tables are read again instead",
            )
        if found and rows >= limit:
            break
        found.append(each)
        rows += each.rows
    return found
