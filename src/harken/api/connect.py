"""`harken.connect`: opens a session."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from typing import Any

from harken.api.database import Database
from harken.api.opening import open_session
from harken.database.arguments import (
    LONGEST_TIME,
    check_callable,
    check_flag,
    check_number,
    check_path,
    checked_call,
)
from harken.errors import TypeFault
from harken.settings import Settings


@checked_call
def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    read_only: bool = False,
    timeout: float = 5.0,
    clock: Callable[[], datetime.datetime] | None = None,
    spark: Any = None,
    engine: str = "resident",
    settings: Mapping[str, Any] | None = None,
) -> Database:
    """Open a database in a file, or one in memory that is gone when it is closed.

    `spark` is the SparkSession for the lake, or a function that makes one, called when Spark is
    first needed. Harken neither configures nor stops it. With `engine="lake"` every new stored
    function goes to the lake.

    `timeout` is how many seconds to wait for another process that is writing. `clock` replaces the
    time of day in tests. `settings` overrides what `harken.settings` lists.
    """
    check_path(path, "the path of a database", "cannot-open")
    check_flag(read_only, "read_only")
    check_number(timeout, "the timeout", most=LONGEST_TIME)
    if clock is not None:
        check_callable(clock, "the clock")
    if engine not in ("resident", "lake"):
        raise TypeFault(
            f"there is no engine {engine}", code="bad-value", hint="use resident or lake"
        )
    chosen = settings if isinstance(settings, Settings) else Settings(settings)
    internals = open_session(os.fspath(path), read_only, timeout, clock, spark, chosen)
    internals.runtime.all_in_lake = engine == "lake"
    return Database(internals)
