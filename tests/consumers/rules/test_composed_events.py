"""Events that are joined, come from the clock or a signal, or are waited for."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken import HarkenError

START = datetime.datetime(2026, 3, 2, 7, 0, tzinfo=datetime.UTC)
SCHEMA = """
create type item properties (name charstring, quantity integer, price integer);
create function shops(item) -> bag of charstring;
create item(name, quantity, price) instances :a("a", 10, 1), :b("b", 20, 1);
commit;
"""


class Shop:
    """A database with a clock of its own; everything printed is a line."""

    def __init__(self, path: str = ":memory:") -> None:
        self.path, self.now = path, START
        self.db = harken.connect(path, clock=lambda: self.now)

    def run(self, text: str) -> list[str]:
        return [line(each.rows[0]) for each in self.db.amosql(text) if each.kind == "print"]

    def wait(self, **length: float) -> list[str]:
        """Time passes, and what is due is done; the printed values come by `told`."""
        self.now += datetime.timedelta(**length)
        self.db.run_due()
        told = [str(row[0]) for row in self.db.amosql("told();").rows]
        self.db.amosql("for each charstring c where told() = c remove told() = c; commit;")
        return sorted(told)

    def again(self) -> None:
        self.db.close()
        self.db = harken.connect(self.path, clock=lambda: self.now)


def line(row: tuple[Any, ...]) -> str:
    return " ".join(map(str, row))


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    made.run(SCHEMA)
    made.run("create function told() -> bag of charstring;")
    with made.db:
        yield made


def test_a_rule_acts_every_ten_minutes(shop: Shop) -> None:
    shop.run("""
        create rule review() nervous on every 10 minutes as
            for each item i when quantity(i) < 15 do add told() = name(i);
        activate review(); commit;
    """)
    assert shop.db.next_due() == START + datetime.timedelta(minutes=10)
    assert shop.wait(minutes=9) == []
    assert shop.wait(minutes=1) == ["a"]
    shop.run("set quantity(:b) = 3; commit;")
    assert shop.wait(minutes=9) == []
    assert shop.wait(minutes=1) == ["a", "b"]
    assert shop.wait(minutes=35) == ["a", "b"], "times that were missed are made up for once"
    assert shop.db.next_due() == START + datetime.timedelta(minutes=60)
    shop.run("deactivate review(); commit;")
    assert shop.db.next_due() is None


def test_a_rule_over_time_acts_once_on_what_has_become_true_unless_it_says_otherwise(
    shop: Shop,
) -> None:
    shop.run("""
        create rule review() on every 10 minutes as
            for each item i when quantity(i) < 15 do add told() = name(i);
        activate review(); commit;
    """)
    assert shop.wait(minutes=10) == ["a"]
    assert shop.wait(minutes=10) == []
    shop.run("set quantity(:b) = 3; commit;")
    shop.run("set quantity(:a) = 30; commit; set quantity(:a) = 3; commit;")
    assert shop.wait(minutes=10) == ["a", "b"]
    shop.run("set quantity(:a) = 30; commit; set quantity(:a) = 3; commit;")
    shop.run("set quantity(:a) = 30; commit;")
    assert shop.wait(minutes=10) == []


def test_moments_and_times_of_day(shop: Shop) -> None:
    shop.run("""
        create rule morning() on every day at '08:30' as do add told() = "morning";
        create rule new_year() on at |2026-03-03/00:00:00| as do add told() = "once";
        create rule soon() on after 5 minutes as do add told() = "soon";
        activate morning(); activate new_year(); activate soon(); commit;
    """)
    assert shop.wait(minutes=5) == ["soon"]
    assert shop.wait(minutes=85) == ["morning"]
    assert shop.wait(hours=20) == ["once"]
    assert shop.wait(hours=3.5) == []
    assert shop.wait(hours=1) == ["morning"]


def test_moments_survive_the_session(tmp_path: Any) -> None:
    made = Shop(str(tmp_path / "shop.db"))
    made.run(SCHEMA)
    made.run("""
        create function told() -> bag of charstring;
        create rule tick() on every hour as do add told() = "tick";
        create rule gone() on updated(quantity) then not updated(price) within 2 hours as
            for each item i do add told() = name(i);
        activate tick(); activate gone(); commit;
        set quantity(:a) = 3; set quantity(:b) = 4; commit;
    """)
    made.again()
    assert made.wait(hours=1) == ["tick"]
    made.run("for each item i where name(i) = 'b' set price(i) = 7; commit;")
    made.again()
    assert made.wait(hours=1) == ["a", "tick"]
    made.db.close()


def test_a_failing_action_waits_for_the_next_moment(shop: Shop) -> None:
    shop.run("""
        create rule fails() on every hour as do rollback;
        create rule works() on every hour as do add told() = "tick";
        activate fails(); activate works(); commit;
    """)
    shop.now += datetime.timedelta(hours=1)
    with pytest.raises(HarkenError) as caught:
        shop.db.run_due()
    assert caught.value.code == "rolled-back"
    assert shop.db.amosql("told();").rows == [("tick",)]
    assert shop.db.next_due() == START + datetime.timedelta(hours=2)


def test_signals(shop: Shop) -> None:
    shop.run("""
        create rule alarm(item i) nervous on signal("alarm") as
            when quantity(i) < 15 do add told() = name(i);
        create rule other() on signal(other) as do add told() = "other";
        activate alarm(:a); activate alarm(:b); activate other(); commit;
    """)
    shop.db.signal("alarm")
    assert shop.wait(minutes=0) == ["a"]
    shop.db.signal("ALARM")
    assert shop.wait(minutes=0) == ["a"]
    with shop.db.transaction():
        shop.db.signal("other")
        shop.db.function("quantity")[shop.db.variables["b"]] = 1
    assert shop.wait(minutes=0) == ["other"]
    shop.db.signal("alarm")
    assert shop.wait(minutes=0) == ["a", "b"]


def test_a_signal_that_rolled_back_was_not_raised(shop: Shop) -> None:
    shop.run("create rule r() on signal(s) as do add told() = 's'; activate r(); commit;")
    shop.db.amosql("set quantity(:a) = 5;")
    shop.db.signal("s")
    shop.db.amosql("rollback;")
    assert shop.wait(minutes=0) == []


def test_a_sequence_is_of_one_item_and_within_its_interval(shop: Shop) -> None:
    shop.run("""
        create rule both() on updated(quantity) then updated(price) within 5 minutes as
            for each item i do print(name(i));
        activate both(); commit;
    """)
    assert shop.run("set quantity(:a) = 1; commit;") == []
    assert shop.run("set price(:b) = 5; commit;") == []
    assert shop.run("set price(:a) = 5; commit;") == ["a"]
    assert shop.run("set price(:a) = 6; commit;") == [], "the first event is used up"
    shop.run("set quantity(:b) = 1; commit;")
    shop.now += datetime.timedelta(minutes=6)
    assert shop.run("set price(:b) = 6; commit;") == []
    assert shop.run("set quantity(:b) = 2; set price(:b) = 7; commit;") == [], "not after it"
    assert shop.run("set price(:b) = 8; commit;") == ["b"]


def test_the_order_of_statements_counts_for_immediate_rules(shop: Shop) -> None:
    shop.run("""
        create rule both() immediate on updated(quantity) then updated(price) as
            for each item i do print(name(i));
        activate both(); commit;
    """)
    assert shop.run("set price(:a) = 5;") == []
    assert shop.run("set quantity(:a) = 5;") == []
    assert shop.run("set price(:a) = 6;") == ["a"]
    assert shop.run("rollback;") == []
    assert shop.run("set price(:a) = 7;") == [], "what rolled back has not happened"


def test_conjunctions_within_an_interval_come_in_any_order(shop: Shop) -> None:
    shop.run("""
        create rule both() on updated(quantity) and added(shops) within 5 minutes as
            for each item i do print(name(i));
        activate both(); commit;
    """)
    assert shop.run("add shops(:a) = 'x'; commit;") == []
    assert shop.run("set quantity(:b) = 5; commit;") == []
    assert shop.run("set quantity(:a) = 5; commit;") == ["a"]
    assert shop.run("add shops(:b) = 'x'; commit;") == ["b"]
    assert shop.run("set quantity(:b) = 6; add shops(:b) = 'y'; commit;") == ["b"]
    shop.run("add shops(:a) = 'z'; commit;")
    shop.now += datetime.timedelta(minutes=6)
    assert shop.run("set quantity(:a) = 6; commit;") == []


def test_what_has_not_happened_within_an_interval(shop: Shop) -> None:
    shop.run("""
        create rule late() on updated(quantity) then not updated(price) within 10 minutes as
            for each item i do add told() = name(i);
        create rule later() on 5 minutes after updated(quantity) as
            for each item i do add told() = "later " || name(i);
        activate late(); activate later(); commit;
        set quantity(:a) = 1; set quantity(:b) = 1; commit;
    """)
    assert shop.wait(minutes=4) == []
    shop.run("set price(:a) = 9; commit;")
    assert shop.wait(minutes=1) == ["later a", "later b"]
    assert shop.wait(minutes=5) == ["b"]
    assert shop.wait(minutes=5) == []
    assert shop.db.next_due() is None


def test_joined_events_of_one_transaction(shop: Shop) -> None:
    shop.run("""
        create rule both() on updated(quantity) and updated(price) as
            for each item i do print("both", name(i));
        create rule one() on updated(quantity) and not updated(price) as
            for each item i do print("one", name(i));
        create rule any() on (created(item) or added(shops)) and not updated(price) as
            for each item i do print("any", name(i));
        activate both(); activate one(); activate any(); commit;
    """)
    assert shop.run("set quantity(:a) = 1; set quantity(:b) = 1; set price(:b) = 3; commit;") == [
        "both b",
        "one a",
    ]
    assert shop.run("add shops(:a) = 'x'; commit;") == ["any a"]
    assert shop.run("create item(name) instances :c('c'); set price(:a) = 4; commit;") == ["any c"]
    assert shop.run("add shops(:a) = 'x'; set price(:a) = 5; commit;") == []


def test_strict_nervous_and_patient(shop: Shop) -> None:
    for kind in ("strict", "nervous", "patient"):
        shop.run(f"""
            create rule {kind}_one() {kind} on updated(price) as
                for each item i when quantity(i) < 5 do print("{kind}", name(i));
            activate {kind}_one();
        """)
    shop.run("commit;")
    assert shop.run("set quantity(:a) = 1; commit;") == []
    assert sorted(shop.run("set price(:a) = 2; commit;")) == ["nervous a", "patient a"]
    assert shop.run("set price(:a) = 3; commit;") == ["nervous a"]
    assert sorted(shop.run("set price(:b) = 2; set quantity(:b) = 2; commit;")) == [
        "nervous b",
        "patient b",
        "strict b",
    ]
    shop.run("set quantity(:a) = 9; commit; set quantity(:a) = 1; commit;")
    assert sorted(shop.run("set price(:a) = 4; commit;")) == ["nervous a", "patient a"]
    shop.run("set quantity(:a) = 9; commit; set quantity(:a) = 1; commit;")
    assert shop.run("rollback; delete :a; commit;") == []


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("created(quantity)", "type-mismatch"),
        ("created(nothing)", "unknown-type"),
        ("added(nothing)", "unknown-function"),
        ("every 10 apples", "bad-value"),
        ("every 0 minutes", "bad-value"),
        ("every hour at '08:00'", "bad-value"),
        ("every day at '25:00'", "bad-value"),
        ("at 'noon'", "bad-value"),
        ("not added(quantity)", "syntax"),
        ("added(quantity) then not added(price)", "syntax"),
        ("added(quantity) within 5 minutes", "syntax"),
        ("not added(price) then added(quantity) within 5 minutes", "syntax"),
        ("signal()", "syntax"),
    ],
)
def test_errors(shop: Shop, event: str, code: str) -> None:
    with pytest.raises(HarkenError) as caught:
        shop.db.amosql(f"create rule r() on {event} as for each item i do print(i);")
    assert caught.value.code == code
