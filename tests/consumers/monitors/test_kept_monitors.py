"""Kept changes: a client that was away resumes from its position, or starts over."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Database, HarkenError, Keep, Subscription
from tests.harness.peer import Peer

Connect = Callable[..., Database]
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SCHEMA = """
CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT);
CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10;
INSERT INTO stock VALUES ('pen', 5), ('ink', 50);
"""


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Any) -> str:
    path = str(tmp_path / "shop.db")
    with harken.connect(path) as db:
        db.sql(SCHEMA)
    return path


def put(db: Database, item: str, quantity: int) -> None:
    db.sql(
        f"MERGE INTO stock USING (VALUES ('{item}', {quantity})) AS new(item, quantity) "
        "ON stock.item = new.item WHEN MATCHED THEN UPDATE SET quantity = new.quantity "
        "WHEN NOT MATCHED THEN INSERT (item, quantity) VALUES (new.item, new.quantity)"
    )


def kept(db: Database) -> int:
    return int(db.internals.connection.value("SELECT count(*) FROM harken_changes"))


def logs(db: Database) -> int:
    return int(db.internals.connection.value("SELECT count(*) FROM harken_logs"))


def test_a_client_resumes_from_its_position(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=True)
    first = sub.snapshot()
    assert first == Change("low", [("pen", 5)], [], 1, fresh=True)
    put(db, "ink", 3)
    (change,) = sub.changes()
    assert change == Change("low", [("ink", 3)], [], 2)
    assert (change.position, sub.position) == (2, 2)
    sub.close()
    put(db, "ink", 2)
    put(db, "cap", 1)
    db.close()

    sub = connect().monitor("low", since=change.position)
    assert sub.changes() == [
        Change("low", [("ink", 2)], [("ink", 3)], 3),
        Change("low", [("cap", 1)], [], 4),
    ]
    assert sub.changes() == []
    assert sub.position == 4


def test_all_that_watch_the_same_share_a_log_and_an_evaluation(connect: Connect) -> None:
    db = connect()
    traced: list[str] = []
    subs = [db.monitor("low", where={"item": "ink"}, keep=True) for _ in range(20)]
    subs += [db.monitor("low", where="`item`='ink'") for _ in range(20)]
    db.trace(traced.append)
    put(db, "ink", 3)
    assert [len(sub.changes()) for sub in subs] == [1] * 40
    assert (logs(db), kept(db)) == (1, 1)
    assert len([line for line in traced if "Δmonitored low" in line]) == 1


def test_what_another_process_changes_is_kept(
    connect: Connect, path: str, peers: Callable[[int], list[Peer]]
) -> None:
    (peer,) = peers(1)
    peer("open", path)
    peer.amosql("1 + 1;")
    sub = connect().monitor("low", keep=True)
    peer.amosql('set stock("ink") = 1; commit;')
    peer.amosql('set stock("ink") = 2; rollback;')
    assert sub.changes() == [Change("low", [("ink", 1)], [], 2)]


def test_what_is_rolled_back_was_never_there(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=True)
    db.sql("BEGIN")
    put(db, "ink", 1)
    db.rollback()
    db.sql("BEGIN; INSERT INTO stock VALUES ('cap', 1); ROLLBACK;")
    assert (sub.changes(), kept(db), sub.position) == ([], 0, 1)
    put(db, "ink", 2)
    assert [change.plus for change in sub.changes()] == [[("ink", 2)]]


# --- what is kept, and for how long --------------------------------------------------------


def test_changes_are_kept_for_a_time(connect: Connect, clock: Clock) -> None:
    db = connect(clock=clock)
    sub = db.monitor("low", keep=Keep(seconds=60))
    for quantity in (1, 2):
        put(db, "ink", quantity)
        clock.pass_by(40)
    put(db, "ink", 3)
    assert kept(db) == 2
    assert [c.position for c in db.monitor("low", since=2).changes()] == [3, 4]
    (change,) = sub.changes()
    assert change == Change("low", [("ink", 3), ("pen", 5)], [], 4, fresh=True)


def test_changes_are_kept_to_a_size(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=Keep(bytes=1_000))
    for quantity in range(200):
        put(db, "ink", quantity % 9)
    size = db.internals.connection.value("SELECT sum(length(change)) FROM harken_changes")
    assert 0 < size <= 1_000
    assert size == db.internals.connection.value("SELECT size FROM harken_logs")
    assert [c.fresh for c in sub.changes()] == [True]
    since = 201 - kept(db)
    assert len(db.monitor("low", since=since).changes()) == kept(db)
    assert [c.fresh for c in db.monitor("low", since=since - 1).changes()] == [True]


def test_a_change_larger_than_the_room_is_a_fresh_start(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=Keep(bytes=1))
    put(db, "ink", 1)
    assert kept(db) == 0
    assert sub.changes() == [Change("low", [("ink", 1), ("pen", 5)], [], 2, fresh=True)]
    assert sub.changes() == []


def test_the_limits_can_be_changed(connect: Connect) -> None:
    db, other = connect(), connect()
    db.monitor("low", keep=True)
    put(db, "ink", 1)
    other.monitor("low", keep=Keep(bytes=1))
    put(db, "ink", 2)
    assert kept(db) == 0


def test_a_log_that_nobody_reads_is_deleted(connect: Connect, clock: Clock) -> None:
    db = connect(clock=clock)
    db.monitor("low", keep=Keep(seconds=60)).close()
    put(db, "ink", 1)
    clock.pass_by(61)
    put(db, "ink", 2)
    assert (logs(db), kept(db)) == (0, 0)
    assert list(db.internals.network.graph.views()) == []
    put(db, "ink", 3)
    (change,) = db.monitor("low", since=1).changes()
    assert change.fresh


def test_a_log_that_somebody_asks_for_stays(connect: Connect, clock: Clock) -> None:
    reader, writer = connect(clock=clock), connect(clock=clock)
    sub = reader.monitor("low", keep=Keep(seconds=60))
    for quantity in range(1, 6):
        clock.pass_by(40)
        sub.changes()
        put(writer, "ink", quantity)
    assert (logs(writer), sub.position) == (1, 5)
    assert [c.position for c in sub.changes()] == [6]


def test_one_that_watches_in_the_writing_session_keeps_the_log(
    connect: Connect, clock: Clock
) -> None:
    db = connect(clock=clock)
    sub = db.monitor("low", keep=Keep(seconds=60))
    clock.pass_by(1000)
    put(db, "ink", 1)
    assert [c.plus for c in sub.changes()] == [[("ink", 1)]]


def test_delete_lets_go_of_what_is_kept(connect: Connect) -> None:
    db = connect()
    one, two = db.monitor("low", keep=True), db.monitor("low", keep=True)
    put(db, "ink", 1)
    one.delete()
    assert (logs(db), kept(db)) == (0, 0)
    assert [c.fresh for c in two.changes()] == [True]
    put(db, "ink", 2)
    assert [c.plus for c in two.changes()] == [[("ink", 2)]]


# --- slow readers --------------------------------------------------------------------------


def test_a_subscription_too_far_behind_in_memory_starts_over(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harken.consumers.monitors.queue.Queue.__init__.__defaults__", (3,))
    db.sql(SCHEMA)
    slow, quick = db.monitor("low"), db.monitor("low")
    for quantity in range(6):
        put(db, "ink", quantity)
        assert [c.plus for c in quick.changes()] == [[("ink", quantity)]]
    assert slow.changes() == [Change("low", [("ink", 5), ("pen", 5)], [], 6, fresh=True)]
    put(db, "ink", 7)
    assert [c.plus for c in slow.changes()] == [[("ink", 7)]]


def test_what_all_have_read_is_not_kept_in_memory(db: Database) -> None:
    db.sql(SCHEMA)
    subs = [db.monitor("low") for _ in range(3)]
    for turn in range(300):
        put(db, "ink", turn % 9)
        for sub in subs:
            sub.changes()
    (audience,) = db.internals.monitors.delivery.audiences.values()
    assert audience.queue.kept < 100


def test_a_reader_may_do_what_it_likes_with_its_rows(db: Database) -> None:
    db.sql(SCHEMA)
    one, two = db.monitor("low"), db.monitor("low")
    put(db, "ink", 1)
    one.changes()[0].plus.clear()
    assert two.changes()[0].plus == [("ink", 1)]


def test_a_listener_too_far_behind_receives_all_rows(connect: Connect, clock: Clock) -> None:
    reader, writer = connect(clock=clock), connect(clock=clock)
    told: list[Change] = []
    reader.monitor("low", told.append, keep=Keep(bytes=1))
    put(writer, "ink", 1)
    put(reader, "cap", 1)
    assert [(c.fresh, len(c.plus)) for c in told] == [(True, 3)]


# --- positions that are none ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "code"),
    [(-1, "bad-value"), ("1", "bad-value"), (True, "bad-value"), (7, "no-such-position")],
)
def test_a_wrong_position_is_refused(connect: Connect, since: Any, code: str) -> None:
    db = connect()
    with pytest.raises(HarkenError, check=lambda error: error.code == code):
        db.monitor("low", since=since)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"bytes": -1}, {"seconds": float("nan")}])
def test_to_keep_nothing_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(HarkenError, match="above 0"):
        Keep(**limits)


@pytest.mark.parametrize("wish", [{"keep": True}, {"since": 0}, {"where": "item = 'ink'"}])
def test_a_durable_monitor_is_of_a_whole_view(connect: Connect, wish: dict[str, Any]) -> None:
    with pytest.raises(HarkenError, check=lambda error: error.code == "unsupported"):
        connect().monitor("low", durable="reports", **wish)


def test_an_unknown_strategy_is_refused(connect: Connect) -> None:
    with pytest.raises(HarkenError, match="there is no strategy naiv"):
        connect().monitor("low", strategy="naiv")


def test_a_client_does_not_start_over_in_a_transaction(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=True)
    db.sql("BEGIN; INSERT INTO stock VALUES ('cap', 1)")
    with pytest.raises(HarkenError, match="while a transaction is open"):
        sub.snapshot()


# --- the schema ----------------------------------------------------------------------------


def test_a_log_does_not_keep_a_view_from_being_dropped(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", keep=True)
    with pytest.raises(HarkenError, check=lambda error: error.code == "in-use"):
        db.sql("DROP VIEW low")
    sub.close()
    db.sql("DROP VIEW low")
    assert logs(db) == 0
    put(db, "ink", 1)
    db.sql("CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10")
    (change,) = db.monitor("low", since=1).changes()
    assert change == Change("low", [("ink", 1), ("pen", 5)], [], 3, fresh=True)


def test_a_watcher_elsewhere_learns_that_the_view_is_gone(connect: Connect) -> None:
    reader, writer = connect(), connect()
    sub = reader.monitor("low", keep=True)
    writer.sql("DROP VIEW low")
    with pytest.raises(HarkenError, check=lambda error: error.code == "in-use"):
        sub.changes()


def test_the_log_of_a_redefined_view_starts_over(connect: Connect) -> None:
    db = connect()
    db.monitor("low", keep=True).close()
    db.sql("CREATE OR REPLACE VIEW low AS SELECT item, quantity FROM stock WHERE quantity > 10")
    (change,) = db.monitor("low", since=1).changes()
    assert change == Change("low", [("ink", 50)], [], 2, fresh=True)


# --- the law -------------------------------------------------------------------------------

QUANTITIES = st.integers(0, 12)
TRANSACTIONS = st.lists(
    st.tuples(st.sampled_from(["pen", "ink", "cap"]), QUANTITIES, st.booleans()), max_size=3
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), TRANSACTIONS),
        st.tuples(st.just("read"), st.booleans()),
        st.tuples(st.just("leave"), st.none()),
        st.tuples(st.just("wait"), st.integers(1, 80)),
    ),
    max_size=25,
)


class Copy:
    """A client: it has rows and a position, and may go away and come back."""

    def __init__(self, db: Database, **wish: Any) -> None:
        self.db, self.wish = db, wish
        self.sub: Subscription | None = db.monitor("low", **wish)
        self.rows: Counter[Any] = Counter()
        self.position = 0
        self._take([self.sub.snapshot()])

    def _take(self, changes: list[Change]) -> None:
        for change in changes:
            if change.fresh:
                self.rows.clear()
            self.rows.update(change.plus)
            self.rows.subtract(change.minus)
            assert min(self.rows.values(), default=0) >= 0, "what was not there went"
            assert change.position >= self.position
            self.position = change.position

    def leave(self) -> None:
        if self.sub is not None:
            self.sub.close()
            self.sub = None

    def read(self, net: bool) -> None:
        if self.sub is None:
            self.sub = self.db.monitor("low", **self.wish, since=self.position)
        self._take(self.sub.changes(net=net))


@settings(max_examples=40)
@given(acts=ACTS, keep=st.builds(Keep, st.just(100), st.sampled_from([1, 200, 10_000])))
def test_a_client_always_ends_with_the_view(acts: list[Any], keep: Keep) -> None:
    clock = Clock()
    with harken.connect(clock=clock) as db:
        db.sql(SCHEMA)
        copies = [Copy(db, keep=keep), Copy(db, keep=keep, where="quantity > 3")]
        for what, argument in acts:
            match what:
                case "write":
                    with db.transaction():
                        for item, quantity, goes in argument:
                            if goes:
                                db.sql(f"DELETE FROM stock WHERE item = '{item}'")
                            else:
                                put(db, item, quantity)
                case "read":
                    for copy in copies:
                        copy.read(argument)
                case "leave":
                    for copy in copies:
                        copy.leave()
                case "wait":
                    clock.pass_by(argument)
        for copy in copies:
            copy.read(False)
        whole, part = copies
        assert +whole.rows == Counter(db.sql("SELECT * FROM low").rows)
        assert +part.rows == Counter(db.sql("SELECT * FROM low WHERE quantity > 3").rows)
