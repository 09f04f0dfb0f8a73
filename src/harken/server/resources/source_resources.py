"""Outside sources over HTTP: added, checked, read, altered, paused and dropped.

Whoever may read a source sees it; what changes one, or reads any address or file, is for operators,
and refused below the API (`api/user_methods.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from harken.api.database import Database
from harken.api.sources import Refreshed, SourceCheck, SourceStatus
from harken.errors import NameFault, nearest
from harken.lang.sql.source_statements import LONGEST_POLL
from harken.server.resources.described import (
    CHANGED_MEANWHILE,
    LONGEST_NAME,
    NO_CONTENT,
    Body,
    IfMatch,
    IfNoneMatch,
    Key,
    Name,
    PageOf,
    example,
    router,
)
from harken.server.resources.examples import REFRESHED, SOURCE, SOURCE_CHECK, page_with
from harken.server.resources.resource_exchange import Exchange, Page
from harken.server.resources.shapes import KindShape
from harken.sources.kinds import kind_names, outside_kind

PLACE = "/sources"
MOST_OPTIONS, MOST_COLUMNS = 100, 1_000
OptionValue = str | bool | int | float | list[str] | None
Options: dict[str, OptionValue] = Field(default_factory=dict, max_length=MOST_OPTIONS)
Every = Field(default=None, gt=0, le=LONGEST_POLL, description="Seconds between two readings.")


class SourceBody(Body):
    kind: str = Field(max_length=LONGEST_NAME)
    options: dict[str, OptionValue] = Options
    key: list[str] | None = Field(default=None, max_length=MOST_COLUMNS)
    capture: str | None = Field(default=None, max_length=LONGEST_NAME)


class NewSource(SourceBody):
    name: str = Field(max_length=LONGEST_NAME)
    every: float | None = Every
    mirror: bool = Field(default=True, description="Store its rows; else it is asked each time.")
    in_lake: bool = False


class SourceChange(Body):
    options: dict[str, OptionValue] = Options
    every: float | None = Every


class Reading(Body):
    confirm: bool = Field(
        default=False, description="Rows that seem to be missing are really gone."
    )


def source_resources(exchange: Exchange) -> APIRouter:
    routes = router("sources")
    _reading(routes, exchange)
    _changing(routes, exchange)
    _acting(routes, exchange)
    return routes


def _reading(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/source-kinds",
        response_model=PageOf[KindShape],
        responses=example(
            page_with({"name": "json", "options": [], "captures": ["poll"]}),
        ),
    )
    async def source_kinds(
        request: Request, page: Page, if_none_match: IfNoneMatch = None
    ) -> Response:
        """The kinds of sources, and their options."""
        return await exchange.page(
            request, page, lambda db: map(_kind, kind_names()), lambda each: each["name"]
        )

    @routes.get(PLACE, response_model=PageOf[SourceStatus], responses=example(page_with(SOURCE)))
    async def sources(request: Request, page: Page, if_none_match: IfNoneMatch = None) -> Response:
        """The sources that the sender may read, and how each goes."""
        return await exchange.page(
            request, page, lambda db: db.sources.list(), lambda each: each.name
        )

    @routes.get(PLACE + "/{name}", response_model=SourceStatus, responses=example(SOURCE))
    async def source(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """How one source goes."""
        return await exchange.show(request, lambda db: _one(db, name))

    @routes.get(
        PLACE + "/{name}/details",
        response_model=dict[str, Any],
        responses=example({"kind": "json", "capture": "poll", "mirror": "yes"}),
    )
    async def source_details(request: Request, name: Name) -> Response:
        """What DESCRIBE SOURCE shows. For operators."""
        return await exchange.show(request, lambda db: db.sources.describe(name))


def _changing(routes: APIRouter, exchange: Exchange) -> None:
    @routes.post(
        PLACE, status_code=201, response_model=SourceStatus, responses=example(SOURCE, 201)
    )
    async def add_source(request: Request, wanted: NewSource, key: Key = None) -> Response:
        """Make outside data a read-only relation, and read it for the first time."""

        def work(db: Database) -> SourceStatus:
            return db.sources.create(
                wanted.name,
                wanted.kind,
                wanted.options,
                key=wanted.key,
                capture=wanted.capture,
                every=wanted.every,
                mirror=wanted.mirror,
                in_lake=wanted.in_lake,
            )

        return await exchange.change(request, work, status=201, together=False)

    @routes.post("/source-checks", response_model=SourceCheck, responses=example(SOURCE_CHECK))
    async def check_source(request: Request, wanted: SourceBody) -> Response:
        """Read a source once, without installing anything: its columns, what could be its key, and
        the first rows."""

        def work(db: Database) -> SourceCheck:
            return db.sources.check(
                wanted.kind, wanted.options, capture=wanted.capture, key=wanted.key
            )

        return await exchange.change(request, work, together=False)

    @routes.patch(
        PLACE + "/{name}",
        response_model=SourceStatus,
        responses={**example(SOURCE), **CHANGED_MEANWHILE},
    )
    async def alter_source(
        request: Request, name: Name, wanted: SourceChange, if_match: IfMatch = None
    ) -> Response:
        """Set options of a source, null for the default, or how often it is read."""

        def work(db: Database) -> SourceStatus:
            db.sources.alter(name, wanted.options, every=wanted.every)
            return _one(db, name)

        return await exchange.change(request, work, seen=lambda db: _one(db, name), together=False)

    @routes.delete(
        PLACE + "/{name}", status_code=204, responses={**NO_CONTENT, **CHANGED_MEANWHILE}
    )
    async def drop_source(
        request: Request, name: Name, cascade: bool = False, if_match: IfMatch = None
    ) -> Response:
        """Drop a source with its rows; with `cascade`, also the views over it."""
        return await exchange.change(
            request,
            lambda db: db.sources.drop(name, cascade=cascade),
            status=204,
            seen=lambda db: _one(db, name),
            together=False,
        )


def _acting(routes: APIRouter, exchange: Exchange) -> None:
    @routes.post(PLACE + "/{name}/refresh", response_model=Refreshed, responses=example(REFRESHED))
    async def refresh(
        request: Request, name: Name, wanted: Reading | None = None, key: Key = None
    ) -> Response:
        """Read a source now, and take in what changed."""
        confirm = wanted is not None and wanted.confirm
        return await exchange.change(
            request, lambda db: db.sources.refresh(name, confirm=confirm), together=False
        )

    def action(verb: str, do: Callable[[Database, str], Any], about: str) -> None:
        async def act(request: Request, name: Name, key: Key = None) -> Response:
            def work(db: Database) -> SourceStatus:
                do(db, name)
                return _one(db, name)

            return await exchange.change(request, work, together=False)

        act.__doc__ = about
        routes.post(
            PLACE + "/{name}/" + verb,
            name=f"{verb}_source",
            response_model=SourceStatus,
            responses=example(SOURCE),
        )(act)

    action("pause", lambda db, name: db.sources.pause(name), "Read it no more; its rows stay.")
    action("resume", lambda db, name: db.sources.resume(name), "Read it again by the clock.")


def _one(db: Database, name: str) -> SourceStatus:
    every = {each.name: each for each in db.sources.list()}
    found = every.get(name.lower())
    if found is None:
        near = nearest(name.lower(), every)
        raise NameFault(
            f"there is no source {name}",
            code="unknown-source",
            hint=f"did you mean {near}?" if near else "GET /api/v1/sources lists them",
        )
    return found


def _kind(name: str) -> dict[str, Any]:
    found = outside_kind(name)
    options = [
        {
            "name": each.name,
            "about": each.about,
            "type": str(each.type),
            "default": each.default,
            "required": each.required,
            "secret": each.secret,
            "choices": each.choices,
        }
        for each in found.options
    ]
    return {"name": name, "options": options, "captures": list(found.captures)}
