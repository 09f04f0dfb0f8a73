"""One run of what is due in a session: `db.run_due()`, and each turn of a scheduler."""

from __future__ import annotations

from typing import Any

from harken.api.internals import Internals
from harken.database.due_work import CONTINUAL_QUERIES


def run_due(internals: Internals) -> list[Any]:
    """Do what is due; returns the executions of continual queries. All work is tried, then the
    first error is raised."""
    internals.look()
    internals.check_committed("what is due runs in transactions of its own")
    agenda = internals.runtime.due_work
    found = agenda.run(internals.connection.now, internals.look)
    if found.errors:
        raise found.errors[0]
    return found.done.get(CONTINUAL_QUERIES, [])
