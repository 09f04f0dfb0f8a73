"""The page behind the link at the end of a message: whoever has the link needs no account.

GET asks, for mail programs and scanners open links; POST does it, from the button of the page or by
one click in the mail program (RFC 8058).
"""

from __future__ import annotations

import html

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from harken.database.unsubscribing import Link
from harken.server.guard import LINKS_FOLDER
from harken.server.service import Service

POLICY = "default-src 'none'; form-action 'self'; frame-ancestors 'none'"


def unsubscribe_routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get(LINKS_FOLDER + "{token}", include_in_schema=False)
    async def asked(token: str) -> Response:
        link = await service.read(lambda db: db.notifications.link(token))
        if link is None:
            return _page("This link is not known", "Use the link of a newer message.", 404)
        if link.ended is not None:
            return _done(link)
        form = '<form method="post"><button>Send me no more of these messages</button></form>'
        return _page(f"Messages of {link.query}", f"They go to {link.address}.", form=form)

    @router.post(LINKS_FOLDER + "{token}", include_in_schema=False)
    async def ended(token: str) -> Response:
        link = await service.write_unchecked(lambda db: db.notifications.unsubscribe(token))
        if link is None:
            return _page("This link is not known", "Use the link of a newer message.", 404)
        return _done(link)

    return router


def _done(link: Link) -> Response:
    said = f"{link.address} gets no more messages of {link.query}. Its owner can undo this."
    return _page("Done", said)


def _page(title: str, text: str, status: int = 200, form: str = "") -> Response:
    body = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title></head><body><h1>{html.escape(title)}</h1>"
        f"<p>{html.escape(text)}</p>{form}</body></html>"
    )
    headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return HTMLResponse(body, status, headers)
