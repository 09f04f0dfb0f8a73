"""The direct path for small, valid transactions: it passes by FastAPI.

Law: a client cannot tell which path answered. The direct path makes the checks of `Guard`, and it
only answers requests that the routes of the API accept; every other request goes on to them, with
its body, so there is one place that explains what is wrong with a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harken.database.json_values import read_json
from harken.errors import HarkenError
from harken.server.guard import (
    SECURITY_HEADERS,
    ClientGone,
    Guard,
    SecurityHeaders,
    replay,
)
from harken.server.server_sent_events import API
from harken.server.service import Service
from harken.server.writes import run_sql, transact

MAX_BYTES = 16_384
"""Larger bodies are parsed in another thread, by the routes of the API."""
MAX_OPENINGS = 500
"""The most brackets and braces in a body that is parsed in the event loop's thread, so that its
nesting is not too deep either."""
WATCH_SECONDS = 0.02
"""A request that takes longer than this is watched: if its client disconnects, it is cancelled. A
watch costs a task and two turns of the event loop, more than most transactions take."""
VARY = "Origin"
"""Answers differ with this header, says CORSMiddleware, which requests pass by here."""

Call = Callable[[], Coroutine[Any, Any, str]]
_NOT_DIRECT = (b"origin", b"idempotency-key")
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-type", b"application/json"),
    (b"vary", VARY.encode()),
    *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
]


class DirectPath:
    """Stands in front of the application. `answer` and `answer_bug` make the application's answers
    to errors."""

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        guard: Guard,
        answer: Callable[[HarkenError], Response],
        answer_bug: Callable[[Exception], Response],
    ) -> None:
        self._app = app
        self._service = service
        self._guard = guard
        self._answer = answer
        self._answer_bug = answer_bug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_candidate(scope):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._guard.admit(scope, receive)
        except HarkenError as error:
            await self._refuse(error, scope, receive, send)
            return
        except ClientGone:
            return
        call = _call(self._service, scope["path"], body)
        if call is None:
            await self._app(scope, replay(body, receive), send)
            return
        await self._respond(call, scope, receive, send)

    async def _refuse(self, error: HarkenError, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(error)
        answer.headers["vary"] = VARY
        await SecurityHeaders(answer)(scope, receive, send)

    async def _respond(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            text = await _watched(call, receive)
        except HarkenError as error:
            await self._refuse(error, scope, receive, send)
            return
        except ClientGone:
            return
        except Exception as error:  # a bug: the server logs it
            await SecurityHeaders(self._answer_bug(error))(scope, receive, send)
            raise
        await _send_json(send, text.encode())
        await self._service.publish()


def _is_candidate(scope: Scope) -> bool:
    """Whether the head asks for a transaction, and for nothing else. A request from a page has an
    Origin, and its answer other headers; one with a key may have been carried out before."""
    return (
        scope["type"] == "http"
        and scope["method"] == "POST"
        and scope["path"] in _READERS
        and not scope["query_string"]
        and not any(name in _NOT_DIRECT for name, _ in scope["headers"])
    )


def _call(service: Service, path: str, body: bytes) -> Call | None:
    """The call that a body asks for; None if the routes of the API must look at it."""
    openings = body.count(b"[") + body.count(b"{")
    if len(body) > MAX_BYTES or openings > MAX_OPENINGS or b"\\ud" in body.lower():
        return None
    try:
        found = read_json(body.decode())
    except (ValueError, RecursionError):
        return None
    return _READERS[path](service, found) if type(found) is dict else None


def _transaction(service: Service, found: dict[str, Any]) -> Call | None:
    insert, delete = found.pop("insert", {}), found.pop("delete", {})
    if found or not (_are_rows(insert) and _are_rows(delete)):
        return None
    return lambda: transact(service, insert, delete)


def _are_rows(tables: Any) -> bool:
    return type(tables) is dict and all(
        type(rows) is list and all(type(row) is list for row in rows) for rows in tables.values()
    )


def _statements(service: Service, found: dict[str, Any]) -> Call | None:
    text, values = found.pop("text", None), found.pop("values", None)
    if found or type(text) is not str or type(values) not in (list, dict, type(None)):
        return None
    return lambda: run_sql(service, text, values)


_READERS: dict[str, Callable[[Service, dict[str, Any]], Call | None]] = {
    f"{API}/transactions": _transaction,
    f"{API}/sql": _statements,
}


async def _watched(call: Call, receive: Receive) -> str:
    """The result of the call. If the client disconnects first, the call is cancelled, and
    ClientGone raised."""
    task = asyncio.current_task()
    assert task is not None
    watch = _Watch(task, receive)
    timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, watch.begin)
    try:
        return await call()
    except asyncio.CancelledError:
        if watch.client_is_gone:
            raise ClientGone from None
        raise
    finally:
        timer.cancel()
        watch.end()


class _Watch:
    """Cancels a task when its client disconnects."""

    def __init__(self, watched: asyncio.Task[Any], receive: Receive) -> None:
        self._watched = watched
        self._receive = receive
        self._listening: asyncio.Task[None] | None = None
        self.client_is_gone = False

    def begin(self) -> None:
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.client_is_gone = True
        self._watched.cancel()

    def end(self) -> None:
        if self._listening is not None:
            self._listening.cancel()


async def _send_json(send: Send, body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    start: Message = {
        "type": "http.response.start",
        "status": 200,
        "headers": [length, *_HEADERS],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
