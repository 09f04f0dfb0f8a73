"""A service under load: live subscribers, requests at a steady rate, and the pipeline running.

    python -m harken.bench.service_load --subscribers 1000 --rate 200 --seconds 120

Half of the requests are transactions that change a followed view, half are reads. Requests begin by
the clock, whether those before have ended or not, so a slow service is not spared. Memory is the
resident set of the service after a tenth of the time, and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import harken
from harken.bench.figures import Figure

SCHEMA = """
CREATE TABLE sale (id BIGINT PRIMARY KEY, shop STRING, amount INT);
CREATE MATERIALIZED VIEW total AS SELECT shop, sum(amount) AS amount FROM sale GROUP BY shop;
"""
CONNECTIONS = 32
NEEDS = "<= 1"
"""Seconds, of the slowest request but one in a hundred."""


@dataclass
class Load:
    port: int
    rate: float
    seconds: float
    taken: list[float] = field(default_factory=list)
    errors: int = 0
    sent: int = 0
    first: int = 0

    async def run(self) -> None:
        idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            idle.put_nowait(await asyncio.open_connection("127.0.0.1", self.port))
        begun, tasks = time.perf_counter(), set[asyncio.Task[None]]()
        while (due := self.sent / self.rate) < self.seconds:
            await asyncio.sleep(max(0.0, begun + due - time.perf_counter()))
            self.sent += 1
            task = asyncio.create_task(self._request(idle, begun + due, self._next()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        while not idle.empty():
            idle.get_nowait()[1].close()

    def _next(self) -> bytes:
        if self.sent % 2:
            return b"GET /api/v1/views/total HTTP/1.1\r\nHost: localhost\r\n\r\n"
        number = self.first + self.sent
        row = [number, f"shop {number % 10}", number % 100]
        old = [number - 2000, f"shop {number % 10}", number % 100]
        body = json.dumps({"insert": {"sale": [row]}, "delete": {"sale": [old]}}).encode()
        return (
            b"POST /api/v1/transactions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        ) + body

    async def _request(
        self,
        idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
        due: float,
        request: bytes,
    ) -> None:
        reader, writer = await idle.get()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        idle.put_nowait((reader, writer))
        self.taken.append(time.perf_counter() - due)
        self.errors += not head.startswith(b"HTTP/1.1 200")


def figures(subscribers: int, rate: float, seconds: float) -> Iterator[Figure]:
    params = {"subscribers": subscribers, "rate": rate, "seconds": seconds}
    with _served() as (process, port), _followed(port, subscribers):
        load = Load(port, rate, seconds / 10)
        asyncio.run(load.run())
        before = resident(process.pid)
        load = Load(port, rate, seconds * 0.9, first=10**6)
        asyncio.run(load.run())
        after = resident(process.pid)
    taken = sorted(load.taken)

    def figure(measure: str, value: float, needs: str | None = None) -> Figure:
        return Figure("service-load", measure, value, params, needs)

    yield figure("p50 s", taken[len(taken) // 2])
    yield figure("p99 s", taken[len(taken) * 99 // 100], NEEDS)
    yield figure("errors", load.errors, "<= 0")
    yield figure("memory MB", after)
    yield figure("memory after/before", after / before, "<= 1.1")


def resident(pid: int) -> float:
    """Megabytes of memory of a process, on Linux."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def _served() -> Iterator[tuple[subprocess.Popen[str], int]]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "load.db")
        with harken.connect(path) as db:
            db.sql(SCHEMA)
            db.continual("watch", "SELECT shop, amount FROM total", trigger="EVERY SECOND")
        process = subprocess.Popen(
            [sys.executable, "-m", "harken", "serve", "--db", path, "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield process, int(line.strip().rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


@contextmanager
def _followed(port: int, subscribers: int) -> Iterator[None]:
    """Clients that follow the view, in a process of their own, all of them ready."""
    url = f"http://127.0.0.1:{port}"
    listeners = subprocess.Popen(
        [sys.executable, "-m", "harken.bench.listeners", url, "total", str(subscribers)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert listeners.stdout is not None
    try:
        listeners.stdout.readline()
        # Positions that all have received are printed, and nobody else needs them.
        drain = subprocess.Popen(["cat"], stdin=listeners.stdout, stdout=subprocess.DEVNULL)
        yield
        drain.terminate()
        drain.wait()
    finally:
        listeners.terminate()
        listeners.wait()
        listeners.stdout.close()


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--subscribers", type=int, default=1_000)
    reader.add_argument("--rate", type=float, default=200.0)
    reader.add_argument("--seconds", type=float, default=120.0)
    given = reader.parse_args()
    for figure in figures(given.subscribers, given.rate, given.seconds):
        print(figure.json_line(), flush=True)


if __name__ == "__main__":
    main()
