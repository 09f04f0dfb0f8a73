"""Messages to people: how many a second reach a mail server and a webhook on this machine.

Both receivers answer at once, so the figures are the cost of the outbox: a claim, a delivery in a
thread and a record for each message, in a file.
"""

from __future__ import annotations

import socketserver
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import harken
from harken.bench.figures import Figure
from harken.database.messages import DELIVERED, Message, Messages, Recipient

MESSAGES = 1_000
PEOPLE = 20


class MailHandler(socketserver.StreamRequestHandler):
    """As much of a mail server as a client needs that sends one mail."""

    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline():
            word = line[:4].upper().strip()
            if word == b"DATA":
                self._say("354 go on")
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
            self._say("221 bye" if word == b"QUIT" else "250 OK")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class HookHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


def figures(messages: int = MESSAGES) -> Iterator[Figure]:
    """Each channel by itself."""
    mail_server = MailServer(("127.0.0.1", 0), MailHandler)
    web_server = ThreadingHTTPServer(("127.0.0.1", 0), HookHandler)
    with _served(mail_server) as mail, _served(web_server) as web:
        addresses = {
            "email": [f"p{i}@example.org" for i in range(PEOPLE)],
            "webhook": [f"http://127.0.0.1:{web}/{i}" for i in range(PEOPLE)],
        }
        for channel, people in addresses.items():
            rate = messages / _seconds(channel, people, messages, mail)
            yield Figure(f"outbox-{channel}", "messages/s", rate, {"items": messages})


@contextmanager
def _served(server: socketserver.TCPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _seconds(channel: str, people: list[str], messages: int, mail: int) -> float:
    settings = {
        "allow_private_addresses": True,
        "smtp_host": "127.0.0.1",
        "smtp_port": mail,
        "smtp_security": "none",
        "smtp_from": "harken@example.org",
    }
    with (
        tempfile.TemporaryDirectory() as place,
        harken.connect(Path(place) / "outbox.db", settings=settings) as db,
    ):
        outbox, now = Messages(db.internals.runtime), db.internals.connection.now()
        with db.transaction():
            for number in range(messages):
                to = Recipient(channel, people[number % len(people)])
                payload = {"inserted": [{"n": number}]}
                outbox.write(Message("q", number, "results", now, "ann", to, payload))
        started = time.perf_counter()
        found = db.notifications.run()
        took = time.perf_counter() - started
        assert [each.state for each in found] == [DELIVERED] * messages
        return took
