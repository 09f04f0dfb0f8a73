"""Ad-hoc queries over HTTP, with limits of rows and time, which can be cancelled.

A text runs in a session that cannot write, for whoever sent it. What changes rows goes to `/sql` or
`/transactions`.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from harken.api.database import Database
from harken.database.json_values import json_value, parameters_from_json
from harken.database.language_names import SQL
from harken.database.objects import Object
from harken.database.results import Result, to_json
from harken.errors import ValueFault
from harken.server.identities import current
from harken.server.request_ids import id_for
from harken.server.resources.described import (
    LONGEST_TEXT,
    NO_CONTENT,
    Body,
    Name,
    PageOf,
    example,
    router,
)
from harken.server.resources.examples import QUERY_RESULTS, RUNNING_QUERY, page_with
from harken.server.resources.resource_exchange import JSON, Exchange, Page, page_of, plain
from harken.server.resources.shapes import QueryResultsShape, RunningQueryShape
from harken.server.running_queries import RunningQueries, RunningQuery

PLACE = "/queries"
FIRST_ROWS, MOST_ROWS = 1_000, 100_000
LONGEST_ID = 64


class AdHocQuery(Body):
    text: str = Field(max_length=LONGEST_TEXT)
    language: Literal["sql", "amosql", "datalog"] = "sql"
    values: list[Any] | dict[str, Any] | None = Field(
        default=None, description="The parameters of SQL, as in `/sql`."
    )
    rows: int = Field(
        default=FIRST_ROWS, ge=0, le=MOST_ROWS, description="Rows of each result, at most."
    )
    seconds: float = Field(
        default=0.0, ge=0, le=86_400, description="How long it may run; 0 leaves it to the service."
    )
    id: str | None = Field(
        default=None,
        max_length=LONGEST_ID,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="By which it can be cancelled while it runs.",
    )


def query_resources(exchange: Exchange) -> APIRouter:
    from harken.server.exact_routes import ExactRoute

    routes, running = router("queries", ExactRoute), RunningQueries()

    @routes.get(
        PLACE,
        response_model=PageOf[RunningQueryShape],
        responses=example(page_with(RUNNING_QUERY)),
    )
    async def running_queries(request: Request, page: Page) -> Response:
        """The queries that are running: the sender's own, all for operators."""
        found = [_running(each) for each in running.visible_to(current.get())]
        listed = page_of(found, page, lambda each: each["id"])
        headers = {"cache-control": "no-store"}
        return Response(to_json(plain(listed)), 200, headers, JSON)

    @routes.post(PLACE, response_model=QueryResultsShape, responses=example(QUERY_RESULTS))
    async def run_query(request: Request, wanted: AdHocQuery) -> Response:
        """Run a text that only reads, in any of the languages, and answer with its results."""
        if wanted.values is not None and wanted.language != SQL:
            raise ValueFault(
                "parameters are for SQL", code="bad-value", hint="write the values in the text"
            )
        id, began = id_for(wanted.id), time.perf_counter()
        answer = await running.run(
            id,
            current.get(),
            wanted.language,
            wanted.text,
            wanted.seconds,
            lambda: exchange.service.query(lambda db: _results(db, wanted)),
        )
        answer |= {"id": id, "seconds": round(time.perf_counter() - began, 6)}
        return Response(to_json(answer), 200, {"cache-control": "no-store"}, JSON)

    @routes.delete(PLACE + "/{id}", status_code=204, responses=NO_CONTENT)
    async def cancel_query(request: Request, id: Name) -> Response:
        """Cancel a query that is running."""
        running.cancel(id, current.get())
        return Response(status_code=204)

    return routes


def _running(query: RunningQuery) -> dict[str, Any]:
    return {
        "id": query.id,
        "user": query.user,
        "language": query.language,
        "text": query.text,
        "started": query.started,
        "seconds": round(time.monotonic() - query.began, 3),
    }


def _results(db: Database, wanted: AdHocQuery) -> dict[str, Any]:
    found: list[Result] = []
    if wanted.language == SQL:
        found += db.sql(wanted.text, parameters_from_json(wanted.values))
    else:
        db.run_program(wanted.language, wanted.text, found.append)
    return {
        "results": [_result_json(each, wanted.rows) for each in found],
        "position": db.position,
    }


def _result_json(found: Result, most: int) -> dict[str, Any]:
    if found.kind != "rows":
        return {"kind": found.kind, "values": found.lines()[:most]}
    return {
        "kind": "rows",
        "columns": list(found.columns),
        "types": [each.name for each in found.types],
        "rows": [[_value(found, each) for each in row] for row in found.rows[:most]],
        "count": len(found.rows),
    }


def _value(found: Result, value: Any) -> Any:
    return found.named(value) if isinstance(value, Object) else json_value(value)
