"""The permanent page of an execution's results, to which messages link.

`/results/cq208` lists the recorded executions of a query and `/results/cq208/2` shows the second.
An id never changes and never comes back, so a link means the same for as long as the execution is
recorded (the settings `continual_executions` and `continual_rows`).

Law: the owner of the query and operators see the page, and nobody else learns whether it exists.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from harken.api.continual_handles import PastExecution
from harken.api.database import Database
from harken.errors import HarkenError
from harken.notify.result_links import FOLDER
from harken.notify.texts import tables_html
from harken.server.service import Service

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}table{border-collapse:collapse}td,th{text-align:left}"
)
MOST_LISTED = 1_000
MOST_SHOWN = 10_000
"""Rows of each kind on a page; the record of an execution may have more."""
LONGEST_NUMBER = 18
UNKNOWN = "These results are not kept, or they are not yours"


def result_routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get(FOLDER + "{query}", include_in_schema=False)
    async def executions(query: str) -> Response:
        def work(db: Database) -> tuple[str, list[PastExecution]] | None:
            try:
                handle = db.continual_queries.get(query)
            except HarkenError as error:
                _check_hidden(error)
                return None
            return (handle.name, handle.history()) if handle.id == query.lower() else None

        found = await service.read(work)
        return _unknown() if found is None else _list(query, *found)

    @router.get(FOLDER + "{query}/{execution}", include_in_schema=False)
    async def results(query: str, execution: str) -> Response:
        def work(db: Database) -> tuple[str, PastExecution] | None:
            try:
                handle = db.continual_queries.get(query)
            except HarkenError as error:
                _check_hidden(error)
                return None
            is_number = execution.isascii() and execution.isdigit()
            if handle.id != query.lower() or not is_number or len(execution) > LONGEST_NUMBER:
                return None
            found = handle.execution(int(execution))
            return None if found is None else (handle.name, found)

        found = await service.read(work)
        return _unknown() if found is None else _results(query, *found)

    return router


def _check_hidden(error: HarkenError) -> None:
    """A query that is another's looks like one that does not exist; other errors are errors."""
    if error.code not in ("unknown-table", "not-permitted"):
        raise error


def _results(query: str, name: str, done: PastExecution) -> Response:
    cause = str(done.cause.get("text", done.event))
    said = [
        ("Executed", f"{done.at:%Y-%m-%d %H:%M:%S} UTC"),
        ("Cause", cause),
        ("Outcome", done.outcome),
        ("Rows of the answer", f"{done.rows:,}"),
        ("New", f"{done.inserted:,}"),
        ("Gone", f"{done.deleted:,}"),
    ]
    if done.error:
        said.append(("Error", done.error))
    facts = "".join(f"<dt>{_text(each)}</dt><dd>{_text(value)}</dd>" for each, value in said)
    tables = tables_html(done.result, MOST_SHOWN) or "<p>No rows are recorded.</p>"
    others = f'<p><a href="{FOLDER}{_text(query)}">All executions of {_text(name)}</a></p>'
    return _page(f"{name}, execution {done.execution}", f"<dl>{facts}</dl>{tables}{others}")


def _list(query: str, name: str, found: list[PastExecution]) -> Response:
    shown = found[::-1][:MOST_LISTED]
    rows = "".join(
        f'<tr><td><a href="{FOLDER}{_text(query)}/{each.execution}">{each.execution}</a></td>'
        + _cells((f"{each.at:%Y-%m-%d %H:%M:%S}", each.outcome))
        + _cells((f"+{each.inserted:,}", f"-{each.deleted:,}"))
        + "</tr>"
        for each in shown
    )
    head = "".join(f"<th>{each}</th>" for each in ("Execution", "At", "Outcome", "New", "Gone"))
    left = len(found) - len(shown)
    more = f"<p>and {left:,} older</p>" if left else ""
    table = f'<table border="1" cellpadding="4"><tr>{head}</tr>{rows}</table>{more}'
    return _page(f"Results of {name}", table if found else "<p>Nothing is recorded.</p>")


def _cells(values: Iterable[str]) -> str:
    return "".join(f"<td>{_text(each)}</td>" for each in values)


def _unknown() -> Response:
    return _page(UNKNOWN, "<p>Ask the owner of the query, or open a newer message.</p>", 404)


def _page(title: str, body: str, status: int = 200) -> Response:
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{_text(title)}</h1>{body}</body></html>"
    )
    headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return HTMLResponse(text, status, headers)


def _text(value: str) -> str:
    return html.escape(value)
