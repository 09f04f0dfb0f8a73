"""The sources of a session, without the packages that reading them takes.

Every session has this; the work (Arrow, drivers) is loaded at the first use of a source.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.intake.source_records import SourceRecords
from harken.packages import needs

if TYPE_CHECKING:
    from harken.intake.source_work import SourceWork
    from harken.intake.taking_in import Taken

MOST_NEWS = 10_000


class SessionSources:
    def __init__(self, runtime: Runtime, transactions: Transactions) -> None:
        self._runtime, self._transactions = runtime, transactions
        self.records = SourceRecords(runtime.engine.connection.records)
        self.news: deque[Taken] = deque(maxlen=MOST_NEWS)
        """What readings that were due did, for whoever shows it."""

    @cached_property
    def work(self) -> SourceWork:
        with needs("sources"):
            from harken.intake.source_work import SourceWork

        return SourceWork(self._runtime, self._transactions)

    def close(self) -> None:
        if "work" in self.__dict__:
            self.work.close()
