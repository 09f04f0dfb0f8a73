"""Streams over WebSocket, for where a proxy breaks server-sent events.

    {"event": "change", "id": 17, "data": {"kind": "change", "view": "low", "plus": [["ink", 3]],
     "minus": [], "position": 17, "fresh": false, "at": "2026-03-02T07:00:00+00:00"}}

Each message is an event of the stream as `/events` sends it: the same kinds, data and ids, in the
same order, from the same feeds. A client that was cut off connects again with `since` the last id
that it received.

Law: a slow client costs its connection's buffer and nothing else: the next event is made when the
one before has left. What a client sends is read and ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, WebSocket
from fastapi.exceptions import WebSocketRequestValidationError
from starlette.websockets import WebSocketDisconnect

from harken.errors import HarkenError, nearest
from harken.server.access import TOKEN_PARAMETER
from harken.server.problems import problem_answer, validation_fault
from harken.server.server_sent_events import MAX_INTERVAL, StreamOptions
from harken.server.service import Service
from harken.server.stream_entries import enter_stream, start_position

GOING_AWAY = 1001
HEARTBEAT = '{"event":"heartbeat","id":null,"data":null}'
ONE, MANY = ("where", "since", "every", "counts"), ("view", "since", "every", "counts")
Since = Annotated[int | None, Query(ge=0)]
Every = Annotated[float, Query(ge=0, le=MAX_INTERVAL)]


def socket_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.websocket("/views/{view}/socket")
    async def socket(
        socket: WebSocket,
        view: str,
        where: str | None = None,
        since: Since = None,
        every: Every = 0.0,
        counts: bool = False,
    ) -> None:
        """The rows of a view, and then its changes."""
        options = StreamOptions(every, counts)
        await _serve(service, socket, ONE, [view], where, since, options)

    @routes.websocket("/socket")
    async def socket_of_many(
        socket: WebSocket,
        view: Annotated[list[str], Query(min_length=1)],
        since: Since = None,
        every: Every = 0.0,
        counts: bool = False,
    ) -> None:
        """The same for several views, in the order of commits."""
        await _serve(service, socket, MANY, view, None, since, StreamOptions(every, counts))

    return routes


async def _serve(
    service: Service,
    socket: WebSocket,
    known: Sequence[str],
    views: Sequence[str],
    where: str | None,
    since: int | None,
    options: StreamOptions,
) -> None:
    try:
        _check_parameters(socket, known)
        start = await start_position(service, since, None)
        feeds, leave = await enter_stream(service, views, where)
    except HarkenError as error:
        await socket.send_denial_response(problem_answer(error))
        return
    try:
        await socket.accept()
        sending = asyncio.ensure_future(_send(socket, service.stream(feeds, options).events(start)))
        listening = asyncio.ensure_future(_listen(socket))
        try:
            await asyncio.wait([sending, listening], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, listening):
                task.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)
        with suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(GOING_AWAY, "the stream ended; connect again")
    finally:
        leave()


async def _send(socket: WebSocket, events: object) -> None:
    async for chunk in events:  # type: ignore[attr-defined]
        for message in messages_of(chunk):
            await socket.send_text(message)


async def _listen(socket: WebSocket) -> None:
    """Until the client disconnects."""
    with suppress(WebSocketDisconnect, KeyError):
        while True:
            await socket.receive()


def messages_of(chunk: bytes) -> Iterator[str]:
    """The events of a piece of a stream, as messages.

    >>> list(messages_of(b'event: view\\ndata: {"a":1}\\n\\n'))
    ['{"event":"view","id":null,"data":{"a":1}}']
    """
    for block in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            id, kind = fields.get("id", "null"), fields["event"]
            yield f'{{"event":"{kind}","id":{id},"data":{fields["data"]}}}'
        elif block == ":":
            yield HEARTBEAT


def _check_parameters(socket: WebSocket, known: Sequence[str]) -> None:
    for name in socket.query_params:
        if name not in (*known, TOKEN_PARAMETER):
            meant = nearest(name, known)
            raise HarkenError(
                f"unknown parameter {name}",
                code="bad-value",
                hint=f"did you mean {meant}?" if meant else f"use {', '.join(known)}",
            )


def answer_wrong_handshakes(app: FastAPI) -> None:
    @app.exception_handler(WebSocketRequestValidationError)
    async def wrong(socket: WebSocket, error: WebSocketRequestValidationError) -> None:
        await socket.send_denial_response(problem_answer(validation_fault(error.errors()), 400))
