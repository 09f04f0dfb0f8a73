"""What a database is made of, over HTTP: relations, rules, plans, and the settings of the service.

A user sees the relations that the user may read. Rules, plans and settings are for operators.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from harken.api.database import Database
from harken.console import object_pages
from harken.console.operator import SECRET_SETTINGS
from harken.errors import NameFault, nearest
from harken.server.identities import current
from harken.server.resources.described import IfNoneMatch, Name, PageOf, example, router
from harken.server.resources.examples import (
    PLAN,
    RELATION,
    RELATION_DETAILS,
    RULE,
    SETTING,
    page_with,
)
from harken.server.resources.resource_exchange import Exchange, Page
from harken.server.resources.shapes import (
    PlanShape,
    RelationDetailsShape,
    RelationShape,
    RuleShape,
    SettingShape,
)
from harken.settings import SETTINGS


def schema_resources(exchange: Exchange) -> APIRouter:
    routes = router("schema")
    _relations(routes, exchange)
    _rules(routes, exchange)
    _settings(routes, exchange)
    return routes


def _relations(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/relations", response_model=PageOf[RelationShape], responses=example(page_with(RELATION))
    )
    async def relations(
        request: Request,
        page: Page,
        kind: Annotated[str | None, Query(max_length=100)] = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Tables, views, sources, relations and functions, by name."""

        def work(db: Database) -> list[dict[str, Any]]:
            found = object_pages.all_objects(db)
            return [_listed(each) for each in found if kind in (None, each.kind)]

        return await exchange.page(request, page, work, lambda each: each["name"])

    @routes.get(
        "/relations/{name}",
        response_model=RelationDetailsShape,
        responses=example(RELATION_DETAILS),
    )
    async def relation(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """One of them: what it reads, what reads it, and which of its changes are not
        reported."""

        def work(db: Database) -> dict[str, Any]:
            found = object_pages.shown_object(db, name)
            return {
                **_listed(found.listed),
                "reads": [each.title for each in found.reads],
                "readers": [each.title for each in found.readers],
                "warnings": found.warnings,
            }

        return await exchange.show(request, work)


def _listed(found: object_pages.Listed) -> dict[str, Any]:
    return {
        "name": found.name,
        "kind": found.kind,
        "columns": [
            {"name": each.name, "type": each.type.name, "nullable": each.type.nullable}
            for each in found.columns
        ],
        "key": found.key,
        "text": found.text,
    }


def _rules(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get("/rules", response_model=PageOf[RuleShape], responses=example(page_with(RULE)))
    async def rules(request: Request, page: Page, if_none_match: IfNoneMatch = None) -> Response:
        """The rules, by name."""
        current.get().check_operator()
        return await exchange.page(request, page, _rules_of, lambda each: each["name"])

    @routes.get("/rules/{name}", response_model=RuleShape, responses=example(RULE))
    async def rule(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """One rule."""
        current.get().check_operator()

        def work(db: Database) -> dict[str, str]:
            every = {each["name"]: each for each in _rules_of(db)}
            if name not in every:
                near = nearest(name, every)
                raise NameFault(
                    f"there is no rule {name}",
                    code="unknown-rule",
                    hint=f"did you mean {near}?" if near else "GET /api/v1/rules lists them",
                )
            return every[name]

        return await exchange.show(request, work)

    @routes.get("/plans/{name}", response_model=PlanShape, responses=example(PLAN))
    async def plan(
        request: Request,
        name: Name,
        verbose: Annotated[
            bool, Query(description="Also its clauses, differentials and SQL.")
        ] = False,
    ) -> Response:
        """How the changes of a view, rule, relation or function are found and why, what is stored
        for it, and what its last changes cost."""

        def work(db: Database) -> dict[str, Any]:
            found = db.explain(name, verbose=verbose)
            details = json.loads(str(db.explain(name, verbose=verbose, format="json")))
            return {"name": name, "text": str(found), "details": details}

        current.get().check_operator()
        return await exchange.show(request, work)


def _rules_of(db: Database) -> list[dict[str, str]]:
    return [{"name": each.name, "text": each.text} for each in object_pages.rules_of(db)]


def _settings(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/settings", response_model=PageOf[SettingShape], responses=example(page_with(SETTING))
    )
    async def settings(request: Request, page: Page, if_none_match: IfNoneMatch = None) -> Response:
        """The settings of the service; those that are secret without their values."""
        current.get().check_operator()
        return await exchange.page(request, page, _settings_of, lambda each: each["name"])


def _settings_of(db: Database) -> list[dict[str, Any]]:
    values = db.settings
    return [
        {
            "name": each.name,
            "value": None if each.name in SECRET_SETTINGS else values[each.name],
            "default": each.default,
            "unit": each.unit,
            "about": each.about,
            "fixed": each.fixed,
            "secret": each.name in SECRET_SETTINGS,
        }
        for each in SETTINGS
    ]
