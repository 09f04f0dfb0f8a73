"""Outside sources: the list, a page each, what can be done to one, and the form that adds one.

Whoever may read a source sees it. What changes one, or reads any address or file, is for operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse, Response
from markupsafe import Markup

from harken.api.database import Database
from harken.api.sources import SourceStatus
from harken.console.rendering import Page, Problem, html_answer, moment, plural, render, segment
from harken.database.secrets import is_reference
from harken.errors import HarkenError, NameFault
from harken.intake.source_options import SHARED
from harken.lang.sql.type_names import type_name
from harken.server.identities import current
from harken.server.service import Service
from harken.sources.kinds import kind_names, outside_kind

if TYPE_CHECKING:
    from harken.console.routes import Console

PLACE = "/sources"
NO_STORE = {"cache-control": "no-store"}
WRONG = ("failing", "suspect", "schema changed")
MARKS = {"ok": "live", "unchanged": "live", "failing": "down", "suspect": "down"}
ADDRESS_WITH_PASSWORD = re.compile(
    r"(?P<before>[A-Za-z][\w+.-]*://[^\s:/@?#]*):(?P<password>[^\s/?#]*)(?P<after>@.*)"
)
KIND_TITLES = {
    "postgresql": "PostgreSQL",
    "sqlalchemy": "MySQL, MariaDB or another database",
    "sqlite": "SQLite file",
    "html": "web page",
    "json": "JSON, from an address or a file",
    "feed": "feed (RSS or Atom)",
    "xml": "XML",
    "text": "text",
    "directory": "directory of Parquet, CSV or JSON files",
    "documents": "documents in a directory",
    "bibtex": "bibliography in BibTeX",
}
"""Written here, because a kind is imported only when it is used."""
FIRST_KIND = "json"
EXAMPLES = {
    "postgresql": {"url": "postgresql://ann@localhost:5432/shop", "table": "public.stock"},
    "sqlalchemy": {"url": "mysql+pymysql://ann@localhost/shop", "table": "stock"},
    "json": {"url": "https://example.org/prices.json"},
    "html": {"url": "https://example.org/weather", "table": "1"},
    "feed": {"url": "https://example.org/news.xml"},
}
FILTERS = ("=", "<>", "<", "<=", ">", ">=", "LIKE")
"""Comparisons of the form that installs a query over a source."""
FIRST_OPTIONS = 5
"""The options that the form shows before it is asked for more."""
MOST_OPTIONS = 100
Text = Annotated[str, Body(max_length=1_000)]
Options = Annotated[dict[str, str], Body(max_length=MOST_OPTIONS)]
ACTIONS: dict[str, Callable[[Database, str], Any]] = {
    "refresh": lambda db, name: db.sources.refresh(name),
    "confirm": lambda db, name: db.sources.refresh(name, confirm=True),
    "pause": lambda db, name: db.sources.pause(name),
    "resume": lambda db, name: db.sources.resume(name),
    "drop": lambda db, name: db.sources.drop(name),
}


def visible(db: Database) -> list[SourceStatus]:
    """Those that the user may read, the ones that need attention first."""
    return sorted(db.sources.list(), key=lambda each: (each.state not in WRONG, each.name))


def titled_kinds() -> list[tuple[str, str]]:
    names = kind_names()
    order = {name: at for at, name in enumerate(KIND_TITLES)}
    names.sort(key=lambda each: order.get(each, len(order)))
    return [(each, KIND_TITLES.get(each, each)) for each in names]


def failing(db: Database) -> list[SourceStatus]:
    return [each for each in visible(db) if each.state in WRONG]


def sentence(source: SourceStatus) -> Markup:
    """How a source goes, in plain words."""
    rows, since = plural(source.rows, "row"), moment(source.since)
    match source.state:
        case "ok" | "unchanged":
            said = Markup("<b>Fresh</b>: {}, read {}, last changed {}.").format(
                rows, moment(source.read_at), moment(source.changed_at)
            )
        case "stale":
            said = Markup("<b>Stale</b>: {}, not read since {}.").format(
                rows, moment(source.read_at)
            )
        case "paused":
            said = Markup("<b>Paused</b> since {}: its {} stay as they are.").format(since, rows)
        case "new":
            said = Markup("<b>Waiting</b> to be read.")
        case state:
            said = Markup("<b>{}</b> since {}; its {} of {} stay.").format(
                state.capitalize(), since, rows, moment(source.read_at)
            )
    if source.next_try is not None:
        said += Markup(" Read next {}.").format(moment(source.next_try))
    return said


def source_routes(console: Console, service: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    _pages(routes, console)
    _form(routes, console, service)
    _actions(routes, service)
    return routes


def _pages(routes: APIRouter, console: Console) -> None:
    @routes.get(PLACE)
    async def sources() -> Response:
        def work(db: Database) -> dict[str, Any]:
            return {"sources": visible(db), "marks": MARKS, "changes": current.get().is_operator}

        return await console.show("sources.html", "Sources", PLACE, work)

    @routes.get(PLACE + "/{name}")
    async def one(name: str) -> Response:
        return await console.show("source.html", name, PLACE, lambda db: _source_values(db, name))


def _source_values(db: Database, name: str) -> dict[str, Any]:
    found = next((each for each in visible(db) if each.name == name.lower()), None)
    if found is None:
        raise NameFault(
            f"there is no source {name}", code="unknown-table", hint="it may have been dropped"
        )
    of_operator = current.get().is_operator
    details = dict(db.sources.describe(name)) if of_operator else {}
    hidden = ("name", "kind", "state", "statement", "why", "what to do", "rows", "columns")
    return {
        "source": found,
        "sentence": sentence(found),
        "columns": db.describe(found.name).columns,
        "type_name": type_name,
        "details": {
            title.replace("_", " "): text
            for title, text in details.items()
            if title not in hidden and text not in ("", None)
        },
        "operators": FILTERS,
        "may_watch": of_operator or current.get().is_author,
        "is_wrong": found.state in WRONG,
        "changes": of_operator,
    }


def _form(routes: APIRouter, console: Console, service: Service) -> None:
    @routes.get("/new/source")
    async def new(kind: str = FIRST_KIND) -> Response:
        current.get().check_operator()
        chosen = outside_kind(kind)
        values = {
            "kinds": titled_kinds(),
            "kind": chosen,
            "options": list(chosen.options),
            "first": [each.name for each in chosen.options[:FIRST_OPTIONS]],
            "shared": SHARED,
            "examples": EXAMPLES.get(kind, {}),
            "captures": chosen.captures,
        }
        return await console.show("source_form.html", "Add a source", PLACE, lambda db: values)

    @routes.post(PLACE + "/-/check")
    async def check(kind: Text, options: Options, capture: Text = "") -> Response:
        current.get().check_operator()
        try:
            found = await service.read(
                lambda db: db.sources.check(
                    kind, _given(split_passwords(kind, options)), capture=capture or None
                )
            )
        except HarkenError as error:
            return _wrong(error, options)
        shown = render("source_check.html", Page("", ""), found=found)
        return html_answer(shown)

    @routes.post(PLACE)
    async def create(
        name: Text,
        kind: Text,
        options: Options,
        key: Text = "",
        every: Annotated[float | None, Body()] = None,
        capture: Text = "",
    ) -> Response:
        current.get().check_operator()
        columns = [each.strip() for each in key.split(",") if each.strip()]

        def work(db: Database) -> str:
            made = db.sources.create(
                name,
                kind,
                _hidden(db, name, kind, _given(split_passwords(kind, options))),
                key=columns or None,
                capture=capture or None,
                every=every,
            )
            return made.name

        try:
            made, _ = await service.write(work)
        except HarkenError as error:
            return _wrong(error, options)
        await service.publish()
        return JSONResponse({"next": f"{PLACE}/{segment(made)}"}, headers=NO_STORE)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value.strip()}


def split_passwords(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with a password that an address holds as the option `password`.

    >>> split_passwords("postgresql", {"url": "postgresql://ann:p%40ss@shop/db"})
    {'url': 'postgresql://ann@shop/db', 'password': 'p@ss'}
    """
    known = {each.name for each in outside_kind(kind).options if each.secret}
    found = dict(options)
    for name, value in options.items():
        held = ADDRESS_WITH_PASSWORD.match(value.strip())
        if held and "password" in known and not found.get("password"):
            found[name] = f"{held['before']}{held['after']}"
            found["password"] = unquote(held["password"])
    return found


def _hidden(db: Database, source: str, kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with the values of those that are secret stored as secrets."""
    secret = {each.name for each in outside_kind(kind).options if each.secret}
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", source)
    name = name if name[:1].isalpha() else f"source-{name}"
    by = current.get().name
    return {
        option: db.configuration.store_secret(f"{name}-{option}", value, by=by)
        if option in secret and not is_reference(value)
        else value
        for option, value in options.items()
    }


def _wrong(error: HarkenError, options: Mapping[str, str]) -> JSONResponse:
    """What was wrong, and beside which option."""
    problem = Problem.of(error)
    named = [name for name in options if f"option {name}" in problem.message]
    found = {"message": problem.message, "hint": problem.hint or "", "field": "".join(named[:1])}
    if "allow_private_addresses" in found["hint"]:
        found["offer"] = "addresses"
    return JSONResponse(found, 400, headers=NO_STORE)


def _actions(routes: APIRouter, service: Service) -> None:
    @routes.post(PLACE + "/{name}/do/{action}")
    async def act(name: str, action: str) -> Response:
        current.get().check_operator()
        if action not in ACTIONS:
            raise NameFault(
                f"nothing is called {action} here", code="bad-value", hint=", ".join(ACTIONS)
            )
        await service.write(lambda db: ACTIONS[action](db, name))
        await service.publish()
        place = PLACE if action == "drop" else f"{PLACE}/{segment(name)}"
        return JSONResponse({"next": place}, headers=NO_STORE)
