"""NOTIFY APPRISE: the services that apprise knows, those that take a host with permission only."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from harken.errors import HarkenError
from harken.notify.channel_registry import NotDelivered
from harken.notify.channels.apprise_services import AppriseServices, services
from tests.notify.channels.sample_messages import around, message


def check(address: str, **settings: Any) -> None:
    AppriseServices().check(message("apprise", address).message.recipient, around(**settings))


def test_a_service_outside_needs_no_permission() -> None:
    check("tgram://123456789:abcdefg_hijklmnop/12315544/")
    check("secret:chat")


@pytest.mark.parametrize(
    "scheme", ["json", "jsons", "xml", "form", "mailtos", "gotify", "syslog", "irc", "ntfy"]
)
def test_one_that_takes_a_host_or_uses_this_machine_does(scheme: str) -> None:
    assert not services()[scheme]
    with pytest.raises(HarkenError, match="not allowed here") as caught:
        check(f"{scheme}://localhost/")
    assert caught.value.code == "not-allowed"
    check(f"{scheme}://localhost/", apprise_schemes=f"other, {scheme}")


def test_parameters_can_name_files_and_hosts() -> None:
    with pytest.raises(HarkenError, match="not allowed here"):
        check("tgram://123456789:abcdefg_hijklmnop/12315544/?template=/etc/passwd")


@pytest.mark.parametrize("address", ["", "nope", "nope://x", "https://example.org"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(HarkenError, match=r"no service|not allowed"):
        check(address)


@pytest.mark.parametrize("answer", [200, 500])
def test_a_message_is_sent(answer: int) -> None:
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(answer)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        sent = message("apprise", f"json://127.0.0.1:{server.server_port}/pa55word")
        settings = around(apprise_schemes="json")
        if answer == 200:
            AppriseServices().send(sent, settings)
        else:
            with pytest.raises(NotDelivered, match="did not accept") as caught:
                AppriseServices().send(sent, settings)
            assert "pa55word" not in str(caught.value)
        thread.join()
    assert b"low: 1 new" in got[0]
