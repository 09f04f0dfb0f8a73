"""Views over the clock as due work: the clock is moved when the answer of a view changes next."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from harken.database.due_work import CLOCK_VIEWS
from harken.database.transactions import Transactions
from harken.propagation.network import Network


class DueClock:
    """Each run is a transaction without changes of data: rules act in it, views are brought up to
    date and monitors hear of it, as of any other."""

    name = CLOCK_VIEWS

    def __init__(self, network: Network, transactions: Transactions) -> None:
        self._network, self._transactions = network, transactions

    def next_due(self) -> datetime.datetime | None:
        return self._network.wakes.next_wake()

    def run(self, now: datetime.datetime) -> Iterator[datetime.datetime]:
        """Move the clock; yields the moment that it shows."""
        clock = self._network.clock
        with clock.passing() as complaints, self._transactions.block():
            clock.is_wanted = True
        yield clock.moment()
        for error in complaints:
            raise error
