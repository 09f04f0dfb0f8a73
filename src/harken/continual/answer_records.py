"""What is kept of the answers of continual queries between two executions, in the file.

A query whose changes are followed keeps the sum of them since its last execution; one that is
recomputed keeps the answer of its last execution. Both are rows with weights, so nothing is kept
that has cancelled out, and a restart or another process loses nothing.

Law: for a followed query, its answer at the last execution plus the kept rows is its answer as of
the last commit; while it cannot be computed, its answer counts as empty.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from harken.engines.protocol import Connection, Field, RecordKind
from harken.values.rows import Row

KEPT = RecordKind(
    "harken_answers",
    (Field("query", "integer"), Field("row", "text"), Field("weight", "integer")),
    key=("query", "row"),
)
TROUBLES = RecordKind(
    "harken_answer_troubles",
    (Field("query", "integer"), Field("kind", "text"), Field("error", "text")),
    key=("query",),
)
FAILING, LOST = "failing", "lost"
"""An answer that cannot be computed at present, and one of which changes were missed."""


class AnswerRecords:
    def __init__(self, connection: Connection) -> None:
        self._records = connection.records

    def rows(self, query: int) -> Counter[Row]:
        """The kept rows with their weights."""
        if not self._records.exist(KEPT):
            return Counter()
        found = self._records.find(KEPT, {"query": query})
        return Counter({tuple(json.loads(row)): weight for _, row, weight in found})

    def is_empty(self, query: int) -> bool:
        return not self._records.exist(KEPT) or not self._records.find(
            KEPT, {"query": query}, limit=1
        )

    def count(self, query: int, most: int) -> int:
        """How many rows have come or gone; not all of them are counted if there are more than
        `most`."""
        if not self._records.exist(KEPT):
            return 0
        found = self._records.find(KEPT, {"query": query}, limit=most)
        return sum(abs(weight) for _, _, weight in found)

    def trouble(self, query: int) -> tuple[str, str] | None:
        """What kind of trouble there is with an answer, and the error."""
        if not self._records.exist(TROUBLES):
            return None
        found = self._records.find(TROUBLES, {"query": query})
        return (found[0][1], found[0][2]) if found else None

    # --- in a transaction ----------------------------------------------------------------------

    def add(self, query: int, weights: Mapping[Row, int]) -> None:
        """Add to what is kept: rows whose weights cancel out are forgotten."""
        self._records.make_room(KEPT)
        for row, weight in weights.items():
            if not weight:
                continue
            text = json.dumps(row, ensure_ascii=False)
            place = {"query": query, "row": text}
            changed = self._records.change(KEPT, place, add={"weight": weight})
            if not changed:
                self._records.add(KEPT, (query, text, weight))
            elif not changed[0][2]:
                self._records.remove(KEPT, place)

    def forget(self, query: int) -> None:
        if self._records.exist(KEPT):
            self._records.remove(KEPT, {"query": query})
        self.settle(query)

    def note_trouble(self, query: int, kind: str, error: str) -> None:
        self._records.make_room(TROUBLES)
        self._records.add(TROUBLES, (query, kind, error), replace=True)

    @property
    def has_troubles(self) -> bool:
        """Whether there may be trouble with any answer."""
        return self._records.exist(TROUBLES)

    def settle(self, query: int) -> None:
        """There is no trouble any more."""
        if self._records.exist(TROUBLES):
            self._records.remove(TROUBLES, {"query": query})
