"""The sources of a restored database, which may run beside the one that it is a copy of.

What is installed in servers is named after the database. So a copy gets another name, installs its
own, and begins again with all rows and their difference from its mirrors; what the original has
installed is left to it.

Law: a copy takes no change away from the original, and misses none itself.
"""

from __future__ import annotations

import random
from dataclasses import replace

from harken.database.runtime import Runtime
from harken.intake.source_records import IDENTITY, LEFTOVERS, SourceRecords


def separate(runtime: Runtime) -> int:
    """In a transaction. Returns how many sources begin again."""
    connection, numbers = runtime.engine.connection, runtime.engine.numbers
    if numbers.get(IDENTITY) is None:
        return 0
    numbers.set(IDENTITY, new_identity())
    if connection.records.exist(LEFTOVERS):
        connection.records.remove(LEFTOVERS, {})
    records = SourceRecords(connection.records)
    followed = [each for each in records.all() if each.layout.followed]
    for each in followed:
        records.write(replace(each, position=None, revision=each.revision + 1))
    return len(followed)


def new_identity() -> int:
    return random.SystemRandom().getrandbits(48)
