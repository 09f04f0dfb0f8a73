"""The rows of the last readings of this session, so that the next ones need not read the mirrors.

Law: rows are given only for the token that the record of the source has, and each reading that is
taken in has a token of its own. So nothing is given after a rollback, or after another session.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict

import pyarrow as pa

MOST_BYTES = 256_000_000
"""Of all readings that are kept."""


class LastReadings:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, pa.Table]] = OrderedDict()

    def find(self, name: str, token: str) -> pa.Table | None:
        kept = self._kept.get(name)
        return kept[1] if kept is not None and token and kept[0] == token else None

    def keep(self, name: str, rows: pa.Table) -> str:
        """The token of a new reading."""
        token = uuid.uuid4().hex
        self._kept.pop(name, None)
        self._kept[name] = token, rows
        while sum(rows.nbytes for _, rows in self._kept.values()) > MOST_BYTES:
            self._kept.popitem(last=False)
        return token
