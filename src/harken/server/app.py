"""The routes of the service."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from harken.console.routes import console_routes, first_page
from harken.database.results import to_json
from harken.errors import HarkenError, ValueFault, nearest
from harken.server import models, writes
from harken.server.access import TOKEN_PARAMETER, origins
from harken.server.described_api import DescribedApi, documentation_routes
from harken.server.direct_path import DirectPath
from harken.server.disconnects import CancelOnDisconnect
from harken.server.exact_routes import ExactRoute
from harken.server.feeds import Feed
from harken.server.guard import Guard, SecurityHeaders
from harken.server.health import Happenings, health_routes
from harken.server.identities import Identities
from harken.server.problems import (
    PROBLEMS,
    answer_bug,
    answer_harken_error,
    answer_http_error,
    answer_wrong_request,
    bug_answer,
    problem_answer,
)
from harken.server.request_log import RequestLog
from harken.server.resources.all_resources import resource_routes
from harken.server.resources.described import Key, example
from harken.server.resources.examples import CHANGES, OUTBOXES, RESULTS, SNAPSHOT, VIEWS
from harken.server.result_pages import result_routes
from harken.server.server_sent_events import API, MAX_INTERVAL, StreamOptions
from harken.server.service import Service
from harken.server.stream_entries import enter_stream, start_position
from harken.server.traces import tracer_of_environment
from harken.server.unsubscribe_pages import unsubscribe_routes
from harken.server.values import change_json
from harken.server.web_sockets import answer_wrong_handshakes, socket_routes

CORS_HEADERS = (
    *("authorization", "content-type", "last-event-id"),
    *("if-match", "if-none-match", "idempotency-key", "x-request-id"),
)
"""The headers that a page of another address on this machine may send."""
Where = Annotated[str | None, Query(description="A condition on the columns, in SQL.")]
Since = Annotated[
    int, Query(ge=0, description="The position of the last change that you have seen.")
]
GoOn = Annotated[int | None, Query(ge=0, description="The position to resume from.")]
LastEvent = Annotated[str | None, Header(description="Sent by a browser when it reconnects.")]
Every = Annotated[
    float,
    Query(ge=0, le=MAX_INTERVAL, description="Send at most one change per this many seconds."),
]
Counts = Annotated[bool, Query(description="Send only the numbers of rows, with a link to them.")]


def make_service(service: Service, token: str | None = None, *, local: bool = True) -> ASGIApp:
    """All that is served: the API, and in front of it the direct path for small transactions.
    `local` says that only this machine can connect."""
    identities = identities_of(service, token, local)
    app = SecurityHeaders(make_app(service, token, identities))
    guard = Guard(app, identities, service.settings, problem_answer)
    direct = DirectPath(app, service, guard, problem_answer, bug_answer)
    return RequestLog(direct, tracer_of_environment())


def identities_of(service: Service, token: str | None, local: bool = True) -> Identities:
    guests = bool(service.settings["guests"])
    return Identities(service.read_unchecked, token, guests=guests, local=local)


def make_app(
    service: Service, token: str | None = None, identities: Identities | None = None
) -> FastAPI:
    identities = identities or identities_of(service, token)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.close()

    app = DescribedApi(
        title="Harken",
        version="1",
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.counts = Happenings()
    # The middleware added last runs first: a page on this machine may read why it was refused.
    app.add_middleware(CancelOnDisconnect)
    app.add_middleware(
        Guard, identities=identities, settings=service.settings, answer=problem_answer
    )
    app.add_middleware(
        CORSMiddleware,
        allow_origin_regex=origins(token),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=[*CORS_HEADERS],
        expose_headers=["etag", "x-request-id"],
    )
    app.add_exception_handler(HarkenError, answer_harken_error)
    app.add_exception_handler(RequestValidationError, answer_wrong_request)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(Exception, answer_bug)
    checks = [Depends(_known_parameters)]
    app.include_router(_read_routes(service), prefix=API, dependencies=checks)
    app.include_router(_write_routes(service), prefix=API, dependencies=checks)
    for each in resource_routes(service, identities):
        app.include_router(each, prefix=API, dependencies=checks)
    app.include_router(socket_routes(service), prefix=API)
    answer_wrong_handshakes(app)
    app.include_router(documentation_routes())

    app.include_router(console_routes(service, identities))
    app.include_router(health_routes(service, app.state.counts))
    app.include_router(unsubscribe_routes(service))
    app.include_router(result_routes(service))

    @app.get("/", include_in_schema=False)
    async def page(view: str | None = None) -> Response:
        """The console; with a view in the address, the small page that follows it."""
        if view is None:
            return await first_page(service)
        text = files("harken.server").joinpath("page.html").read_text("utf-8")
        return HTMLResponse(text, headers={"content-security-policy": page_policy(text)})

    return app


def page_policy(page: str) -> str:
    """The page may run its own script and call this service, and nothing else."""
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _read_routes(service: Service) -> APIRouter:
    routes = APIRouter(responses=PROBLEMS, tags=["views and changes"])

    @routes.get("/views", response_model=models.Views, responses=example(VIEWS))
    async def views() -> Response:
        """All views and tables that can be followed."""
        return _json(await service.views())

    @routes.get("/outboxes", response_model=models.Outboxes, responses=example(OUTBOXES))
    async def outboxes() -> Response:
        """How full the outboxes of durable monitors are, and whether one needs attention."""
        return _json(await service.outboxes())

    @routes.get("/views/{view}", response_model=models.Snapshot, responses=example(SNAPSHOT))
    async def snapshot(view: str, where: Where = None) -> Response:
        """All rows of a view, and the position they belong to."""
        return _json(await service.snapshot(view, where))

    @routes.get("/views/{view}/changes", response_model=models.Changes, responses=example(CHANGES))
    async def changes(
        view: str,
        since: Since,
        where: Where = None,
        net: Annotated[bool, Query(description="Merge them into at most one change.")] = False,
    ) -> Response:
        """The changes after a position. If they are no longer kept, or never were, the answer is
        one fresh change with all rows."""
        found, columns, position = await service.changes(view, where, since, net)
        listed = ",".join(map(change_json, found))
        text = f'{{"columns":{to_json(columns)},"changes":[{listed}],"position":{position}}}'
        return _json(text)

    @routes.get(
        "/views/{view}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
    )
    async def events(
        view: str,
        where: Where = None,
        since: GoOn = None,
        every: Every = 0.0,
        counts: Counts = False,
        last_event_id: LastEvent = None,
    ) -> StreamingResponse:
        """The view and its changes as server-sent events: `view` (its columns), `snapshot` (all
        rows), `change`, `count` and, at the end, `failed`. The id of an event is its position; with
        the header Last-Event-ID, or `since`, the stream resumes there."""
        start = await start_position(service, since, last_event_id)
        entered = await enter_stream(service, [view], where)
        return _stream(service, *entered, start, StreamOptions(every, counts))

    @routes.get(
        "/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
    )
    async def events_of_many(
        view: Annotated[list[str], Query(description="A view; may be repeated.", min_length=1)],
        since: GoOn = None,
        every: Every = 0.0,
        counts: Counts = False,
        last_event_id: LastEvent = None,
    ) -> StreamingResponse:
        """The same for several views in one stream, in the order of commits. Of the events of one
        transaction, only the last has an id."""
        start = await start_position(service, since, last_event_id)
        return _stream(
            service, *await enter_stream(service, view), start, StreamOptions(every, counts)
        )

    return routes


def _known_parameters(request: Request) -> None:
    """Reject unknown parameters: a misspelled condition would otherwise be ignored, and return rows
    that nobody asked for."""
    known = [TOKEN_PARAMETER, *_parameters(request.scope["route"].dependant)]
    for name in request.query_params:
        if name not in known:
            meant = nearest(name, known)
            raise ValueFault(
                f"unknown parameter {name}",
                code="bad-value",
                hint=f"did you mean {meant}?" if meant else f"see {API}/openapi.json",
            )


def _parameters(dependant: Dependant) -> Iterator[str]:
    """The names of the parameters of a route, and of what it depends on."""
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _parameters(each)


def _stream(
    service: Service,
    feeds: list[Feed],
    leave: Callable[[], None],
    start: int | None,
    options: StreamOptions,
) -> StreamingResponse:
    async def events() -> AsyncIterator[bytes]:
        try:
            async for each in service.stream(feeds, options).events(start):
                yield each
        finally:
            leave()

    async def left() -> None:
        leave()  # in case the client disconnected before the stream began

    return StreamingResponse(
        events(),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        background=BackgroundTask(left),
    )


def _write_routes(service: Service) -> APIRouter:
    routes = APIRouter(responses=PROBLEMS, route_class=ExactRoute, tags=["views and changes"])

    @routes.post("/views/{view}/keep", response_model=models.Snapshot, responses=example(SNAPSHOT))
    async def keep(view: str, wanted: models.Kept) -> Response:
        """Keep the changes of a view from now on, so that they can be fetched later, and answer
        with its rows. They are kept for as long as clients keep fetching them."""
        return _json(await service.snapshot(view, wanted.where, keep=True))

    @routes.post(
        "/transactions", response_model=models.Committed, responses=example({"position": 18})
    )
    async def transact(
        request: Request, transaction: models.Transaction, key: Key = None
    ) -> Response:
        """Delete rows and insert rows, all or none."""
        keyed = await writes.keyed_request(request)
        text = await writes.transact(service, transaction.insert, transaction.delete, keyed)
        return _json(text, after=service.publish)

    @routes.post(
        "/signals/{name}",
        response_model=models.Committed,
        responses=example({"position": 18}),
    )
    async def signal(request: Request, name: str, key: Key = None) -> Response:
        """Raise a signal, for which continual queries can wait: `TRIGGER SIGNAL name`."""
        keyed = await writes.keyed_request(request)
        return _json(await writes.raise_signal(service, name, keyed), after=service.publish)

    @routes.post("/sql", response_model=models.Results, responses=example(RESULTS))
    async def sql(request: Request, text: models.Sql, key: Key = None) -> Response:
        """Run SQL statements. A text that leaves a transaction open is an error, and is rolled
        back; with a key, the whole text is one transaction."""
        keyed = await writes.keyed_request(request)
        found = await writes.run_sql(service, text.text, text.values, keyed)
        return _json(found, after=service.publish)

    return routes


def _json(text: str, status: int = 200, after: Callable[[], Any] | None = None) -> Response:
    background = None if after is None else BackgroundTask(after)
    headers = {"cache-control": "no-store"}
    return Response(text, status, headers, "application/json", background)
