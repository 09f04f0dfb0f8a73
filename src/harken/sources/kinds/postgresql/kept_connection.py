"""The connection to a server that is kept between two readings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harken.sources.kinds.postgresql.postgres_connection import (
    Connection,
    Place,
    server_identity,
    told,
)


class KeptConnection:
    """One that commits after each statement. It is thrown away after an error; with a new one,
    `forget` drops what was known of the server."""

    def __init__(self, place: Place, forget: Callable[[], None]) -> None:
        self._place, self._forget = place, forget
        self._idle: Connection | None = None
        self.server = ""
        """The identity of the server it leads to."""

    @contextmanager
    def used(self) -> Iterator[Connection]:
        connection, self._idle = self._idle, None
        with told(self._place):
            if connection is None or connection.closed:
                connection = self._place.connect()
                self.server = ""
            try:
                if not self.server:
                    self._forget()
                    self.server = server_identity(connection)
                yield connection
            except BaseException:
                connection.close()
                raise
        self._idle = connection

    def close(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None
