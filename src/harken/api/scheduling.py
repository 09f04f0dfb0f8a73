"""The scheduler: a loop over `db.next_due()` and `db.run_due()`, in one process at a time.

A service and `harken pipeline run --watch` each have one. It sleeps until something is due, and
looks up when another session has committed, for that may have made something due earlier.

Law: nothing is done here that `db.run_due()` does not do; what was due while no process had the
role is due when one takes it.
"""

from __future__ import annotations

import datetime
import logging

from harken.api.database import Database
from harken.database.role_lease import Holder, RoleLease
from harken.errors import HarkenError

SCHEDULER = "scheduler"
FIRST_PAUSE = 1.0
"""Seconds until work that failed is tried again; each further failure doubles them."""
LONGEST_PAUSE = 60.0
LONGEST_SLEEP = 3_600.0
"""Seconds: a machine that was suspended, or whose clock was set, is noticed after at most so
long."""

logger = logging.getLogger("harken.scheduler")


class Scheduler:
    """The scheduler of one session, used by the thread that the session belongs to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        internals = database.internals
        self._lease_seconds = float(internals.runtime.settings["scheduler_lease"])
        self._lease = RoleLease(
            internals.connection, internals.transactions, SCHEDULER, self._lease_seconds
        )
        self._failures = 0
        self._paused_until: datetime.datetime | None = None
        self._version = -1
        self.has_role = False
        self.last_error: HarkenError | None = None

    def turn(self) -> float:
        """Do what is due, if this process has the role. Returns the seconds until the next turn,
        unless `noticed` says that something was committed meanwhile."""
        internals = self._database.internals
        internals.look()
        self._version = internals.connection.data_version()
        self._take_role()
        if not self.has_role:
            return self._lease_seconds / 2
        now = internals.connection.now()
        if self._paused_until is not None and now < self._paused_until:
            return self._seconds_to_sleep()
        self._run()
        self._version = internals.connection.data_version()
        return self._seconds_to_sleep()

    def noticed(self) -> bool:
        """Whether another session has committed since the last turn, so that something may be due
        earlier."""
        return bool(self._database.internals.connection.data_version() != self._version)

    def holder(self) -> Holder | None:
        """Which process has the role."""
        return self._lease.holder()

    def release(self) -> None:
        """Give the role to whoever asks next."""
        self.has_role = False
        self._lease.release()

    def _take_role(self) -> None:
        had, self.has_role = self.has_role, self._lease.hold()
        if self.has_role and not had:
            logger.info("this process does what is due from now on")
        elif had and not self.has_role:
            logger.warning("another process does what is due from now on")

    def _run(self) -> None:
        try:
            for done in self._database.run_due():
                members = {"query": done.query, "execution": done.execution}
                logger.info(
                    "executed %s: %s",
                    done.query,
                    done.outcome,
                    extra={"members": members | {"outcome": done.outcome}},
                )
        except HarkenError as error:
            self._note_failure(error)
        else:
            self._failures, self._paused_until, self.last_error = 0, None, None

    def _note_failure(self, error: HarkenError) -> None:
        """What failed stays due: it is tried again after a while."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        now = self._database.internals.connection.now()
        self._paused_until = now + datetime.timedelta(seconds=pause)
        if str(error) != str(self.last_error):
            logger.error("what was due failed, and is tried again: %s", error)
        self.last_error = error

    def _seconds_to_sleep(self) -> float:
        now = self._database.internals.connection.now()
        due = self._paused_until or self._database.next_due()
        wait = LONGEST_SLEEP if due is None else float((due - now).total_seconds())
        return max(0.0, min(wait, self._lease_seconds / 2))
