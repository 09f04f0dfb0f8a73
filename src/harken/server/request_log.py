"""Gives each request an id, and logs its answer: one line for each, with the id, who sent it, and
how long it took.

The line is logged by `harken.requests` at the level INFO, and is not made unless somebody wants it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harken.server.identities import current
from harken.server.request_ids import HEADER, id_for, request_id, request_notes
from harken.server.traces import request_span

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

logger = logging.getLogger("harken.requests")
_HEADER = HEADER.encode()


class RequestLog:
    def __init__(self, app: ASGIApp, tracer: Tracer | None = None) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), None)
        id = id_for(None if given is None else given.decode("latin-1"))
        request_id.set(id)
        status = [0]

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message["headers"] = [*message.get("headers", ()), (_HEADER, id.encode())]
            await send(message)

        if self._tracer is not None:
            with request_span(self._tracer, scope, id) as span:
                await self._logged(scope, receive, send_with_id, id, status)
                span.set_attribute("http.response.status_code", status[0])
        elif logger.isEnabledFor(logging.INFO):
            await self._logged(scope, receive, send_with_id, id, status)
        else:
            await self._app(scope, receive, send_with_id)

    async def _logged(
        self, scope: Scope, receive: Receive, send: Send, id: str, status: Sequence[int]
    ) -> None:
        notes: dict[str, Any] = {}
        request_notes.set(notes)
        began = time.perf_counter()
        try:
            await self._app(scope, receive, send)
        finally:
            _log(scope, id, status[0], time.perf_counter() - began, notes)


def _log(scope: Scope, id: str, status: int, seconds: float, notes: Mapping[str, Any]) -> None:
    method = scope.get("method", "WEBSOCKET")
    members: dict[str, Any] = {
        "request": id,
        "method": method,
        "path": scope["path"],
        "status": status,
        "seconds": round(seconds, 6),
        "user": current.get().name,
        **notes,
    }
    # The query is left out: it may have a token.
    logger.info("%s %s %d", method, scope["path"], status, extra={"members": members})
