"""Changes as server-sent events: from the start, after a pause, after a pause that was too long."""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import harken
from harken import Change, HarkenError, Keep
from harken.database.changes import StoredChange, StoredRows
from harken.server.feeds import Tail
from harken.server.server_sent_events import net
from harken.values.types import INTEGER
from tests.harness.patience import PATIENCE
from tests.server.serving import Served, take

Serve = Callable[..., Served]
EVENTS = "/api/v1/views/low/events"
CHANGE = {"kind": "change", "view": "low", "fresh": False}


def test_a_stream_is_the_rows_and_then_the_changes(served: Served) -> None:
    stream = served.stream(EVENTS)
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    ((kind, snapshot),) = stream.take(1)
    assert (kind, snapshot["rows"]) == ("snapshot", [["pen", 5]])
    first, second = served.put("ink", 3), served.put("ink", None)
    told = stream.take(2)
    times = [change.pop("at") for _, change in told]
    assert all(datetime.datetime.fromisoformat(each).tzinfo for each in times)
    assert told == [
        ("change", {**CHANGE, "plus": [["ink", 3]], "minus": [], "position": first}),
        ("change", {**CHANGE, "plus": [], "minus": [["ink", 3]], "position": second}),
    ]


def test_a_failed_read_is_repeated_and_logged_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = served.stream(EVENTS)
    stream.take(1)
    failures = iter(range(5))
    publish = Tail.publish_new

    def fail_at_first(tail: Tail) -> None:
        if next(failures, None) is not None:
            raise OSError("too many open files")
        publish(tail)

    monkeypatch.setattr(Tail, "publish_new", fail_at_first)
    served.put("ink", 3)
    assert stream.take(1)[0][0] == "change"
    assert [record.message for record in caplog.records] == [
        "cannot read new changes; will try again"
    ]


def test_a_browser_resumes_from_its_last_id(served: Served) -> None:
    stream = served.stream(EVENTS)
    stream.take(1)
    first = served.put("ink", 3)
    kind, place, _ = next(stream.events)
    assert (kind, place) == ("change", str(first))
    stream.close()
    served.put("ink", 4)
    stream = served.stream(f"{EVENTS}?since=0", {"Last-Event-ID": str(first)})
    ((_, change),) = stream.take(1)
    assert (change["plus"], change["minus"]) == ([["ink", 4]], [["ink", 3]])


def test_the_id_of_another_database_is_a_fresh_start(served: Served) -> None:
    stream = served.stream(EVENTS, {"Last-Event-ID": "999999"})
    assert stream.take(1)[0][0] == "snapshot"


def test_a_condition_is_followed_for_itself(served: Served) -> None:
    changes = served.client.follow("stock", where="quantity > 20")
    assert next(changes).plus == [("ink", 50)]
    served.put("pen", 6)
    served.put("pen", 60)
    assert next(changes).plus == [("pen", 60)]


def test_changes_of_other_processes_arrive(served: Served, path: str) -> None:
    changes = served.client.follow("low")
    next(changes)
    with harken.connect(path) as db:
        db.sql("UPDATE stock SET quantity = 1 WHERE item = 'ink'")
        db.sql("BEGIN; UPDATE stock SET quantity = 2 WHERE item = 'ink'; ROLLBACK")
        db.sql("UPDATE stock SET quantity = 3 WHERE item = 'ink'")
    assert [change.plus for change in take(changes, 2)] == [[("ink", 1)], [("ink", 3)]]


def test_what_failed_is_never_seen(served: Served) -> None:
    changes = served.client.follow("low")
    next(changes)
    with pytest.raises(HarkenError, match="already has a row"):
        served.client.apply(insert={"stock": [("cap", 1), ("pen", 6)]})
    with pytest.raises(HarkenError, match="leaves a transaction open"):
        served.client.sql("BEGIN; INSERT INTO stock VALUES ('hat', 1)")
    served.put("ink", 1)
    assert next(changes).plus == [("ink", 1)]


def test_many_clients_of_a_view_share_a_feed_and_a_log(served: Served, path: str) -> None:
    streams = [served.client.follow("low", where="quantity>1") for _ in range(30)]
    assert [len(next(changes).plus) for changes in streams] == [1] * 30
    assert served.service.clients == 30
    assert len(served.service.open_feeds) == 1
    served.put("ink", 3)
    assert [next(changes).plus for changes in streams] == [[("ink", 3)]] * 30
    with harken.connect(path) as db:
        assert db.internals.connection.value("SELECT count(*) FROM harken_changes") == 1
        assert len(list(db.internals.network.graph.views())) == 1


def test_a_client_that_vanishes_is_forgotten(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.sendall(f"GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert raw.recv(100)
        until(lambda: served.service.clients == 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    until(lambda: served.service.clients == 0 and not served.service.open_feeds)
    assert served.put("ink", 1)


def until(holds: Callable[[], bool]) -> None:
    """Wait for another thread to notice."""
    pause = threading.Event()
    for _ in range(200 * PATIENCE):
        if holds():
            return
        pause.wait(0.005)
    raise AssertionError("it never came to that")


def test_a_silent_stream_shows_that_it_is_there(serve: Serve) -> None:
    stream = serve(heartbeat=0.01).stream(EVENTS)
    stream.take(1)
    lines = [stream.response.readline() for _ in range(4)]
    assert lines == [b":\n", b"\n"] * 2


# --- the end, and coming back --------------------------------------------------------------


def test_streams_end_with_the_service(served: Served) -> None:
    stream = served.stream(EVENTS)
    stream.take(1)
    served.stop()
    assert list(stream.events) == []


def test_a_client_resumes_when_the_service_is_back(serve: Serve, path: str) -> None:
    first = serve()
    changes = first.client.follow("low")
    next(changes)
    position = first.put("ink", 1)
    assert next(changes).position == position
    first.stop()
    with harken.connect(path) as db:
        db.sql("UPDATE stock SET quantity = 2 WHERE item = 'ink'")
    again = serve(port=first.port)
    again.put("ink", 3)
    assert [(c.fresh, c.plus) for c in take(changes, 2)] == [
        (False, [("ink", 2)]),
        (False, [("ink", 3)]),
    ]


def test_a_client_that_was_away_too_long_starts_over(serve: Serve) -> None:
    served = serve(keep=Keep(bytes=150))
    changes = served.client.follow("low")
    position = next(changes).position
    changes.close()
    for quantity in range(5):
        served.put("ink", quantity)
    (first,) = take(served.client.follow("low", since=position), 1)
    assert (first.fresh, first.plus) == (True, [("ink", 4), ("pen", 5)])


def test_a_view_that_is_dropped_ends_its_streams(served: Served) -> None:
    stream, changes = served.stream(EVENTS), served.client.follow("low")
    stream.take(1)
    next(changes)
    served.client.sql("DROP VIEW low")
    (failure,) = list(stream.events)
    assert failure[0] == "failed"
    assert "was deleted" in failure[2]["message"]
    with pytest.raises(HarkenError, match=r"was deleted|there is no table or view low"):
        next(changes)


def test_a_redefined_view_is_sent_again(served: Served) -> None:
    changes = served.client.follow("low")
    next(changes)
    served.client.sql(
        "CREATE OR REPLACE VIEW low AS SELECT quantity, item FROM stock WHERE quantity < 6"
    )
    assert next(changes) == Change("low", [(5, "pen")], [], 2, fresh=True)
    served.put("cap", 1)
    assert next(changes).plus == [(1, "cap")]


# --- slow clients --------------------------------------------------------------------------

LONG = "x" * 200_000


def fill(served: Served, how_many: int) -> None:
    for number in range(how_many):
        served.client.apply(insert={"note": [[f"{number} {LONG}"]]})


def slow_stream(served: Served) -> Iterator[tuple[str, Any]]:
    """One that takes the first event, and the rest only when asked."""
    stream = served.stream("/api/v1/views/note/events")
    assert stream.connection.sock is not None
    stream.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    yield from stream.take(1)
    while True:
        yield from stream.take(1)


def test_a_slow_client_reads_the_log_and_nobody_waits_for_it(serve: Serve) -> None:
    served = serve(capacity=2, keep=Keep(bytes=2**30))
    slow = slow_stream(served)
    next(slow)
    fill(served, 40)
    found = [next(slow) for _ in range(40)]
    assert {kind for kind, _ in found} == {"change"}
    numbers = [int(data["plus"][0][0].split()[0]) for _, data in found]
    assert numbers == list(range(40))


def test_a_client_too_slow_for_the_log_starts_over(serve: Serve) -> None:
    served = serve(capacity=2, keep=Keep(bytes=3 * len(LONG)))
    slow = slow_stream(served)
    next(slow)
    fill(served, 40)
    copy: list[Any] = []
    kinds = []
    while len(copy) < 40:
        kind, data = next(slow)
        kinds.append(kind)
        copy = data["rows"] if kind == "snapshot" else copy + data["plus"]
    assert "snapshot" in kinds
    assert len(kinds) < 40
    assert sorted(int(row[0].split()[0]) for row in copy) == list(range(40))


# --- how often, and how much ---------------------------------------------------------------


def test_one_change_in_an_interval_is_the_sum_of_all(served: Served) -> None:
    changes = served.client.follow("low", every=0.3)
    next(changes)
    served.put("ink", 1)
    assert next(changes).plus == [("ink", 1)]  # at once: nothing came before it
    for quantity in (2, 3, 4):
        served.put("ink", quantity)
    served.put("cap", 1)
    served.put("cap", None)
    found = take(changes, 1)
    while ("ink", 4) not in found[-1].plus:  # a slow machine may need more than one interval
        found += take(changes, 1)
    assert len(found) < 5


def test_an_inserted_and_deleted_row_is_not_reported() -> None:
    """Netted as bags: a row that is there twice, and once after it, is one that went."""

    def stored(plus: list[tuple[int]], minus: list[tuple[int]]) -> StoredChange:
        return StoredChange(StoredRows((INTEGER,), plus), StoredRows((INTEGER,), minus))

    assert net([stored([(1,), (1,), (2,)], []), stored([(3,)], [(1,), (2,)])]) == stored(
        [(1,), (3,)], []
    )
    assert not net([stored([(1,)], [(2,)]), stored([(2,)], [(1,)])])


def test_a_count_says_how_many_and_where(served: Served) -> None:
    counts = served.client.counts("low", where="quantity < 9")
    first = next(counts)
    assert (first.plus, first.fresh) == (1, True)
    assert served.ask("GET", first.link)[1]["rows"] == [["pen", 5]]
    served.client.apply(insert={"stock": [("cap", 1), ("hat", 2)]}, delete={"stock": [("pen", 5)]})
    count = next(counts)
    assert (count.view, count.plus, count.minus, count.fresh) == ("low", 2, 1, False)
    _, found = served.ask("GET", count.link)
    assert found["changes"][0]["plus"] == [["cap", 1], ["hat", 2]]
    assert found["position"] == count.position
    served.put("cap", 3)
    following = next(counts)
    assert f"since={count.position}" in following.link


# --- several who write ---------------------------------------------------------------------


def test_concurrent_writers_are_reported_in_one_order(served: Served, path: str) -> None:
    changes = served.client.follow("low")
    copy = harken.Copy()
    copy.apply(next(changes))

    def write(name: str) -> None:
        for number in range(8):
            served.client.apply(insert={"stock": [(f"{name}{number}", 1)]})

    def write_elsewhere() -> None:
        with harken.connect(path, timeout=PATIENCE) as db:
            for number in range(8):
                db.sql(f"INSERT INTO stock VALUES ('c{number}', 1)")

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    writers.append(threading.Thread(target=write_elsewhere))
    for writer in writers:
        writer.start()
    for change in take(changes, 24):
        assert change.position > copy.position
        copy.apply(change)
    for writer in writers:
        writer.join()
    assert sorted(copy) == served.client.snapshot("low").plus


# --- several views -------------------------------------------------------------------------


def test_several_views_are_one_stream_in_one_order(served: Served) -> None:
    changes = served.client.follow_all(["low", "stock"])
    low, stock = next(changes)
    assert [(each.view, each.fresh) for each in (low, stock)] == [("low", True), ("stock", True)]
    assert low.position == stock.position
    positions = [served.put("ink", 3), served.put("pen", 60), served.put("pen", 70)]
    found = [next(changes) for _ in range(3)]
    assert [[change.view for change in each] for each in found] == [
        *(["low", "stock"], ["low", "stock"], ["stock"]),
    ]
    assert [each[-1].position for each in found] == positions


def test_half_of_a_transaction_has_no_id(served: Served) -> None:
    """A client that is cut off after it gets all of the transaction again."""
    events = served.stream("/api/v1/events?view=low&view=stock&view=low").events
    places = [next(events)[:2] for _ in range(4)]
    assert [(kind, place is None) for kind, place in places] == [
        *(("view", True), ("view", True)),
        *(("snapshot", True), ("snapshot", False)),
    ]
    position = served.put("ink", 3)
    assert [next(events)[:2] for _ in range(2)] == [("change", None), ("change", str(position))]


def test_several_views_go_on_together(served: Served) -> None:
    changes = served.client.follow_all(["low", "stock"])
    position = next(changes)[0].position
    changes.close()  # type: ignore[attr-defined]
    served.put("ink", 3)
    found = next(served.client.follow_all(["stock", "low"], since=position))
    assert [(change.view, change.plus) for change in found] == [
        ("stock", [("ink", 3)]),
        ("low", [("ink", 3)]),
    ]


@pytest.mark.parametrize("wish", ["every=0.02", "counts=true", "every=0.02&counts=true"])
def test_several_views_as_a_client_wants_them(served: Served, wish: str) -> None:
    events = served.stream(f"/api/v1/events?view=low&view=stock&view=note&{wish}").events
    while next(events)[1] is None:
        pass
    position = [served.put("ink", quantity) for quantity in (1, 2)][-1]
    views, place = set(), None
    while place != str(position):
        _, place, data = next(events)
        views.add(data["view"])
    assert views == {"low", "stock"}


def test_an_error_in_one_of_several_views_is_reported(served: Served) -> None:
    status, problem = served.ask("GET", "/api/v1/events?view=low&view=stok")
    assert (status, problem["hint"]) == (404, "did you mean stock?")
    assert served.ask("GET", "/api/v1/events")[0] == 400
    assert served.service.clients == 0
