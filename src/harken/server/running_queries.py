"""The ad-hoc queries that are running: each has an id, by which its sender or an operator cancels
it, and a limit of time.

Law: a query that was cancelled, or whose time is over, answers with an error and changes nothing.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from harken.errors import IntegrityError, LimitFault, NameFault, StorageError
from harken.server.identities import Identity

T = TypeVar("T")
MOST_OF_ONE = 20
"""Queries that one user may have running at once, waiting ones included."""
LONGEST_SHOWN = 2_000
"""Characters of a text in the list."""


@dataclass(slots=True)
class RunningQuery:
    id: str
    user: str
    language: str
    text: str
    started: datetime.datetime
    began: float
    task: asyncio.Task[object] | None = None
    is_cancelled: bool = False


class RunningQueries:
    """Used in the event loop's thread."""

    def __init__(self) -> None:
        self._running: dict[str, RunningQuery] = {}

    def visible_to(self, identity: Identity) -> list[RunningQuery]:
        return [
            each
            for each in self._running.values()
            if identity.is_operator or each.user == identity.name
        ]

    async def run(
        self,
        id: str,
        identity: Identity,
        language: str,
        text: str,
        seconds: float,
        work: Callable[[], Awaitable[T]],
    ) -> T:
        """Do the work under this id; `seconds` is its limit, 0 for none but that of the service."""
        self._check_room(id, identity)
        now = datetime.datetime.now(datetime.UTC)
        began = time.monotonic()
        query = RunningQuery(id, identity.name, language, text[:LONGEST_SHOWN], now, began)
        self._running[id] = query
        task: asyncio.Task[T] = asyncio.ensure_future(work())
        query.task = task
        try:
            async with asyncio.timeout(seconds or None):
                return await task
        except TimeoutError:
            raise LimitFault(
                f"the query took over {seconds:g} s",
                code="timeout",
                hint="give it more time, up to the setting statement_timeout",
            ) from None
        except asyncio.CancelledError:
            task.cancel()
            if not query.is_cancelled:
                raise
            raise LimitFault("the query was cancelled", code="cancelled") from None
        finally:
            del self._running[id]

    def _check_room(self, id: str, identity: Identity) -> None:
        if id in self._running:
            raise IntegrityError(
                f"a query with the id {id} is running", code="exists", hint="choose another id"
            )
        if sum(each.user == identity.name for each in self._running.values()) >= MOST_OF_ONE:
            raise StorageError(
                f"{identity.name} has {MOST_OF_ONE} queries running",
                code="too-many",
                hint="wait for one of them, or cancel it: DELETE /api/v1/queries/ID",
            )

    def cancel(self, id: str, identity: Identity) -> None:
        query = next((each for each in self.visible_to(identity) if each.id == id), None)
        if query is None or query.task is None:
            raise NameFault(
                f"no query with the id {id} is running",
                code="unknown-id",
                hint="it may have ended; GET /api/v1/queries lists those that run",
            )
        query.is_cancelled = True
        query.task.cancel()
