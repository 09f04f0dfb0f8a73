"""The way of a request to a permitted address, with one deadline for all of it.

Law: a connection is made only to an address that `network_guard` permits; the address is looked up
once for each connection, and it is the one that is connected to. Every wait ends at the deadline.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import httpcore
import httpx

from harken.limits import check
from harken.network_guard import Resolve, check_connected, permitted_addresses, special_use


class Deadline:
    """The moment at which a request must be over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock()

    def begin(self, seconds: float) -> None:
        self._ends = self._clock() + seconds

    def left(self) -> float:
        """The seconds that are left, more than none; otherwise the time is over."""
        check()
        left = self._ends - self._clock()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left()
        secured = self._stream.start_tls(ssl_context, server_hostname, left)
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _GuardedNetwork(httpcore.NetworkBackend):
    def __init__(self, deadline: Deadline, allow_private: bool, resolve: Resolve) -> None:
        self._network = httpcore.SyncBackend()
        self._deadline = deadline
        self._allow_private = allow_private
        self._resolve = resolve
        self.reached_public = False
        """Is the address of the last connection a public one?"""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._addresses(host, port)
        failed: Exception = httpcore.ConnectError("no address")
        for number, address in enumerate(addresses):
            # An address that never answers must leave time for the others.
            seconds = self._deadline.left() / (len(addresses) - number)
            try:
                stream = self._network.connect_tcp(
                    address, port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
                continue
            return self._checked(stream)
        raise failed

    def _checked(self, stream: httpcore.NetworkStream) -> httpcore.NetworkStream:
        try:
            reached = str(stream.get_extra_info("server_addr")[0])
            check_connected(reached, allow_private=self._allow_private)
        except BaseException:
            stream.close()
            raise
        self.reached_public = special_use(reached) is None
        return _TimedStream(stream, self._deadline)

    def _addresses(self, host: str, port: int) -> list[str]:
        """The look-up runs in a thread, because it takes no time limit."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def look_up() -> None:
            try:
                answers.put(list(self._resolve(host, port, type=socket.SOCK_STREAM)))
            except Exception as error:
                answers.put(error)

        threading.Thread(target=look_up, name="harken-look-up", daemon=True).start()
        try:
            found = answers.get(timeout=self._deadline.left())
        except queue.Empty:
            raise httpcore.ConnectTimeout from None
        if isinstance(found, Exception):
            raise found
        return permitted_addresses(
            host, port, allow_private=self._allow_private, resolve=lambda *_, **__: found
        )


class GuardedTransport(httpx.BaseTransport):
    """The transport of a client; proxies of the environment are not used, for behind one the
    address that is connected to is unknown."""

    def __init__(self, deadline: Deadline, *, allow_private: bool, resolve: Resolve) -> None:
        self._network = _GuardedNetwork(deadline, allow_private, resolve)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_ssl_context(), max_connections=1, network_backend=self._network
        )

    @property
    def reached_public(self) -> bool:
        return self._network.reached_public

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Loading the certificates takes 10 ms, and contexts are safe to share."""
    return httpx.create_ssl_context()
