"""`harken serve`: one process that serves one database, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from harken.database.monitors.log import Keep
from harken.errors import StorageError
from harken.server.access import check_start
from harken.server.app import make_app
from harken.server.service import Service

GRACE_SECONDS = 5
TOKEN = "HARKEN_TOKEN"


class Server(uvicorn.Server):
    """Ends the streams first: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stop()
        await super().shutdown(sockets)


def serve(
    path: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    keep: Keep | None = None,
    spark: Any = None,
    tell: Callable[[str], None] = print,
) -> None:
    """`tell` is told where, as soon as there is an answer there."""
    token = token if token is not None else os.environ.get(TOKEN)
    check_start(host, token)
    listening = listen(host, port)
    service = Service(path, keep=keep, spark=spark)
    server = make_server(service, token)
    place = f"[{host}]" if ":" in host else host
    tell(f"serving {path} at http://{place}:{listening.getsockname()[1]}/")
    with suppress(KeyboardInterrupt):  # uvicorn raises it again when all is over
        server.run(sockets=[listening])


def make_server(service: Service, token: str | None = None) -> Server:
    config = uvicorn.Config(
        make_app(service, token),
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=4096,
    )
    return Server(config, service)


def listen(host: str, port: int) -> socket.socket:
    """The socket to answer on; clients that come before we do wait there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(4096)
    except OSError as error:
        listening.close()
        raise StorageError(
            f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}",
            code="cannot-listen",
            hint="another program may have the port: choose one with --port, or 0 for any",
        ) from error
    return listening
