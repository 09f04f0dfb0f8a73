"""Sources as due work: each is read when its time comes.

Readings run at the same time in threads and touch nothing of the session; what they found is taken
in one by one, each in a transaction of its own, as soon as it is there.

Law: no source waits for another one's reading.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from harken.database.due_work import SOURCES
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError
from harken.intake.session_sources import SessionSources
from harken.intake.source_records import read_moment, stored_moment

if TYPE_CHECKING:
    from harken.intake.open_sources import Reading
    from harken.intake.taking_in import Taken


class DueSources:
    name = SOURCES

    def __init__(
        self, runtime: Runtime, transactions: Transactions, sources: SessionSources
    ) -> None:
        self._runtime, self._transactions, self._sources = runtime, transactions, sources

    def next_due(self) -> datetime.datetime | None:
        if self._runtime.engine.connection.read_only:
            return None
        due = self._sources.records.next_due()
        return None if due is None else read_moment(due)

    def run(self, now: datetime.datetime) -> list[Taken]:
        due = self._sources.records.due(stored_moment(now))
        return list(self.poll([each.name for each in due]))

    def poll(self, names: list[str]) -> Iterator[Taken]:
        """Read these sources and take in what they have."""
        workers = min(len(names), self._runtime.settings["source_workers"])
        if not workers:
            return
        with ThreadPoolExecutor(workers, "harken-source") as pool:
            running: dict[Future[Reading], str] = {}
            for name in names:
                try:
                    read = self._sources.work.reader(name)
                except HarkenError as error:
                    yield from self._failed(name, error)
                    continue
                running[pool.submit(read)] = name
            for done in as_completed(running):
                name = running[done]
                try:
                    reading = done.result()
                    with self._transactions.block():
                        taken = self._sources.work.take(name, reading)
                    yield taken
                except HarkenError as error:
                    yield from self._failed(name, error)

    def _failed(self, name: str, error: HarkenError) -> Iterator[Taken]:
        with self._transactions.block():
            taken = self._sources.work.note_failure(name, error)
        if taken is not None:
            yield taken
