"""Requests under a key, as `db.keyed_requests`: a service carries each out once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from harken.api.internals import Internals
from harken.database.exclusive import SessionLock, exclusive
from harken.database.kept_answers import KeptAnswer, KeptAnswers, KeyedRequest


class KeyedRequests:
    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock
        runtime, connection = internals.runtime, internals.connection
        self._answers = KeptAnswers(
            connection.records,
            connection.now,
            lambda: int(runtime.settings["idempotency_keys"]),
        )

    @exclusive
    def once(
        self,
        request: KeyedRequest,
        work: Callable[[], KeptAnswer],
        *,
        together: bool = True,
    ) -> KeptAnswer:
        """The kept answer to a request, or that of `work`, which is kept. Both commit in one
        transaction; unless `together`, for work that has transactions of its own."""
        self._internals.check_open()
        transactions = self._internals.transactions
        with transactions.block() if together else nullcontext():
            self._internals.look()
            found = self._answers.find(request)
            if found is not None:
                return found
            done = work()
            with self._internals.alone():
                self._answers.keep(request, done.status, done.text)
            return done
