"""`.activate`: a program that is at its fixpoint after every commit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database, HarkenError

TEXT = """
.decl order(id: number, n: number)
.decl stock(n: number)
.decl sent(id: number)
stock(10).
rule send [instance]: order(id, n), stock(m), n <= m
    -> !order(id, n), sent(id), !stock(m), stock(m - n).
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as made:
        yield made


def rows(db: Database, relation: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(f"SELECT * FROM {relation}").rows)


def test_it_runs_at_once_and_at_every_commit(db: Database) -> None:
    db.datalog(f"{TEXT}order(1, 4).\n.activate")
    assert rows(db, "sent") == [(1,)]
    db.datalog("+order(2, 3). +order(3, 9).")
    assert (rows(db, "sent"), rows(db, "stock")) == ([(1,), (2,)], [(3,)])
    db.sql("UPDATE stock SET n = 20")
    assert (rows(db, "sent"), rows(db, "stock")) == ([(1,), (2,), (3,)], [(11,)])


def test_it_follows_changes_by_sql_and_its_own_changes_are_monitored(db: Database) -> None:
    db.datalog(f"{TEXT}.activate")
    told = db.monitor("sent")
    db.sql('INSERT INTO "order" VALUES (7, 2)')
    (change,) = told.changes()
    assert list(change.plus) == [(7,)]


def test_set_oriented_rules_and_priorities(db: Database) -> None:
    db.datalog("""
    .decl a(x: number) .decl b(x: number) .decl c(x: number)
    rule first: a(x), !c(x) -> b(x).
    rule second: b(x) -> c(x), !b(x), !a(x).
    .priority first > second
    .activate
    """)
    db.datalog("+a(1). +a(2).")
    assert (rows(db, "a"), rows(db, "b"), rows(db, "c")) == ([], [], [(1,), (2,)])


def test_procedures_are_called_for_what_is_new(db: Database) -> None:
    called: list[int] = []
    db.foreign("tell", called.append)
    db.datalog(".decl a(x: number) a(1). rule r: a(x) -> tell(x).\n.activate")
    assert called == [1]
    db.datalog("+a(2).")
    assert called == [1, 2]
    db.datalog("-a(1).")
    db.datalog("+a(1).")
    assert called == [1, 2, 1]


def test_a_change_that_makes_it_run_forever_is_rolled_back(db: Database) -> None:
    db.datalog("""
    .decl lamp(on: number)
    rule on: lamp(0) -> !lamp(0), lamp(1).
    rule off: lamp(1) -> !lamp(1), lamp(0).
    .activate limit 50
    """)
    with pytest.raises(HarkenError) as caught:
        db.datalog("+lamp(0).")
    assert caught.value.code == "no-fixpoint"
    assert rows(db, "lamp") == []


def test_a_statement_that_fails_leaves_no_conflict_set(db: Database) -> None:
    db.datalog(f"{TEXT}.activate")
    db.sql("BEGIN")
    with pytest.raises(HarkenError):
        db.datalog("+order(1, 1). +nothing(2).")
    db.sql("INSERT INTO stock VALUES (1)")
    db.sql("COMMIT")
    assert rows(db, "sent") == []


def test_it_is_part_of_the_file_and_of_all_sessions(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with harken.connect(path) as db:
        db.datalog(f"{TEXT}.activate")
        with harken.connect(path) as other:
            other.datalog("+order(1, 1).")
            assert rows(other, "sent") == [(1,)]
            other.datalog(f"{TEXT.splitlines()[-2]}\n{TEXT.splitlines()[-1]}\n.deactivate")
        db.datalog("+order(2, 1).")
        assert rows(db, "sent") == [(1,)]
    with harken.connect(path) as db:
        assert rows(db, "order") == [(2, 1)]


def test_deactivate(db: Database) -> None:
    db.datalog(f"{TEXT}.activate")
    db.datalog(".deactivate")
    db.datalog("+order(1, 1).")
    assert rows(db, "sent") == []
    with pytest.raises(HarkenError, match="none of these rules is active"):
        db.datalog(".deactivate")


def test_a_rule_is_active_once(db: Database) -> None:
    db.datalog(f"{TEXT}.activate")
    with pytest.raises(HarkenError, match="the rule send is active already"):
        db.datalog(".activate")


def test_what_an_active_rule_mentions_cannot_go(db: Database) -> None:
    db.datalog(f"{TEXT}.activate")
    with pytest.raises(HarkenError):
        db.sql("DROP TABLE stock")
    db.datalog("+order(1, 1).")
    assert rows(db, "sent") == [(1,)]


def test_what_has_fired_is_not_kept(db: Database) -> None:
    with pytest.raises(HarkenError, match="is run, and not activated"):
        db.datalog(".decl a(x: number) rule r [instance]: a(x) -> a(x).\n.refraction .activate")
