"""A PostgreSQL server whose log is followed: `Followed`, over an ordinary connection.

A table is added under a lock that waits for its writers, and its rows are read after that. So every
transaction that changed it is either seen by the snapshot, or later in the log than the position
and published whole.

The slot is released only up to where every table has arrived, so a slot that is further than the
position of a table shows that this position is not one that Harken committed last: the file was
restored from a backup, or someone moved the slot. Then the table is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from psycopg import errors, sql

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.kept_connection import KeptConnection
from harken.sources.kinds.postgresql.log_catalog import (
    LogCatalog,
    LogState,
    not_permitted,
    refused_for_log,
)
from harken.sources.kinds.postgresql.log_positions import (
    LogPosition,
    Window,
    lsn_number,
    lsn_text,
)
from harken.sources.kinds.postgresql.log_reader import (
    LogReader,
    ReadTransaction,
    Types,
    empty_transaction,
    with_quiet,
)
from harken.sources.kinds.postgresql.postgres_connection import (
    Connection,
    Place,
)
from harken.sources.kinds.postgresql.postgres_tables import (
    OutsideTable,
    read_table,
    read_value_type,
)
from harken.sources.kinds.postgresql.postgres_values import ValueType
from harken.sources.kinds.postgresql.shared_snapshot import SharedSnapshot, first_rows
from harken.sources.kinds.postgresql.table_stamps import (
    Alterations,
    KnownTable,
    followed_schema,
    known_table,
    lock_out_writers,
)
from harken.sources.outside import (
    OutsideSchema,
    OutsideTransaction,
    Position,
    Snapshot,
)

KEEP_UP = 65_536
"""Bytes of the log after which tables that nobody changed move on, so that it can be released."""
SLOT_PATIENCE = "60s"
"""Making a slot waits for all transactions that are open in the server."""
PEEK = "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, {})"
MOST_MESSAGES = 2**30
MOST_ROWS = 2_000_000
MOST_BYTES = 500_000_000
"""Of one transaction there. After a larger one, the tables are read again instead."""


class LogicalServer:
    """The tables of one database of a server, followed for one database file of ours."""

    def __init__(self, place: Place, log: LogCatalog, *, refuse_odd: bool) -> None:
        self._place, self._refuse_odd = place, refuse_odd
        self._log = log
        self._kept = KeptConnection(place, self._forget)
        self._expected: dict[str, tuple[str, ...]] = {}
        self._types: dict[tuple[int, int], ValueType | None] = {}
        self._nothing_at: tuple[LogState, Mapping[str, Position]] | None = None
        """The log when it had nothing after these positions."""
        self._boundaries: list[int] = []
        """Ends of records, beyond what could be read when they were noted."""
        self._floors: dict[int, int] = {}
        """By the place of a transaction that was told: up to where all tables have arrived."""
        self._floored: set[str] = set()
        self._alterations = Alterations(by_log=True)
        self.peeks = 0
        """How often the log was read, which is not for free."""

    @property
    def names(self) -> str:
        """Of the publication and the slot."""
        return self._log.name

    def schema(self, table: str) -> OutsideSchema:
        with self._connected() as connection:
            found = read_table(connection, table)
        return followed_schema(found, by_log=True)

    def expect(self, table: str, columns: Sequence[str]) -> None:
        self._expected[table] = tuple(columns)

    # --- to start and stop -----------------------------------------------------------------

    def offered(self, table: str) -> Sequence[str]:
        return self._alterations.offered.get(table, ())

    def start(self, tables: Sequence[str]) -> Mapping[str, Snapshot]:
        with self._connected() as connection:
            reason = self._log.refusal(connection)
            if reason:
                raise not_permitted(", ".join(tables), reason)
            found = {name: self._permitted(connection, name) for name in tables}
            self._install(connection)
            places = {name: self._add(connection, name, each) for name, each in found.items()}
        self._nothing_at = None

        def position(name: str, shared: SharedSnapshot) -> str:
            window = Window(shared.seen, lsn_number(shared.end))
            return LogPosition(places[name], self._kept.server, {name: window}).text

        return first_rows(self._place, found, position, by_log=True, refuse_odd=self._refuse_odd)

    def _permitted(self, connection: Connection, name: str) -> OutsideTable:
        table = read_table(connection, name)
        reason = refused_for_log(table)
        if reason:
            raise not_permitted(table.title, reason)
        return table

    def _install(self, connection: Connection) -> None:
        """The publication and the slot, if they are not there, or not whole."""
        if self._log.known(connection) is not None and not self._log.state(connection).problem:
            return
        self._log.drop(connection)
        connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(SLOT_PATIENCE)))
        try:
            self._log.create(connection)
        except errors.LockNotAvailable as error:
            raise SourceFault(
                "the slot could not be made, because a transaction in the server stayed open for "
                f"{SLOT_PATIENCE}",
                code="source-down",
                hint="pg_stat_activity shows which; a prepared transaction counts, too",
            ) from error
        finally:
            connection.execute("SET lock_timeout = 0")

    def _add(self, connection: Connection, name: str, table: OutsideTable) -> int:
        """Publish the table. The position after which its changes count."""
        with connection.transaction():
            lock_out_writers(connection, table)
            if table.oid not in self._log.members(connection):
                self._log.add(connection, table)
            member = self._log.members(connection)[table.oid]
            known = self._log.known(connection) or {}
            self._log.write(
                connection, {**known, name: known_table(name, table, member, by_log=True)}
            )
            row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
            assert row is not None
            return lsn_number(row[0])

    def stop(self, table: str) -> None:
        self._expected.pop(table, None)
        with self._connected() as connection:
            known = self._log.known(connection) or {}
            gone = known.pop(table, None)
            if not known:
                self._log.drop(connection)
                return
            with connection.transaction():
                others = {each.table.oid for each in known.values()}
                for oid, member in self._log.members(connection).items():
                    if gone is not None and oid == gone.table.oid and oid not in others:
                        self._log.remove(connection, member)
                self._log.write(connection, known)

    # --- to read ---------------------------------------------------------------------------

    def transactions(
        self, positions: Mapping[str, Position], limit: int = 10_000
    ) -> Iterator[OutsideTransaction]:
        if not positions:
            return
        with self._connected() as connection:
            state = self._log.state(connection)
            if not state.problem and self._nothing_at == (state, positions):
                return
            places = {name: LogPosition.read(each) for name, each in positions.items()}
            self._check(state, places)
            found = self._pass(connection, places, state, limit)
        if not found:
            self._nothing_at = (state, dict(positions))
        self._note_floors(found, places)
        for each in found:
            yield each.transaction

    def release(self, position: Position) -> None:
        place = LogPosition.read(position).place
        reached = [each for each in self._floors if each <= place]
        if not reached:
            return
        floor = self._floors[max(reached)]
        with self._connected() as connection:
            state = self._log.state(connection)
            if not state.problem and (state.confirmed or 0) < floor <= state.flushed:
                try:
                    self._log.advance(connection, lsn_text(floor))
                except errors.ObjectInUse:
                    return  # someone reads it, and it is released later
        for each in reached:
            if each != max(reached):
                del self._floors[each]

    def lag(self, position: Position) -> float | None:
        with self._connected() as connection:
            inserted = self._log.state(connection).inserted
        return float(max(0, inserted - LogPosition.read(position).place))

    def close(self) -> None:
        self._kept.close()

    def _check(self, state: LogState, places: Mapping[str, LogPosition]) -> None:
        """The log still has everything after the positions."""
        problem = state.problem
        for name, each in places.items():
            if each.server != self._kept.server:
                problem = problem or "the server is another one than before, or has failed over"
            elif each.place < (state.confirmed or 0):
                problem = problem or f"the log no longer has the changes of {name}"
            elif each.place > state.inserted:
                problem = problem or f"the log of the server ends before the position of {name}"
        if problem:
            raise SourceFault(problem, code="source-lost", hint="all rows are read again")

    def _pass(
        self,
        connection: Connection,
        places: Mapping[str, LogPosition],
        state: LogState,
        limit: int,
    ) -> list[ReadTransaction]:
        known = self._log.known(connection)
        if known is None:
            raise SourceFault(f"the publication {self.names} is gone", code="source-lost")
        strange = [name for name in places if name not in known]
        if strange:
            raise SourceFault(f"{strange[0]} is not followed there", code="source-lost")
        tables = [
            replace(known[name].table, expected=self._expected.get(name, ())) for name in places
        ]
        end = self._end_of_records(state)
        reader = LogReader(
            tables,
            places,
            self._kept.server,
            self._type_reader(connection),
            refuse_odd=self._refuse_odd,
        )
        found, is_end = self._peek(connection, reader, limit)
        self._check(
            self._log.state(connection), places
        )  # a copy of our file may have released more
        gone = self._altered_now(connection, known, places)
        gone = {name: why for name, why in gone.items() if name not in reader.altered}
        behind = {name: each.place for name, each in places.items()}
        for each in found:
            behind.update((change.table, each.place) for change in each.transaction.changes)
        reached = max(end, found[-1].place if found else 0) if is_end else 0
        quiet = [name for name in places if name not in reader.altered and name not in gone]
        if found and found[-1].place - min(behind.values()) >= KEEP_UP:
            found[-1] = with_quiet(found[-1], quiet)
        elif not found and reached - min(behind.values()) >= KEEP_UP:
            found.append(empty_transaction(reached, reader.position(reached), quiet))
        if is_end and gone:
            place = max(reached, *behind.values())
            told = OutsideTransaction(reader.position(place).text, (), altered=gone)
            found.append(ReadTransaction(place, told))
        return found

    def _peek(
        self, connection: Connection, reader: LogReader, limit: int
    ) -> tuple[list[ReadTransaction], bool]:
        """What the log has, and whether that is all. Transactions that were taken in but are not
        released are read again, so more is asked for until there is a new one."""
        options = sql.SQL(", ").join(
            map(sql.Literal, ("proto_version", "1", "publication_names", self.names))
        )
        query = sql.SQL(PEEK).format(options)
        while True:
            self.peeks += 1
            with connection.cursor(binary=True) as cursor:
                rows = cursor.stream(query, [self.names, limit])
                messages = list(limited(row[0] for row in rows))
            found = [each for each in reader.transactions(messages) if each is not None]
            is_end = len(messages) < limit
            if found or is_end or limit >= MOST_MESSAGES:
                return found, is_end
            limit *= 4

    def _end_of_records(self, state: LogState) -> int:
        """The end of a record up to which all can be read; 0 if none is known."""
        if not self._boundaries or self._boundaries[-1] < state.inserted:
            self._boundaries.append(state.inserted)
        read = [each for each in self._boundaries if each <= state.flushed]
        if read:
            self._boundaries = [each for each in self._boundaries if each >= read[-1]]
        del self._boundaries[2:-1]
        return read[-1] if read else 0

    def _note_floors(
        self, found: Iterable[ReadTransaction], places: Mapping[str, LogPosition]
    ) -> None:
        if self._floored != places.keys():
            self._floors, self._floored = {}, set(places)
        behind = {name: each.place for name, each in places.items()}
        for each in found:
            behind.update((change.table, each.place) for change in each.transaction.changes)
            self._floors[each.place] = min(behind.values())

    def _altered_now(
        self, connection: Connection, known: Mapping[str, KnownTable], names: Iterable[str]
    ) -> dict[str, str]:
        """Tables that were altered so that the log need not show it."""
        now = self._log.members(connection)
        found, fresh = self._alterations.found(connection, known, now, self._expected)
        if fresh != known:
            self._log.write(connection, fresh)
        return {name: found[name] for name in names if name in found}

    def _type_reader(self, connection: Connection) -> Types:
        def find(type: int, modifier: int) -> ValueType | None:
            if (type, modifier) not in self._types:
                self._types[type, modifier] = read_value_type(connection, type, modifier)
            return self._types[type, modifier]

        return find

    # --- the connection --------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._kept.used() as connection:
            try:
                yield connection
            except errors.ObjectInUse as error:
                raise SourceFault(
                    "another process reads the log for this database file", code="source-down"
                ) from error
            except (errors.UndefinedObject, errors.ObjectNotInPrerequisiteState) as error:
                raise SourceFault(
                    f"the log cannot be read on: {error.diag.message_primary}", code="source-lost"
                ) from error

    def _forget(self) -> None:
        self._types.clear()
        self._alterations.forget()
        self._nothing_at = None


def limited(messages: Iterable[bytes]) -> Iterator[bytes]:
    """The same, unless one transaction is so large that it does not fit into memory."""
    number = size = 0
    for each in messages:
        if each[:1] == b"B":
            number = size = 0
        number, size = number + 1, size + len(each)
        if number > MOST_ROWS or size > MOST_BYTES:
            raise SourceFault(
                f"a transaction there has more than {MOST_ROWS} rows or {MOST_BYTES} bytes",
                code="source-lost",
                hint="the tables are read again instead",
            )
        yield each
