"""A web server on loopback for tests, which can fail in every way that servers do.

with web_site() as site:
    site.pages["/prices"] = Answer(b"<p>...")
    site.url("/prices")
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Write = Callable[[bytes], None]


@dataclass
class Answer:
    """The length is told unless a header does so or `told` is False."""

    body: bytes = b""
    type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    told: bool = True
    rest: Callable[[Write], None] | None = None
    """Goes on writing the body in its own way; then the connection is closed."""


@dataclass
class Site:
    port: int
    host: str = "127.0.0.1"
    pages: dict[str, Any] = field(default_factory=dict)
    """An `Answer`, or a function that makes one from the headers of the request."""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    """The requests: path with query, and headers in lower case."""
    stopped: threading.Event = field(default_factory=threading.Event)
    under_way: int = 0
    most_under_way: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"http://{host or self.host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def web_site(host: str = "127.0.0.1", context: Any = None) -> Iterator[Site]:
    """With a TLS `context`, one for https."""
    server = _Server((host, 0), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    site = Site(server.server_address[1], host)
    server.site = site  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """Clients that hang up are what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        headers = {name.lower(): value for name, value in self.headers.items()}
        with site.lock:
            site.asked.append((self.path, headers))
            site.under_way += 1
            site.most_under_way = max(site.most_under_way, site.under_way)
        try:
            page = site.pages.get(self.path) or site.pages.get(self.path.partition("?")[0])
            answer = (
                page(headers) if callable(page) else page or Answer(b"no such page", status=404)
            )
            with suppress(OSError):
                self._send(answer)
        finally:
            with site.lock:
                site.under_way -= 1

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        given = {name.lower() for name in answer.headers}
        if answer.type and "content-type" not in given:
            self.send_header("Content-Type", answer.type)
        if answer.told and answer.rest is None and "content-length" not in given:
            self.send_header("Content-Length", str(len(answer.body)))
        else:
            self.close_connection = True
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.rest is not None:
            answer.rest(lambda part: (self.wfile.write(part), self.wfile.flush())[0])

    def log_message(self, *_: Any) -> None: ...
