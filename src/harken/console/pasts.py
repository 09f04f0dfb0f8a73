"""The past of a relation on its page: kept changes, and its rows at any position that is kept."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from markupsafe import Markup

from harken.api.database import Database
from harken.console.bar_charts import bars
from harken.console.rendering import is_number, segment
from harken.database.changes import Change
from harken.server.service import Service

MOST_CHANGES = 200
MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Past:
    is_kept: bool
    floor: int
    position: int
    changes: Sequence[Change]
    """Newest first."""
    picture: Markup | str
    columns: Sequence[str] = ()
    numbers: Sequence[bool] = ()
    at: int | None = None
    """The position that was asked for, and its rows."""
    rows: Sequence[Sequence[Any]] = ()
    count: int = 0


def past_of(db: Database, name: str, at: int | None) -> Past:
    found = db.history(name)
    kept = list(found.changes)[-MOST_CHANGES:]
    sizes = [len(each) for each in kept]
    labels = [f"position {each.position}" for each in kept]
    rows = [] if at is None else sorted(found.rows_at(at), key=repr)
    return Past(
        found.is_kept,
        found.floor,
        found.position,
        kept[::-1],
        bars(f"rows changed in {name}", sizes, labels) if kept else "",
        [each.name for each in found.columns],
        [is_number(each) for each in found.columns],
        at,
        rows[:MOST_ROWS],
        len(rows),
    )


def a_day_before(now: datetime.datetime) -> datetime.datetime:
    return now - datetime.timedelta(days=1)


def past_routes(service: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.post("/keep/{name:path}")
    async def keep(name: str) -> Response:
        """Keep the changes of a relation from now on, as long as those of one that is followed."""
        await service.keep(name)
        return JSONResponse(
            {
                "next": f"/data/{segment(name)}?tab=changes",
                "told": f"The changes of {name} are kept from now on.",
            },
            headers={"cache-control": "no-store"},
        )

    return routes
