"""What dropped sources have left in their servers, until it is removed there.

A drop is committed here first. If the server cannot be reached then, its part is removed later.

Law: what was installed in a server is known here until it is gone there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict

from harken.database.transactions import Transactions
from harken.engines.protocol import Records
from harken.errors import HarkenError
from harken.intake.followed_servers import server_key
from harken.intake.log_intake import LogIntake
from harken.intake.source_records import (
    LEFTOVERS,
    Progress,
    SourceRecord,
    read_definition,
    read_layout,
)


class SourceLeftovers:
    def __init__(self, records: Records, transactions: Transactions, log: LogIntake) -> None:
        self._records, self._transactions, self._log = records, transactions, log

    # --- in a transaction ---

    def add(self, record: SourceRecord) -> None:
        self._records.make_room(LEFTOVERS)
        row = (
            *_key(record),
            json.dumps(asdict(record.definition), ensure_ascii=False),
            json.dumps(asdict(record.layout), ensure_ascii=False),
        )
        self._records.add(LEFTOVERS, row, replace=True)

    def adopt(self, record: SourceRecord) -> None:
        """A new source uses what an old one has left."""
        if self._records.exist(LEFTOVERS):
            server, table = _key(record)
            self._records.remove(LEFTOVERS, {"server": server, "table_there": table})

    # --- outside of transactions ---

    def remove(self) -> None:
        """Remove from the servers what can be removed now."""
        for record in self._all():
            with suppress(HarkenError):
                self._log.stop(record)
                with self._transactions.block():
                    self.adopt(record)

    def _all(self) -> list[SourceRecord]:
        if not self._records.exist(LEFTOVERS):
            return []
        return [
            SourceRecord(read_definition(definition), read_layout(layout), Progress())
            for _, _, definition, layout in self._records.find(LEFTOVERS)
        ]

    @property
    def are_there(self) -> bool:
        return self._records.exist(LEFTOVERS) and bool(self._records.find(LEFTOVERS, limit=1))


def _key(record: SourceRecord) -> tuple[str, str]:
    return server_key(record), record.layout.table
