"""The audit log: who changed what in the configuration, and who signed in.

Law: an entry is there exactly if the change that it records was committed. Values of secrets and
passwords are never part of one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from harken.database.runtime import Runtime
from harken.engines.protocol import Field, RecordKind, Records

AUDIT = RecordKind(
    "harken_audit",
    (
        Field("number", "integer"),
        Field("at", "real"),
        Field("account", "text"),
        Field("action", "text"),
        Field("object", "text"),
        Field("detail", "text"),
    ),
    key=("number",),
    numbered=True,
)
LONGEST = 1_000
"""Characters of each text that are recorded."""


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    at: datetime.datetime
    account: str
    action: str
    object: str
    detail: str


class AuditLog:
    def __init__(
        self, records: Records, now: Callable[[], datetime.datetime], most: Callable[[], int]
    ) -> None:
        self._records = records
        self._now = now
        self._most = most

    def add(self, account: str, action: str, object: str = "", detail: str = "") -> None:
        """In a transaction."""
        self._records.make_room(AUDIT)
        texts = (text[:LONGEST] for text in (account, action, object, detail))
        self._records.add(AUDIT, (None, self._now().timestamp(), *texts))
        self._records.remove_oldest(AUDIT, self._most())

    def newest(self, limit: int = 100) -> list[Entry]:
        if not self._records.exist(AUDIT):
            return []
        rows = self._records.find(AUDIT)[-limit:]
        return [
            Entry(number, datetime.datetime.fromtimestamp(at, datetime.UTC), *texts)
            for number, at, *texts in reversed(rows)
        ]


def note_change(runtime: Runtime, action: str, object: str, detail: str = "") -> None:
    """In a transaction: record a change of the configuration, by whoever the session works for."""
    connection = runtime.engine.connection
    most = int(runtime.settings["audit_entries"])
    log = AuditLog(connection.records, connection.now, lambda: most)
    log.add(runtime.permissions.account or "", action, object, detail)
