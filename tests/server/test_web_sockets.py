"""Streams over WebSocket: what `/events` sends, with the same limits."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Message,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

import harken
from harken.server.identities import COOKIE
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

LOW = "/api/v1/views/low/socket"
Serve = Callable[..., Served]


OPENED: list[Socket] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Socket:
    """A client of a WebSocket."""

    def __init__(self, served: Served, path: str, host: str = "", **headers: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", served.port), PATIENCE)
        OPENED.append(self)
        self._connection = WSConnection(ConnectionType.CLIENT)
        given = [(name.replace("_", "-").encode(), each.encode()) for name, each in headers.items()]
        place = host or f"127.0.0.1:{served.port}"
        self._send(Request(host=place, target=path, extra_headers=given))
        self._events = self._received()
        self.refused = b""
        self.status = 0
        for event in self._events:
            if isinstance(event, AcceptConnection):
                self.status = 101
                return
            if isinstance(event, RejectConnection):
                self.status = event.status_code
            elif isinstance(event, RejectData):
                self.refused += event.data
                if event.body_finished:
                    return

    @property
    def problem(self) -> Any:
        return json.loads(self.refused)

    def _send(self, event: Any) -> None:
        self._socket.sendall(self._connection.send(event))

    def _received(self) -> Iterator[Any]:
        while data := self._socket.recv(65_536):
            self._connection.receive_data(data)
            yield from self._connection.events()

    def take(self, how_many: int) -> list[tuple[str, int | None, Any]]:
        """The next events, without the first, which has the columns."""
        found: list[tuple[str, int | None, Any]] = []
        text = ""
        for event in self._events:
            if isinstance(event, TextMessage):
                text += event.data
                if event.message_finished:
                    message, text = json.loads(text), ""
                    if message["event"] not in ("view", "heartbeat"):
                        found.append((message["event"], message["id"], message["data"]))
            elif isinstance(event, CloseConnection):
                found.append(("closed", None, event.code))
            if len(found) == how_many:
                return found
        return found

    def say(self, text: str) -> None:
        self._send(Message(data=text))

    def close(self) -> None:
        self._socket.close()


def test_rows_and_then_changes(served: Served) -> None:
    follower = Socket(served, LOW)
    ((kind, id, first),) = follower.take(1)
    assert (kind, first["rows"], first["position"]) == ("snapshot", [["pen", 5]], id)
    position = served.put("ink", 3)
    ((kind, id, change),) = follower.take(1)
    assert (kind, id, change["plus"]) == ("change", position, [["ink", 3]])
    assert change["at"] is not None
    follower.close()
    served.put("ink", 4)
    resumed = Socket(served, f"{LOW}?since={position}")
    ((kind, _, change),) = resumed.take(1)
    assert (change["plus"], change["minus"]) == ([["ink", 4]], [["ink", 3]])
    resumed.close()


def test_several_views_with_options(served: Served) -> None:
    follower = Socket(served, "/api/v1/socket?view=low&view=stock&counts=true")
    assert [each[0] for each in follower.take(2)] == ["count", "count"]
    served.put("ink", 3)
    first, second = follower.take(2)
    assert (first[1], second[1] is not None) == (None, True)
    follower.close()
    filtered = Socket(served, f"{LOW}?where=quantity%20%3E%2099")
    assert filtered.take(1)[0][2]["rows"] == []
    filtered.close()


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ("/api/v1/views/lw/socket", 404, "there is no table or view lw"),
        (f"{LOW}?since=999", 400, "position 999 does not exist yet"),
        (f"{LOW}?since=x", 400, "since is invalid"),
        (f"{LOW}?wher=1", 400, "unknown parameter wher"),
        ("/api/v1/socket", 400, "view is missing"),
    ],
)
def test_a_wrong_handshake_is_explained(served: Served, asked: str, status: int, said: str) -> None:
    refused = Socket(served, asked)
    assert refused.status == status
    assert said in refused.problem["message"]
    refused.close()


def test_other_sites_open_none(serve: Serve, path: str) -> None:
    served = serve()
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}):
        refused = Socket(served, LOW, **headers)
        assert (refused.status, refused.problem["code"]) == (401, "not-allowed")
    assert Socket(served, LOW, host="evil.example").status == 401
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password="correct horse battery")
        key = db.users.sign_in("ann")
    served = serve()
    cookie = f"{COOKIE}={key}"
    assert Socket(served, LOW).status == 401
    assert Socket(served, LOW, cookie=cookie, origin="http://localhost:9").status == 401
    assert Socket(served, LOW, cookie=cookie, origin=served.url).status == 101


def test_users_follow_what_is_granted(serve: Serve, path: str) -> None:
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password="correct horse battery")
        db.users.add("bob", role="reader", password="correct horse battery")
        token = db.users.make_token("bob", "tests")
        db.sql("GRANT SELECT ON low TO bob")
    served = serve()
    given = {"authorization": f"Bearer {token}"}
    assert Socket(served, LOW, **given).take(1)[0][0] == "snapshot"
    assert Socket(served, "/api/v1/views/stock/socket", **given).status == 403


def test_sockets_are_streams_among_others(serve: Serve) -> None:
    served = serve(settings=Settings({"max_streams": 1}, serving=True))
    first = Socket(served, LOW)
    first.take(1)
    second = Socket(served, LOW)
    assert (second.status, second.problem["code"]) == (503, "too-many")
    first.close()
    while served.service.clients:
        pass
    assert Socket(served, LOW).take(1)[0][0] == "snapshot"


def test_what_a_client_says_is_ignored_up_to_a_limit(served: Served) -> None:
    follower = Socket(served, LOW)
    follower.take(1)
    follower.say('{"drop": "everything"}')
    served.put("ink", 3)
    assert follower.take(1)[0][0] == "change"
    follower.say("x" * 100_000)
    assert follower.take(1) == [("closed", None, 1009)]
    while served.service.clients:
        pass


def test_a_service_that_ends_says_so(serve: Serve) -> None:
    served = serve()
    follower = Socket(served, LOW)
    follower.take(1)
    served.stop()
    assert follower.take(1)[0][0] == "closed"
