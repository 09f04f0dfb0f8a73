"""How much a client may send, how long it may take, and how many there may be."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

import harken
from harken.server import connections
from harken.server.connections import AcceptFailures, most_connections
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

Serve = Callable[..., Served]
SQL = "/api/v1/sql"


def limited(**given: Any) -> Settings:
    return Settings(given, serving=True)


@contextmanager
def connected(port: int, data: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(data)
        yield client


def head(method: str = "GET", path: str = "/api/v1/views", *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def answer_of(client: socket.socket) -> tuple[int, Any]:
    """The status and the body of an answer after which the service closes the connection."""
    with client.makefile("rb") as stream:
        text = stream.read()
    first, _, body = text.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(body)


def status_of(client: socket.socket) -> int:
    with client.makefile("rb") as stream:
        return int(stream.readline().split()[1])


# --- what may be sent ----------------------------------------------------------------------


def test_a_request_is_refused_before_its_body_is_read(serve: Serve) -> None:
    """Nobody sends a single byte of the body here, and all are answered."""
    served = serve(token="secret")
    kind = "Content-Type: application/json"
    for lines, status in (
        ((kind, "Content-Length: 100000000"), 401),
        ((kind, "Content-Length: 100000000", "Authorization: Bearer secret"), 413),
        (("Content-Length: 100", "Authorization: Bearer secret"), 400),
    ):
        with connected(served.port, head("POST", SQL, *lines)) as client:
            assert status_of(client) == status


def test_nothing_of_a_refused_body_is_parsed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(token="secret")
    parsed: list[object] = []
    for module in ("exact_routes", "direct_path"):
        monkeypatch.setattr(f"harken.server.{module}.read_json", parsed.append)
    assert served.ask("POST", SQL, {"text": "SELECT 1"})[0] == 401
    assert parsed == []


def test_a_body_that_is_too_large_is_refused(serve: Serve) -> None:
    served = serve(settings=limited(max_body_bytes=1000))
    fits = {"text": "SELECT '" + "x" * 900 + "'"}
    assert served.ask("POST", SQL, fits)[0] == 200
    status, problem = served.ask("POST", SQL, {"text": "x" * 2000})
    assert (status, problem["code"]) == (413, "too-large")
    assert "max_body_bytes" in problem["hint"]
    with pytest.raises(harken.HarkenError, match="larger than 1,000 bytes"):
        served.client.sql("x" * 2000)


def test_a_body_in_chunks_is_counted(serve: Serve) -> None:
    served = serve(settings=limited(max_body_bytes=1000))
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    chunk = b"100\r\n" + b"x" * 256 + b"\r\n"
    with connected(served.port, head("POST", SQL, *lines) + 5 * chunk) as client:
        assert status_of(client) == 413


def test_a_head_that_is_too_large_is_refused(serve: Serve) -> None:
    served = serve(settings=limited(max_header_bytes=2000))
    assert served.ask("GET", "/api/v1/views", headers={"x-long": "x" * 1000})[0] == 200
    status, problem = served.ask("GET", "/api/v1/views", headers={"x-long": "x" * 2000})
    assert (status, problem["code"]) == (413, "too-large")
    with connected(served.port, b"GET /" + b"x" * 3000) as client:  # and it does not end
        assert answer_of(client)[0] == 400


def test_what_is_not_http_is_refused(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    for data in (b"\0\0\r\n\r\n", b"SELECT 1\r\n\r\n"):
        with connected(served.port, data) as client:
            status, problem = answer_of(client)
            assert (status, problem["message"]) == (400, "this is not an HTTP request")
    assert not caplog.records


# --- how long it may take ------------------------------------------------------------------


def test_half_a_head_is_not_held(serve: Serve) -> None:
    served = serve(settings=limited(header_timeout=1))
    for data in (b"", b"GET /api", head()[:-2]):
        with connected(served.port, data) as client:
            status, problem = answer_of(client)
            assert (status, problem["code"]) == (408, "too-slow")


def the_connection(served: Served) -> Any:
    (connection,) = served.server.server_state.connections
    return connection


def test_the_time_for_a_head_does_not_begin_again_with_each_byte(served: Served) -> None:
    with connected(served.port, head() + b"GET") as client:
        assert status_of(client) == 200
        connection, pause = the_connection(served), threading.Event()
        while connection.deadline is None:
            pause.wait(0.01)
        begun = connection.deadline
        client.sendall(b" /api")
        while b"/api" not in connection.conn.trailing_data[0]:
            pause.wait(0.01)
        assert connection.deadline is begun
        client.sendall(b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not begun.cancelled():
            pause.wait(0.01)


def test_a_stream_has_no_deadline(served: Served) -> None:
    stream = served.stream("/api/v1/views/low/events")
    assert stream.take(1)[0][0] == "snapshot"
    assert the_connection(served).deadline is None


def test_half_a_body_is_not_held(serve: Serve) -> None:
    served = serve(settings=limited(body_timeout=0.2))
    lines = ("Content-Type: application/json", "Content-Length: 100")
    with connected(served.port, head("POST", SQL, *lines) + b"{") as client:
        status, problem = answer_of(client)
        assert (status, problem["code"]) == (408, "too-slow")


# --- how many there may be -----------------------------------------------------------------


def test_a_connection_that_waits_gives_way_to_a_new_one(serve: Serve) -> None:
    served = serve(settings=limited(max_connections=20, header_timeout=600))
    with ExitStack() as stack:
        waiting = [stack.enter_context(connected(served.port, b"GET")) for _ in range(60)]
        assert served.client.views()
        assert len(served.server.server_state.connections) <= 20
        with suppress(ConnectionError):
            assert waiting[0].recv(1) == b""  # the oldest was closed


def test_there_is_no_room_if_all_are_busy(serve: Serve) -> None:
    served = serve(settings=limited(max_connections=8))
    streams = [served.stream("/api/v1/views/low/events") for _ in range(8)]
    assert [stream.take(1)[0][0] for stream in streams] == ["snapshot"] * 8
    with pytest.raises(harken.HarkenError, match=r"all connections are in use|does not answer"):
        served.client.views()
    served.service.stop()


def test_streams_are_counted(serve: Serve) -> None:
    served = serve(settings=limited(max_streams=2))
    streams = [served.stream("/api/v1/views/low/events") for _ in range(2)]
    assert [stream.take(1)[0][0] for stream in streams] == ["snapshot"] * 2
    status, problem = served.ask("GET", "/api/v1/events?view=low&view=stock")
    assert (status, problem["code"]) == (503, "too-many")
    assert served.client.snapshot("low").plus == [("pen", 5)]
    assert served.ask("GET", "/api/v1/views/nothing/events")[0] == 503
    streams.pop().close()
    while served.ask("GET", "/api/v1/views/nothing/events")[0] == 503:
        """Until the service notices that the client is gone."""


def test_places_are_given_back(serve: Serve) -> None:
    served = serve(settings=limited(max_streams=1))
    for _ in range(3):
        assert served.ask("GET", "/api/v1/views/nothing/events")[0] == 404


def test_connections_are_fewer_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 500))
    assert most_connections(1_200) == 500 - connections.RESERVED_DESCRIPTORS
    assert asked == [(500, 500)]
    assert most_connections(20) == 20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    assert most_connections(20) == connections.LEAST_CONNECTIONS


def test_the_log_says_once_that_there_are_no_descriptors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.new_event_loop()
    handle = AcceptFailures(quiet=1e9)
    context = {
        "message": "socket.accept() out of system resource",
        "exception": OSError(errno.EMFILE, "Too many open files"),
    }
    for _ in range(1000):
        handle(loop, context)
    loop.close()
    (record,) = caplog.records
    assert "cannot accept connections: too many open files" in record.getMessage()
    assert record.levelno == logging.ERROR


def test_a_flood_of_connections_leaves_no_flood_in_the_log(path: str) -> None:
    """The process may open 100 files, and is sent 400 connections."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100));"
        "from harken.server import connections; connections.RESERVED_DESCRIPTORS = 0;"
        "from harken.cli import main;"
        f"sys.argv = ['harken', 'serve', '--db', {path!r}, '--port', '0']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    url = process.stdout.readline().split(" at ")[1].strip()
    port = int(url.rstrip("/").rpartition(":")[2])
    with ExitStack() as stack:
        for _ in range(400):
            with suppress(OSError):
                stack.enter_context(connected(port, b"GET"))
    client = harken.Client(url, timeout=PATIENCE)
    assert client.views()
    process.terminate()
    assert process.wait(PATIENCE) == 0
    told = process.stderr.read().splitlines()
    assert len(told) <= 1, told
    process.stdout.close()
    process.stderr.close()


# --- small answers -------------------------------------------------------------------------


def test_answers_are_sent_at_once(served: Served) -> None:
    """Without TCP_NODELAY the second part of an answer waits for the client's acknowledgement."""
    stream = served.stream("/api/v1/views/low/events")
    stream.take(1)
    accepted = the_connection(served).transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
