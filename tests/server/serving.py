"""A service in a thread of the test, and its streams as a test reads them."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import harken
from harken import Change
from harken.client.client import events_of
from harken.server.server_process import listen, make_server
from harken.server.service import Service
from tests.harness.patience import PATIENCE

SCHEMA = """
CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT);
CREATE TABLE note (text STRING);
CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10;
INSERT INTO stock VALUES ('pen', 5), ('ink', 50);
"""


class Served:
    def __init__(self, path: str, token: str | None = None, port: int = 0, **options: Any) -> None:
        self.service = Service(path, **options)
        self.server = make_server(self.service, token)
        self._streams: list[Stream] = []
        self._socket = listen("127.0.0.1", port)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = harken.Client(self.url, token, timeout=PATIENCE)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    def leave(self) -> None:
        """Begin to end."""
        for stream in self._streams:
            stream.close()
        self.server.should_exit = True

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status, and the JSON of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            given = {"content-type": "application/json"} if sent is not None else {}
            connection.request(method, path, sent, given | (headers or {}))
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def stream(self, path: str, headers: dict[str, str] | None = None) -> Stream:
        self._streams.append(Stream(self.port, path, headers or {}))
        return self._streams[-1]

    def put(self, item: str, quantity: int | None, before: int | None = None) -> int:
        """Give an item a quantity, or none; the position after that."""
        rows = self.client.sql(f"SELECT item, quantity FROM stock WHERE item = '{item}'")
        return self.client.apply(
            delete={"stock": rows},
            insert={"stock": [] if quantity is None else [(item, quantity)]},
        )


class Stream:
    """The events of a connection, without going on by itself."""

    def __init__(self, port: int, path: str, headers: dict[str, str]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        self.events = events_of(self.response)

    def take(self, how_many: int) -> list[tuple[str, Any]]:
        """The kinds and the data of the next events, without the first, which has the columns."""
        found = ((kind, data) for kind, _, data in self.events if kind != "view")
        return list(islice(found, how_many))

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def take(changes: Iterator[Change], how_many: int) -> list[Change]:
    return list(islice(changes, how_many))
