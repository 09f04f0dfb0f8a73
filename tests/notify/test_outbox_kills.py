"""Processes that deliver are killed while receivers refuse every other message: nothing is lost,
and for whoever knows an `id` again nothing is doubled or out of order.
"""

from __future__ import annotations

import datetime
import email
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiosmtpd.controller import Controller

import harken
from harken.database.messages import Message, Messages, Recipient
from tests.harness.patience import PATIENCE

START = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SETTINGS = {
    "notification_lease": 60.0,
    "notification_attempts": 1_000,
    "allow_private_addresses": True,
    "smtp_host": "127.0.0.1",
    "smtp_security": "none",
    "smtp_from": "harken@example.org",
}
DELIVERING = """
import datetime, json, sys, harken
now = [datetime.datetime.fromisoformat(sys.argv[2])]
with harken.connect(sys.argv[1], clock=lambda: now[0], settings=json.loads(sys.argv[3])) as db:
    print("ready", flush=True)
    while (due := db.next_due()) is not None:
        now[0] = max(now[0], due)
        db.run_due()
"""
"""Its clock is moved to whatever is due next, so retries and leases take no time."""


class Receivers:
    """A mail server and a webhook that refuse every other message, by chance; what they accepted,
    by the address it was for. A refusal may come after the message has been taken."""

    def __init__(self, seed: int) -> None:
        self.got: dict[str, list[tuple[str, int]]] = {}
        self._random, self._lock = Random(seed), threading.Condition()
        self._accepted = 0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.mail_port = int(free.getsockname()[1])
        self.mail = Controller(self, hostname="127.0.0.1", port=self.mail_port)
        self.mail.start()
        self.web = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.web.serve_forever, daemon=True).start()

    def take(self, to: str, id: str, execution: int) -> bool:
        with self._lock:
            chance = self._random.random()
            if chance < 0.55:  # taken, and in some of the cases refused all the same
                self.got.setdefault(to, []).append((id, execution))
                self._accepted += 1
                self._lock.notify_all()
            return chance < 0.5

    def wait_for(self, wanted: int) -> None:
        """Until they have taken so many in all."""
        with self._lock:
            self._lock.wait_for(lambda: self._accepted >= wanted, PATIENCE)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = email.message_from_bytes(envelope.content, policy=default)
        text = mail.get_body(("plain",)).get_content()  # type: ignore[attr-defined]
        number = int(text.split("execution ")[1].split(",")[0])
        taken = self.take(envelope.rcpt_tos[0], str(mail["Message-ID"]), number)
        return "250 OK" if taken else "451 not now"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take: Callable[[str, str, int], bool] = self.take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["content-length"])))
                data = said.get("data", said)
                taken = take(self.path, self.headers["webhook-id"], int(data["execution"]))
                self.send_response(200 if taken else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def close(self) -> None:
        self.mail.stop()
        self.web.shutdown()
        self.web.server_close()


def deliver_through_kills(tmp_path: Path, messages: int, kills: int) -> None:
    path, random, receivers = str(tmp_path / "shop.db"), Random(messages), Receivers(kills)
    try:
        settings = SETTINGS | {"smtp_port": receivers.mail_port}
        hook = f"http://127.0.0.1:{receivers.web.server_port}"
        lines = [Recipient("email", f"p{i}@example.org") for i in range(10)]
        lines += [Recipient("webhook", f"{hook}/{i}") for i in range(10)]
        with harken.connect(path, clock=lambda: START, settings=settings) as db:
            outbox = Messages(db.internals.runtime)
            with db.transaction():
                for number in range(messages):
                    to = lines[number % len(lines)]
                    outbox.write(Message("q", number, "results", START, "ann", to, {"count": 1}))
        for number in range(kills + 1):
            begins = (START + number * datetime.timedelta(days=100)).isoformat()
            command = [sys.executable, "-c", DELIVERING, path, begins, json.dumps(settings)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            if number < kills:
                receivers.wait_for(random.randint(1, messages) * (number + 1) // (kills + 1))
                process.kill()
            process.communicate(timeout=PATIENCE * 20)
        check(receivers, messages)
        with harken.connect(path, settings=settings) as db:
            assert db.sql("SELECT DISTINCT state FROM delivery").rows == [("delivered",)]
    finally:
        receivers.close()


def check(receivers: Receivers, messages: int) -> None:
    found = []
    for accepted in receivers.got.values():
        once = list(dict.fromkeys(accepted))  # a receiver knows an id again
        assert len({id for id, _ in once}) == len(once)
        numbers = [number for _, number in once]
        assert numbers == sorted(numbers)
        found += numbers
    assert sorted(found) == list(range(messages))


@pytest.mark.nightly
def test_nothing_is_lost_doubled_or_out_of_order_after_kills(tmp_path: Path) -> None:
    deliver_through_kills(tmp_path, messages=30, kills=1)


@pytest.mark.nightly
def test_ten_thousand_messages_and_fifty_kills(tmp_path: Path) -> None:
    deliver_through_kills(tmp_path, messages=10_000, kills=50)
