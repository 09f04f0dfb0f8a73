"""Requests to the API as a program makes them, and a walk over the pages of a list."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.harness.patience import PATIENCE
from tests.server.serving import Served

API = "/api/v1"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str:
        return str(self.body["code"])

    @property
    def etag(self) -> str:
        return self.headers["etag"]


class Asking:
    """Somebody who sends requests: with an API token, or as the operator of this machine."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self._port = served.port
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        given = {**self._headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        sent = None if body is None else json.dumps(body).encode()
        if sent is not None:
            given["content-type"] = "application/json"
        try:
            connection.request(method, API + path, sent, given)
            found = connection.getresponse()
            text = found.read()
            said = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, json.loads(text) if text else None, said)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, {} if body is None else body, **headers)

    def pages(self, path: str, limit: int) -> Iterator[list[Any]]:
        """The items of each page."""
        join, cursor = "&" if "?" in path else "?", ""
        while True:
            found = self.get(f"{path}{join}limit={limit}{cursor}").body
            yield found["items"]
            if found["next"] is None:
                return
            cursor = f"&cursor={found['next']}"
