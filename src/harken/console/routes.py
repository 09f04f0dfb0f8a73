"""The routes of the console. Each reads in a session, fills a template, and answers with a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from harken.api.database import Database
from harken.console import ad_hoc, continual_pages, home, lineage, object_pages, operator
from harken.console.account_routes import account_routes, account_values
from harken.console.continual_routes import continual_routes
from harken.console.operator_routes import RIGHTS, operator_routes
from harken.console.pasts import past_of, past_routes
from harken.console.rendering import Navigation, Page, Problem, asset_text, html_answer, render
from harken.console.row_editing import can_write, row_routes
from harken.console.source_routes import failing as failing_sources
from harken.console.source_routes import source_routes, visible
from harken.database.language_names import SQL
from harken.database.permissions import Role
from harken.errors import HarkenError, NameFault, ValueFault
from harken.server.identities import Identities, current
from harken.server.service import Service

T = TypeVar("T")
LONGEST_TEXT = 1_000_000
"""Characters of a text on the query page."""
KEPT_FOR_A_YEAR = {"cache-control": "public, max-age=31536000, immutable"}
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
OBJECT_TABS = (
    ("rows", "Rows"),
    ("how", "How it works"),
    ("lineage", "Lineage"),
    ("changes", "Changes"),
)
ICONS = {
    "/": "M2 8l6-5 6 5v6H2z",
    "/data": "M2 3h12v10H2zM2 6.5h12M2 10h12M6 3v10",
    "/query": "M3 4l4 4-4 4M8 12h5",
    "/queries": "M8 3a5 5 0 1 0 .01 0M8 5.5V8l2 1.5M2 3l1.5-1.5M14 3l-1.5-1.5",
    "/sources": "M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
    "/rules": "M3 3h5v4H3zM8 5h5v6M8 11h5",
    "/operator": "M3 4h10M3 8h10M3 12h10M6 2.5v3M10 6.5v3M5 10.5v3",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page shows besides its own part, read with it at one moment."""

    objects: int
    rules: int
    position: int
    queries: int
    failing: int
    sources: int
    failing_sources: int

    @classmethod
    def of(cls, db: Database) -> Frame:
        queries = [each for each in db.continual_queries.list() if each.is_live]
        failing = sum(1 for each in queries if each.failures)
        rules = len(object_pages.rules_of(db))
        sources, wrong = len(visible(db)), len(failing_sources(db))
        return cls(len(db.views()), rules, db.position, len(queries), failing, sources, wrong)


class Console:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def read(self, work: Callable[[Database], T], *, waves: bool = False) -> tuple[Frame, T]:
        """Run a read for a page, and what its frame shows; with `waves` in the session that writes,
        which knows how changes were found."""

        def both(db: Database) -> tuple[Frame, T]:
            return Frame.of(db), work(db)

        if waves:
            found, _ = await self._service.write(both)
            return found  # type: ignore[no-any-return]
        return await self._service.read(both)

    async def unchecked(self, work: Callable[[Database], T]) -> T:
        """A read that the user is not allowed in general, but whose rows are the user's own."""
        return await self._service.read_unchecked(work)

    def page(self, frame: Frame, title: str, place: str) -> Page:
        menu = [
            Navigation("Home", "/", ICONS["/"]),
            Navigation("Data", "/data", ICONS["/data"], frame.objects),
            Navigation("Query", "/query", ICONS["/query"]),
        ]
        identity = current.get()
        failing = f"{frame.failing} failing" if frame.failing else ""
        wrong = f"{frame.failing_sources} failing" if frame.failing_sources else ""
        menu += [
            Navigation("Queries", "/queries", ICONS["/queries"], frame.queries, failing),
            Navigation("Sources", "/sources", ICONS["/sources"], frame.sources, wrong),
        ]
        if identity.is_operator:
            menu += [
                Navigation("Rules", "/rules", ICONS["/rules"], frame.rules),
                Navigation("Operator", "/operator", ICONS["/operator"]),
            ]
        user = "" if identity.user is None else identity.name
        path = self._service.path if identity.is_operator else ""
        return Page(title, place, menu, frame.position, path, user, identity.csrf)

    async def show(
        self,
        template: str,
        title: str,
        place: str,
        work: Callable[[Database], dict[str, Any]],
        *,
        waves: bool = False,
    ) -> Response:
        try:
            frame, values = await self.read(work, waves=waves)
        except HarkenError as error:
            if not isinstance(error, NameFault) and error.code != "not-permitted":
                raise
            return await self.missing(error, place)
        return html_answer(render(template, self.page(frame, title, place), **values))

    async def missing(self, error: HarkenError, place: str) -> Response:
        frame, _ = await self.read(lambda db: None)
        is_refused = error.code == "not-permitted"
        page = self.page(frame, "Not permitted" if is_refused else "Not found", place)
        text = render("problem.html", page, problem=Problem.of(error))
        return html_answer(text, 403 if is_refused else 404)


def console_routes(service: Service, identities: Identities) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    console = Console(service)
    _browsing_routes(routes, console)
    _query_routes(routes, console, service)
    routes.include_router(continual_routes(console, service))
    routes.include_router(source_routes(console, service))
    routes.include_router(operator_routes(service))
    routes.include_router(past_routes(service))
    routes.include_router(row_routes(service))
    routes.include_router(account_routes(service, identities))

    @routes.get("/static/{name}")
    async def static(name: str) -> Response:
        """A script, style or picture of ours; there are no others."""
        try:
            text = asset_text(name)
        except (OSError, ValueError):
            return Response(status_code=404)
        kind = TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        return Response(text, media_type=kind, headers=KEPT_FOR_A_YEAR)

    return routes


async def first_page(service: Service) -> Response:
    console = Console(service)
    of_operator = current.get().is_operator

    def work(db: Database) -> dict[str, Any]:
        return {"home": home.home(db) if of_operator else home.home_of_user(db)}

    return await console.show("home.html", "Home", "/", work)


def _browsing_routes(routes: APIRouter, console: Console) -> None:
    @routes.get("/data")
    async def data(q: str = "", kind: str = "") -> Response:
        def work(db: Database) -> dict[str, Any]:
            every = object_pages.all_objects(db)
            wanted = q.casefold()
            found = [
                each for each in every if wanted in each.name.casefold() and kind in ("", each.kind)
            ]
            kinds = sorted({each.kind for each in every})
            return {"objects": found, "kinds": kinds, "kind": kind, "text": q}

        return await console.show("data.html", "Data", "/data", work)

    @routes.get("/data/{name:path}")
    async def one(name: str, tab: str = "rows", where: str = "", at: int | None = None) -> Response:
        def work(db: Database) -> dict[str, Any]:
            return _object_values(db, name, tab, where, at)

        return await console.show("object.html", name, "/data", work, waves=tab == "how")

    @routes.get("/rules")
    async def rules() -> Response:
        def work(db: Database) -> dict[str, Any]:
            found = [
                {"name": each.name, "first_line": object_pages.first_line(each.text)}
                for each in object_pages.rules_of(db)
            ]
            return {"rules": found}

        return await console.show("rules.html", "Rules", "/rules", work)

    @routes.get("/rules/{name}")
    async def rule(name: str) -> Response:
        return await console.show(
            "rule.html", name, "/rules", lambda db: _rule_values(db, name), waves=True
        )

    @routes.get("/operator")
    async def operate(tab: str = "storage") -> Response:
        def work(db: Database) -> dict[str, Any]:
            return {
                "sentence": operator.sentence(db),
                "tabs": operator.TABS,
                "tab": tab,
                "kept": operator.kept(db),
                "outboxes": operator.outboxes(db),
                "messages": operator.messages(db),
                "actions": operator.actions(db),
                "settings": operator.settings(db),
                "users": db.users.list(),
                "roles": list(Role),
                "grants": operator.grants(db),
                "audit": operator.audit(db),
                "mail": operator.mail(db),
                "announcements": operator.announcements(db),
                "rights": RIGHTS,
                "objects": [each.name for each in object_pages.all_objects(db)],
            }

        return await console.show("operator.html", "Operator", "/operator", work)

    @routes.get("/account")
    async def account() -> Response:
        identity = current.get()
        if identity.user is None or identity.key is None:
            return RedirectResponse("/operator?tab=users", 303)
        values = await console.unchecked(lambda db: account_values(db, identity.name))
        return await console.show("account.html", "Your account", "/account", lambda db: values)

    @routes.get("/search")
    async def search(q: str = "") -> Response:
        _, found = await console.read(lambda db: object_pages.search(db, q))
        listed = [{"title": each.title, "kind": each.kind, "path": each.path} for each in found]
        return JSONResponse({"found": listed}, headers={"cache-control": "no-store"})


def _object_values(db: Database, name: str, tab: str, where: str, at: int | None) -> dict[str, Any]:
    shown = object_pages.shown_object(db, name)
    values: dict[str, Any] = {
        "object": shown,
        "tabs": OBJECT_TABS,
        "tab": tab if tab in dict(OBJECT_TABS) else "rows",
        "where": where,
        "problem": None,
        "picture": "",
        "explained": "",
        "past": None,
        "can_write": can_write(db, shown),
    }
    match values["tab"]:
        case "rows" if where:
            try:
                db.describe(name, where=where)
            except HarkenError as error:
                values["problem"] = Problem.of(error, where)
        case "how":
            values["explained"] = str(db.explain(name))
            values["picture"] = continual_pages.drawing(db, name)
        case "lineage":
            values["picture"] = lineage.picture(name, shown.reads, shown.readers)
        case "changes":
            values["past"] = past = past_of(db, name, at)
            values["picture"] = past.picture
    return values


def _rule_values(db: Database, name: str) -> dict[str, Any]:
    found = next((each for each in object_pages.rules_of(db) if each.name == name), None)
    if found is None:
        raise NameFault(f"there is no rule {name}", code="unknown-rule", hint="see the list")
    explained = str(db.explain(name))
    return {
        "name": name,
        "text": found.text,
        "sentence": object_pages.first_line(explained).removesuffix(".") + ".",
        "explained": explained,
        "picture": continual_pages.drawing(db, name),
    }


def _query_routes(routes: APIRouter, console: Console, service: Service) -> None:
    @routes.get("/query")
    async def query(language: str = SQL, text: str = "") -> Response:
        values = {
            "languages": ad_hoc.language_titles(),
            "language": ad_hoc.check_language(language),
            "text": text,
        }
        return await console.show("query.html", "Query", "/query", lambda db: values)

    @routes.post("/query")
    async def run(
        request: Request,
        language: Annotated[str, Body()],
        text: Annotated[str, Body(max_length=LONGEST_TEXT)],
    ) -> Response:
        answer = await ad_hoc.run(service, ad_hoc.check_language(language), text)
        shown = render(
            "results.html",
            Page("", ""),
            results=answer.results,
            problem=answer.problem,
            changed=answer.changed,
            position=answer.position,
            took=answer.took,
            formats=ad_hoc.FORMATS,
            language=language,
            text=text,
        )
        headers = {"x-position": str(answer.position)} if answer.position else {}
        return html_answer(shown, headers=headers)

    @routes.post("/query/complete")
    async def complete(
        language: Annotated[str, Body()],
        text: Annotated[str, Body(max_length=LONGEST_TEXT)],
        at: Annotated[int, Body(ge=0)],
    ) -> Response:
        found = await ad_hoc.completions(service, ad_hoc.check_language(language), text, at)
        return JSONResponse(found, headers={"cache-control": "no-store"})

    @routes.get("/query/export")
    async def export(
        text: str, language: str = SQL, format: Annotated[str, Query()] = "csv"
    ) -> Response:
        from harken.cli import result_tables

        if format not in ad_hoc.FORMATS:
            raise ValueFault(
                f"there is no format {format}",
                code="bad-value",
                hint=f"use one of {', '.join(ad_hoc.FORMATS)}",
            )
        found = await ad_hoc.rows_of(service, ad_hoc.check_language(language), text)
        match format:
            case "csv":
                data = result_tables.csv_for_spreadsheets(found).encode()
                kind = "text/csv"
            case "json":
                data, kind = "\n".join(found.json_lines()).encode(), "application/x-ndjson"
            case "arrow":
                data, kind = result_tables.arrow_bytes(found), "application/vnd.apache.arrow.stream"
            case _:
                data, kind = _parquet(found.to_arrow()), "application/vnd.apache.parquet"
        headers = {"content-disposition": f'attachment; filename="rows.{format}"'}
        return Response(data, media_type=kind, headers={**headers, "cache-control": "no-store"})


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet

    written = BytesIO()
    pyarrow.parquet.write_table(table, written)
    return written.getvalue()
