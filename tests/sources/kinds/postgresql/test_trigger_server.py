"""Tables of PostgreSQL whose triggers note the changes: the mirror is the table, in the order in
which transactions depend on each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harken.errors import SourceFault
from harken.sources.outside import Followed
from tests.harness.outside_models import MirrorModel, opened, polled_rows
from tests.harness.servers import PostgresDatabase


@contextmanager
def followed(database: PostgresDatabase, *tables: str, name: str = "tests") -> Iterator[Followed]:
    """The sources are named as their tables, with an s."""
    servers = [
        opened(
            "postgresql",
            {"url": database.url, "table": table},
            "triggers",
            database=name,
            name=f"{table}s",
        ).followed
        for table in tables or ("t",)
    ]
    assert servers[0] is not None
    try:
        yield servers[0]
    finally:
        for each in servers:
            assert each is not None
            each.close()


def right(database: PostgresDatabase, mirror: MirrorModel, *tables: str) -> None:
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


def test_the_delta_table_is_that_of_the_thesis(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run("CREATE TABLE stock (symbol varchar(9) PRIMARY KEY, price numeric(8,2))")
    options = {"url": plain_database.url, "table": "stock"}
    source = opened("postgresql", options, "triggers", name="financial")
    assert source.scripts is not None
    create, drop = source.scripts()
    run(create)
    run("INSERT INTO stock VALUES ('IBM', 75); UPDATE stock SET price = 80; DELETE FROM stock")
    noted = "SELECT OLD_symbol, OLD_price, NEW_symbol, NEW_price FROM DELTA_financial_stock"
    assert run(f"{noted} WHERE timestamp > now() - interval '1 hour' ORDER BY sequence") == [
        (None, None, "IBM", 75),
        ("IBM", 75, "IBM", 80),
        ("IBM", 80, None, None),
    ]
    run(drop)
    assert run(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "AND relkind = 'r'"
    ) == [("stock",)]
    assert run("SELECT FROM pg_trigger") == []


def test_the_mirror_follows_and_what_was_taken_is_trimmed(
    plain_database: PostgresDatabase,
) -> None:
    run = plain_database.run
    run("CREATE TYPE mood AS ENUM ('ok'); CREATE DOMAIN whole AS int NOT NULL CHECK (VALUE > 0)")
    run(
        'CREATE TABLE t (id whole PRIMARY KEY, "Odd %s" text, p numeric(8,2), m mood, a int[],'
        "g int GENERATED ALWAYS AS (id * 2) STORED, c char(4))"
    )
    run("INSERT INTO t VALUES (1, 'a', 1.5, 'ok', '{1}')")
    with followed(plain_database) as server:
        run("INSERT INTO t (id) VALUES (2)")
        mirror = MirrorModel(["t"])
        mirror.start(server)
        assert mirror.schemas["t"].key == ("id",)
        for statement in (
            "INSERT INTO t VALUES (3, 'c', 3, 'ok', '{2,3}', DEFAULT, 'x')",
            "UPDATE t SET p = 4 WHERE id = 1",
            "UPDATE t SET id = 9 WHERE id = 2",
            "DELETE FROM t WHERE id = 3",
            "TRUNCATE t",
            "INSERT INTO t (id) SELECT generate_series(1, 50)",
            "UPDATE t SET id = id + 100; DELETE FROM t WHERE id > 120; UPDATE t SET p = 0",
        ):
            run(statement)
            mirror.take_all(server)
            options = {"url": plain_database.url, "table": "t"}
            assert mirror.rows["t"] == Counter(polled_rows(opened("postgresql", options, "poll")))
        assert len(mirror.taken) == 7
        assert run("SELECT FROM delta_ts_t") == []
        server.stop("t")
        assert run("SELECT FROM pg_trigger") == []
        assert run("SELECT FROM pg_class WHERE relname LIKE '%harken%'") == []


def test_transactions_of_several_tables_stay_whole(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run("CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (i int REFERENCES a ON DELETE CASCADE)")
    with followed(plain_database, "a", "b") as server:
        mirror = started(plain_database, server, "a", "b")
        with plain_database.connection.transaction():
            run("INSERT INTO a VALUES (1), (2)")
            run("INSERT INTO b VALUES (1), (1)")
        run("DELETE FROM a WHERE i = 1")
        run("INSERT INTO a VALUES (3)")
        follow(plain_database, server, mirror)
        assert [sorted(change.table for change in each.changes) for each in mirror.taken] == [
            ["a", "b"],
            ["a", "b"],
            ["a"],
        ]


def test_a_transaction_that_ends_late_is_not_lost(plain_database: PostgresDatabase) -> None:
    """It drew its numbers before others that were taken in already."""
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        early, late = plain_database.connect(autocommit=False), plain_database.connect()
        early.execute("INSERT INTO t VALUES (1)")
        late.execute("INSERT INTO t VALUES (2)")
        mirror.take_all(server)
        assert mirror.rows["t"] == Counter([(2,)])
        assert mirror.take_in(server) == 0
        early.commit()
        follow(plain_database, server, mirror)
        early.execute("INSERT INTO t VALUES (3)")
        early.rollback()
        follow(plain_database, server, mirror)


def test_dependent_transactions_come_in_their_order(plain_database: PostgresDatabase) -> None:
    """The one that began first ends last, and depends on the other."""
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        first = plain_database.connect(autocommit=False)
        first.execute("INSERT INTO t VALUES (2, 0)")
        run("UPDATE t SET n = 1 WHERE id = 1")
        first.execute("UPDATE t SET n = n + 10 WHERE id = 1")
        first.commit()
        follow(plain_database, server, mirror)
        assert [len(each.changes[0].plus) for each in mirror.taken] == [1, 2]


def test_a_key_that_is_checked_at_the_commit(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, n text)")
    run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        run("UPDATE t SET id = 3 - id")
        follow(plain_database, server, mirror)


def test_triggers_of_the_application_change_rows_too(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, n int)")
    run(
        "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN UPDATE t SET n = n + 1 WHERE id = NEW.id; RETURN NULL; END $$"
    )
    run("CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION more()")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        run("INSERT INTO t VALUES (1, 1), (2, 2)")
        follow(plain_database, server, mirror)


def test_rights_of_writers_are_enough(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run(
        "CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE writer LOGIN; GRANT INSERT ON t TO writer"
    )
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        plain_database.connect("writer").execute("INSERT INTO t VALUES (1)")
        follow(plain_database, server, mirror)
    run("DROP OWNED BY writer; DROP ROLE writer")


ALTERED = (
    ("ALTER TABLE t DROP COLUMN n", "lost its column n"),
    ("ALTER TABLE t ALTER n TYPE text", "the column n of public.t"),
    ("ALTER TABLE t ALTER n TYPE int USING n * 2", "was rewritten"),
    ("ALTER TABLE t RENAME TO u; CREATE TABLE t (id int)", "renamed to public.u"),
    ("ALTER TABLE t DISABLE TRIGGER ALL", "switched off"),
    ("DROP TABLE t; CREATE TABLE t (id int)", "dropped"),
)


@pytest.mark.parametrize(("statement", "words"), ALTERED)
def test_an_altered_table_stops_and_its_writers_go_on(
    plain_database: PostgresDatabase, statement: str, words: str
) -> None:
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE b (i int)")
    with followed(plain_database, "t", "b") as server:
        mirror = started(plain_database, server, "t", "b")
        run("INSERT INTO t VALUES (1, 1)")
        run(statement)
        run("INSERT INTO t (id) VALUES (7)")
        run("INSERT INTO b VALUES (1)")
        mirror.take_all(server)
        assert words in mirror.altered["t"] or "were altered" in mirror.altered["t"]
        right(plain_database, mirror, "b")
        if "RENAME" in statement:
            run("DROP TABLE t; ALTER TABLE u RENAME TO t")
        mirror.start(server, ["t"])
        run("INSERT INTO t (id) VALUES (4)")
        follow(plain_database, server, mirror)


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE t DISABLE TRIGGER ALL", "DROP TABLE t", "ALTER TABLE t ALTER n TYPE int USING 5"],
)
def test_an_altered_table_is_noticed_though_nothing_is_noted(
    plain_database: PostgresDatabase, statement: str
) -> None:
    plain_database.run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        plain_database.run("UPDATE t SET n = 2")
        for _ in range(3):
            follow(plain_database, server, mirror)
        plain_database.run(statement)
        mirror.take_all(server)
        assert mirror.altered["t"]


def test_harmless_alterations_go_on(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY, name varchar(3), n numeric(4,1))")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        for number, statement in enumerate(
            (
                "ALTER TABLE t ADD COLUMN more text DEFAULT 'x'",
                "ALTER TABLE t ALTER name TYPE varchar(9)",
                "VACUUM FULL t",
                "TRUNCATE t",
                "ALTER TABLE t DROP COLUMN more",
            )
        ):
            run(statement)
            run(f"INSERT INTO t (id, name) VALUES ({number}, 'x')")
            follow(plain_database, server, mirror)
    with followed(plain_database) as server:
        mirror.expect(server)
        run("UPDATE t SET name = 'y'")
        follow(plain_database, server, mirror)


def test_an_old_position_is_not_taken_for_a_new_one(plain_database: PostgresDatabase) -> None:
    """As that of a file of ours that was restored from a backup."""
    run = plain_database.run
    run("CREATE TABLE t (id int PRIMARY KEY)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        backup = mirror.saved()
        run("INSERT INTO t VALUES (1)")
        follow(plain_database, server, mirror)
        with pytest.raises(SourceFault) as error:
            backup.take_all(server)
        assert error.value.code == "source-lost"
        backup.start(server)
        run("INSERT INTO t VALUES (2)")
        follow(plain_database, server, backup)


def test_the_first_change_of_all_is_told_at_once(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t (i int)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        follow(plain_database, server, mirror)  # nothing yet
        plain_database.run("INSERT INTO t VALUES (1)")
        follow(plain_database, server, mirror)


def test_the_name_of_a_delta_table_may_be_taken(plain_database: PostgresDatabase) -> None:
    plain_database.run("CREATE TABLE t (i int); CREATE TABLE delta_ts_t (i int)")
    with followed(plain_database) as server:
        mirror = started(plain_database, server, "t")
        plain_database.run("INSERT INTO t VALUES (1)")
        follow(plain_database, server, mirror)
        server.stop("t")
    assert plain_database.run("SELECT * FROM delta_ts_t") == []


def test_what_is_refused(plain_database: PostgresDatabase) -> None:
    run = plain_database.run
    for definition, words in (
        ("CREATE UNLOGGED TABLE t (i int)", "not logged"),
        ("CREATE TABLE t (i int) PARTITION BY RANGE (i)", "partitioned"),
    ):
        run(definition)
        with followed(plain_database) as server, pytest.raises(SourceFault, match=words) as error:
            server.start(["t"])
        assert error.value.code == "not-allowed"
        run("DROP TABLE t")
