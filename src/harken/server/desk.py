"""Sessions in threads of their own: a database is not for several threads at once.

A request that takes too long is cancelled, and its session goes on with the next one. A session
that cannot be stopped, because it is in a call that never returns, is given up: its client gets an
error, and another session takes its place. So no request keeps the others waiting for ever.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from harken.api.database import Database
from harken.errors import HarkenError, LimitFault

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""How long after its limit a request may still take to stop by itself."""
ENDING_SECONDS = 0.5
"""How long a request may take to stop when the service ends."""
ENDING = "the service is ending"


class Request:
    """Something to be done with the database. `future` is None if nobody waits for the result."""

    def __init__(self, work: Callable[[Database], Any]) -> None:
        self.work = work
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_dropped = False

    def finish(self, found: Any, error: BaseException | None) -> None:
        """In the thread of the event loop."""
        if self.timer is not None:
            self.timer.cancel()
        if self.future is None or self.future.done():
            return
        if error is None:
            self.future.set_result(found)
        else:
            self.future.set_exception(error)


class Desk:
    """One session at a time. `seconds` is the time limit of a request, 0 is none; `lost` is called
    in the event loop when a session was given up."""

    def __init__(
        self,
        connect: Callable[[], Database],
        name: str,
        seconds: float = 0.0,
        lost: Callable[[], None] | None = None,
    ) -> None:
        self._connect, self._name, self._seconds = connect, name, seconds
        self._lost = lost
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._is_closed = False
        self.waiting = 0
        """Requests that are not done."""
        self._session = SessionThread(self)
        try:
            self._session.ready.result()
        except BaseException:
            self._requests.put(None)
            raise

    async def do(self, work: Callable[[Database], T]) -> T:
        """Have something done with the database, after all that was asked for before."""
        if self._is_closed:
            raise _ending()
        request = Request(work)
        request.loop = asyncio.get_running_loop()
        request.future = request.loop.create_future()
        self.waiting += 1
        self._requests.put(request)
        try:
            return await request.future  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self._drop(request)
            raise
        finally:
            self.waiting -= 1

    def tell(self, work: Callable[[Database], object]) -> None:
        """Have something done some time."""
        if not self._is_closed:
            self._requests.put(Request(work))

    def take(self) -> Request | None:
        """The next request, for a session's thread; None is the end."""
        return self._requests.get()

    def started(self, session: SessionThread, request: Request) -> None:
        """In the event loop: a request that waits for an answer runs now."""
        if self._seconds and request.loop and request.future and not request.future.done():
            late = self._seconds + GRACE_SECONDS
            request.timer = request.loop.call_later(late, self._give_up, session, request)

    def _drop(self, request: Request) -> None:
        """Nobody waits for it any more."""
        request.is_dropped = True
        session = self._session
        if session.cancel(request, "the client has gone away") and request.loop is not None:
            request.loop.call_later(GRACE_SECONDS, self._give_up, session, request)

    def _give_up(self, session: SessionThread, request: Request) -> None:
        """In the event loop. Once it is cancelled a request commits nothing, unless its commit had
        begun."""
        if session.request is not request or session is not self._session:
            return
        undone = session.cancel(request, "the request took too long")
        session.is_given_up = True
        if not self._is_closed:
            self._session = SessionThread(self)
        outcome = "" if undone else "; whether it was committed is not known"
        request.finish(
            None,
            _ending()
            if self._is_closed
            else LimitFault(
                f"the request took over {self._seconds:g} s and could not be stopped{outcome}",
                code="timeout",
                hint="it may call a function that hangs",
            ),
        )
        if self._lost is not None:
            self._lost()

    def new_session(self) -> Database:
        return self._connect()

    @property
    def name(self) -> str:
        return self._name

    def end(self) -> None:
        """In the event loop: refuse what comes, and stop what runs. Who waits for it is told."""
        if self._is_closed:
            return
        self._is_closed = True
        session, request = self._session, self._session.request
        session.cancel(None, ENDING)
        if request is not None and request.loop is not None:
            request.loop.call_later(ENDING_SECONDS, self._give_up, session, request)
        with suppress(queue.Empty):
            while (waiting := self._requests.get_nowait()) is not None:
                waiting.finish(None, _ending())
        self._requests.put(None)

    def wait(self, until: float) -> None:
        """Wait for the session to close its file, up to a time of the monotonic clock."""
        self._session.join(max(0.0, until - time.monotonic()))


class SessionThread(threading.Thread):
    """A database and the thread that uses it. It is a daemon: a call that never returns does not
    keep the process from ending."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(name=desk.name, daemon=True)
        self._desk = desk
        self._database: Database | None = None
        self.ready: Future[None] = Future()
        self._lock = threading.Lock()
        self.request: Request | None = None
        """What it is doing."""
        self.is_given_up = False
        self.start()

    def cancel(self, request: Request | None, reason: str) -> bool:
        """Stop a request, or whichever runs; False if it does not run, or is being committed."""
        with self._lock:
            if self.request is None or self._database is None:
                return False
            return request in (None, self.request) and self._database.cancel(reason)

    def run(self) -> None:
        try:
            self._database = self._desk.new_session()
            self.ready.set_result(None)
        except BaseException as error:  # the next request tries again
            self.ready.set_exception(error)
        while not self.is_given_up:
            request = self._desk.take()
            if request is None:
                break
            self._answer(request)
        with suppress(Exception):
            if self._database is not None:
                self._database.close()

    def _answer(self, request: Request) -> None:
        with self._lock:
            if request.is_dropped:
                return
            self.request = request
        loop = request.loop
        found: Any = None
        failure: BaseException | None = None
        if loop is not None:
            _call(loop, self._desk.started, self, request)
        try:
            found = self._do(request)
        except BaseException as error:
            failure = error
        with self._lock:
            self.request = None
        if loop is not None:
            _call(loop, request.finish, found, failure)

    def _do(self, request: Request) -> Any:
        if self._database is None:
            self._database = self._desk.new_session()
        database = self._database
        try:
            with database.one_statement():
                if request.is_dropped:  # between taking it and being able to cancel it
                    return None
                return request.work(database)
        finally:
            if database.in_transaction:  # what failed, or a text that did not commit
                with suppress(HarkenError):
                    database.rollback()


class Desks:
    """Several sessions that only read: a long answer does not keep the others waiting."""

    def __init__(
        self, connect: Callable[[], Database], name: str, seconds: float, most: int
    ) -> None:
        self._connect, self._name, self._seconds = connect, name, seconds
        self._most = most
        self._desks = [self._open()]

    def _open(self) -> Desk:
        return Desk(self._connect, self._name, self._seconds)

    async def do(self, work: Callable[[Database], T]) -> T:
        free = min(self._desks, key=lambda desk: desk.waiting)
        if free.waiting and len(self._desks) < self._most:
            free = await asyncio.to_thread(self._open)
            self._desks.append(free)
        return await free.do(work)

    def end(self) -> None:
        for desk in self._desks:
            desk.end()

    def wait(self, until: float) -> None:
        for desk in self._desks:
            desk.wait(until)


def _ending() -> LimitFault:
    return LimitFault(ENDING, code="cancelled", hint="try again when it is back")


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *given: Any) -> None:
    with suppress(RuntimeError):  # the loop has ended, and nobody waits
        loop.call_soon_threadsafe(function, *given)
