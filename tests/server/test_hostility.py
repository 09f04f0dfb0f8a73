"""What somebody hostile may try: other sites, another user, names and data, files. Large and slow
requests are in `test_limits.py`, slow subscribers in `test_streams.py`."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import harken
from harken.server.openapi import description
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.resources.asking import Asking
from tests.server.serving import Served

Serve = Callable[..., Served]
PASSWORD = "correct horse battery"
SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>"
FORMULAS = ("=1+2", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1")
OPERATIONS = [
    (method.upper(), path)
    for path, operations in json.loads(description())["paths"].items()
    for method in operations
]
OWN = {"/me", "/tokens", "/sessions", "/queries", "/channels", "/source-kinds"}
"""What everybody may ask about: it has nothing of others."""


def filled(path: str) -> str:
    """The path of the API with names in it."""
    return path.replace("{number}", "1").replace("{id}", "1").format(name="secret", view="stock")


def send(served: Served, method: str, path: str, body: Any = None, **headers: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, sent, given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace"), dict(answer.getheaders())
    finally:
        connection.close()


# --- other sites -----------------------------------------------------------------------


def test_no_route_answers_a_page_of_another_site(served: Served) -> None:
    """Not under a name of its own (DNS rebinding), not with a script, not with an image."""
    for method, path in OPERATIONS:
        asked = filled(path)
        for headers in (
            {"host": "evil.example"},
            {"host": "localhost.evil.example:80"},
            {"origin": "https://evil.example"},
            {"sec_fetch_site": "cross-site"},
        ):
            body = {} if method in ("POST", "PUT", "PATCH") else None
            given = headers | ({} if body is None else {"content_type": "application/json"})
            status, text, found = send(served, method, asked, body, **given)
            assert status == 401, (method, path, headers, text)
            assert found.get("access-control-allow-origin") != "*"
    assert served.client.snapshot("stock").plus == [("ink", 50), ("pen", 5)]


def test_forms_of_other_pages_change_nothing(served: Served) -> None:
    """A form sends these types without asking; none of them is read."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        for method, path in OPERATIONS:
            if method == "POST":
                status, text, _ = send(
                    served, method, filled(path), b'{"text": "DROP TABLE stock"}', content_type=kind
                )
                assert (status, json.loads(text)["code"]) == (400, "bad-value"), (path, kind)


# --- another user ----------------------------------------------------------------------


@pytest.fixture
def mallory(path: str, serve: Serve) -> Asking:
    """A reader to whom nothing is granted, beside an operator with secrets."""
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password=PASSWORD, email="ann@example.org")
        db.users.add("mallory", role="reader", password=PASSWORD)
        token = db.users.make_token("mallory", "tests")
        db.sql("CREATE VIEW secret AS SELECT item AS classified FROM stock")
        db.continual("secret", "SELECT classified FROM secret", notify="LOG 'ops'")
    return Asking(serve(), token)


def test_a_hostile_user_sees_and_changes_nothing_of_others(mallory: Asking, path: str) -> None:
    before = contents(path)
    for method, described in OPERATIONS:
        asked = filled(described).removeprefix("/api/v1")
        bodies: list[Any] = [None]
        if method in ("POST", "PUT", "PATCH"):
            bodies = [{}, {"text": "SELECT classified FROM secret"}, {"statement": "SELECT 1"}]
            bodies += [{"insert": {"stock": [["x", 1]]}}, {"role": "operator"}, {"name": "secret"}]
        if asked == "/events":
            asked += "?view=secret"
        if asked.endswith("/changes"):
            asked += "?since=0"
        for body in bodies:
            answer = mallory.ask(method, asked, body)
            told = json.dumps(answer.body)
            assert "classified" not in told.replace("SELECT classified FROM secret", ""), asked
            assert "ann@example.org" not in told, asked
            if method == "GET" and asked.split("?")[0] not in OWN and answer.status == 200:
                assert answer.body.get("items", answer.body.get("views")) == [], asked
    assert contents(path) == before


def contents(path: str) -> Any:
    with harken.connect(path, read_only=True) as db:
        return (
            db.sql("SELECT * FROM stock").rows,
            [(each.name, each.role, each.state) for each in db.users.list()],
            [(each.name, each.state, each.muted) for each in db.continual_queries.list()],
            [each.name for each in db.definitions() if "(" not in each.name],
            db.sql("SHOW GRANTS").rows,
        )


def test_texts_do_not_go_around_rights(mallory: Asking) -> None:
    for text in (
        "SELECT * FROM secret",
        "SELECT (SELECT max(classified) FROM secret)",
        "WITH a AS (SELECT * FROM secret) SELECT * FROM a",
        "SELECT 1 WHERE EXISTS (SELECT * FROM stock)",
        "CREATE VIEW mine AS SELECT * FROM secret",
        "EXPLAIN SELECT * FROM secret",
        "DESCRIBE secret",
        "SELECT * FROM continual_query",
        "SELECT * FROM harken_accounts",
        "SELECT * FROM harken_keys",
        "SELECT * FROM sqlite_master",
        "PRAGMA database_list",
        "ATTACH DATABASE '/tmp/x' AS x",
        "GRANT SELECT ON secret TO mallory",
        "SET statement_timeout = 0",
    ):
        for place in ("/queries", "/sql"):
            answer = mallory.post(place, {"text": text})
            assert answer.status >= 400, (text, answer.body)
            assert "'pen'" not in str(answer.body)


# --- names and data --------------------------------------------------------------------


@pytest.fixture
def poisoned(path: str, serve: Serve) -> Served:
    """A script in every name and value that takes one."""
    with harken.connect(path) as db:
        name = SCRIPT.replace("`", "")
        db.sql(f"CREATE TABLE `{name}` (`{name}` STRING)")
        db.insert(name, [(name,), *((each,) for each in FORMULAS)])
        db.sql(f"CREATE VIEW `v{name}` AS SELECT `{name}` AS a FROM `{name}`")
        db.continual(name, f"SELECT `{name}` FROM `{name}`", notify="LOG 'ops'")
        db.run_due()
        db.notifications.announce(name, subject=name)
        db.notifications.save_template("t", name.replace("{", ""))
    return serve()


def pages(served: Served) -> Iterator[str]:
    one = quote(SCRIPT, safe="")
    yield from ("/", "/data", "/query", "/queries", "/sources", "/rules", "/new/query")
    yield from (f"/operator?tab={tab}" for tab in ("storage", "messages", "audit", "settings"))
    yield from (f"/data/{one}?tab={tab}" for tab in ("rows", "how", "lineage", "changes"))
    yield from (f"/data/v{one}", f"/data/{one}?where={one}", f"/data?q={one}", f"/query?text={one}")
    yield from (f"/queries/{one}?tab={tab}" for tab in ("live", "executions", "deliveries", "how"))
    yield from (f"/queries/{one}/edit", f"/login?next={one}", f"/redeem?key={one}", "/docs")
    yield from (f"/new/query?over={one}", f"/rules/{one}", f"/nothing/{one}", f"/?view={one}")


def test_no_script_in_names_and_data_runs(poisoned: Served) -> None:
    for path in pages(poisoned):
        status, text, headers = send(poisoned, "GET", path)
        assert status < 500, (path, text[:300])
        kind = headers.get("content-type", "")
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "unsafe-inline" not in policy.replace("style-src 'unsafe-inline'", ""), path
        if "html" in kind:
            assert "<script>alert" not in text, path
            assert "<img src=x" not in text, path
            for tag in re.findall(r"<[a-z][^>]*>", text):
                assert not re.search(r"\son\w+=", re.sub(r'"[^"]*"', "", tag)), (path, tag)


def test_answers_of_the_api_are_never_pages(poisoned: Served) -> None:
    one = quote(SCRIPT, safe="")
    for path in (f"/api/v1/continual-queries/{one}", f"/api/v1/relations?kind={one}"):
        status, _, headers = send(poisoned, "GET", path, accept="text/html")
        assert status in (200, 404)
        assert "json" in headers["content-type"]
        assert headers["x-content-type-options"] == "nosniff"


def test_cells_of_an_export_are_no_formulas(poisoned: Served) -> None:
    text = quote(f"SELECT * FROM `{SCRIPT}`", safe="")
    status, exported, _ = send(poisoned, "GET", f"/query/export?format=csv&text={text}")
    assert status == 200
    cells = [cell for row in csv.reader(io.StringIO(exported, newline="")) for cell in row]
    assert len(cells) == len(FORMULAS) + 2
    assert not [each for each in cells if each.startswith(("=", "+", "-", "@", "\t", "\r"))]
    numbers = quote("SELECT -5 AS n", safe="")
    assert send(poisoned, "GET", f"/query/export?text={numbers}")[1].split() == ["n", "-5"]


def test_a_header_is_never_made_of_a_text(poisoned: Served) -> None:
    for path in ("/login?next=/%0d%0aset-cookie:%20a=b", "/redeem?key=%0d%0ax:%20y"):
        _, _, headers = send(poisoned, "GET", path)
        assert "set-cookie" not in {name.lower() for name in headers}
    answer = send(poisoned, "GET", "/api/v1/me", x_request_id="a\tb")
    assert answer[2]["x-request-id"].isalnum()


# --- files -----------------------------------------------------------------------------

OUTSIDE = ("/etc/passwd", "../../../../etc/passwd", "file:///etc/passwd", "/proc/self/environ")


def test_no_option_that_takes_a_path_leaves_its_place(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "way_out").symlink_to("/etc")
    roots = {"source_roots": str(tmp_path / "in"), "lake_roots": str(tmp_path / "in")}
    api = Asking(serve(settings=Settings(roots, serving=True)))
    inside = str(tmp_path / "in")
    places = [*OUTSIDE, f"{inside}/../../../../etc/passwd", f"{inside}/way_out/passwd"]
    for place in places:
        for kind in ("json", "text", "html", "xml", "feed", "bibtex", "sqlite", "directory"):
            for options in ({"path": place}, {"url": place}):
                answer = api.post("/source-checks", {"kind": kind, "options": options})
                assert answer.status >= 400, (kind, options)
                assert "root:" not in str(answer.body)
        for text in (
            f"CREATE TABLE t USING csv LOCATION '{place}'",
            f"CREATE TABLE t USING parquet LOCATION '{place}'",
            f"CREATE SOURCE s USING json OPTIONS (path '{place}')",
        ):
            answer = api.post("/sql", {"text": text})
            assert answer.status >= 400, text
            assert "root:" not in str(answer.body)


def test_assets_are_those_of_the_console_alone(served: Served) -> None:
    for name in ("../routes.py", "..%2froutes.py", "%2e%2e/%2e%2e/settings.py", "....//x", "%00"):
        status, text, _ = send(served, "GET", f"/static/{name}")
        assert status in (400, 404), name
        assert "import" not in text
