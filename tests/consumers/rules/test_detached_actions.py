"""What detached rules have to do is kept in the file until it is done: nothing of it is lost when
it fails or when the process dies, and nothing is done twice."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database, HarkenError
from tests.harness.patience import PATIENCE

Connect = Callable[..., Database]

SHOP = """
create type item properties (name charstring, quantity integer);
create function sent() -> bag of charstring;
create function send(charstring text) -> boolean as foreign;
create item(name, quantity) instances :pen("pen", 50), :ink("ink", 50);
create rule order_more() detached as
    for each item i, charstring text when quantity(i) < 10 and name(i) = text
    do begin add sent() = text; send(text); end;
activate order_more();
commit;
"""


class Mail:
    """A mail server that may be down."""

    def __init__(self) -> None:
        self.is_down = True
        self.delivered: list[str] = []

    def send(self, text: str) -> None:
        if self.is_down:
            raise ConnectionError("the mail server is down")
        self.delivered.append(text)


@pytest.fixture
def mail() -> Mail:
    return Mail()


@pytest.fixture
def shop(connect: Connect, mail: Mail) -> Database:
    db = connect()
    db.amosql(SHOP)
    db.foreign("send", mail.send)
    return db


def fails(code: str, act: Callable[[], Any]) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        act()
    assert caught.value.code == code
    return caught.value


def sell_out(db: Database, name: str = "pen") -> HarkenError:
    return fails("foreign", lambda: db.amosql(f"set quantity(:{name}) = 1; commit;"))


def sent(db: Database) -> list[str]:
    return sorted(row[0] for row in db.amosql("sent();").rows)


def test_a_failed_action_is_kept_and_can_be_retried(shop: Database, mail: Mail) -> None:
    before = datetime.datetime.now(datetime.UTC)
    error = sell_out(shop)
    (action,) = shop.detached_actions()
    assert action.rule == "order_more"
    assert action.tuples == [(shop.variables["pen"], "pen")]
    assert action.attempts == 1
    assert "[foreign]" in str(action.error)
    assert "the mail server is down" in str(action.error)
    assert action.tried is not None
    assert before <= action.recorded <= action.tried
    assert error.message.startswith("the transaction is committed, but detached action")
    assert f"db.retry_actions([{action.number}])" in str(error.hint)
    assert "nothing of this statement was done" not in error.report()
    assert (shop.function("quantity")[shop.variables["pen"]], sent(shop)) == (1, [])

    mail.is_down = False
    assert shop.retry_actions() == 1
    assert (mail.delivered, sent(shop), shop.detached_actions()) == (["pen"], ["pen"], [])
    assert shop.retry_actions() == 0


def test_a_record_can_be_read_and_deleted_but_not_written(shop: Database) -> None:
    sell_out(shop)
    (row,) = shop.sql("SELECT * FROM detached_actions").rows
    handle = shop.function("detached_actions")
    fails("not-updatable", lambda: shop.sql("UPDATE detached_actions SET attempts = 0"))
    fails(
        "not-updatable",
        lambda: shop.sql(
            "INSERT INTO detached_actions SELECT number + 1, rule, about, attempts, error, "
            "recorded, tried, tuples FROM detached_actions"
        ),
    )
    fails("not-updatable", lambda: shop.load("detached_actions", [(99, *row[1:])]))
    fails("not-updatable", lambda: handle.add(99, *row[1:]))
    fails("not-updatable", lambda: handle.__setitem__(99, row[1:]))
    fails("not-updatable", lambda: handle.update({99: row[1:]}))
    assert shop.sql("SELECT * FROM detached_actions").rows == [row]
    shop.sql("DELETE FROM detached_actions")
    assert shop.detached_actions() == []


def test_a_retry_that_fails_counts(shop: Database, mail: Mail) -> None:
    sell_out(shop, "pen")
    sell_out(shop, "ink")
    error = fails("foreign", shop.retry_actions)
    assert error.message.startswith("detached action")
    assert [each.attempts for each in shop.detached_actions()] == [2, 2]
    mail.is_down = False
    first, second = shop.detached_actions()
    assert shop.retry_actions([second.number]) == 1
    assert mail.delivered == ["ink"]
    assert [each.number for each in shop.detached_actions()] == [first.number]
    fails("no-such-row", lambda: shop.retry_actions([second.number]))


def test_an_action_can_be_discarded(shop: Database, mail: Mail) -> None:
    sell_out(shop, "pen")
    sell_out(shop, "ink")
    pen, ink = (each.number for each in shop.detached_actions())
    shop.discard_actions([pen])
    shop.sql(f"DELETE FROM detached_actions WHERE number = {ink}")
    shop.commit()
    mail.is_down = False
    assert (shop.retry_actions(), mail.delivered) == (0, [])
    fails("no-such-row", lambda: shop.discard_actions([pen]))


def test_the_record_is_a_table_and_can_be_watched(shop: Database, mail: Mail) -> None:
    sub = shop.monitor("detached_actions")
    sell_out(shop)
    rows = shop.sql("SELECT rule, about, attempts, error FROM detached_actions").rows
    assert [row[:3] for row in rows] == [("order_more", '<:pen, "pen">', 1)]
    assert "the mail server is down" in rows[0][3]
    assert sum(len(change.plus) for change in sub.changes()) == 2  # recorded, then failed
    mail.is_down = False
    shop.retry_actions()
    assert [len(change.minus) for change in sub.changes()] == [1]


def test_what_is_done_leaves_no_record(shop: Database, mail: Mail) -> None:
    mail.is_down = False
    shop.amosql("set quantity(:pen) = 1; set quantity(:ink) = 1; commit;")
    assert sorted(mail.delivered) == ["ink", "pen"]
    assert shop.detached_actions() == []
    assert shop.sql("SELECT * FROM detached_actions").rows == []


def test_the_record_survives_reopening(shop: Database, connect: Connect, mail: Mail) -> None:
    sell_out(shop)
    shop.close()
    again = connect()
    (action,) = again.detached_actions()
    assert (action.rule, action.attempts) == ("order_more", 1)
    error = fails("foreign", again.retry_actions)  # this session has no Python function for it
    assert "has no Python function" in error.message
    again.foreign("send", mail.send)
    mail.is_down = False
    again.retry_actions()
    assert (mail.delivered, again.detached_actions()) == (["pen"], [])


DIES = """
import os, sys
import harken

db = harken.connect(sys.argv[1])
db.foreign("send", lambda text: os._exit(9))
db.amosql("for each item i where name(i) = 'pen' do set quantity(i) = 1; commit;")
"""


def test_an_action_whose_process_dies_is_on_record(
    shop: Database, connect: Connect, path: str, mail: Mail, warm_python: Path
) -> None:
    shop.close()
    died = subprocess.run([warm_python, "-c", DIES, path], check=False, timeout=PATIENCE)
    assert died.returncode == 9
    db = connect()
    db.foreign("send", mail.send)
    (action,) = db.detached_actions()
    assert (action.attempts, action.error, action.tried) == (0, None, None)
    assert sent(db) == []
    mail.is_down = False
    db.retry_actions()
    assert (mail.delivered, sent(db), db.detached_actions()) == (["pen"], ["pen"], [])


ASKED = """
create function asked() -> bag of integer;
create function done() -> bag of integer;
create rule answer() detached as for each integer n when asked() = n do add done() = n;
activate answer();
commit;
"""
DIES_AT_COMMIT = """
import os, sys
import harken
from harken.engines.sqlite.connection import Connection

path, left, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
commit = Connection.commit
db = harken.connect(path)


def last(connection):
    global left
    left -= 1
    if left == 0 and when == "before":
        os._exit(9)
    commit(connection)
    if left == 0:
        os._exit(9)


Connection.commit = last
for n in range(3):
    db.amosql(f"add asked() = {n}; commit;")
os._exit(0)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commits", [1, 2, 3, 4])
def test_wherever_a_process_dies_each_action_is_done_once(
    connect: Connect, path: str, warm_python: Path, commits: int, when: str
) -> None:
    db = connect()
    db.amosql(ASKED)
    db.close()
    command = [warm_python, "-c", DIES_AT_COMMIT, path, str(commits), when]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 9
    again = connect()
    asked = sorted(again.amosql("asked();").rows)
    assert len(again.detached_actions()) == len(asked) - len(again.amosql("done();").rows)
    again.retry_actions()
    assert sorted(again.amosql("done();").rows) == asked
    assert again.detached_actions() == []


def test_only_one_session_carries_an_action_out(
    shop: Database, connect: Connect, mail: Mail
) -> None:
    """The other looked at the list before, and finds that it is done."""
    sell_out(shop)
    (action,) = shop.detached_actions()
    other = connect(timeout=PATIENCE)
    other.foreign("send", mail.send)
    mail.is_down = False
    shop.retry_actions([action.number])
    assert other.detached_actions() == []
    assert other.retry_actions() == 0
    assert mail.delivered == ["pen"]


def test_a_mended_rule_is_retried_as_it_is_defined_now(shop: Database, mail: Mail) -> None:
    sell_out(shop)
    shop.amosql("""
        deactivate order_more(); delete rule order_more;
        create rule order_more() detached as
            for each item i, charstring text when quantity(i) < 10 and name(i) = text
            do add sent() = "later: " || text;
        commit;
    """)
    shop.retry_actions()
    assert sent(shop) == ["later: pen"]


def test_an_action_that_no_longer_fits_its_rule_stays_on_record(shop: Database, mail: Mail) -> None:
    sell_out(shop)
    shop.amosql("deactivate order_more(); delete rule order_more; commit;")
    fails("unknown-rule", shop.retry_actions)
    shop.amosql("""
        create rule order_more() detached as for each item i when quantity(i) < 10 do print(1);
        commit;
    """)
    fails("bad-value", shop.retry_actions)
    assert [each.attempts for each in shop.detached_actions()] == [3]


def test_a_tuple_whose_object_is_gone_is_not_acted_on(shop: Database, mail: Mail) -> None:
    sell_out(shop)
    shop.amosql("delete :pen; commit;")
    mail.is_down = False
    shop.retry_actions()
    assert (mail.delivered, shop.detached_actions()) == ([], [])


def test_a_rolled_back_transaction_records_nothing(shop: Database) -> None:
    shop.amosql("set quantity(:pen) = 1; rollback;")
    shop.amosql("create rule never() as for each item i when quantity(i) = 2 do rollback;")
    shop.amosql("activate never(); commit;")
    fails("rolled-back", lambda: shop.amosql("set quantity(:pen) = 2; commit;"))
    assert shop.detached_actions() == []


def test_rules_that_trigger_each_other_without_end_stay_on_record(connect: Connect) -> None:
    db = connect()
    db.amosql("""
        create function n() -> integer;
        create rule more(integer limit) detached as
            for each integer m when n() = m and m < limit do set n() = m + 1;
        activate more(1000000); set n() = 0;
    """)
    db.round_limit(5)
    fails("no-fixpoint", db.commit)
    (left,) = db.detached_actions()
    assert left.rule == "more"
    db.amosql("deactivate more(1000000); commit;")
    done = db.function("n")[()]
    db.retry_actions()
    assert db.function("n")[()] == done + 1


@pytest.mark.parametrize("wrong", [3, "3", [True], [1.5], None])
def test_numbers_are_a_list_of_whole_numbers(shop: Database, wrong: Any) -> None:
    fails("type-mismatch", lambda: shop.discard_actions(wrong))


def test_a_retry_waits_for_no_transaction_of_its_caller(shop: Database) -> None:
    sell_out(shop)
    shop.amosql("set quantity(:ink) = 40;")
    fails("transaction", shop.retry_actions)
    shop.rollback()


def test_a_file_from_before_there_were_records(shop: Database, connect: Connect) -> None:
    shop.amosql("delete function detached_actions; commit;")
    sell_out(shop)
    assert [each.attempts for each in shop.detached_actions()] == [1]


def test_another_function_of_that_name(db: Database) -> None:
    db.amosql("create function detached_actions(charstring) -> integer;")
    rule = "create rule r() detached as when 1 = 1 do print(1);"
    assert "another function" in fails("exists", lambda: db.amosql(rule)).message


def test_in_memory(mail: Mail) -> None:
    with harken.connect() as db:
        db.amosql(SHOP)
        db.foreign("send", mail.send)
        sell_out(db)
        mail.is_down = False
        db.retry_actions()
        assert mail.delivered == ["pen"]
