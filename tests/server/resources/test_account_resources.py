"""Users, sessions, tokens, rights and the audit log over HTTP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import harken
from tests.server.resources.asking import Asking
from tests.server.serving import Served

PASSWORD = "correct horse battery"


@pytest.fixture
def people(path: str, serve: Callable[..., Served]) -> dict[str, Asking]:
    """Ann operates, Bob reads, Carl is an author."""
    tokens = {}
    with harken.connect(path) as db:
        for name, role in (("ann", "operator"), ("bob", "reader"), ("carl", "author")):
            db.users.add(name, role=role, password=PASSWORD)
            tokens[name] = db.users.make_token(name, "tests")
        db.sql("GRANT SELECT ON low TO carl; GRANT SELECT ON stock TO carl")
    served = serve()
    return {name: Asking(served, token) for name, token in tokens.items()}


def test_an_operator_looks_after_users(people: dict[str, Asking]) -> None:
    ann = people["ann"]
    made = ann.post("/users", {"name": "Dora", "role": "author", "days": 30})
    assert (made.status, made.body["name"], made.body["state"]) == (201, "dora", "invited")
    again = ann.post("/users", {"name": "dora"})
    assert (again.status, again.code) == (409, "exists")
    invited = ann.post("/users/dora/invitation").body
    assert invited["link"].endswith(f"key={invited['key']}")
    with_key = ann.post("/users/dora/invitation", idempotency_key="1")
    assert (with_key.status, with_key.code) == (400, "bad-value")
    path = "/users/dora"
    seen = ann.get(path)
    changed = ann.ask("PATCH", path, {"password": PASSWORD, "role": "reader"}, if_match=seen.etag)
    assert (changed.body["role"], changed.body["state"]) == ("reader", "active")
    assert ann.ask("PATCH", path, {"active": False}, if_match=seen.etag).status == 412
    assert ann.ask("PATCH", path, {"active": False}).body["state"] == "disabled"
    assert ann.post(f"{path}/renewal", {"days": None}).body["until"] is None
    assert [each["name"] for each in ann.get("/users").body["items"]] == [
        *("ann", "bob", "carl", "dora")
    ]
    assert ann.ask("DELETE", path).status == 204
    assert ann.get(path).code == "unknown-user"
    said = [each["action"] for page in ann.pages("/audit", 3) for each in page]
    assert said[:2] == ["remove user", "renew subscription"]
    assert said[-1] == "add user"


def test_the_last_operator_stays(people: dict[str, Asking]) -> None:
    for change in ({"role": "reader"}, {"active": False}):
        answer = people["ann"].ask("PATCH", "/users/ann", change)
        assert (answer.status, answer.code) == (409, "in-use")


def test_everybody_sees_the_own_account_alone(people: dict[str, Asking]) -> None:
    bob = people["bob"]
    me = bob.get("/me").body
    assert (me["name"], me["role"], me["account"]["state"]) == ("bob", "reader", "active")
    (own,) = bob.get("/tokens").body["items"]
    assert own["label"] == "tests"
    made = bob.post("/tokens", {"label": "reports", "scopes": ["read"], "days": 9}).body
    assert made["token"].startswith("hka_")
    assert "token" not in str(bob.get("/tokens").body)
    (theirs,) = people["carl"].get("/tokens").body["items"]
    assert bob.ask("DELETE", f"/tokens/{theirs['id']}").status == 404
    assert bob.ask("DELETE", f"/tokens/{made['id']}").status == 204
    assert bob.get("/sessions").body["items"] == []
    for path in ("/users", "/users/ann", "/audit", "/settings", "/rules", "/messages"):
        answer = bob.get(path)
        assert (answer.status, answer.code) == (403, "not-permitted"), path


def test_a_token_makes_none_that_may_do_more(
    people: dict[str, Asking], path: str, serve: Callable[..., Served]
) -> None:
    with harken.connect(path) as db:
        text = db.users.make_token("ann", "writer", scopes=("write",))
    writer = Asking(serve(), text)
    assert writer.post("/tokens", {"label": "all"}).code == "not-permitted"
    assert writer.post("/tokens", {"label": "admin", "scopes": ["admin"]}).status == 403
    assert writer.post("/tokens", {"label": "less", "scopes": ["read"]}).status == 201


def test_rights_are_granted_and_taken_back(people: dict[str, Asking]) -> None:
    ann, bob, carl = people["ann"], people["bob"], people["carl"]
    assert bob.get("/views/low").status == 403
    right = {"privileges": ["SELECT"], "object": "low", "grantees": ["bob"]}
    made = ann.post("/grants", right)
    assert (made.status, made.body["items"]) == (
        201,
        [{"object": "low", "grantee": "bob", "privilege": "SELECT"}],
    )
    assert bob.get("/views/low").status == 200
    assert bob.get("/grants").body["items"] == made.body["items"]
    assert [each["name"] for each in bob.get("/relations").body["items"]] == ["low"]
    for sneaky in (
        {**right, "object": "low TO carl; DROP TABLE stock; --"},
        {**right, "grantees": ["bob'; DROP TABLE stock; --"]},
        {**right, "channel": "email"},
        {**right, "privileges": []},
    ):
        assert ann.post("/grants", sneaky).status in (400, 404), sneaky
    assert carl.post("/grants", right).code == "not-permitted"
    assert ann.post("/grants/revoke", right).body["items"] == []
    assert bob.get("/views/low").status == 403
    channel = {"privileges": ["NOTIFY"], "channel": "log", "grantees": ["carl"]}
    assert ann.post("/grants", channel).body["items"][0]["object"] == "channel log"


def test_queries_are_their_owners(people: dict[str, Asking]) -> None:
    ann, carl, bob = people["ann"], people["carl"], people["bob"]
    wanted = {"name": "few", "query": "SELECT item FROM low", "trigger": "EVERY DAY"}
    assert bob.post("/continual-queries", wanted).code == "not-permitted"
    assert carl.post("/continual-queries", wanted).status == 201
    assert bob.get("/continual-queries").body["items"] == []
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/answer", None),
        ("GET", "/executions", None),
        ("PATCH", "", {"trigger": "EVERY WEEK"}),
        ("POST", "/pause", {}),
        ("POST", "/run", {}),
        ("DELETE", "", None),
    ):
        answer = bob.ask(method, f"/continual-queries/few{path}", body)
        assert (answer.status, answer.code) == (403, "not-permitted"), path
    assert ann.get("/continual-queries/few").body["owner"] == "carl"


def test_an_expired_subscription_pauses_queries_until_it_is_renewed(
    people: dict[str, Asking], path: str
) -> None:
    ann, carl = people["ann"], people["carl"]
    wanted = {"name": "few", "query": "SELECT item FROM low", "trigger": "EVERY DAY"}
    assert carl.post("/continual-queries", wanted).status == 201
    with harken.connect(path) as db, db.transaction():
        db.internals.connection.records.change(_accounts(), {"name": "carl"}, {"until": 1.0})
    refused = ann.post("/continual-queries/few/run")
    assert refused.body["query"]["failures"] == 1
    assert "over" in refused.body["query"]["problem"]
    assert ann.post("/users/carl/renewal", {"days": 30}).body["until"] is not None
    assert ann.post("/continual-queries/few/run").body["query"]["failures"] == 0


def _accounts() -> object:
    from harken.database.accounts import ACCOUNTS

    return ACCOUNTS
