"""People sign in, and see and change what is theirs or granted to them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest

import harken
from harken.database.accounts import KeyKind
from harken.server.access import Refused, check_start
from harken.server.identities import COOKIE
from harken.server.throttle import FREE, Throttle
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

PASSWORD = "correct horse battery"
SQL = "/api/v1/sql"


@pytest.fixture
def people(path: str) -> str:
    """Ann operates, Bob reads what is low, Carl is an author."""
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password=PASSWORD, email="ann@example.org")
        db.users.add("bob", role="reader", password=PASSWORD)
        db.users.add("carl", role="author", password=PASSWORD)
        db.sql("GRANT SELECT ON low TO bob; GRANT SELECT ON low TO carl")
    return path


class Browser:
    """Keeps the cookie, and sends what a browser sends."""

    def __init__(self, served: Served, **headers: str) -> None:
        self.served = served
        self.cookie = ""
        self.csrf = ""
        self.headers = {"sec-fetch-site": "same-origin", "user-agent": "Mozilla/5.0", **headers}

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=PATIENCE)
        given = dict(self.headers)
        if self.cookie:
            given["cookie"] = f"other=1; {COOKIE}={self.cookie}"
        if body is not None:
            given |= {"content-type": "application/json", "x-csrf": self.csrf}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, path, sent, given)
            answer = connection.getresponse()
            text = answer.read().decode()
            found = {name.lower(): value for name, value in answer.getheaders()}
            if "set-cookie" in found:
                self.cookie = found["set-cookie"].partition("=")[2].partition(";")[0]
            is_json = "json" in found.get("content-type", "")
            return answer.status, json.loads(text) if is_json else text, found
        finally:
            connection.close()

    def sign_in(self, name: str, password: str = PASSWORD) -> Any:
        status, found, headers = self.ask("POST", "/session", {"name": name, "password": password})
        self.csrf = found.get("csrf", "")
        assert status == 200, found
        return headers


def test_nobody_gets_in_without_signing_in(people: str, serve: Callable[..., Served]) -> None:
    browser = Browser(serve())
    for path in (
        "/api/v1/views",
        "/api/v1/views/low",
        "/api/v1/outboxes",
        "/api/v1/views/low/events",
    ):
        assert browser.ask("GET", path)[0] == 401
    assert browser.ask("POST", SQL, {"text": "SELECT 1"})[0] == 401
    for path in ("/", "/data", "/data/stock", "/operator", "/query", "/search?q=s"):
        status, _, headers = browser.ask("GET", path, accept="text/html,*/*")
        assert status == 303
        assert headers["location"].startswith("/login")
    for path in ("/login", "/forgotten", "/register", "/redeem?key=x"):
        status, text, _ = browser.ask("GET", path, accept="text/html")
        assert status == 200
        assert "stock" not in text


def test_each_sees_what_is_granted(people: str, serve: Callable[..., Served]) -> None:
    served = serve()
    bob, carl, ann = Browser(served), Browser(served), Browser(served)
    bob.sign_in("bob")
    carl.sign_in("carl")
    ann.sign_in("Ann@Example.org")
    assert [each["name"] for each in bob.ask("GET", "/api/v1/views")[1]["views"]] == ["low"]
    assert bob.ask("GET", "/api/v1/views/low")[1]["rows"] == [["pen", 5]]
    for path in (
        "/api/v1/views/stock",
        "/api/v1/views/stock/changes?since=0",
        "/api/v1/views/stock/events",
        "/api/v1/outboxes",
    ):
        status, problem, _ = bob.ask("GET", path)
        assert (status, problem["code"]) == (403, "not-permitted"), path
    assert bob.ask("POST", SQL, {"text": "SELECT item FROM low"})[0] == 200
    for text in ("SELECT * FROM stock", "CREATE VIEW v AS SELECT * FROM low", "DELETE FROM stock"):
        assert bob.ask("POST", SQL, {"text": text})[0] == 403
    assert carl.ask("POST", SQL, {"text": "CREATE VIEW mine AS SELECT item FROM low"})[0] == 200
    assert bob.ask("POST", SQL, {"text": "SELECT * FROM mine"})[0] == 403
    assert carl.ask("POST", SQL, {"text": "GRANT SELECT ON mine TO bob"})[0] == 200
    assert bob.ask("POST", SQL, {"text": "SELECT * FROM mine"})[0] == 200
    assert len(ann.ask("GET", "/api/v1/views")[1]["views"]) == 4
    rows = {"insert": {"stock": [["cup", 1]]}}
    assert [each.ask("POST", "/api/v1/transactions", rows)[0] for each in (bob, carl, ann)] == [
        403,
        403,
        200,
    ]


def test_pages_show_what_is_granted(people: str, serve: Callable[..., Served]) -> None:
    bob = Browser(serve(), accept="text/html")
    bob.sign_in("bob")
    for path in ("/", "/data", "/data/low", "/query", "/account"):
        status, text, _ = bob.ask("GET", path)
        assert status == 200, path
        assert '"/data/stock"' not in text, path
        assert 'href="/operator"' not in text
    for path in ("/operator", "/data/low?tab=how", "/rules/x"):
        assert bob.ask("GET", path)[0] in (403, 404), path
    assert bob.ask("GET", "/data/stock")[0] == 404
    status, text, _ = bob.ask("POST", "/query", {"language": "sql", "text": "SELECT * FROM stock"})
    assert "may not read stock" in text
    _, text, _ = bob.ask("POST", "/query", {"language": "amosql", "text": "select 1;"})
    assert "not-permitted" in text
    assert bob.ask("GET", "/query/export?text=SELECT+*+FROM+stock")[0] == 403


def test_a_session_ends(people: str, serve: Callable[..., Served]) -> None:
    served = serve()
    ann, other = Browser(served), Browser(served)
    headers = ann.sign_in("ann")
    assert "HttpOnly; SameSite=Lax" in headers["set-cookie"]
    other.sign_in("ann")
    assert ann.ask("POST", "/session/end", {})[0] == 200
    assert ann.ask("GET", "/api/v1/views")[0] == 401
    assert other.ask("GET", "/api/v1/views")[0] == 200
    answer = other.ask("POST", "/account/password", {"old": PASSWORD, "new": "another long one"})
    assert answer[0] == 200
    other.csrf = answer[1]["csrf"]
    assert other.ask("GET", "/api/v1/views")[0] == 200
    assert Browser(served).ask("POST", "/session", {"name": "ann", "password": PASSWORD})[0] == 401


def test_another_site_can_do_nothing(people: str, serve: Callable[..., Served]) -> None:
    served = serve()
    ann = Browser(served)
    ann.sign_in("ann")
    change = {"text": "DELETE FROM stock"}
    assert ann.ask("POST", SQL, change, x_csrf="")[0] == 401
    assert ann.ask("POST", SQL, change, sec_fetch_site="cross-site")[0] == 401
    assert ann.ask("POST", SQL, change, origin="https://evil.example")[0] == 401
    assert ann.ask("GET", "/api/v1/views", host="evil.example")[0] == 401
    sign_in = {"name": "ann", "password": PASSWORD}
    assert Browser(served).ask("POST", "/session", sign_in, sec_fetch_site="cross-site")[0] == 401
    assert ann.ask("POST", SQL, {"text": "SELECT count(*) FROM stock"})[0] == 200


def test_guessing_is_slowed_down(people: str, serve: Callable[..., Served]) -> None:
    browser = Browser(serve())
    said = set()
    for name in ["ann", "nobody", *["ann"] * FREE]:
        status, found, _ = browser.ask("POST", "/session", {"name": name, "password": "wrong one"})
        said.add((status, found["message"].partition(":")[0]))
    assert said == {(401, "the name or the password is wrong"), (503, "too many attempts")}


def test_the_throttle_waits_longer_and_forgives() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0])
    for _ in range(FREE):
        throttle.check("name ann")
        throttle.fail("name ann", "address a")
    for wait in (2, 4, 8):
        with pytest.raises(harken.HarkenError, match=f"wait {wait} s"):
            throttle.check("name ann")
        now[0] += wait
        throttle.check("name ann")
        throttle.fail("name ann")
    throttle.succeed("name ann")
    throttle.check("name ann")


def test_programs_send_tokens(people: str, serve: Callable[..., Served]) -> None:
    with harken.connect(people) as db:
        read = db.users.make_token("ann", "report", scopes=("read",))
        full = db.users.make_token("bob", "script")
        (key,) = db.users.keys("ann", KeyKind.API)
        assert read not in repr(key)
    served = serve()

    def ask(token: str, path: str, body: Any = None) -> int:
        method = "GET" if body is None else "POST"
        return served.ask(method, path, body, {"authorization": f"Bearer {token}"})[0]

    assert ask(read, "/api/v1/views/stock") == 200
    assert ask(read, SQL, {"text": "DELETE FROM stock"}) == 403
    assert ask(full, "/api/v1/views/low") == 200
    assert ask(full, "/api/v1/views/stock") == 403
    assert ask("hka_wrong", "/api/v1/views/low") == 401


def test_an_invitation_sets_the_first_password(people: str, serve: Callable[..., Served]) -> None:
    served = serve()
    ann = Browser(served)
    ann.sign_in("ann")
    status, found, _ = ann.ask("POST", "/operator/users", {"name": "dora", "role": "author"})
    assert status == 200
    key = found["token"].partition("key=")[2]
    dora = Browser(served)
    redeem = {"key": key, "kind": "invitation", "password": "short"}
    assert dora.ask("POST", "/redeem", redeem)[1]["code"] == "bad-password"
    assert dora.ask("POST", "/redeem", {**redeem, "password": PASSWORD})[0] == 200
    assert dora.ask("GET", "/api/v1/views")[0] == 200
    assert dora.ask("POST", "/redeem", {**redeem, "password": PASSWORD})[0] in (401, 403, 409)
    bob = Browser(served)
    bob.sign_in("bob")
    assert bob.ask("POST", "/operator/users", {"name": "evil", "role": "operator"})[0] == 403
    ann.ask("POST", "/operator/users/change", {"name": "dora", "state": "disabled"})
    assert dora.ask("GET", "/api/v1/views")[0] == 401


def test_who_was_let_in_is_recorded(people: str, serve: Callable[..., Served]) -> None:
    ann = Browser(serve(), accept="text/html")
    ann.sign_in("ann")
    with harken.connect(people) as db:
        actions = [(each.account, each.action) for each in db.users.audit()]
    assert actions[0] == ("ann", "sign in")
    assert "sign in" in ann.ask("GET", "/operator?tab=audit")[1]


def test_registration_is_what_the_operator_allows(
    people: str, serve: Callable[..., Served]
) -> None:
    form = {"name": "eve", "email": "eve@example.org", "password": PASSWORD}
    assert Browser(serve()).ask("POST", "/register", form)[0] == 401
    settings = harken.settings.Settings(
        {"registration": "open", "subscription_days": 30}, serving=True
    )
    eve = Browser(serve(settings=settings))
    assert eve.ask("POST", "/register", form)[0] == 200
    eve.sign_in("eve@example.org")
    assert eve.ask("GET", "/api/v1/views")[1]["views"] == []
    with harken.connect(people) as db:
        assert (db.users.find("eve").until - db.users.find("eve").created).days == 30


def test_an_expired_subscription_lets_nobody_in(people: str, serve: Callable[..., Served]) -> None:
    served = serve()
    bob = Browser(served)
    bob.sign_in("bob")
    with harken.connect(people) as db, db.transaction():
        db.users.set_active("bob", False)
        db.users.set_active("bob", True)
    assert bob.ask("POST", "/session", {"name": "bob", "password": PASSWORD})[0] == 200


def test_the_last_operator_stays(people: str) -> None:
    with harken.connect(people) as db:
        for call in (
            lambda: db.users.remove("ann"),
            lambda: db.users.set_role("ann", "reader"),
            lambda: db.users.set_active("ann", False),
        ):
            with pytest.raises(harken.HarkenError, match="last operator"):
                call()


def test_where_a_service_may_listen() -> None:
    check_start("127.0.0.1", None)
    check_start("0.0.0.0", "token")
    check_start("0.0.0.0", None, has_accounts=True, is_encrypted=True)
    for given in ({}, {"has_accounts": True}, {"is_encrypted": True}):
        with pytest.raises(Refused):
            check_start("0.0.0.0", None, **given)


@pytest.mark.parametrize("name", ["", "PUBLIC", "a b", "<script>", "x" * 65, "operator"])
def test_names_that_nobody_can_have(path: str, name: str) -> None:
    with harken.connect(path) as db, pytest.raises(harken.HarkenError):
        db.users.add(name, password=PASSWORD)


def test_the_commands(path: str, command: Any) -> None:
    assert command("user", "add", "ann", "--db", path, stdin=PASSWORD.encode()).code == 0
    assert command("user", "list", "--db", path).out == "ann: operator, active\n"
    assert (
        "invitation"
        in command("user", "add", "bob", "--role", "reader", "--invite", "--db", path).out
    )
    assert command(
        "user", "token", "ann", "backup", "--scope", "read", "--db", path
    ).out.startswith("hka_")
    assert command("user", "remove", "ann", "--db", path).code == 1
    assert command("user", "remove", "nobody", "--db", path).code == 1
