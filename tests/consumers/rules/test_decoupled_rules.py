"""Decoupled rules act whether or not the transaction that triggers them is committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken
from harken import Database, HarkenError


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect(":memory:") as made:
        made.amosql("""
            create type item properties (name charstring, quantity integer);
            create function told() -> bag of charstring;
            create item(name, quantity) instances :pen("pen", 50), :ink("ink", 50);
            create rule low() decoupled as for each item i when quantity(i) < 10
                do add told() = name(i);
            create rule never() as for each item i when quantity(i) > 100 do rollback;
            activate low(); activate never(); commit;
        """)
        yield made


def told(db: Database) -> list[str]:
    return sorted(str(row[0]) for row in db.amosql("told();").rows)


def test_after_a_commit_that_a_rule_refuses(db: Database) -> None:
    with pytest.raises(HarkenError) as caught:
        db.amosql("set quantity(:ink) = 3; set quantity(:pen) = 1000; commit;")
    assert caught.value.code == "rolled-back"
    assert told(db) == ["ink"]
    assert db.amosql("quantity(:ink);").rows == [(50,)]


def test_after_a_block_that_raises(db: Database) -> None:
    quantity, pen = db.function("quantity"), db.variables["pen"]

    def fail() -> None:
        with db.transaction():
            quantity[pen] = 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert told(db) == ["pen"]
    assert quantity[pen] == 50


def test_a_failing_action_is_recorded_and_the_first_error_told(db: Database) -> None:
    db.amosql("""
        create rule fails() decoupled as for each item i when quantity(i) < 10
            do set quantity(i) = 500;
        activate fails(); commit;
    """)
    db.amosql("set quantity(:pen) = 1; rollback;")
    assert told(db) == ["pen"]
    (action,) = db.detached_actions()
    assert action.rule == "fails"
    assert db.function("quantity")[db.variables["pen"]] == 50


def test_a_rule_that_was_rolled_back_itself_does_not_act(db: Database) -> None:
    db.amosql("""
        create rule mine() decoupled as for each item i when quantity(i) < 10
            do add told() = "mine";
        activate mine(); set quantity(:pen) = 1; rollback;
    """)
    assert told(db) == ["pen"]
