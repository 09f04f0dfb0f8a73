"""`user()` and `granted()` in queries, rules and functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken
from harken import Database
from harken.database.permissions import Role, User

ANN, BOB = User("ann", Role.AUTHOR), User("bob", Role.AUTHOR)


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE note (id INT PRIMARY KEY, text STRING, author STRING)")
        db.sql("GRANT SELECT, INSERT, UPDATE ON note TO ann, bob")
        yield db


def test_nobody_has_signed_in(db: Database) -> None:
    assert db.amosql("count(user());")[0].rows == [(0,)]


def test_a_rule_holds_users_to_their_own_rows(db: Database) -> None:
    db.amosql(
        "create rule own_notes() as for each integer i, charstring t, charstring a"
        " when note(i) = <t, a> and some(user()) and not a = user() do rollback;"
        "activate own_notes(); commit;"
    )
    with db.acting_as(ANN):
        db.sql("INSERT INTO note VALUES (1, 'mine', 'ann')")
        with pytest.raises(harken.HarkenError, match="own_notes rolled the transaction back"):
            db.sql("INSERT INTO note VALUES (2, 'forged', 'bob')")
    db.sql("INSERT INTO note VALUES (3, 'from the operator', 'bob')")
    with db.acting_as(BOB), pytest.raises(harken.HarkenError, match="rolled"):
        db.sql("UPDATE note SET text = 'changed' WHERE id = 1")
    assert db.sql("SELECT id, text FROM note ORDER BY id")[0].rows == [
        (1, "mine"),
        (3, "from the operator"),
    ]


def test_an_operator_who_signed_in_has_a_name(db: Database) -> None:
    db.amosql("create function signer() -> charstring as select user(); commit;")
    with db.acting_as(User("olga", Role.OPERATOR)):
        assert db.amosql("signer();")[0].rows == [("olga",)]
    assert db.amosql("signer();")[0].rows == []


def test_grants_can_be_asked_for(db: Database) -> None:
    db.sql("REVOKE INSERT ON note FROM bob")
    db.amosql(
        "create function may_write(charstring who) -> boolean as"
        ' select true where granted(who, "INSERT") = "note"; commit;'
    )
    assert db.amosql('may_write("ann");')[0].rows == [(True,)]
    assert db.amosql('may_write("bob");')[0].rows == []
    assert db.amosql('granted("bob", "SELECT");')[0].rows == [("note",)]
    with pytest.raises(harken.HarkenError, match="there is no privilege"):
        db.amosql('granted("bob", "FLY");')
    with pytest.raises(harken.HarkenError):  # what failed leaves the session usable
        db.amosql('granted("bob", "");')
    assert db.amosql('may_write("ann");')[0].rows == [(True,)]


def test_they_survive_in_a_file(tmp_path: object) -> None:
    file = f"{tmp_path}/notes.db"
    with harken.connect(file) as db:
        db.amosql("create function signer() -> charstring as select user(); commit;")
    with harken.connect(file) as db, db.acting_as(ANN):
        assert db.internals.runtime.permissions.account == "ann"
    with harken.connect(file) as db:
        assert db.amosql("signer();")[0].rows == []


def test_the_names_are_free_for_tables(db: Database) -> None:
    db.sql("CREATE TABLE user (a INT)")
    db.sql("INSERT INTO user VALUES (1)")
    db.sql("DROP TABLE user")
    db.sql("CREATE VIEW user AS SELECT 2 AS x")
    assert db.sql("SELECT * FROM user")[0].rows == [(2,)]
    db.sql("DROP VIEW user")
    db.amosql("create type person; create function user(person) -> integer; commit;")
    with db.acting_as(User("olga", Role.OPERATOR)):
        assert db.amosql("user();")[0].rows == [("olga",)]
