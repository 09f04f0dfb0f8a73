"""When a client disconnects, its request is cancelled: nobody waits for the answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CancelOnDisconnect:
    """Watches for the end of the connection once the body of the request has been read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        disconnect = _Disconnect(receive)
        work = asyncio.ensure_future(
            self._app(scope, disconnect.receive, disconnect.note_start(send))
        )
        disconnect.work = work
        if scope["method"] in ("GET", "HEAD"):
            disconnect.listen()
        try:
            await work
        except asyncio.CancelledError:
            if not disconnect.has_happened:
                work.cancel()
                raise
        finally:
            disconnect.end()


class _Disconnect:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._listening: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        self._first: asyncio.Queue[Message] = asyncio.Queue()
        self._has_begun = False
        self.work: asyncio.Future[None] | None = None

    @property
    def has_happened(self) -> bool:
        return self._gone.is_set()

    def note_start(self, send: Send) -> Send:
        """A response that has begun ends by itself: a stream watches `receive`."""

        async def noted(message: Message) -> None:
            self._has_begun = True
            await send(message)

        return noted

    async def receive(self) -> Message:
        if self._listening is None:
            message = await self._receive()
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                self.listen()
            return message
        if not self._first.empty():
            return self._first.get_nowait()
        waiting = [asyncio.ensure_future(each) for each in (self._first.get(), self._gone.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if waiting[0].done():
                return waiting[0].result()  # type: ignore[return-value]
            return {"type": "http.disconnect"}
        finally:
            for each in waiting:
                each.cancel()

    def listen(self) -> None:
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while (message := await self._receive())["type"] != "http.disconnect":
            self._first.put_nowait(message)
            if message.get("more_body"):  # read the body no faster than the application asks for it
                self._listening = None
                return
        self._gone.set()
        if not self._has_begun and self.work is not None:
            self.work.cancel()

    def end(self) -> None:
        if self._listening is not None:
            with suppress(RuntimeError):
                self._listening.cancel()
