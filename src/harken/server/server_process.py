"""`harken serve`: one process that serves one database, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn

import harken
from harken.consumers.monitors.log import Keep
from harken.errors import StorageError
from harken.server.access import check_start, is_loopback
from harken.server.app import make_service
from harken.server.connections import AcceptFailures, connection_factory
from harken.server.scheduler_thread import SchedulerThread
from harken.server.service import Service
from harken.settings import Settings

GRACE_SECONDS = 2
"""How long requests may continue after a signal."""
END_SECONDS = 4.0
"""The process ends this long after a signal, whatever is still running: at most 5 s."""
TOKEN = "HARKEN_TOKEN"
MOST_RECEIVED = 4_096
"""Bytes of a message that a client of a WebSocket may send; all are ignored."""
BACKLOG = 4096
"""Clients that the system queues until they are accepted."""
ACCEPTED_AT_ONCE = 100
"""Clients that the event loop accepts at a time. Refused clients hold a descriptor until their turn
comes, so this is less than the whole backlog."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The paths of a certificate and of its key, as PEM."""

    certificate: str
    key: str

    def check(self) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise StorageError(
                f"the certificate {self.certificate} cannot be used: {error.strerror or error}",
                code="cannot-listen",
                hint="--tls-cert and --tls-key name a certificate and its key, as PEM",
            ) from error


class Server(uvicorn.Server):
    """Ends the streams first, because they would never end by themselves. Once it is running it
    says so, and from then on a signal ends it; a second signal changes nothing."""

    def __init__(
        self, config: uvicorn.Config, service: Service, tell: Callable[[], None] | None
    ) -> None:
        super().__init__(config)
        self._service = service
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        asyncio.get_running_loop().set_exception_handler(AcceptFailures())
        for each in sockets or ():
            each.listen(BACKLOG)  # asyncio has set it to ACCEPTED_AT_ONCE
        if self._tell is not None:
            self._tell()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            last = threading.Timer(END_SECONDS, _end_now)
            last.daemon = True
            last.start()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stop()
        await super().shutdown(sockets)


def _end_now() -> None:
    """Committed data is on disk, and the rest is rolled back when the file is next opened."""
    print(
        "harken: ended while a request was still running, because it did not stop", file=sys.stderr
    )
    os._exit(1)


def serve(
    path: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    keep: Keep | None = None,
    spark: Any = None,
    engine: str = "resident",
    settings: Settings | None = None,
    certificate: Certificate | None = None,
    behind_proxy: bool = False,
    schedules: bool = True,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve until a signal. `tell` receives the address once the service answers there."""
    token = token if token is not None else os.environ.get(TOKEN)
    check_service(path, host, token, certificate, behind_proxy=behind_proxy)
    listening = listen(host, port)
    service = Service(
        path, keep=keep, spark=spark, engine=engine, settings=settings, schedules=schedules
    )
    place = f"[{host}]" if ":" in host else host
    scheme = "http" if certificate is None else "https"
    address = f"{scheme}://{place}:{listening.getsockname()[1]}/"
    server = make_server(
        service,
        token,
        lambda: tell(f"serving {path} at {address}"),
        local=is_loopback(host) and not behind_proxy,
        certificate=certificate,
        behind_proxy=behind_proxy,
    )
    with suppress(KeyboardInterrupt):  # before the server runs
        server.run(sockets=[listening])


def check_service(
    path: str,
    host: str,
    token: str | None,
    certificate: Certificate | None,
    *,
    behind_proxy: bool,
) -> None:
    """Refuse what could not be served, or not safely, before anything listens."""
    is_encrypted = certificate is not None or behind_proxy
    check_start(host, token, has_accounts=_has_accounts(path), is_encrypted=is_encrypted)
    if certificate is not None:
        certificate.check()


def work(connect: Callable[[], harken.Database], tell: Callable[[], None]) -> None:
    """Do what is due until SIGINT or SIGTERM, and answer no requests."""
    ends = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: ends.set())
    scheduler = SchedulerThread(connect)
    scheduler.start()
    tell()
    ends.wait()
    scheduler.stop()
    scheduler.join(END_SECONDS)


def _has_accounts(path: str) -> bool:
    with harken.connect(path, read_only=True) as db:
        return bool(db.users.list())


def make_server(
    service: Service,
    token: str | None = None,
    tell: Callable[[], None] | None = None,
    *,
    local: bool = True,
    certificate: Certificate | None = None,
    behind_proxy: bool = False,
) -> Server:
    config = uvicorn.Config(
        make_service(service, token, local=local),
        ssl_certfile=None if certificate is None else certificate.certificate,
        ssl_keyfile=None if certificate is None else certificate.key,
        proxy_headers=behind_proxy,
        http=connection_factory(service.settings),  # type: ignore[arg-type]
        ws="wsproto",
        ws_max_size=MOST_RECEIVED,
        ws_per_message_deflate=False,  # a slow client would cost a compressor, too
        h11_max_incomplete_event_size=service.settings["max_header_bytes"],
        log_level="error",  # clients determine how many warnings there are
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=ACCEPTED_AT_ONCE,
    )
    return Server(config, service, tell)


def listen(host: str, port: int) -> socket.socket:
    """The listening socket; clients that connect early wait there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket says that it is TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except socket.gaierror as error:
        listening.close()
        raise StorageError(
            f"unknown host {host}", code="cannot-listen", hint="127.0.0.1 is this machine"
        ) from error
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise StorageError(
                f"{host} is not an address of this machine",
                code="cannot-listen",
                hint="--host is where the service listens: 127.0.0.1 is this machine alone, and "
                "0.0.0.0 every address that it has",
            ) from error
        raise StorageError(
            f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}",
            code="cannot-listen",
            hint=(
                "another program may be using the port: choose one with --port, or 0 for any "
                "free port"
            ),
        ) from error
    return listening
