"""What Spark does is broken off when its time is over, as what SQLite reads is.

Spark does not ask whether to go on: it is told to stop what bears a tag, and told again, because
what it was told before a job began is forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from harken.engines.sqlite.connection import BrokenOff, Connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGAIN = 0.25
"""Seconds after which it is told again."""


@contextmanager
def limited(session: SparkSession, connection: Connection) -> Iterator[None]:
    """Let what is asked in the block take as long as `Connection.limited` says, if it does."""
    with connection.spending() as left:
        if left is None:
            yield
            return
        tag = f"harken-{uuid4()}"
        done, over = threading.Event(), threading.Event()

        def stop() -> None:
            wait = max(0.0, left)
            while not done.wait(wait):
                over.set()
                session.interruptTag(tag)
                wait = AGAIN

        guard = threading.Thread(target=stop, daemon=True)
        session.addTag(tag)
        guard.start()
        try:
            yield
        except Exception:
            if over.is_set():
                raise BrokenOff from None
            raise
        finally:
            done.set()
            guard.join()
            session.removeTag(tag)
