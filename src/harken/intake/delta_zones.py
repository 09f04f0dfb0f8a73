"""The active delta zone of each source: the changes that are kept for consumers who have not seen
them (the thesis, section 5.5.3).

Its far end is the oldest consumer that still needs it, and at most `retain` ago: a consumer that
stopped longer ago loses its claim, and gets the complete answer when it comes back.

Law: after `collect`, no claim of a consumer that has stopped is older than the least `retain` of
the sources that it reads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from harken.database.delta_claims import DeltaClaim
from harken.database.dependency_order import dependents_in_order
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import counted
from harken.intake.source_options import retained
from harken.intake.source_records import SourceRecord, SourceRecords

COLLECT_EVERY = 60.0
"""Seconds between two collections."""
logger = logging.getLogger("harken.sources")


@dataclass(frozen=True, slots=True)
class DeltaZone:
    """What is kept of one source's past, and for whom."""

    claims: tuple[DeltaClaim, ...]
    retain: float
    """Seconds."""

    @property
    def since(self) -> float | None:
        return min((each.since for each in self.claims), default=None)

    @property
    def changes(self) -> int:
        return sum(each.changes for each in self.claims)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.claims)


class DeltaZones:
    def __init__(
        self, runtime: Runtime, transactions: Transactions, records: SourceRecords
    ) -> None:
        self._runtime, self._transactions, self._records = runtime, transactions, records
        self._collected = float("-inf")

    def of(self, record: SourceRecord) -> DeltaZone:
        found = sorted(self._claims(record), key=lambda each: each.since)
        return DeltaZone(tuple(found), retained(record.definition.options))

    def _claims(self, record: SourceRecord) -> Iterator[DeltaClaim]:
        catalog = self._runtime.catalog
        views = {record.name, *(e.name for e in dependents_in_order(catalog, record.name))}
        for claims in self._runtime.delta_claims:
            yield from claims(views)

    def collect(self, *, now: float | None = None) -> list[str]:
        """End the claims that are too old; whose they were. Outside of transactions, and not more
        often than once a minute."""
        moment = self._runtime.engine.connection.now().timestamp() if now is None else now
        if self._transactions.active or moment - self._collected < COLLECT_EVERY:
            return []
        self._collected = moment
        found = []
        for record in self._records.all():
            if record.definition.alone:
                continue
            zone = self.of(record)
            old = [e for e in zone.claims if not e.is_active and e.since < moment - zone.retain]
            if old:
                with self._ending():
                    for each in old:
                        each.give_up(moment - zone.retain)
                        _tell(each, record.name)
                        found.append(each.holder)
        return found

    def _ending(self) -> AbstractContextManager[None]:
        return self._transactions.block()


def _tell(claim: DeltaClaim, source: str) -> None:
    logger.warning(
        "%s has not been seen for longer than the source %s retains changes: %s %s forgotten, and "
        "it gets the complete answer instead",
        claim.holder,
        source,
        counted(claim.changes, "change"),
        "was" if claim.changes == 1 else "were",
    )
