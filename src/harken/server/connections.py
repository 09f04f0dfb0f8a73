"""Limits on connections: how many there may be, and how long a request may take to arrive.

Law: a connection that has not sent the head of a request within the time allowed is closed, and
there are never more connections than the limit. When the limit is reached, the connection that has
been idle longest is closed to make room for a new one; if all are busy, the new one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from harken.database.results import to_json
from harken.errors import HarkenError, StorageError
from harken.server.guard import SECURITY_HEADERS
from harken.server.joined_writes import JoinedWrites
from harken.server.problems import MEDIA_TYPE, problem_json
from harken.settings import Settings

logger = logging.getLogger("harken.server")

RESERVED_DESCRIPTORS = 64
"""File descriptors set aside for everything but connections: the database files and their logs, the
event loop, standard streams and files of the lake. A service without a lake uses about 20."""
LEAST_CONNECTIONS = 8
"""The number of connections allowed even if the process may open hardly any files."""
LINGER_SECONDS = 2.0
"""How long a refused request may go on sending its body, so that its client reads the answer before
the connection is reset."""
QUIET_SECONDS = 60.0
"""Seconds between two log messages that the process is out of descriptors."""
STATUS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class Room:
    """The limits shared by all connections of a service, and the idle connections, oldest first."""

    def __init__(self, settings: Settings) -> None:
        self.header_timeout: float = settings["header_timeout"]
        self._most = most_connections(settings["max_connections"])
        self._waiting: dict[Connection, None] = {}

    def admits(self, connections: int) -> bool:
        """Whether there is room for one more, closing an idle connection if necessary."""
        if connections <= self._most:
            return True
        if not self._waiting:
            return False
        next(iter(self._waiting)).give_way()
        return True

    def note(self, connection: Connection, waits: bool) -> None:
        """The oldest stands first."""
        if not waits:
            self._waiting.pop(connection, None)
        elif connection not in self._waiting:
            self._waiting[connection] = None


def most_connections(wanted: int) -> int:
    """The number asked for, or as many as the process may open files for."""
    return max(LEAST_CONNECTIONS, min(wanted, _descriptors(wanted) - RESERVED_DESCRIPTORS))


def _descriptors(connections: int) -> int:
    """How many files the process may open, after asking the system for enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return connections + RESERVED_DESCRIPTORS
    wanted = connections + RESERVED_DESCRIPTORS
    if wanted > soft:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


class Connection(H11Protocol):
    """One connection, with a time limit on the head of each request."""

    def __init__(self, room: Room, **given: Any) -> None:
        super().__init__(**given)
        self._room = room
        self.deadline: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._writes = JoinedWrites(transport, self.loop)
        self.transport = self._writes
        if not self._room.admits(len(self.connections)):
            self._end_with(503, _no_room())
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        unread = self.conn.their_state is h11.SEND_BODY
        self._writes.flush()
        super().on_response_complete()
        if unread and not self.transport.is_closing():
            self._linger = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.note(self, waits=False)
        for timer in (self.deadline, self._linger):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._end_with(400, HarkenError("this is not an HTTP request", code="bad-value"))

    def give_way(self) -> None:
        """Make room for another connection."""
        self._room.note(self, waits=False)
        self.connections.discard(self)
        self.transport.abort()

    def _watch(self) -> None:
        """The clock starts when the wait for a head starts; later bytes do not restart it."""
        if self._linger is not None and self.conn.our_state is not h11.DONE:
            self._linger.cancel()  # the rest of a refused body arrived and was thrown away
            self._linger = None
        waits = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        self._room.note(self, waits)
        if not waits and self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        elif waits and self.deadline is None:
            self.deadline = self.loop.call_later(self._room.header_timeout, self._too_slow)

    def _too_slow(self) -> None:
        self._end_with(408, _too_slow(self._room.header_timeout))

    def _end_with(self, status: int, error: HarkenError) -> None:
        """Answer without calling the application, and close."""
        self._room.note(self, waits=False)
        if not self.transport.is_closing():
            self.transport.write(_answer(status, error))
            self.transport.close()


def connection_factory(settings: Settings) -> Callable[..., Connection]:
    room = Room(settings)
    return lambda **given: Connection(room, **given)


def _answer(status: int, error: HarkenError) -> bytes:
    body = to_json(problem_json(error, status)).encode()
    headers = {
        **SECURITY_HEADERS,
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [f"HTTP/1.1 {status} {STATUS[status]}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _no_room() -> StorageError:
    return StorageError(
        "all connections are in use",
        code="too-many",
        hint="try again; the setting max_connections is the limit",
    )


def _too_slow(seconds: float) -> StorageError:
    return StorageError(
        f"the head of the request did not arrive within {seconds:g} s",
        code="too-slow",
        hint="the setting header_timeout is the limit",
    )


class AcceptFailures:
    """Handles errors of the event loop. Running out of descriptors is logged once a minute, not
    once per waiting client."""

    def __init__(self, quiet: float = QUIET_SECONDS) -> None:
        self._quiet = quiet
        self._logged: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "accept" not in context.get("message", "") or not isinstance(error, OSError):
            loop.default_exception_handler(context)
            return
        if self._logged is None or loop.time() - self._logged >= self._quiet:
            self._logged = loop.time()
            logger.error(
                "cannot accept connections: %s. Clients wait until others leave; allow the "
                "process more files (ulimit -n), or lower the setting max_connections",
                (error.strerror or str(error)).lower(),
            )
