"""The log of a PostgreSQL server, followed: the mirror is the table, whatever was done to it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.logical_server import LogicalServer
from harken.sources.outside import UNCHANGED, Followed
from tests.harness.outside_models import MirrorModel, batch_rows, opened
from tests.harness.patience import PATIENCE
from tests.harness.servers import PostgresDatabase

LONG = "repeat(md5(random()::text), 200)"


@contextmanager
def followed(database: PostgresDatabase, name: str = "tests") -> Iterator[Followed]:
    options = {"url": database.url, "table": "t"}
    found = opened("postgresql", options, "logical", database=name).followed
    assert found is not None
    try:
        yield found
    finally:
        found.close()


def right(database: PostgresDatabase, mirror: MirrorModel, *tables: str) -> None:
    """Each mirror has the rows of its table."""
    for name in tables or mirror.tables:
        columns = ", ".join(mirror.schemas[name].columns.names)
        assert mirror.rows[name] == Counter(database.run(f"SELECT {columns} FROM {name}")), name


def started(database: PostgresDatabase, server: Followed, *tables: str) -> MirrorModel:
    mirror = MirrorModel(tables)
    mirror.start(server)
    right(database, mirror)
    return mirror


def follow(database: PostgresDatabase, server: Followed, mirror: MirrorModel) -> None:
    mirror.take_all(server)
    right(database, mirror)


def test_the_mirror_follows_the_table(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(8,2))")
    run("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        assert mirror.schemas["t"].key == ("id",)
        for statement in (
            "INSERT INTO t VALUES (3, 'c', 3)",
            "UPDATE t SET price = 4 WHERE id = 1",
            "UPDATE t SET id = 9 WHERE id = 2",
            "DELETE FROM t WHERE id = 3",
            "TRUNCATE t",
            "INSERT INTO t SELECT i, i, i FROM generate_series(1, 50) i",
        ):
            run(statement)
            follow(logical_database, server, mirror)
        assert len(mirror.taken) == 6
        assert all(each.at is not None for each in mirror.taken)
        assert mirror.take_in(server) == 0


@pytest.mark.parametrize(
    "script",
    [
        "INSERT INTO t VALUES (5, 'x', 'l'); DELETE FROM t WHERE id = 5",
        "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'x', 'l')",
        "UPDATE t SET id = 7 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 7",
        "UPDATE t SET id = 7 WHERE id = 1; UPDATE t SET name = 'y' WHERE id = 7",
        "UPDATE t SET id = 9 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2;"
        "UPDATE t SET id = 2 WHERE id = 9",
        "UPDATE t SET id = 9 WHERE id = 1; INSERT INTO t VALUES (1, 'n', 'l')",
        "DELETE FROM t WHERE id = 2; UPDATE t SET id = 2 WHERE id = 1; DELETE FROM t WHERE id = 2",
        "UPDATE t SET id = id + 100; UPDATE t SET id = id - 100",
        "INSERT INTO t VALUES (5, 'x', 'l'); TRUNCATE t; INSERT INTO t VALUES (1, 'x', 'l')",
        "TRUNCATE t; INSERT INTO t VALUES (1, 'x', 'l'); DELETE FROM t",
        "SAVEPOINT s; INSERT INTO t VALUES (5); ROLLBACK TO s; UPDATE t SET name = 'z'",
    ],
)
@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_transaction_is_whole(
    logical_database: PostgresDatabase, script: str, identity: str
) -> None:
    """Each has a long value, which the log repeats only in whole old rows."""
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name text, long text)")
    run(f"ALTER TABLE t REPLICA IDENTITY {identity}; ALTER TABLE t ALTER long SET STORAGE EXTERNAL")
    run(f"INSERT INTO t SELECT i, i, {LONG} FROM generate_series(1, 3) i")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        with logical_database.connection.transaction():
            for each in script.split(";"):
                run(each)
        follow(logical_database, server, mirror)
        assert len(mirror.taken) == 1


def test_a_value_that_did_not_change_is_kept(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name text, long text)")
    run("ALTER TABLE t ALTER long SET STORAGE EXTERNAL")
    run(f"INSERT INTO t VALUES (1, 'a', {LONG})")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        run("UPDATE t SET name = 'b'")
        follow(logical_database, server, mirror)
        ((change,),) = [each.changes for each in mirror.taken]
        assert list(change.plus) == [(1, "b", UNCHANGED)]


def test_a_table_without_a_key_is_a_bag(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY FULL")
    run("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        assert mirror.schemas["t"].key == ()
        for statement in (
            "INSERT INTO t VALUES (1, 'x')",
            "DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t WHERE a = 1)",
            "UPDATE t SET b = 'y' WHERE a IS NULL",
            "DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (1, 'x')",
            "TRUNCATE t; INSERT INTO t VALUES (2, '2'), (2, '2')",
        ):
            run(statement)
            follow(logical_database, server, mirror)


def test_one_transaction_changes_several_tables(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (i int REFERENCES a);")
    run("ALTER TABLE b REPLICA IDENTITY FULL; CREATE TABLE other (i int)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "a", "public.b")
        run("INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1), (1)")
        run("INSERT INTO other VALUES (1)")
        run("TRUNCATE a CASCADE")
        follow(logical_database, server, mirror)
        assert [{change.table for change in each.changes} for each in mirror.taken] == [
            {"a", "public.b"}
        ] * 2


def test_a_table_that_joins_later_is_exact(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (i int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "a")
        run("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
        mirror.start(server, ["b"])
        run("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)")
        mirror.take_all(server)
        right(logical_database, mirror, "a", "b")
        server.stop("a")
        run("INSERT INTO a VALUES (3); INSERT INTO b VALUES (3)")
        del mirror.positions["a"]
        mirror.take_all(server)
        right(logical_database, mirror, "b")
        server.stop("b")
        assert run("SELECT FROM pg_replication_slots WHERE database = current_database()") == []
        assert run("SELECT FROM pg_publication") == []


def test_transactions_that_are_open_at_the_start_count_once(
    logical_database: PostgresDatabase,
) -> None:
    """Some wrote before the start, so it waits for them; others begin between its steps."""
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (0, 0)")
    stop = threading.Event()
    writers = [
        threading.Thread(target=_write, args=(logical_database.connect(), stop, number))
        for number in range(3)
    ]
    for each in writers:
        each.start()
    with ExitStack() as opened_servers:
        try:
            followers = []
            for attempt in range(3):
                server = opened_servers.enter_context(followed(logical_database, f"s{attempt}"))
                mirror = MirrorModel(["t"])
                mirror.start(server)
                mirror.take_in(server, limit=50, most=5)
                followers.append((server, mirror))
        finally:
            stop.set()
            for each in writers:
                each.join(PATIENCE)
        for server, mirror in followers:
            follow(logical_database, server, mirror)
            server.stop("t")


def _write(connection: Any, stop: threading.Event, number: int) -> None:
    own = 0
    while not stop.is_set():
        own += 1
        with connection.transaction():
            connection.execute("INSERT INTO t VALUES (%s, 1)", [own * 10 + number])
            connection.execute("UPDATE t SET n = n + 1 WHERE id = 0 OR id = %s", [own * 10])
    connection.close()


def test_reading_twice_gives_the_same(logical_database: PostgresDatabase) -> None:
    """Also after a restart of ours; once released, it is gone."""
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        before = mirror.saved()
        for number in range(5):
            run(f"INSERT INTO t VALUES ({number})")
        again = mirror.saved()
        mirror.take_all(server, release=False)
        again.take_all(server, release=False)
        assert mirror.taken == again.taken
    with followed(logical_database) as server:
        third = before.saved()
        third.expect(server)
        third.take_in(server, most=3)
        third.take_all(server)
        assert third.taken == mirror.taken
        with pytest.raises(SourceFault) as error:
            before.take_all(server)
        assert error.value.code == "source-lost"


def test_small_steps_see_everything(logical_database: PostgresDatabase) -> None:
    """Nothing is released for long, so the log is read from the same place again and again."""
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        for number in range(30):
            run(f"INSERT INTO t VALUES ({number})")
        while mirror.take_in(server, limit=4, most=2):
            pass
        right(logical_database, mirror)
        assert len(mirror.taken) == 30


def test_a_quiet_table_keeps_up(logical_database: PostgresDatabase) -> None:
    """The server can forget what concerns nobody, and what only other tables had."""
    run = logical_database.run
    run("CREATE TABLE a (i int PRIMARY KEY, s text); CREATE TABLE b (i int PRIMARY KEY)")
    run("CREATE TABLE other (i int, s text)")
    slots = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database=current_database()"
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "a", "b")
        ((first,),) = run(slots)
        run("INSERT INTO a SELECT i, repeat('x', 1000) FROM generate_series(1, 100) i")
        follow(logical_database, server, mirror)
        ((second,),) = run(slots)
        assert second != first
        run("INSERT INTO other SELECT i, repeat('x', 1000) FROM generate_series(1, 200) i")
        mirror.take_all(server)
        run("INSERT INTO other VALUES (1, 'x')")
        mirror.take_all(server)
        ((third,),) = run(slots)
        assert third != second
        assert mirror.positions["a"] == mirror.positions["b"]


def test_an_idle_server_is_not_read(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        mirror.take_all(server)
        assert isinstance(server, LogicalServer)
        before = server.peeks
        for _ in range(5):
            assert mirror.take_in(server) == 0
        assert server.peeks - before <= 1  # the server itself may write a little
        run("INSERT INTO t VALUES (1)")
        assert mirror.take_in(server) == 1


ALTERED: Sequence[tuple[str, str]] = (
    ("ALTER TABLE t DROP COLUMN name", "lost its column name"),
    ("ALTER TABLE t RENAME name TO other", "lost its column name"),
    ("ALTER TABLE t ALTER n TYPE text", "the column n of public.t"),
    ("ALTER TABLE t ALTER n TYPE int USING n * 2", "the column n of public.t was rewritten"),
    ("ALTER TABLE t RENAME TO u", "renamed to public.u"),
    ("DROP TABLE t", "dropped"),
    ("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, name text, n int)", "dropped"),
    ("ALTER TABLE t REPLICA IDENTITY FULL", "replica identity"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (n)", "key of public.t"),
)


@pytest.mark.parametrize(
    ("statement", "words", "is_written"),
    [(*each, False) for each in ALTERED] + [(*each, True) for each in ALTERED[:4]],
)
def test_an_altered_table_stops_and_others_go_on(
    logical_database: PostgresDatabase, statement: str, words: str, is_written: bool
) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name text, n int NOT NULL)")
    run("CREATE TABLE b (i int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t", "b")
        run("INSERT INTO t (id, n) VALUES (1, 1)")
        run(statement)
        if is_written:
            run("INSERT INTO t (id, n) VALUES (7, '5')")
        run("INSERT INTO b VALUES (1)")
        mirror.take_all(server)
        assert words in mirror.altered["t"]
        right(logical_database, mirror, "b")
        if "RENAME TO" in statement:
            run("ALTER TABLE u RENAME TO t")
        if statement == "DROP TABLE t":
            return
        mirror.start(server, ["t"])
        run("UPDATE t SET id = 3 WHERE id = 7; INSERT INTO t (id, n) VALUES (4, '8')")
        follow(logical_database, server, mirror)


def test_harmless_alterations_go_on(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name varchar(3))")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        for number, statement in enumerate(
            (
                "ALTER TABLE t ADD COLUMN more text DEFAULT 'x'",
                "ALTER TABLE t ALTER name TYPE varchar(9)",
                "ALTER TABLE t ALTER name SET STATISTICS 5",
                "VACUUM FULL t",
                "CREATE INDEX ON t (name)",
                "TRUNCATE t",
                "ALTER TABLE t DROP COLUMN more",
            )
        ):
            run(statement)
            run(f"INSERT INTO t (id, name) VALUES ({number}, 'x')")
            follow(logical_database, server, mirror)
    with followed(logical_database) as server:
        mirror.expect(server)
        run("UPDATE t SET name = 'y'")
        follow(logical_database, server, mirror)
        assert not mirror.altered


def test_an_alteration_while_we_are_down_is_noticed(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, n int)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
    run("INSERT INTO t VALUES (1, 1)")
    run("ALTER TABLE t ALTER n TYPE bigint USING n * 2")
    with followed(logical_database) as server:
        mirror.expect(server)
        mirror.take_all(server)
        assert "was rewritten" in mirror.altered["t"]


def test_a_column_that_nobody_takes_may_go(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, extra text, n int)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        server.expect("t", ["n", "id"])
        run("INSERT INTO t VALUES (1, 'x', 5)")
        run("ALTER TABLE t DROP COLUMN extra")
        run("INSERT INTO t VALUES (2, 6)")
        found = list(server.transactions(mirror.positions))
        assert [list(each.changes[0].plus) for each in found] == [[(5, 1)], [(6, 2)]]
        again = server.start(["t"])["t"]
        assert again.position is not None
        assert batch_rows(again.batches) == [(1, 5), (2, 6)]
        run("INSERT INTO t VALUES (3, 7)")
        (last,) = server.transactions({"t": again.position})
        assert list(last.changes[0].plus) == [(7, 3)]


@pytest.mark.parametrize(
    "damage",
    [
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        "WHERE database = current_database()",
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) "
        "FROM pg_replication_slots WHERE database = current_database()",
        "DO $$ BEGIN EXECUTE (SELECT 'DROP PUBLICATION ' || pubname FROM pg_publication); END $$",
    ],
)
def test_a_lost_log_is_said_and_the_rows_are_read_again(
    logical_database: PostgresDatabase, damage: str
) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        run("INSERT INTO t VALUES (1)")
        run(damage)
        with pytest.raises(SourceFault) as error:
            mirror.take_all(server)
        assert error.value.code == "source-lost"
        mirror.start(server)
        run("INSERT INTO t VALUES (2)")
        follow(logical_database, server, mirror)


def test_a_server_that_failed_over_is_another_one(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        mirror.positions["t"] = mirror.positions["t"].replace("/00000001", "/00000002")
        with pytest.raises(SourceFault, match="failed over") as error:
            mirror.take_all(server)
        assert error.value.code == "source-lost"


def test_a_connection_that_breaks_is_made_again(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        run("INSERT INTO t VALUES (1)")
        run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with pytest.raises(SourceFault) as error:
            mirror.take_all(server)
        assert error.value.code == "source-down"
        follow(logical_database, server, mirror)


REFUSED = (
    ("CREATE TABLE t (i int)", "REPLICA IDENTITY FULL"),
    ("CREATE TABLE t (i int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING", "IDENTITY FULL"),
    ("CREATE UNLOGGED TABLE t (i int PRIMARY KEY)", "not logged"),
    ("CREATE VIEW t AS SELECT 1 AS i", "not a table"),
    ("CREATE TABLE t (i int PRIMARY KEY) PARTITION BY RANGE (i)", "partitioned"),
    ("CREATE TABLE t (i int PRIMARY KEY); CREATE TABLE u () INHERITS (t)", "inherit"),
    ("CREATE TABLE t (i int PRIMARY KEY, j int GENERATED ALWAYS AS (i) STORED)", "generated"),
)


@pytest.mark.parametrize(("definition", "words"), REFUSED)
def test_a_table_that_the_log_cannot_tell_of_is_refused(
    logical_database: PostgresDatabase, definition: str, words: str
) -> None:
    logical_database.run(definition)
    with followed(logical_database) as server, pytest.raises(SourceFault, match=words) as error:
        server.start(["t"])
    assert error.value.code == "not-allowed"
    assert logical_database.run("SELECT FROM pg_publication") == []
    chosen = opened("postgresql", {"url": logical_database.url, "table": "t"})
    assert chosen.capture == "poll"
    assert words in chosen.why


def test_rows_can_be_named_by_another_index(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, n int)")
    run("ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key; INSERT INTO t VALUES (1, 'a', 1)")
    with followed(logical_database) as server:
        mirror = started(logical_database, server, "t")
        assert mirror.schemas["t"].key == ("code",)
        run("UPDATE t SET id = 2; UPDATE t SET code = 'b'; INSERT INTO t VALUES (3, 'a', 1)")
        run("DELETE FROM t WHERE code = 'b'")
        follow(logical_database, server, mirror)


def test_the_log_is_chosen_where_it_is_permitted(
    logical_database: PostgresDatabase, plain_database: PostgresDatabase
) -> None:
    definition = "CREATE TABLE t (i int PRIMARY KEY)"
    logical_database.run(definition)
    plain_database.run(definition)
    chosen = opened("postgresql", {"url": logical_database.url, "table": "t"})
    assert (chosen.capture, chosen.followed is None) == ("logical", False)
    assert chosen.scripts is not None
    create, drop = chosen.scripts()
    for script in (create, drop):
        for statement in filter(str.strip, script.split(";\n")):
            logical_database.run(statement)
    chosen = opened("postgresql", {"url": plain_database.url, "table": "t"})
    assert (chosen.capture, chosen.why) == (
        "poll",
        "public.t is read again, because its wal_level is replica, not logical; "
        "CAPTURE triggers would note its changes",
    )
    with followed(plain_database) as server, pytest.raises(SourceFault, match="wal_level"):
        server.start(["t"])


def test_a_user_needs_rights(logical_database: PostgresDatabase) -> None:
    run = logical_database.run
    run("CREATE TABLE t (i int PRIMARY KEY); CREATE ROLE weak LOGIN; GRANT SELECT ON t TO weak")
    url = logical_database.server.url(logical_database.name, "weak")
    try:
        for grant, words in (
            ("SELECT", "does not own public.t"),
            ("ALTER TABLE t OWNER TO weak", "ALTER ROLE weak REPLICATION"),
            ("ALTER ROLE weak REPLICATION", "GRANT CREATE ON DATABASE"),
            (f"GRANT CREATE ON DATABASE {logical_database.name} TO weak", "the log of the server"),
        ):
            run(grant)
            assert words in opened("postgresql", {"url": url, "table": "t"}).why
    finally:
        run("DROP OWNED BY weak; DROP ROLE weak")
