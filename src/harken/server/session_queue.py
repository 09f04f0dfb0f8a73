"""Sessions in threads of their own, because a database must not be used by several threads at once.

A request that takes too long is cancelled, and its session goes on with the next one. A session
that cannot be stopped, because it is in a call that never returns, is abandoned: its client gets an
error, and a new session takes over. So one request never blocks the others for ever.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from harken.api.database import Database
from harken.errors import HarkenError, LimitFault

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""Extra time, after its limit, for a cancelled request to stop by itself."""
ENDING_SECONDS = 0.5
"""Time for a running request to stop when the service shuts down."""
ENDING = "the service is shutting down"


class Job:
    """A call that needs the database. `future` is None if nobody waits for the result."""

    def __init__(self, work: Callable[[Database], Any]) -> None:
        self.work = work
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.started: float | None = None
        """When the session began with it, by the monotonic clock."""
        self.is_dropped = False

    def finish(self, found: Any, error: BaseException | None) -> None:
        """Call in the event loop's thread."""
        if self.future is None or self.future.done():
            return
        if error is None:
            self.future.set_result(found)
        else:
            self.future.set_exception(error)


class SessionQueue:
    """Runs jobs one at a time in one session. `seconds` is the time limit of a job (0: none);
    `on_abandoned` is called in the event loop when a session had to be abandoned."""

    def __init__(
        self,
        connect: Callable[[], Database],
        name: str,
        seconds: float = 0.0,
        on_abandoned: Callable[[], None] | None = None,
    ) -> None:
        self._connect, self._name, self._seconds = connect, name, seconds
        self._on_abandoned = on_abandoned
        self._requests: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._finished: deque[tuple[Job, Any, BaseException | None]] = deque()
        self._is_woken = False
        self._is_closed = False
        self.waiting = 0
        """Jobs that are queued or running."""
        self._session = SessionThread(self)
        try:
            self._session.ready.result()
        except BaseException:
            self._requests.put(None)
            raise

    async def run(self, work: Callable[[Database], T]) -> T:
        """Run a call with the database, after all jobs queued before, and return its result."""
        if self._is_closed:
            raise _ending()
        job = Job(work)
        job.loop = asyncio.get_running_loop()
        job.future = job.loop.create_future()
        self.waiting += 1
        if self._seconds:
            job.timer = job.loop.call_later(self._longest, self._check_time, job)
        self._requests.put(job)
        try:
            return await job.future  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self._drop(job)
            raise
        finally:
            self.waiting -= 1
            if job.timer is not None:
                job.timer.cancel()

    def submit(self, work: Callable[[Database], object]) -> None:
        """Queue a call without waiting for its result."""
        if not self._is_closed:
            self._requests.put(Job(work))

    def next_job(self) -> Job | None:
        """The next job, called by the session's thread; None means stop."""
        return self._requests.get()

    @property
    def _longest(self) -> float:
        return self._seconds + GRACE_SECONDS

    def _check_time(self, job: Job) -> None:
        """Abandon the session if the job has run for too long; otherwise look again when it will
        have. So the session need not wake the event loop when it begins with a job."""
        if job.loop is None or job.future is None or job.future.done():
            return
        ran = 0.0 if job.started is None else time.monotonic() - job.started
        if ran < self._longest:
            job.timer = job.loop.call_later(self._longest - ran, self._check_time, job)
        else:
            self._abandon(self._session, job)

    def finish(self, job: Job, found: Any, failure: BaseException | None) -> None:
        """Hand a result to the event loop, called by the session's thread. The loop is woken once
        for all the results that it has not taken yet."""
        if job.loop is None:
            return
        self._finished.append((job, found, failure))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                job.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_woken = False  # first: whatever is finished from here on wakes the loop again
        while self._finished:
            job, found, failure = self._finished.popleft()
            job.finish(found, failure)

    def _drop(self, job: Job) -> None:
        """The client no longer waits for this job."""
        job.is_dropped = True
        session = self._session
        if session.cancel(job, "the client disconnected") and job.loop is not None:
            job.loop.call_later(GRACE_SECONDS, self._abandon, session, job)

    def _abandon(self, session: SessionThread, job: Job) -> None:
        """Replace a session that does not stop. Called in the event loop. After being cancelled a
        job commits nothing, unless its commit had already begun."""
        if session.job is not job or session is not self._session:
            return
        undone = session.cancel(job, "the request took too long")
        session.is_abandoned = True
        if not self._is_closed:
            self._session = SessionThread(self)
        outcome = "" if undone else "; whether it was committed is not known"
        job.finish(
            None,
            _ending()
            if self._is_closed
            else LimitFault(
                f"the request took over {self._seconds:g} s and could not be stopped{outcome}",
                code="timeout",
                hint="it may call a function that hangs",
            ),
        )
        if self._on_abandoned is not None:
            self._on_abandoned()

    def new_session(self) -> Database:
        return self._connect()

    @property
    def name(self) -> str:
        return self._name

    def end(self) -> None:
        """Reject new jobs and stop the running one; waiting clients get an error. Called in the
        event loop."""
        if self._is_closed:
            return
        self._is_closed = True
        session, job = self._session, self._session.job
        session.cancel(None, ENDING)
        if job is not None and job.loop is not None:
            job.loop.call_later(ENDING_SECONDS, self._abandon, session, job)
        with suppress(queue.Empty):
            while (waiting := self._requests.get_nowait()) is not None:
                waiting.finish(None, _ending())
        self._requests.put(None)

    def wait(self, until: float) -> None:
        """Wait until the session has closed its file, at most until this time of the monotonic
        clock."""
        self._session.join(max(0.0, until - time.monotonic()))


class SessionThread(threading.Thread):
    """A database and the thread that uses it. It is a daemon thread, so a call that never returns
    does not keep the process alive."""

    def __init__(self, queue: SessionQueue) -> None:
        super().__init__(name=queue.name, daemon=True)
        self._queue = queue
        self._database: Database | None = None
        self.ready: Future[None] = Future()
        self._lock = threading.Lock()
        self.job: Job | None = None
        """The job that is running."""
        self.is_abandoned = False
        self.start()

    def cancel(self, job: Job | None, reason: str) -> bool:
        """Stop this job, or with None whichever is running. False if it is not running, or is
        already committing."""
        with self._lock:
            if self.job is None or self._database is None:
                return False
            return job in (None, self.job) and self._database.cancel(reason)

    def run(self) -> None:
        try:
            self._database = self._queue.new_session()
            self.ready.set_result(None)
        except BaseException as error:  # the next job tries again
            self.ready.set_exception(error)
        while not self.is_abandoned:
            job = self._queue.next_job()
            if job is None:
                break
            self._answer(job)
        with suppress(Exception):
            if self._database is not None:
                self._database.close()

    def _answer(self, job: Job) -> None:
        with self._lock:
            if job.is_dropped:
                return
            self.job = job
        found: Any = None
        failure: BaseException | None = None
        job.started = time.monotonic()
        try:
            found = self._run(job)
        except BaseException as error:
            failure = error
        with self._lock:
            self.job = None
        self._queue.finish(job, found, failure)

    def _run(self, job: Job) -> Any:
        if self._database is None:
            self._database = self._queue.new_session()
        database = self._database
        try:
            with database.one_statement():
                if job.is_dropped:  # dropped before it could be cancelled
                    return None
                return job.work(database)
        finally:
            if database.in_transaction:  # after an error, or a text that did not commit
                with suppress(HarkenError):
                    database.rollback()


class SessionPool:
    """Several read-only sessions, so that a slow query does not block the others."""

    def __init__(
        self, connect: Callable[[], Database], name: str, seconds: float, most: int
    ) -> None:
        self._connect, self._name, self._seconds = connect, name, seconds
        self._most = most
        self._queues: list[SessionQueue] = []

    def _open(self) -> SessionQueue:
        return SessionQueue(self._connect, self._name, self._seconds)

    async def run(self, work: Callable[[Database], T]) -> T:
        free = min(self._queues, key=lambda queue: queue.waiting, default=None)
        if free is None or (free.waiting and len(self._queues) < self._most):
            free = await asyncio.to_thread(self._open)
            self._queues.append(free)
        return await free.run(work)

    def end(self) -> None:
        for each in self._queues:
            each.end()

    def wait(self, until: float) -> None:
        for each in self._queues:
            each.wait(until)


def _ending() -> LimitFault:
    return LimitFault(ENDING, code="cancelled", hint="try again when it is back")
