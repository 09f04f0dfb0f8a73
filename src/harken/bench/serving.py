"""`harken bench serve`: transactions a second over HTTP, from one client and from eight.

The service, and one that only echoes what it is sent, run in processes of their own and take turns.
The clients are sockets of one thread: each keeps its connection and sends its next request when it
has the answer to the last. The database is a file, so each transaction waits for the disk; with
TMPDIR=/dev/shm it does not.

`serving_beside` measures beside the `harken serve` of another installation.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from harken.bench.figures import Figure
from harken.errors import StorageError

CLIENTS = (1, 8)
REQUESTS = 300
"""Requests in a turn."""
FIRST_NEW = 10**9
TABLE = """
import sys, harken
with harken.connect(sys.argv[1]) as db:
    db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, kind INT, amount INT)")
    db.load("sale", [(i, i % 100, i % 10, i) for i in range(int(sys.argv[2]))])
"""
"""A program that another version of Harken runs too."""

Requests = Iterator[bytes]


def _transactions(items: int) -> Requests:
    """Inserts of one row."""
    for key in count(FIRST_NEW):
        yield _post("transactions", {"insert": {"sale": [[key, key % 100, key % 10, 1]]}})


def _statements(items: int) -> Requests:
    """Updates by key, with parameters."""
    text = "UPDATE sale SET amount = ? WHERE id = ?"
    for number in count(FIRST_NEW):
        yield _post("sql", {"text": text, "values": [number, number % items]})


KINDS: dict[str, Callable[[int], Requests]] = {"transactions": _transactions, "sql": _statements}


def figures(items: int = 100_000, rounds: int = 7) -> Iterator[Figure]:
    with ExitStack() as stack:
        echo = stack.enter_context(_address(sys.executable, "harken.bench.echo"))
        ours = stack.enter_context(_served(items, sys.executable))
        yield from _compared(items, rounds, ours, echo, "echo")


def figures_beside(python: str, items: int = 100_000, rounds: int = 7) -> Iterator[Figure]:
    """Beside the service of another installation."""
    with ExitStack() as stack:
        other = stack.enter_context(_served(items, python))
        ours = stack.enter_context(_served(items, sys.executable))
        yield from _compared(items, rounds, ours, other, "other")


def _compared(items: int, rounds: int, ours: int, other: int, whose: str) -> Iterator[Figure]:
    for kind, requests in KINDS.items():
        sent = {ours: requests(items), other: requests(items)}
        for clients in CLIENTS:
            found: dict[int, list[float]] = {ours: [], other: []}
            for number in range(-1, rounds):  # the first turn warms up
                for port in (ours, other)[:: 1 if number % 2 else -1]:
                    rate = _per_second(port, clients, list(islice(sent[port], REQUESTS)))
                    if number >= 0:
                        found[port].append(rate)
            params = {"items": items, "clients": clients}
            figure = partial(Figure, f"serve-{kind}", params=params)
            yield figure("harken/s", statistics.median(found[ours]))
            yield figure(f"{whose}/s", statistics.median(found[other]))
            ratios = [a / b for a, b in zip(found[ours], found[other], strict=True)]
            yield figure(f"harken/{whose}", statistics.median(ratios))


def _post(name: str, body: dict[str, Any]) -> bytes:
    text = json.dumps(body).encode()
    head = (
        f"POST /api/v1/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def _per_second(port: int, clients: int, requests: Sequence[bytes]) -> float:
    """Requests answered per second."""
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        waiting = iter(requests)
        sockets = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(clients)
        ]
        start = time.perf_counter()
        for each, request in zip(sockets, waiting, strict=False):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.sendall(request)
            selector.register(each, selectors.EVENT_READ, each)
        received = dict.fromkeys(sockets, b"")
        while selector.get_map():
            for key, _ in selector.select():
                each = key.data
                received[each] += each.recv(65_536)
                if not _is_complete(received[each]):
                    continue
                received[each] = b""
                following = next(waiting, None)
                if following is None:
                    selector.unregister(each)
                else:
                    each.sendall(following)
        return len(requests) / (time.perf_counter() - start)


def _is_complete(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise StorageError(f"the service answered {answer!r}", code="cannot-open")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


@contextmanager
def _served(items: int, python: str) -> Iterator[int]:
    """The port of a `harken serve` with a table of this many rows."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "sale.db")
        subprocess.run([python, "-c", TABLE, path, str(items)], check=True)
        with _address(python, "harken", "serve", "--db", path, "--port", "0") as port:
            yield port


@contextmanager
def _address(python: str, *module: str) -> Iterator[int]:
    """The port of a service, from the address that it prints."""
    process = subprocess.Popen([python, "-m", *module], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
