"""Continual queries: the list, a page each, what can be done to one, and the form for a new one.

Whatever changes goes through `service.write`, which works for whoever sent the request.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse, Response

from harken.api.continual_handles import ContinualQuery, Preview
from harken.api.database import Database
from harken.api.sample_messages import Sample
from harken.console import continual_pages, dry_runs
from harken.console.continual_texts import (
    DELIVERIES,
    FIVE_FIELDS,
    START,
    STOPS,
    TRIGGERS,
    Wrong,
    document_of,
    fields_of,
    relations_of,
    text_of,
)
from harken.console.rendering import Page, html_answer, render, segment, sql_name
from harken.console.statement_parts import FUNCTIONS, OPERATORS, shown_parts
from harken.continual.installed_queries import InstalledQuery
from harken.database.json_values import json_value
from harken.database.results import to_json
from harken.errors import HarkenError, NameFault, ValueFault
from harken.notify.channel_registry import channel_names
from harken.server.identities import current
from harken.server.service import Service

if TYPE_CHECKING:
    from harken.console.routes import Console

PLACE = "/queries"
NO_STORE = {"cache-control": "no-store"}
LONGEST_TEXT = 100_000
"""Characters of a statement."""
MOST_ROWS = 5_000
"""Rows of an answer that a page shows."""
LONGEST_SNOOZE = 366 * 24.0
"""Hours."""
Text = Annotated[str, Body(max_length=LONGEST_TEXT)]
OneText = Annotated[str, Body(max_length=LONGEST_TEXT, embed=True)]
ACTIONS: dict[str, Callable[[ContinualQuery], Any]] = {
    "pause": ContinualQuery.pause,
    "resume": ContinualQuery.resume,
    "mute": ContinualQuery.mute,
    "unmute": ContinualQuery.unmute,
    "run": ContinualQuery.run,
    "drop": ContinualQuery.drop,
}


def continual_routes(console: Console, service: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    _pages(routes, console, service)
    _form(routes, console, service)
    _actions(routes, service)
    return routes


def _pages(routes: APIRouter, console: Console, service: Service) -> None:
    @routes.get(PLACE)
    async def queries(q: str = "", state: str = "") -> Response:
        def work(db: Database) -> dict[str, Any]:
            every = continual_pages.listed(db)
            found = continual_pages.listed(db, q, state)
            states = sorted({each.state.partition(",")[0] for each in every})
            me = current.get().name
            mine = sum(1 for each in every if is_mine(each.query, me))
            values = {"queries": found, "states": states, "state": state, "text": q}
            return {**values, "mine": mine}

        return await console.show("queries.html", "Queries", PLACE, work)

    @routes.get(PLACE + "/{name}")
    async def one(name: str, tab: str = "live", execution: int | None = None) -> Response:
        def work(db: Database) -> dict[str, Any]:
            values = continual_pages.page_values(db, name, tab, execution)
            users = [each.name for each in db.users.list()] if current.get().is_operator else []
            return {**values, "users": users}

        return await console.show(
            "continual.html", name, PLACE, work, waves=tab == "how" and current.get().is_operator
        )

    @routes.get(PLACE + "/{name}/rows")
    async def rows(name: str, known: str = "") -> Response:
        """The rows of the answer now; nothing if they are those that the page knows."""
        text = await service.read(lambda db: db.continual_queries.get(name).status.clauses.query)

        def work(db: Database) -> dict[str, Any]:
            found = db.sql(text).rows
            shown = [[json_value(value, repr) for value in row] for row in found[:MOST_ROWS]]
            return {"rows": shown, "count": len(found), "position": db.position}

        found = await service.query(work)
        state = sha256(to_json([found["rows"], found["count"]]).encode()).hexdigest()[:20]
        if state == known:
            return Response(status_code=204, headers=NO_STORE)
        return JSONResponse({**found, "state": state}, headers=NO_STORE)


def _form(routes: APIRouter, console: Console, service: Service) -> None:
    async def form(title: str, work: Callable[[Database], dict[str, Any]]) -> Response:
        def values(db: Database) -> dict[str, Any]:
            return {
                "triggers": TRIGGERS,
                "stops": STOPS,
                "deliveries": DELIVERIES,
                "operators": OPERATORS,
                "functions": FUNCTIONS,
                "five_fields": FIVE_FIELDS,
                "mail_is_missing": not db.settings["smtp_host"],
                "changes": current.get().is_operator,
                "channels": list(channel_names()),
                "relations": relations_of(db),
                "zone": db.settings["time_zone"],
                **work(db),
            }

        return await console.show("continual_form.html", title, PLACE, values)

    @routes.get("/new/query")
    async def new(over: str = "", copy: str = "") -> Response:
        def work(db: Database) -> dict[str, Any]:
            text = ""
            if copy:
                query = db.continual_queries.get(copy).status
                text = text_of(query, str(db.settings["time_zone"]))
                text = text.replace(f"{START} {sql_name(query.name)} ", f"{START} ", 1)
            elif over:
                text = f"{START} AS\nSELECT * FROM {sql_name(over)}"
            return {"edited": "", "text": text}

        return await form("New continual query", work)

    @routes.get(PLACE + "/{name}/edit")
    async def edit(name: str) -> Response:
        def work(db: Database) -> dict[str, Any]:
            query = db.continual_queries.get(name).status
            text = text_of(query, str(db.settings["time_zone"]))
            return {"edited": query.name, "text": text}

        return await form(f"Edit {name}", work)

    @routes.post(PLACE + "/-/read")
    async def read(text: OneText) -> Response:
        """The fields of a text, and what is wrong with it."""
        try:
            fields = fields_of(text)
            found: dict[str, Any] = {"fields": fields.as_json()}
            found |= shown_parts(fields.query, fields.trigger)
        except HarkenError as error:
            return _json({"wrong": Wrong.of(error.locate(text), text).as_json()})
        try:
            checked = await service.read(lambda db: db.continual_queries.check(text))
            found["due"] = [each.isoformat() for each in checked.due]
            found["zone"] = str(checked.zone)
        except HarkenError as error:
            found["wrong"] = Wrong.of(error, text).as_json()
        return _json(found)

    @routes.post(PLACE + "/-/try")
    async def dry_run(text: OneText) -> Response:
        try:
            preview, rows = await _previewed(service, text)
        except HarkenError as error:
            return _json(Wrong.of(error, text).as_json(), 400)
        due = [_local(each, preview.query.zone) for each in preview.due]
        dry = await service.read(lambda db: dry_runs.dry_run(db, text))
        shown = render("preview.html", Page("", ""), preview=preview, rows=rows, due=due, dry=dry)
        return html_answer(shown)

    @routes.post(PLACE + "/-/test")
    async def test(text: OneText) -> Response:
        """Send the first message to everybody whom the statement names, and install nothing."""
        try:
            _require_recipients(text)
            preview, _ = await _previewed(service, text)
        except HarkenError as error:
            return _json(Wrong.of(error, text).as_json(), 400)
        outcomes = [await _sent(service, each) for each in preview.samples]
        return html_answer(render("tested.html", Page("", ""), outcomes=outcomes))

    @routes.post(PLACE)
    async def install(text: OneText) -> Response:
        def work(db: Database) -> str:
            before = {each.id for each in db.continual_queries.list()}
            db.continual_queries.check(text)  # so that an error has its place
            db.sql(text)
            made = [each for each in db.continual_queries.list() if each.id not in before]
            return made[-1].name if made else fields_of(text).name

        return await _changed(service, text, work)

    @routes.post(PLACE + "/{name}/alter")
    async def alter(name: str, text: OneText) -> Response:
        def work(db: Database) -> str:
            wanted, document = document_of(text)
            db.continual_queries.check(text)
            query = db.continual_queries.get(name).status
            flags = {"paused": str(query.state) == "paused", "muted": query.muted}
            if wanted and wanted.lower() != query.name.lower():
                change = f"{sql_name(query.name)} RENAME TO {sql_name(wanted)}"
                db.sql(f"ALTER CONTINUAL QUERY {change}")
            db.continual_queries.install_all({wanted or query.name: {**document, **flags}})
            return wanted or query.name

        return await _changed(service, text, work)


def _actions(routes: APIRouter, service: Service) -> None:
    @routes.post(PLACE + "/{name}/do/{action}")
    async def act(name: str, action: str) -> Response:
        if action not in ACTIONS:
            raise NameFault(
                f"nothing is called {action} here", code="bad-value", hint=", ".join(ACTIONS)
            )
        await service.write(lambda db: ACTIONS[action](db.continual_queries.get(name)))
        await service.publish()
        return _json({"next": PLACE if action == "drop" else f"{PLACE}/{segment(name)}"})

    @routes.post(PLACE + "/{name}/transfer")
    async def transfer(name: str, owner: Annotated[str, Body(embed=True)]) -> Response:
        current.get().check_operator()
        await service.write(lambda db: db.continual_queries.get(name).give_to(owner.strip()))
        return _json({"next": f"{PLACE}/{segment(name)}"})

    @routes.post(PLACE + "/-/drop-all")
    async def drop_all() -> Response:
        """Drop all queries of whoever asks; an operator's own, not everybody's."""
        me = current.get().name

        def work(db: Database) -> int:
            mine = [each for each in db.continual_queries.list() if is_mine(each, me)]
            with db.transaction():
                for each in mine:
                    db.continual_queries.get(each.id).drop()
            return len(mine)

        dropped, _ = await service.write(work)
        await service.publish()
        return _json({"next": PLACE, "dropped": dropped})

    @routes.post(PLACE + "/{name}/snooze")
    async def snooze(name: str, hours: Annotated[float, Body(embed=True)]) -> Response:
        if not 0 < hours <= LONGEST_SNOOZE:
            raise ValueFault(
                "a query is snoozed for a minute to a year", code="bad-value", hint="as 8 hours"
            )

        def work(db: Database) -> None:
            until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
            db.continual_queries.get(name).snooze(until)

        await service.write(work)
        return _json({"next": f"{PLACE}/{segment(name)}"})

    @routes.post(PLACE + "/{name}/resend")
    async def resend(name: str, number: Annotated[int, Body(embed=True)]) -> Response:
        await service.write(lambda db: db.continual_queries.get(name).resend(number))
        await service.publish()
        return _json({"next": f"{PLACE}/{segment(name)}?tab=deliveries"})


async def _previewed(service: Service, text: str) -> tuple[Preview, list[Any]]:
    """What a statement would install, and the first rows of its answer."""

    def work(db: Database) -> tuple[Preview, list[Any]]:
        preview = db.continual_queries.preview(text)
        return preview, db.sql(preview.query.clauses.query).rows[:10]

    found, _ = await service.write(work)
    return found  # type: ignore[no-any-return]


def is_mine(query: InstalledQuery, me: str) -> bool:
    """Without accounts whoever works here is the owner of all."""
    return current.get().user is None or query.owner == me


def _require_recipients(text: str) -> None:
    if not fields_of(text).notify:
        raise ValueFault(
            "nobody is told, so there is nothing to test",
            code="bad-value",
            hint="add a recipient: EMAIL 'ann@example.org'",
        )


async def _sent(service: Service, sample: Sample) -> tuple[Sample, str]:
    """A sample, and why it could not be sent; empty if it was."""
    try:
        ready = await service.read(lambda db: db.continual_queries.prepare(sample))
        await asyncio.to_thread(ready.send)
    except HarkenError as error:
        return sample, error.message
    return sample, ""


async def _changed(service: Service, text: str, work: Callable[[Database], str]) -> Response:
    """Run a change of a statement; what was wrong names the field."""
    try:
        name, _ = await service.write(work)
    except HarkenError as error:
        status = 403 if error.code == "not-permitted" else 400
        return _json(Wrong.of(error.locate(text), text).as_json(), status)
    await service.publish()
    return _json({"next": f"{PLACE}/{segment(name)}"})


def _local(at: datetime.datetime, zone: datetime.tzinfo) -> str:
    return f"{at.astimezone(zone):%a %d %b %H:%M}"


def _json(found: dict[str, Any], status: int = 200) -> JSONResponse:
    return JSONResponse(found, status, headers=NO_STORE)
