"""A session in a thread of its own: a database is not for several threads at once.

The service has two, one that writes and one that reads, so that a long answer keeps no
transaction waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from harken.database.database import Database

T = TypeVar("T")


class Desk:
    def __init__(self, connect: Callable[[], Database], name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._database = self._thread.submit(connect).result()

    async def do(self, work: Callable[[Database], T]) -> T:
        """Have something done with the database, after all that was asked for before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)

    def tell(self, work: Callable[[Database], object]) -> None:
        """Have something done some time."""
        with suppress(RuntimeError):  # if it is closed, there is nothing to do any more
            self._thread.submit(self._do, work)

    def _do(self, work: Callable[[Database], T]) -> T:
        try:
            return work(self._database)
        finally:
            if self._database.in_transaction:  # what failed, or a text that did not commit
                self._database.rollback()

    def close(self) -> None:
        self._thread.submit(self._database.close).result()
        self._thread.shutdown()
