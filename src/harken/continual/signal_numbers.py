"""The signals that applications raise: each name has the number of its last one.

Law: the number of a signal grows by one each time that it is raised, with the transaction.
"""

from __future__ import annotations

from harken.continual.trigger_conditions import SIGNALS
from harken.engines.protocol import Engine
from harken.errors import StorageError

MOST_SIGNALS = 1_000
"""How many names of signals a file has."""


def count_signal(engine: Engine, name: str) -> None:
    """In a transaction. Without a query that waits for any, nothing is kept."""
    if not engine.exists(SIGNALS):
        return
    name = name.lower()
    known = engine.results(SIGNALS, (name,))
    if not known and engine.count(SIGNALS) >= MOST_SIGNALS:
        raise StorageError(
            f"{MOST_SIGNALS:,} different signals have been raised already",
            code="too-many",
            hint="what varies belongs in a table, and not in the name of a signal",
        )
    engine.set_row(SIGNALS, (name, int(known[0][0]) + 1 if known else 1))
