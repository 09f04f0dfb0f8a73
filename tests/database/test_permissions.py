"""What is not granted is neither read nor written, whatever text asks for it."""

import pytest

import harken
from harken.api.json_changes import apply
from harken.database.permissions import Role, User

ANN = User("ann", Role.AUTHOR)
BOB = User("bob", Role.READER)
SCHEMA = """
    CREATE TABLE secret (n INT, t STRING);
    CREATE TABLE open (n INT PRIMARY KEY, t STRING);
    CREATE VIEW shown AS SELECT n FROM secret WHERE n > 1;
    INSERT INTO secret VALUES (1, 'a'), (2, 'b');
    INSERT INTO open VALUES (1, 'x');
"""


@pytest.fixture
def db():
    with harken.connect() as db:
        db.sql(SCHEMA)
        yield db


QUERIES = [
    "SELECT * FROM secret",
    "TABLE secret",
    "FROM secret",
    "SELECT (SELECT max(n) FROM secret)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM secret)",
    "SELECT * FROM open WHERE n IN (SELECT n FROM secret)",
    "SELECT * FROM open o JOIN secret s ON o.n = s.n",
    "SELECT * FROM open, LATERAL (SELECT * FROM secret WHERE secret.n = open.n) x",
    "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret",
    "WITH a AS (WITH b AS (SELECT * FROM `SECRET`) SELECT * FROM b) SELECT * FROM a",
    "WITH RECURSIVE r(n) AS (SELECT n FROM secret UNION SELECT n + 1 FROM r WHERE n < 9) "
    "SELECT * FROM r",
    "SELECT n FROM open UNION ALL SELECT n FROM secret",
    "SELECT n FROM open EXCEPT (SELECT n FROM (SELECT n FROM secret))",
    "SELECT sum((SELECT count(*) FROM secret)) OVER () FROM open",
    "SELECT CASE WHEN (SELECT min(n) FROM secret) > 0 THEN 1 END",
    "SELECT * FROM open ORDER BY (SELECT n FROM secret LIMIT 1)",
    "EXPLAIN SELECT * FROM secret",
    "DESCRIBE secret",
    "INSERT INTO open SELECT * FROM secret",
    "INSERT INTO open VALUES ((SELECT max(n) FROM secret), 'x')",
    "UPDATE open SET t = (SELECT max(t) FROM secret)",
    "UPDATE open SET t = s.t FROM secret s WHERE s.n = open.n",
    "DELETE FROM open WHERE n IN (SELECT n FROM secret)",
    "DELETE FROM open USING secret WHERE secret.n = open.n",
    "MERGE INTO open USING secret ON open.n = secret.n WHEN MATCHED THEN DELETE",
    "CREATE VIEW mine AS SELECT * FROM secret",
    "INSERT INTO secret VALUES (3, 'c')",
    "UPDATE secret SET n = 1",
    "DELETE FROM secret",
    "TRUNCATE TABLE secret",
    "DROP TABLE secret",
    "ALTER TABLE secret ADD COLUMN x INT",
    "CREATE OR REPLACE VIEW shown AS SELECT 1 AS n",
    "DROP VIEW shown",
    "GRANT SELECT ON secret TO ann",
    "GRANT SELECT ON open TO bob",
    "GRANT NOTIFY ON CHANNEL email TO ann",
    "CREATE TABLE mine (n INT)",
    "CREATE MATERIALIZED VIEW mine AS SELECT * FROM open",
    "CREATE TEMPORARY VIEW mine AS SELECT * FROM open",
    "SET statement_timeout = 0",
    "DROP TABLE open",
    "BEGIN; SELECT * FROM secret; COMMIT",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("times", [1, 3])
def test_what_is_not_granted_is_refused(db, text, times):
    db.sql("GRANT ALL ON open TO ann")
    before = db.sql("SELECT * FROM secret").rows, db.sql("SELECT * FROM open").rows
    for _ in range(times):
        try:  # the operator has run it, and it is known
            with db.transaction():
                db.sql(text)
                raise ZeroDivisionError
        except (ZeroDivisionError, harken.HarkenError):
            pass
        with db.acting_as(ANN), pytest.raises(harken.HarkenError) as caught:
            db.sql(text)
        assert caught.value.code == "not-permitted"
        db.rollback()
    assert (db.sql("SELECT * FROM secret").rows, db.sql("SELECT * FROM open").rows) == before


def test_what_is_granted_is_done(db):
    db.sql("GRANT SELECT, INSERT ON open TO ann; GRANT SELECT ON shown TO ann")
    with db.acting_as(ANN):
        assert db.sql("SELECT n FROM shown").rows == [(2,)]
        db.sql("INSERT INTO open VALUES (5, 'y')")
        apply(db, {"open": [[6, "z"]]}, {})
        assert db.snapshot("open", where="n > 4").plus == [(5, "y"), (6, "z")]
        with pytest.raises(harken.HarkenError, match="but not change it by UPDATE"):
            db.sql("UPDATE open SET t = 'z'")
        with pytest.raises(harken.HarkenError, match="but not change it by DELETE"):
            apply(db, {}, {"open": [[6, "z"]]})
        assert {each.name for each in db.views()} == {"open", "shown"}
        assert [name for name, _ in db.sql("SHOW TABLES").rows] == ["open", "shown"]
    db.sql("REVOKE ALL ON open FROM ann")
    with db.acting_as(ANN), pytest.raises(harken.HarkenError, match="may not read open"):
        db.sql("SELECT n FROM open")


@pytest.mark.parametrize("name", ["secret", "shown"])
def test_views_are_refused_by_every_method(db, name):
    with db.acting_as(ANN):
        for call in (
            lambda: db.snapshot(name),
            lambda: db.describe(name),
            lambda: db.monitor(name),
            lambda: db.changes_after(name, 0),
            lambda: apply(db, {name: [[1, "a"]]}, {}),
        ):
            with pytest.raises(harken.HarkenError, match="may not"):
                call()


def test_everything_else_is_for_operators(db, tmp_path):
    with db.acting_as(ANN):
        for call in (
            lambda: db.amosql("create function f() -> integer as 1;"),
            lambda: db.datalog(".decl a(x: number)"),
            lambda: db.backup(tmp_path / "b"),
            lambda: db.function("secret"),
            lambda: db.explain("secret"),
            lambda: db.load("open", []),
            lambda: db.close(),
            lambda: db.notifications.list(),
            lambda: db.insert("open", [(1, "x")]),
        ):
            with pytest.raises(harken.HarkenError) as caught:
                call()
            assert caught.value.code == "not-permitted"
        assert db.definitions() == []
        assert db.readers_of("secret") == []
    assert db.sql("SELECT count(*) FROM secret").scalar() == 2


def test_a_view_reads_with_the_rights_of_its_owner(db):
    db.sql("GRANT SELECT ON open TO ann")
    with db.acting_as(ANN):
        db.sql("CREATE VIEW mine AS SELECT t FROM open")
        db.sql("GRANT SELECT ON mine TO bob")
        assert db.sql("SELECT * FROM mine").rows == [("x",)]
    with db.acting_as(BOB):
        assert db.sql("SELECT * FROM mine").rows == [("x",)]
        with pytest.raises(harken.HarkenError, match="bob may not read open"):
            db.sql("SELECT * FROM open")
        with pytest.raises(harken.HarkenError, match="takes an author"):
            db.sql("CREATE VIEW theirs AS SELECT * FROM mine")
        with pytest.raises(harken.HarkenError, match="not bob's"):
            db.sql("GRANT SELECT ON mine TO carl")
    db.sql("REVOKE SELECT ON open FROM ann")
    for user in (ANN, BOB):
        with db.acting_as(user), pytest.raises(harken.HarkenError, match="may not read mine"):
            db.sql("SELECT * FROM mine")


def test_a_table_that_is_created_again_is_not_granted_again(db):
    db.sql("GRANT SELECT ON open TO ann; DROP TABLE open; CREATE TABLE open (n INT)")
    with db.acting_as(ANN), pytest.raises(harken.HarkenError, match="may not read open"):
        db.sql("SELECT * FROM open")


def test_grants_stay_when_a_view_or_table_is_altered(db):
    db.sql("GRANT SELECT ON open TO ann; GRANT SELECT ON shown TO ann")
    db.sql("CREATE OR REPLACE VIEW shown AS SELECT n FROM secret")
    db.sql("ALTER TABLE open ADD COLUMN u INT")
    with db.acting_as(ANN):
        assert len(db.sql("SELECT * FROM shown").rows) == 2
        assert db.sql("SELECT * FROM open").rows == [(1, "x", None)]


def test_grants_are_shown(db):
    db.sql("GRANT SELECT ON open TO ann; GRANT NOTIFY ON CHANNEL email TO PUBLIC")
    db.sql("GRANT SELECT, UPDATE ON secret TO bob")
    assert db.sql("SHOW GRANTS").rows == [
        ("channel email", "public", "NOTIFY"),
        ("open", "ann", "SELECT"),
        ("secret", "bob", "SELECT"),
        ("secret", "bob", "UPDATE"),
    ]
    assert db.sql("SHOW GRANTS ON open").rows == [("open", "ann", "SELECT")]
    with db.acting_as(BOB):
        assert db.sql("SHOW GRANTS TO ann").rows == []
        assert len(db.sql("SHOW GRANTS").rows) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GRANT SELECT", "ON should stand here"),
        ("GRANT SELECT ON open TO", "the name of a user"),
        ("GRANT FLY ON open TO ann", "no privilege FLY"),
        ("GRANT SELECT ON nothing TO ann", "nothing"),
        ("GRANT SELECT ON CHANNEL email TO ann", "NOTIFY is granted on a channel"),
        ("REVOKE SELECT ON open TO ann", "FROM should stand here"),
        ("GRANT SELECT ON open TO ann please", "should end here"),
    ],
)
def test_wrong_grants(db, text, said):
    with pytest.raises(harken.HarkenError, match=said):
        db.sql(text)
