"""The scheduler of a service: a thread with a session of its own, so that what is due delays no
request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from harken.api.database import Database
from harken.api.scheduling import Scheduler
from harken.errors import HarkenError

LOOK_SECONDS = 0.1
"""How often it is noticed that another session has committed."""
RETRY_SECONDS = 5.0
"""After an error that is nobody's in particular, such as a file that cannot be read."""

logger = logging.getLogger("harken.scheduler")


class SchedulerThread(threading.Thread):
    """A daemon thread: a call that never returns does not keep the process alive."""

    def __init__(self, connect: Callable[[], Database]) -> None:
        super().__init__(name="scheduler", daemon=True)
        self._connect = connect
        self._stopped = threading.Event()
        self._database: Database | None = None

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except HarkenError as error:
                if not self._stopped.is_set():
                    logger.error("the scheduler starts over: %s", error)
            except Exception:
                logger.exception("the scheduler starts over")
            self._stopped.wait(RETRY_SECONDS)

    def _work(self) -> None:
        """Until it is told to stop."""
        with self._connect() as database:
            self._database = database
            scheduler = Scheduler(database)
            try:
                while not self._stopped.is_set():
                    self._sleep(scheduler, scheduler.turn())
            finally:
                self._database = None
                with suppress(HarkenError):
                    scheduler.release()

    def _sleep(self, scheduler: Scheduler, seconds: float) -> None:
        """Until something is due, or something was committed, or the end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not scheduler.noticed():
            if self._stopped.wait(min(left, LOOK_SECONDS)):
                return

    def stop(self) -> None:
        """From any thread: end soon. A statement that is running is cancelled and rolled back; what
        it was about is due again."""
        self._stopped.set()
        database = self._database
        if database is not None:
            database.cancel("the service is shutting down")
