"""SHOW and EXPLAIN of continual queries, as rows."""

from __future__ import annotations

import datetime
from typing import Any

from harken.continual.continual_queries import ContinualQueries
from harken.continual.couplings import PAIRS
from harken.continual.installed_queries import InstalledQuery, type_of
from harken.database.runtime import Runtime
from harken.values.types import INTEGER, TEXT, TIMESTAMP

_TIME = TIMESTAMP.or_null(True)
_COLUMNS = (
    ("name", TEXT),
    ("id", TEXT),
    ("owner", TEXT),
    ("type", TEXT),
    ("state", TEXT),
    ("trigger", TEXT),
    ("stop", TEXT),
    ("executions", INTEGER),
    ("evaluated", _TIME),
    ("next", _TIME),
    ("problem", TEXT),
)


def show_queries(runtime: Runtime, continual: ContinualQueries) -> None:
    rows = [
        (
            each.name,
            each.id,
            each.owner,
            type_of(each.clauses.trigger),
            state_of(each),
            str(each.clauses.trigger),
            str(each.clauses.stop),
            each.executions,
            each.evaluated,
            each.wakes_at(),
            each.problem,
        )
        for each in continual.queries.all()
        if continual.permissions.sees(each)
    ]
    names, types = zip(*_COLUMNS, strict=True)
    runtime.emit("rows", names, rows, types)


def state_of(query: InstalledQuery) -> str:
    """Its state with what else people want to know."""
    said = [str(query.state)]
    if query.failures:
        said.append("failing")
    if query.snoozed is not None:
        said.append(f"snoozed until {_shown(query.snoozed)}")
    if query.muted:
        said.append("muted")
    return ", ".join(said)


def show_query(runtime: Runtime, continual: ContinualQueries, query: InstalledQuery) -> None:
    texts = query.clauses.texts()
    found: dict[str, Any] = {
        "name": query.name,
        "id": query.id,
        "owner": query.owner,
        "type": type_of(query.clauses.trigger),
        "state": state_of(query),
        "sources": ", ".join(query.sources),
        "query": query.clauses.query,
        **{name.lower(): text for name, text in texts.items() if name != "ZONE"},
        "deliver": str(continual.delivery_of(query)),
        "zone": query.zone_name,
        "installed": _shown(query.installed),
        "evaluated": _shown(query.evaluated),
        "next": _shown(query.wakes_at()),
        "stops": _shown(query.stops_at),
        "executions": str(query.executions),
        "rows": str(query.rows),
        "problem": query.problem,
    }
    rows = [(name, text) for name, text in found.items() if text]
    runtime.emit("rows", ("property", "value"), rows, (TEXT, TEXT))


def explain_query(runtime: Runtime, continual: ContinualQueries, query: InstalledQuery) -> None:
    """How a query is executed: what triggers it, how its difference is found, who is told."""
    lines = [
        f"{query.name} ({query.id}) reads {', '.join(query.sources) or 'no table'}",
        *continual.explained(query),
    ]
    for first, second in PAIRS:
        lines.append(
            f"coupling ({first})-({second}): {query.clauses.coupling.between(first, second)}"
        )
    lines.append(f"delivers {continual.delivery_of(query)}")
    runtime.emit("rows", ("plan",), [(line,) for line in lines], (TEXT,))


def _shown(at: datetime.datetime | None) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S %Z")
