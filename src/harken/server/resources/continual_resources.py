"""Continual queries over HTTP: installed, altered, paused, executed, looked at and dropped.

Each does what the method of `db.continual_queries` does, for whoever sent the request: a user sees
and changes only the user's own.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from harken.api.continual_handles import ContinualQuery, PastExecution, Preview
from harken.api.database import Database
from harken.api.notifications import Notification
from harken.api.sample_messages import Sample
from harken.console.continual_texts import document_of, text_of
from harken.console.rendering import sql_name
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_documents import document_of as clauses_of
from harken.database.json_values import json_value
from harken.database.objects import Object
from harken.errors import TypeFault
from harken.lang.sql.type_names import type_name
from harken.server.resources.described import (
    CHANGED_MEANWHILE,
    LONGEST_NAME,
    LONGEST_TEXT,
    NO_CONTENT,
    Body,
    IfMatch,
    IfNoneMatch,
    Key,
    Name,
    Number,
    PageOf,
    example,
    router,
)
from harken.server.resources.examples import (
    ANSWER,
    CONTINUAL_QUERY,
    DELIVERY,
    EXECUTION,
    PREVIEW,
    QUERY_PLAN,
    SAMPLES,
    page_with,
)
from harken.server.resources.resource_exchange import Exchange, Page
from harken.server.resources.shapes import (
    AnswerShape,
    CheckedShape,
    NumberShape,
    PreviewShape,
    QueryPlanShape,
    QueryShape,
    RunShape,
    SamplesShape,
)

PLACE = "/continual-queries"
MOST_ROWS = 10_000
"""Rows of an answer."""
LONGEST_CLAUSE = 100_000
MOST_RECIPIENTS = 1_000
Clause = Field(default=None, max_length=LONGEST_CLAUSE)


class ClauseBody(Body):
    """The clauses of a continual query, as they are written in SQL."""

    query: str | None = Field(default=None, max_length=LONGEST_TEXT)
    trigger: str | None = Clause
    stop: str | None = Clause
    deliver: str | None = Clause
    notify: list[str] | None = Field(default=None, max_length=MOST_RECIPIENTS)
    zone: str | None = Clause
    owner: str | None = Clause
    strategy: str | None = Clause
    deadline: str | None = Clause
    coupling: str | None = Clause
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31)

    def clauses(self) -> dict[str, Any]:
        """Those that were given."""
        names = [name for name in ClauseBody.model_fields if getattr(self, name) is not None]
        return {name: getattr(self, name) for name in names}


class Installation(ClauseBody):
    """Either a statement, or a query with its clauses."""

    statement: str | None = Field(
        default=None, max_length=LONGEST_TEXT, description="CREATE CONTINUAL QUERY ..."
    )
    name: str | None = Field(default=None, max_length=LONGEST_NAME)

    def read(self) -> tuple[str | None, str, dict[str, Any]]:
        """The name, the query, and the other clauses."""
        given = self.clauses()
        if self.statement is not None:
            if given or self.name is not None:
                raise _one_of()
            name, given = document_of(self.statement)
            return name or None, given.pop("query", ""), given
        if "query" not in given:
            raise _one_of()
        return self.name, given.pop("query"), given


def _one_of() -> TypeFault:
    return TypeFault(
        "a continual query is given as a statement, or as a query with clauses",
        code="bad-value",
        hint='as {"name": "low", "query": "SELECT ...", "trigger": "EVERY DAY"}',
    )


class Trial(Installation):
    send: bool = Field(default=False, description="Send the messages as samples.")


class Alteration(ClauseBody):
    name: str | None = Field(default=None, max_length=LONGEST_NAME, description="A new name.")


class Statement(Body):
    statement: str = Field(max_length=LONGEST_TEXT)


class Snooze(Body):
    until: datetime.datetime = Field(description="A time without a zone is one of the query's.")


def continual_resources(exchange: Exchange) -> APIRouter:
    routes = router("continual queries")
    _trying(routes, exchange)
    _reading(routes, exchange)
    _changing(routes, exchange)
    _acting(routes, exchange)
    return routes


def _reading(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        PLACE,
        response_model=PageOf[QueryShape],
        responses=example(page_with(CONTINUAL_QUERY)),
    )
    async def continual_queries(
        request: Request,
        page: Page,
        state: Literal["active", "paused", "stopped"] | None = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """The continual queries, by name; a user's own."""

        def work(db: Database) -> list[dict[str, Any]]:
            found = db.continual_queries.list()
            return [shown(db, each) for each in found if state in (None, str(each.state))]

        return await exchange.page(request, page, work, lambda each: each["name"])

    @routes.get(PLACE + "/{name}", response_model=QueryShape, responses=example(CONTINUAL_QUERY))
    async def continual_query(
        request: Request, name: Name, if_none_match: IfNoneMatch = None
    ) -> Response:
        """One continual query, by its name or id: its clauses, and how far it is."""
        return await exchange.show(request, lambda db: _one(db, name))

    @routes.get(PLACE + "/{name}/answer", response_model=AnswerShape, responses=example(ANSWER))
    async def answer(request: Request, name: Name, page: Page) -> Response:
        """The rows of its answer now, at most as many as a page has."""

        def work(db: Database) -> dict[str, Any]:
            text = db.continual_queries.get(name).status.clauses.query
            found = db.sql(text)[-1]
            rows = [[_value(each) for each in row] for row in found.rows[: page.limit]]
            return {
                "columns": list(found.columns),
                "types": [type_name(each) for each in found.types],
                "rows": rows,
                "count": len(found.rows),
                "position": db.position,
            }

        return await exchange.show(request, work)

    @routes.get(
        PLACE + "/{name}/plan",
        response_model=QueryPlanShape,
        responses=example(QUERY_PLAN),
    )
    async def query_plan(request: Request, name: Name) -> Response:
        """Its columns, what triggers it, and how its difference is found."""
        return await exchange.show(
            request, lambda db: _described(db.continual_queries.get(name).describe())
        )

    @routes.get(
        PLACE + "/{name}/executions",
        response_model=PageOf[PastExecution],
        responses=example(page_with(EXECUTION)),
    )
    async def executions(request: Request, name: Name, page: Page) -> Response:
        """Its recorded executions, newest first."""
        return await exchange.page(
            request,
            page,
            lambda db: db.continual_queries.get(name).history(),
            lambda each: each.execution,
            newest_first=True,
        )

    @routes.get(
        PLACE + "/{name}/deliveries",
        response_model=PageOf[Notification],
        responses=example(page_with(DELIVERY)),
    )
    async def deliveries(request: Request, name: Name, page: Page) -> Response:
        """The messages about it, newest first."""
        return await exchange.page(
            request,
            page,
            lambda db: db.continual_queries.get(name).deliveries(),
            lambda each: each.number,
            newest_first=True,
        )


def _changing(routes: APIRouter, exchange: Exchange) -> None:
    @routes.post(
        PLACE, status_code=201, response_model=QueryShape, responses=example(CONTINUAL_QUERY, 201)
    )
    async def install(request: Request, wanted: Installation, key: Key = None) -> Response:
        """Install a continual query, and execute it for the first time."""

        def work(db: Database) -> dict[str, Any]:
            name, query, clauses = wanted.read()
            return shown(db, db.continual_queries.install(name, query, clauses).status)

        return await exchange.change(request, work, status=201)

    @routes.patch(
        PLACE + "/{name}",
        response_model=QueryShape,
        responses={**example(CONTINUAL_QUERY), **CHANGED_MEANWHILE},
    )
    async def alter(
        request: Request, name: Name, wanted: Alteration, if_match: IfMatch = None
    ) -> Response:
        """Put clauses in place of those that it has, or give it another name."""

        def work(db: Database) -> dict[str, Any]:
            handle, clauses = db.continual_queries.get(name), wanted.clauses()
            query = clauses.pop("query", None)
            if query is not None or clauses:
                handle.alter(query, **clauses)
            if wanted.name is not None:
                known, new = sql_name(handle.name), sql_name(wanted.name)
                db.sql(f"ALTER CONTINUAL QUERY {known} RENAME TO {new}")
            return shown(db, handle.status)

        return await exchange.change(request, work, seen=lambda db: _one(db, name))

    @routes.delete(
        PLACE + "/{name}", status_code=204, responses={**NO_CONTENT, **CHANGED_MEANWHILE}
    )
    async def drop(request: Request, name: Name, if_match: IfMatch = None) -> Response:
        """Delete it, with its recorded executions."""
        return await exchange.change(
            request,
            lambda db: db.continual_queries.get(name).drop(),
            status=204,
            seen=lambda db: _one(db, name),
        )


def _acting(routes: APIRouter, exchange: Exchange) -> None:
    def action(verb: str, do: Callable[[ContinualQuery], Any], about: str) -> None:
        async def act(request: Request, name: Name, key: Key = None) -> Response:
            def work(db: Database) -> dict[str, Any]:
                handle = db.continual_queries.get(name)
                do(handle)
                return shown(db, handle.status)

            return await exchange.change(request, work)

        act.__doc__ = about
        routes.post(
            PLACE + "/{name}/" + verb,
            name=f"{verb}_query",
            response_model=QueryShape,
            responses=example(CONTINUAL_QUERY),
        )(act)

    action("pause", ContinualQuery.pause, "Do not execute it until it is resumed.")
    action("resume", ContinualQuery.resume, "End a pause or a snooze.")
    action("mute", ContinualQuery.mute, "Execute it, and send nothing.")
    action("unmute", ContinualQuery.unmute, "Send messages again.")

    @routes.post(
        PLACE + "/{name}/snooze",
        response_model=QueryShape,
        responses=example(CONTINUAL_QUERY),
    )
    async def snooze(request: Request, name: Name, wanted: Snooze, key: Key = None) -> Response:
        """Execute it once, at a moment, for all that happens until then."""

        def work(db: Database) -> dict[str, Any]:
            handle = db.continual_queries.get(name)
            handle.snooze(wanted.until)
            return shown(db, handle.status)

        return await exchange.change(request, work)

    @routes.post(
        PLACE + "/{name}/run",
        response_model=RunShape,
        responses=example({"execution": EXECUTION, "query": CONTINUAL_QUERY}),
    )
    async def run(request: Request, name: Name, key: Key = None) -> Response:
        """Execute it now; `execution` is null if it has stopped meanwhile."""

        def work(db: Database) -> dict[str, Any]:
            handle = db.continual_queries.get(name)
            done = handle.run()
            last = handle.history()[-1:] if done is not None else []
            return {"execution": last[0] if last else None, "query": shown(db, handle.status)}

        return await exchange.change(request, work, together=False)

    @routes.post(
        PLACE + "/{name}/deliveries/{number}/resend",
        status_code=202,
        response_model=NumberShape,
        responses=example({"number": 17}, 202),
    )
    async def resend_delivery(
        request: Request, name: Name, number: Number, key: Key = None
    ) -> Response:
        """Send one of its messages again, under its old id."""

        def work(db: Database) -> dict[str, Any]:
            db.continual_queries.get(name).resend(number)
            return {"number": number}

        return await exchange.change(request, work, status=202)


def _trying(routes: APIRouter, exchange: Exchange) -> None:
    @routes.post(
        "/continual-query-checks",
        response_model=CheckedShape,
        responses=example({"zone": "Europe/Oslo", "due": ["2026-03-02T07:00:00+00:00"]}),
    )
    async def check_statement(request: Request, wanted: Statement) -> Response:
        """Read a statement and compile its query, without executing it: the next times of a time
        trigger. An error has its place in the statement."""

        def work(db: Database) -> dict[str, Any]:
            found = db.continual_queries.check(wanted.statement)
            return {"zone": str(found.zone), "due": found.due}

        return await exchange.change(request, work, together=False)

    @routes.post(
        "/continual-query-previews", response_model=PreviewShape, responses=example(PREVIEW)
    )
    async def preview(request: Request, wanted: Statement) -> Response:
        """What a statement would install, and its first messages. Nothing is kept."""

        def work(db: Database) -> dict[str, Any]:
            return _previewed(db, db.continual_queries.preview(wanted.statement))

        return await exchange.change(request, work, together=False)

    @routes.post("/continual-query-tests", response_model=SamplesShape, responses=example(SAMPLES))
    async def test_query(request: Request, wanted: Trial, key: Key = None) -> Response:
        """The messages that a query would send when it is installed, which can be sent as
        samples. For operators."""

        def work(db: Database) -> dict[str, Any]:
            name, query, clauses = wanted.read()
            found = db.continual_queries.test(query, clauses, name=name, send=wanted.send)
            return {"samples": [_sample(each) for each in found], "sent": wanted.send}

        return await exchange.change(request, work, together=False)


# --- JSON ------------------------------------------------------------------------------


def shown(db: Database, query: InstalledQuery) -> dict[str, Any]:
    """A continual query as the API shows it."""
    zone = str(db.settings["time_zone"])
    return {
        "name": query.name,
        "id": query.id,
        "owner": query.owner,
        "state": query.state,
        "muted": query.muted,
        "snoozed": query.snoozed,
        "clauses": {
            name: each
            for name, each in clauses_of(query).items()
            if name not in ("paused", "muted", "owner")
        },
        "statement": text_of(query, zone),
        "reads": query.sources,
        "installed": query.installed,
        "executed": query.evaluated,
        "executions": query.executions,
        "rows": query.rows,
        "failures": query.failures,
        "problem": query.problem,
        "next": query.wakes_at(),
        "stops": query.stops_at,
    }


def _one(db: Database, name: str) -> dict[str, Any]:
    return shown(db, db.continual_queries.get(name).status)


def _described(found: Any) -> dict[str, Any]:
    return {
        "columns": [{"name": each.name, "type": type_name(each.type)} for each in found.columns],
        "key": found.key,
        "delivery": found.delivery,
        "plan": found.plan,
    }


def _previewed(db: Database, found: Preview) -> dict[str, Any]:
    return {
        "query": shown(db, found.query),
        **_described(found.description),
        "due": found.due,
        "samples": [_sample(each) for each in found.samples],
    }


def _sample(found: Sample) -> dict[str, Any]:
    return {
        "channel": found.channel,
        "address": found.address,
        "payload": found.payload,
        "subject": found.text.subject,
        "text": found.text.text,
    }


def _value(value: Any) -> Any:
    return repr(value) if isinstance(value, Object) else json_value(value)
