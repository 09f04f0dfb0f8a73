"""Rights, channels, templates, messages and announcements over HTTP.

Grants are the statements of SQL, and refused where those are. Messages of one's own queries are
under `/continual-queries`; all messages, templates and announcements are for operators.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from harken.api.database import Database
from harken.api.notifications import LONGEST_TEXT as LONGEST_MESSAGE
from harken.api.notifications import MOST_LISTED, Notification
from harken.console.rendering import sql_name
from harken.database.accounts import NAME as ACCOUNT_NAME
from harken.errors import NameFault, ValueFault, nearest
from harken.notify.channel_registry import channel_names
from harken.notify.templates import Template
from harken.server.resources.described import (
    CHANGED_MEANWHILE,
    LONGEST_NAME,
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
from harken.server.resources.examples import DELIVERY, GRANT, TEMPLATE, page_with
from harken.server.resources.resource_exchange import Exchange, Page
from harken.server.resources.shapes import (
    ChannelShape,
    GrantShape,
    NumberShape,
    NumbersShape,
    TemplateShape,
)

MOST_NAMED = 100
LONGEST_TEMPLATE = 100_000
PrivilegeName = Literal["SELECT", "INSERT", "UPDATE", "DELETE", "NOTIFY", "ALL"]
MessageState = Literal[
    "waiting", "sending", "failed", "delivered", "dead", "muted", "grouped", "unsubscribed"
]
Names = Field(min_length=1, max_length=MOST_NAMED)


class GrantBody(Body):
    """Rights to a table or view, or NOTIFY to a channel."""

    privileges: list[PrivilegeName] = Field(min_length=1, max_length=6)
    object: str | None = Field(default=None, max_length=LONGEST_NAME)
    channel: str | None = Field(default=None, max_length=LONGEST_NAME)
    grantees: list[str] = Names

    def statement(self, verb: str) -> str:
        """GRANT or REVOKE. Every name is quoted, or of a form that needs no quotes."""
        if (self.object is None) == (self.channel is None):
            raise ValueFault(
                "a right is to an object, a table or view, or to a channel",
                code="bad-value",
                hint='as {"privileges": ["SELECT"], "object": "low", "grantees": ["ann"]}',
            )
        place = f"CHANNEL {sql_name(self.channel)}" if self.channel else sql_name(self.object or "")
        people = ", ".join(f"'{_checked(each)}'" for each in self.grantees)
        to = "TO" if verb == "GRANT" else "FROM"
        return f"{verb} {', '.join(self.privileges)} ON {place} {to} {people}"


def _checked(account: str) -> str:
    name = account.lower()
    if not ACCOUNT_NAME.fullmatch(name):
        raise ValueFault(
            f"{account!r} is not the name of a user", code="bad-value", hint="or use PUBLIC"
        )
    return name


class TemplateBody(Body):
    text: str = Field(max_length=LONGEST_TEMPLATE)
    subject: str = Field(default="", max_length=LONGEST_TEMPLATE)
    html: str = Field(default="", max_length=LONGEST_TEMPLATE)
    fields: dict[str, str] = Field(default_factory=dict, max_length=1_000)


class Announcement(Body):
    text: str = Field(min_length=1, max_length=LONGEST_MESSAGE)
    subject: str = Field(default="", max_length=LONGEST_NAME)
    queries: list[str] | None = Field(default=None, max_length=10_000)


def message_resources(exchange: Exchange) -> APIRouter:
    routes = router("messages and rights")
    _grants(routes, exchange)
    _templates(routes, exchange)
    _messages(routes, exchange)
    return routes


def _grants(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get("/grants", response_model=PageOf[GrantShape], responses=example(page_with(GRANT)))
    async def grants(request: Request, page: Page, if_none_match: IfNoneMatch = None) -> Response:
        """The rights there are; a user's own, and those to what is the user's."""

        def work(db: Database) -> list[dict[str, Any]]:
            return _grants_of(db)

        return await exchange.page(request, page, work, _grant_key)

    @routes.post(
        "/grants",
        status_code=201,
        response_model=PageOf[GrantShape],
        responses=example(page_with(GRANT), 201),
    )
    async def grant(request: Request, wanted: GrantBody, key: Key = None) -> Response:
        """Grant rights. Operators grant everything, an owner what is the owner's own."""

        def work(db: Database) -> dict[str, Any]:
            db.sql(wanted.statement("GRANT"))
            return page_with(*_about(db, wanted))

        return await exchange.change(request, work, status=201)

    @routes.post(
        "/grants/revoke",
        response_model=PageOf[GrantShape],
        responses=example(page_with()),
    )
    async def revoke(request: Request, wanted: GrantBody, key: Key = None) -> Response:
        """Take rights back; answers with those that are left to the same people."""

        def work(db: Database) -> dict[str, Any]:
            db.sql(wanted.statement("REVOKE"))
            return page_with(*_about(db, wanted))

        return await exchange.change(request, work)

    @routes.get(
        "/channels",
        response_model=PageOf[ChannelShape],
        responses=example(page_with({"name": "email"})),
    )
    async def channels(request: Request, page: Page) -> Response:
        """The channels by which messages can be sent."""
        return await exchange.page(
            request,
            page,
            lambda db: [{"name": each} for each in channel_names()],
            lambda each: each["name"],
        )


def _grants_of(db: Database) -> list[dict[str, Any]]:
    names = ("object", "grantee", "privilege")
    return [dict(zip(names, row, strict=True)) for row in db.sql("SHOW GRANTS").rows]


def _grant_key(grant: dict[str, Any]) -> str:
    return "\n".join(grant.values())


def _about(db: Database, wanted: GrantBody) -> list[dict[str, Any]]:
    people = {each.lower() for each in wanted.grantees}
    place = f"channel {wanted.channel.lower()}" if wanted.channel else str(wanted.object)
    return [
        each
        for each in _grants_of(db)
        if each["grantee"] in people and each["object"].lower() == place.lower()
    ]


def _templates(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/templates", response_model=PageOf[TemplateShape], responses=example(page_with(TEMPLATE))
    )
    async def templates(
        request: Request, page: Page, if_none_match: IfNoneMatch = None
    ) -> Response:
        """The templates of messages, by name."""
        return await exchange.page(
            request, page, lambda db: db.notifications.templates(), lambda each: each.name
        )

    @routes.get("/templates/{name}", response_model=TemplateShape, responses=example(TEMPLATE))
    async def template(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """One template."""
        return await exchange.show(request, lambda db: _template(db, name))

    @routes.put(
        "/templates/{name}",
        response_model=TemplateShape,
        responses={**example(TEMPLATE), **CHANGED_MEANWHILE},
    )
    async def save_template(
        request: Request, name: Name, wanted: TemplateBody, if_match: IfMatch = None
    ) -> Response:
        """Save a template. It is tried with made-up rows, so a mistake is an error now."""

        def work(db: Database) -> Template:
            db.notifications.save_template(
                name,
                wanted.text,
                subject=wanted.subject,
                html=wanted.html,
                fields=wanted.fields,
                replace=True,
            )
            return _template(db, name)

        return await exchange.change(request, work, seen=lambda db: _template(db, name))

    @routes.delete(
        "/templates/{name}", status_code=204, responses={**NO_CONTENT, **CHANGED_MEANWHILE}
    )
    async def drop_template(request: Request, name: Name, if_match: IfMatch = None) -> Response:
        """Delete a template. Messages that name it get the built-in words."""
        return await exchange.change(
            request,
            lambda db: db.notifications.drop_template(name),
            status=204,
            seen=lambda db: _template(db, name),
        )


def _template(db: Database, name: str) -> Template:
    every = {each.name.lower(): each for each in db.notifications.templates()}
    found = every.get(name.lower())
    if found is None:
        near = nearest(name.lower(), every)
        raise NameFault(
            f"there is no template {name}",
            code="unknown-table",
            hint=f"did you mean {near}?" if near else "GET /api/v1/templates lists them",
        )
    return found


def _messages(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/messages", response_model=PageOf[Notification], responses=example(page_with(DELIVERY))
    )
    async def messages(
        request: Request,
        page: Page,
        state: MessageState | None = None,
    ) -> Response:
        """The messages to people, newest first: all, or those in a state. For operators."""
        return await exchange.page(
            request,
            page,
            lambda db: db.notifications.list(state, limit=MOST_LISTED),
            lambda each: each.number,
            newest_first=True,
        )

    @routes.post(
        "/messages/{number}/resend",
        status_code=202,
        response_model=NumberShape,
        responses=example({"number": 17}, 202),
    )
    async def resend_message(request: Request, number: Number, key: Key = None) -> Response:
        """Send a message again, under its old id. For operators."""

        def work(db: Database) -> dict[str, int]:
            db.notifications.resend([number])
            return {"number": number}

        return await exchange.change(request, work, status=202)

    @routes.post(
        "/announcements",
        status_code=202,
        response_model=NumbersShape,
        responses=example({"numbers": [18, 19]}, 202),
    )
    async def announce(request: Request, wanted: Announcement, key: Key = None) -> Response:
        """Write news to everyone whom continual queries notify, or those of some queries, each
        person once; answers with the numbers of the messages. For operators."""

        def work(db: Database) -> dict[str, list[int]]:
            numbers = db.notifications.announce(
                wanted.text, subject=wanted.subject, queries=wanted.queries
            )
            return {"numbers": numbers}

        return await exchange.change(request, work, status=202)
