"""Opening the database file."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from harken.engines.sqlite.connection import Connection as Connection
from harken.limits import Watch


def spark_session() -> Any:
    """A Spark session on this machine alone, for the command line, where the user has none."""
    from harken.engines.spark.spark_session import local_session

    return local_session()


def open_file(
    path: str,
    *,
    read_only: bool = False,
    timeout: float = 5.0,
    clock: Callable[[], datetime.datetime] | None = None,
    watch: Watch | None = None,
) -> Connection:
    return Connection(path, read_only=read_only, timeout=timeout, clock=clock, watch=watch)
