"""A transport that sends what is written in one turn of the event loop in one piece.

uvicorn writes the head of an answer and its body separately, which takes two system calls, and
wakes the client twice.

Law: bytes leave in the order in which they were written, none waits beyond the present turn of the
event loop, and none is left behind when the transport is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any

MAX_HELD = 65_536
"""Bytes that are held at most; more are sent at once, so that the flow control notices them."""


class JoinedWrites(asyncio.Transport):
    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(bytes(data))
        self._size += len(data)
        if self._size > MAX_HELD:
            self.flush()

    def flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """From now on the connection speaks another protocol, such as WebSocket."""
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def is_reading(self) -> bool:
        return self._transport.is_reading()
