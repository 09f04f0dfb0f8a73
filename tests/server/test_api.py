"""Questions and transactions over HTTP."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Change, Client, HarkenError
from harken.consumers.monitors.monitors import Monitors
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

TRANSACTIONS = "/api/v1/transactions"


def test_views_are_listed_with_their_columns(served: Served) -> None:
    views = {each["name"]: each for each in served.client.views()}
    assert list(views) == ["low", "note", "stock"]
    assert (views["low"]["kind"], views["stock"]["kind"]) == ("derived", "stored")
    assert views["low"]["columns"] == [
        {"name": "item", "type": "charstring", "nullable": False},
        {"name": "quantity", "type": "integer", "nullable": True},
    ]


def test_a_full_outbox_raises_an_alarm(served: Served, path: str) -> None:
    assert served.ask("GET", "/api/v1/outboxes") == (200, {"outboxes": []})
    with harken.connect(path, settings={"outbox_changes": 1}) as db:
        db.monitor("stock", durable="reports")
        db.sql("UPDATE stock SET quantity = 1; UPDATE stock SET quantity = 2")
    status, answer = served.ask("GET", "/api/v1/outboxes")
    (outbox,) = answer["outboxes"]
    assert (status, outbox["name"], outbox["changes"], outbox["lost"]) == (200, "reports", 0, 2)
    assert outbox["alarm"].startswith("2 changes were dropped")


def test_a_snapshot_with_a_condition_watches_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[object] = []
    monkeypatch.setattr(Monitors, "attach", lambda self, receiver: watched.append(receiver))
    for quantity in (3, 4):
        assert served.client.snapshot("low", where=f"quantity > {quantity}").plus == [("pen", 5)]
    assert watched == []


def test_each_listed_view_has_a_snapshot(served: Served, path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(
            "create type item properties (name charstring);"
            "create type shop properties (name charstring);"
            'create item(name) instances :a("a");'
        )
        db.datalog(
            ".decl edge(x: symbol, y: symbol)\n.decl both(x: symbol)\nedge('a', 'b').\n"
            "both(x) :- edge(x, _).\nboth('z').".replace("'", '"')
        )
    names = [each["name"] for each in served.client.views()]
    assert {"item.name", "shop.name", "both", "edge", "low"} <= set(names)
    assert not [name for name in names if "facts" in name]
    for name in names:
        assert served.client.snapshot(name).fresh
    assert served.client.snapshot("both").plus == [("a",), ("z",)]
    (row,) = served.client.snapshot("item.name").plus
    assert repr(row[0]).startswith("#[item ")


def test_what_a_snapshot_tells_can_be_sent_back(served: Served, path: str) -> None:
    with harken.connect(path) as db:
        db.datalog(".decl ready() ready(). .decl n(x: number) n(7).")
    for view in ("ready", "n", "stock"):
        rows = served.client.snapshot(view).plus
        served.client.apply(delete={view: rows})
        assert served.client.snapshot(view).plus == []
        served.client.apply(insert={view: rows})
        assert served.client.snapshot(view).plus == rows != []


def test_tables_that_are_made_may_go_to_the_lake(serve: Callable[..., Served], path: str) -> None:
    client = Client(serve(engine="lake").url, timeout=PATIENCE)
    client.sql("CREATE TABLE price (item STRING PRIMARY KEY, cents INT)")
    start = client.snapshot("price", keep=True).position
    position = client.apply(insert={"price": [("pen", 120)]})
    assert client.changes("price", start) == [Change("price", [("pen", 120)], [], position)]
    (change,) = client.changes("price", start)
    assert change.at is not None
    assert len(change.columns) == 2
    assert Path(path).with_suffix(".lake").joinpath("price/_delta_log").is_dir()


def test_locations_are_allowed_by_whoever_starts_the_service(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    place = tmp_path / "files"
    place.mkdir()
    (place / "1.csv").write_text("n\n1\n2\n")
    body = {"text": f"CREATE TABLE s USING csv LOCATION '{place}'"}
    status, problem = serve().ask("POST", "/api/v1/sql", body)
    assert (status, problem["code"]) == (403, "not-allowed")
    assert problem["message"] == f"tables at {place} are not allowed here"
    allowed = Settings({"lake_roots": str(tmp_path)}, serving=True)
    client = serve(settings=allowed).client
    client.sql(body["text"])
    assert client.sql("SELECT n FROM s ORDER BY n") == [(1,), (2,)]


def test_a_snapshot_has_rows_and_a_position(client: Client) -> None:
    first = client.snapshot("low")
    assert first == Change("low", [("pen", 5)], [], first.position, fresh=True)
    assert client.snapshot("stock", where="quantity > 9").plus == [("ink", 50)]


def test_a_question_alone_leaves_nothing_behind(client: Client, path: str) -> None:
    client.snapshot("low", where="quantity > 3")
    with harken.connect(path) as db:
        assert not list(db.internals.network.graph.views())


def test_changes_since_a_position(served: Served) -> None:
    client = served.client
    start = client.snapshot("low", keep=True).position
    first, second = served.put("ink", 3), served.put("ink", 4)
    assert client.changes("low", start) == [
        Change("low", [("ink", 3)], [], first),
        Change("low", [("ink", 4)], [("ink", 3)], second),
    ]
    assert client.changes("low", start, net=True) == [Change("low", [("ink", 4)], [], second)]
    assert client.changes("low", second) == []


def test_changes_since_too_long_ago_are_a_fresh_start(served: Served) -> None:
    position = served.put("ink", 3)
    (change,) = served.client.changes("low", position)
    assert change == Change("low", [("ink", 3), ("pen", 5)], [], change.position, fresh=True)


def test_a_copy_is_brought_up_to_date(served: Served) -> None:
    copy = served.client.copy("low", where="quantity > 2")
    assert list(copy) == [("pen", 5)]
    served.put("ink", 3)
    served.put("pen", 1)
    assert [len(change.plus) for change in copy.refresh()] == [1, 0]
    assert (list(copy), len(copy), ("ink", 3) in copy) == ([("ink", 3)], 1, True)


def test_values_arrive_as_they_are(client: Client) -> None:
    client.sql(
        "CREATE TABLE kinds (i BIGINT, f DOUBLE, s STRING, b BOOLEAN, d DATE, t TIMESTAMP, "
        "x DECIMAL(18,4))"
    )
    moment = datetime.datetime(2026, 1, 31, 12, 30, 1, 500000, tzinfo=datetime.UTC)
    row = (
        *(2**62 + 1, 0.1, 'é"\n<>', True, datetime.date(2026, 1, 31), moment),
        Decimal("12345678901234.5678"),
    )
    nothing = (None,) * 7
    copy = client.copy("kinds")
    client.apply(insert={"kinds": [row, row, nothing]})
    copy.refresh()
    assert sorted(copy, key=repr) == sorted([row, row, nothing], key=repr)
    assert client.snapshot("kinds").plus == [nothing, row, row]
    client.apply(delete={"kinds": [row, nothing]})
    assert client.snapshot("kinds").plus == [row]


def test_all_digits_are_on_the_wire(served: Served) -> None:
    """What JavaScript would not read exactly is text, and the columns say what it is."""
    large, price = 2**53 + 1, Decimal("205039.00")
    served.client.sql("CREATE TABLE sums (n BIGINT, price DECIMAL(10,2))")
    served.client.snapshot("sums", keep=True)
    stream = served.stream("/api/v1/views/sums/events")
    row, typed = [str(large), "205039.00"], ["integer", "decimal(10,2)"]
    body = {"insert": {"sums": [row, [7, 1.5]]}}
    status, told = served.ask("POST", TRANSACTIONS, body)
    assert status == 200
    (kind, first), (_, change) = stream.take(2)
    assert kind == "snapshot"
    assert [each["type"] for each in first["columns"]] == typed
    assert change["plus"] == [[7, "1.50"], row]
    _, found = served.ask("GET", "/api/v1/views/sums?where=n%3E7")
    assert ([each["type"] for each in found["columns"]], found["rows"]) == (typed, [row])
    since = told["position"] - 1
    _, found = served.ask("GET", f"/api/v1/views/sums/changes?since={since}")
    assert [each["type"] for each in found["columns"]] == typed
    assert found["changes"][0]["plus"] == [[7, "1.50"], row]
    _, found = served.ask("POST", "/api/v1/sql", {"text": "SELECT * FROM sums WHERE n > 7"})
    assert found["results"] == [
        {"kind": "rows", "columns": ["n", "price"], "types": typed, "rows": [row]}
    ]
    assert served.client.sql("SELECT * FROM sums WHERE n > 7") == [(large, price)]
    assert served.ask("POST", TRANSACTIONS, {"delete": {"sums": [row]}})[0] == 200
    assert served.client.snapshot("sums").plus == [(7, Decimal("1.50"))]


def test_a_copy_resumes_when_its_changes_are_no_longer_kept(served: Served, path: str) -> None:
    copy = served.client.copy("low")
    with harken.connect(path) as db:
        db.monitor("low", keep=True).delete()
    served.put("ink", 3)
    assert [change.fresh for change in copy.refresh()] == [True]
    served.put("ink", 4)
    assert [change.fresh for change in copy.refresh()] == [False]
    assert sorted(copy) == [("ink", 4), ("pen", 5)]


def test_objects_are_written_as_they_are_printed(client: Client, path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(
            "create type item properties (size integer);"
            "create item(size) instances :a(1); create function next(item) -> item;"
        )
        a = db.variables["a"]
    client.apply(insert={"next": [(a, a)]})
    assert client.snapshot("next").plus == [(a, a)]
    with pytest.raises(HarkenError, match="is not of type item"):
        client.apply(insert={"next": [("pen", "pen")]})


# --- transactions --------------------------------------------------------------------------


def test_rows_go_before_others_come(client: Client) -> None:
    client.apply(delete={"stock": [("ink", 50)]}, insert={"stock": [("ink", 1)]})
    assert client.snapshot("stock").plus == [("ink", 1), ("pen", 5)]


def test_what_is_there_already_and_what_is_not_changes_nothing(client: Client) -> None:
    start = client.snapshot("stock", keep=True).position
    client.apply(insert={"stock": [("ink", 50)]}, delete={"stock": [("cap", 1)]})
    assert client.changes("stock", start) == []


def test_facts_of_relations_with_rules(client: Client, path: str) -> None:
    with harken.connect(path) as db:
        db.datalog(
            ".decl edge(x: symbol, y: symbol)\n.decl path(x: symbol, y: symbol)\n"
            'path("s", "t"). path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).'
        )
    client.apply(insert={"edge": [("a", "b"), ("b", "c")], "path": [("q", "r")]})
    assert ("a", "c") in client.snapshot("path").plus
    client.apply(delete={"path": [("q", "r"), ("s", "t")]})
    assert client.snapshot("path").plus == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        ({"insert": {"stok": [["a", 1]]}}, 404, "unknown-table", "there is no table stok"),
        ({"insert": {"low": [["a", 1]]}}, 400, "not-updatable", "low is derived"),
        ({"insert": {"stock": [["a"]]}}, 400, "arity", "stock has 2 columns"),
        ({"insert": {"stock": [["a", "b"]]}}, 400, "bad-value", "'b' is not of type integer"),
        ({"insert": {"stock": [[None, 1]]}}, 409, "null", "stock.item cannot be NULL"),
        ({"insert": {"stock": [["pen", 6]]}}, 409, "row-exists", "already has a row"),
        ({"insert": {"stock": [["a", 2**63]]}}, 400, "overflow", "64 bits"),
        ({"inserts": {}}, 400, "bad-value", "inserts"),
        ({"insert": [1]}, 400, "bad-value", "insert"),
        (b"{", 400, "bad-value", ""),
    ],
    ids=str,
)
def test_a_wrong_transaction_is_refused_whole(
    served: Served, body: Any, status: int, code: str, said: str
) -> None:
    if isinstance(body, dict) and "insert" in body and isinstance(body["insert"], dict):
        body = {**body, "insert": {"note": [["lost"]], **body["insert"]}}
    answered, problem = served.ask("POST", TRANSACTIONS, body)
    assert (answered, problem["code"]) == (status, code)
    assert said in problem["message"]
    assert served.client.snapshot("note").plus == []


def test_the_nearest_name_is_suggested(served: Served) -> None:
    assert served.ask("POST", TRANSACTIONS, {"insert": {"stok": []}})[1]["hint"] == (
        "did you mean stock?"
    )
    status, problem = served.ask("GET", "/api/v1/views/lw")
    assert (status, problem["hint"]) == (404, "did you mean low?")


def test_statements_of_sql(client: Client) -> None:
    assert client.sql("SELECT item FROM stock ORDER BY item") == [("ink",), ("pen",)]
    assert client.sql("INSERT INTO note VALUES ('a'); SELECT 1, 2.5") == [(1, Decimal("2.5"))]
    assert client.sql("DELETE FROM note") == []


def test_a_wrong_statement_says_where(served: Served) -> None:
    status, problem = served.ask("POST", "/api/v1/sql", {"text": "SELECT 1;\nSELEC 2"})
    assert (status, problem["line"], problem["column"]) == (400, 2, 1)


def test_what_is_not_committed_is_undone(client: Client) -> None:
    with pytest.raises(HarkenError, match="leaves a transaction open"):
        client.sql("BEGIN; INSERT INTO note VALUES ('lost')")
    client.sql("INSERT INTO note VALUES ('kept')")
    assert client.snapshot("note").plus == [("kept",)]


# --- wrong questions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("application/x-www-form-urlencoded", '{"insert": {}}', "must be sent as JSON"),
        ("application/json", '{"insert": {}', "the body is not JSON"),
        ("application/json", '{"upsert": {}}', "upsert"),
        ("application/json", "[" * 100_000, "nested too deeply"),
        ("application/json", '{"insert": {"t": [[' + "9" * 5000 + "]]}}", "too many digits"),
    ],
)
def test_a_wrong_body_is_explained(served: Served, kind: str, body: str, said: str) -> None:
    asked = "/api/v1/transactions"
    status, problem = served.ask("POST", asked, body.encode(), {"content-type": kind})
    assert status == 400
    assert said in problem["message"]


def test_a_condition_is_given_as_for_a_monitor(client: Client) -> None:
    assert client.snapshot("stock", where={"item": "pen"}).plus == [("pen", 5)]
    assert next(client.follow("stock", where={"item": "pen"})).plus == [("pen", 5)]
    with pytest.raises(HarkenError, match="a list of tuples"):
        client.apply(insert={"stock": ("hat", 1)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ("/api/v1/views/low/changes", 400, "since is missing"),
        ("/api/v1/views/low/changes?since=-1", 400, "since"),
        ("/api/v1/views/low/changes?since=x", 400, "since is invalid: input should be"),
        ("/api/v1/views/low/changes?since=999", 400, "position 999 does not exist yet"),
        ("/api/v1/views/low/events?since=999", 400, "position 999 does not exist yet"),
        ("/api/v1/views/low/events?every=-1", 400, "every"),
        ("/api/v1/views/low/events?every=nan", 400, "every"),
        ("/api/v1/views/low/events?where=quantty%3E1", 400, "quantty"),
        ("/api/v1/views/low/events?where=1%3D1%3BDROP%20TABLE%20stock", 400, "more than a"),
        ("/api/v1/views/nothing/events", 404, "there is no table or view nothing"),
        ("/api/v1/views/low?where=", 400, "missing"),
        ("/api/v1/views/low?wher=quantity%3C1", 400, "unknown parameter wher"),
        ("/api/v1/events?view=low&where=quantity%3C1", 400, "unknown parameter where"),
        ("/api/v1/nothing", 404, "no such endpoint: GET /api/v1/nothing"),
    ],
)
def test_a_wrong_question_is_explained(served: Served, asked: str, status: int, said: str) -> None:
    answered, problem = served.ask("GET", asked)
    assert answered == status
    assert said in problem["message"]
    assert served.service.clients == 0


def test_a_wrong_value_is_named_with_its_column(served: Served) -> None:
    for value, said in (("x", "'x' is not of type integer"), (10**20, "does not fit in 64 bits")):
        body = {"insert": {"stock": [["hat", 1], ["cap", value]]}}
        status, problem = served.ask("POST", TRANSACTIONS, body)
        assert status == 400
        assert problem["message"].startswith("stock.quantity: ")
        assert said in problem["message"]
    assert served.ask("POST", TRANSACTIONS, {"upsert": {}})[1]["message"] == "unknown field upsert"
    assert served.client.snapshot("stock", where={"item": "hat"}).plus == []


def test_a_bug_is_reported_as_one(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def views() -> str:
        raise RuntimeError("oops")

    monkeypatch.setattr(served.service, "views", views)
    status, problem = served.ask("GET", "/api/v1/views")
    assert (status, problem["code"], problem["message"]) == (500, "internal", "RuntimeError: oops")
    with pytest.raises(HarkenError, match="RuntimeError: oops"):
        served.client.views()


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("body", [b"<h1>Bad gateway</h1>", b"[]", b""])
def test_another_server_at_the_address_is_recognised(status: int, body: bytes) -> None:
    class Strange(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Not in the output of the tests."""

    with HTTPServer(("127.0.0.1", 0), Strange) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(
            HarkenError, match=f"answers {status} .*not an answer of Harken"
        ) as caught:
            Client(f"http://127.0.0.1:{server.server_port}").views()
        thread.join()
    assert "address" in (caught.value.hint or "")


def test_an_invalid_position_is_refused(served: Served) -> None:
    for given in ("x", "1.5", "-1", "٣", "9" * 30):
        headers = {"Last-Event-ID": given.encode().decode("latin-1")}
        status, problem = served.ask("GET", "/api/v1/views/low/events", headers=headers)
        assert (status, problem["code"]) == (400, "bad-value")


def test_a_client_of_a_view_over_the_clock_is_warned(served: Served, path: str) -> None:
    with harken.connect(path) as db:
        db.sql("CREATE TABLE task (id INT, due TIMESTAMP)")
        db.sql("CREATE VIEW late AS SELECT id, now() AS at FROM task")
        db.sql("CREATE VIEW overdue AS SELECT id FROM task WHERE due < now()")
    assert served.ask("GET", "/api/v1/views/overdue")[1]["warnings"] == []
    _, snapshot = served.ask("GET", "/api/v1/views/late")
    assert [warning.partition(" in")[0] for warning in snapshot["warnings"]] == [
        "it depends on now()"
    ]
    kind, _, described = next(iter(served.stream("/api/v1/views/late/events").events))
    assert (kind, described["warnings"]) == ("view", snapshot["warnings"])
    assert served.ask("GET", "/api/v1/views/low")[1]["warnings"] == []


def test_parameters_of_every_type(served: Served) -> None:
    client = served.client
    client.sql(
        "CREATE TABLE given (id INT PRIMARY KEY, s STRING, c DECIMAL(9, 2), d DATE, m TIMESTAMP)"
    )
    moment = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    row = (2**60, "it's", Decimal("2.50"), datetime.date(2026, 1, 31), moment)
    client.sql("INSERT INTO given VALUES (?, ?, ?, ?, ?)", row)
    client.sql("INSERT INTO given (id, s) VALUES (:id, :s)", {"id": 1, "s": None})
    found = client.sql("SELECT * FROM given WHERE id IN (?) AND d = ?", [[1, 2**60], row[3]])
    assert found == [row]
    with pytest.raises(HarkenError, match="1 parameter, and 0 values"):
        client.sql("SELECT ?")
