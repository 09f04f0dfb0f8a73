"""NOTIFY WEBHOOK: a signed POST of JSON, to public addresses only."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harken.errors import HarkenError, ValueFault
from harken.notify.channel_registry import NotDelivered
from harken.notify.channels.webhooks import Webhooks, signature
from tests.notify.channels.sample_messages import around, message

SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
HERE = around(allow_private_addresses=True)


@dataclass
class Receiver:
    """A server that keeps what it gets, and answers what it is told to."""

    url: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answer: int = 204
    headers: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            names = {name.lower(): value for name, value in self.headers.items()}
            found.got.append((self.path, names, body))
            self.send_response(found.answer)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://localhost:{server.server_port}/hook?token=t0ken"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_body_is_signed(receiver: Receiver) -> None:
    Webhooks().send(message("webhook", receiver.url, secret=f"{SECRET} {SECRET}"), HERE)
    ((path, headers, body),) = receiver.got
    assert path == "/hook?token=t0ken"
    assert headers["host"].startswith("localhost:")
    assert json.loads(body)["type"] == "results"
    assert json.loads(body)["data"]["inserted"] == [{"item": "pen", "left": 2}]
    assert headers["webhook-id"] == "msg_1"
    made = signature(SECRET, "msg_1", int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == f"{made} {made}"


def test_a_private_address_is_refused(receiver: Receiver) -> None:
    with pytest.raises(HarkenError, match="loopback") as caught:
        Webhooks().send(message("webhook", receiver.url), around())
    assert caught.value.code == "not-allowed"
    assert receiver.got == []


@pytest.mark.parametrize(("answer", "retry"), [(500, True), (302, True), (404, True), (410, False)])
def test_an_answer_that_is_no_success_is_a_failure(
    receiver: Receiver, answer: int, retry: bool
) -> None:
    receiver.answer, receiver.headers = answer, {"location": receiver.url}
    with pytest.raises(NotDelivered, match=f"answered {answer}") as caught:
        Webhooks().send(message("webhook", receiver.url), HERE)
    assert caught.value.retry is retry
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("90", 90.0), ("Sun, 01 Mar 2026 12:02:00 GMT", 120.0), ("soon", None), ("9" * 50, None)],
)
def test_the_receiver_says_when_to_try_again(
    receiver: Receiver, asked: str, seconds: float | None
) -> None:
    receiver.answer, receiver.headers = 429, {"retry-after": asked}
    with pytest.raises(NotDelivered) as caught:
        Webhooks().send(message("webhook", receiver.url), HERE)
    assert caught.value.after == seconds


def test_no_token_of_the_address_is_in_an_error() -> None:
    with pytest.raises(NotDelivered) as caught:
        Webhooks().send(message("webhook", "http://127.0.0.1:1/t0ken"), HERE)
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "example.org",
        "ftp://example.org",
        "http://",
        "http://a b/",
        "http://[::1",
        "http://a:b@c/",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueFault):
        Webhooks().check(message("webhook", address).message.recipient, HERE)


def test_the_secret_is_named_and_not_written(receiver: Receiver) -> None:
    written = message("webhook", "https://example.org", secret=SECRET)
    with pytest.raises(ValueFault, match="not part of a definition"):
        Webhooks().check(written.message.recipient, HERE)
    with pytest.raises(ValueFault, match="must not hold a password or a token"):
        Webhooks().check(message("webhook", receiver.url).message.recipient, HERE)
    with pytest.raises(NotDelivered, match="base64"):
        Webhooks().send(message("webhook", receiver.url, secret="whsec_short"), HERE)


def test_secrets_are_in_place_for_the_channel_alone(receiver: Receiver) -> None:
    sent = message("webhook", "secret:hook", secret="secret:sign")
    known = {"secret:hook": receiver.url, "secret:sign": SECRET}
    prepared = replace(HERE, resolve_secret=known.__getitem__).prepared(sent)
    Webhooks().check(sent.message.recipient, prepared)
    Webhooks().send(prepared.opened(sent), prepared)
    assert receiver.got[0][1]["webhook-signature"].startswith("v1,")
    assert prepared.hidden(f"cannot reach {receiver.url}") == "cannot reach ***"
