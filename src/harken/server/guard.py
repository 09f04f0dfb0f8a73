"""The checks in front of the routes: access, the size of requests, and security headers.

Law: no part of a body is read before the head of its request has passed; a body that has passed is
complete, in memory, and no larger than the limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harken.errors import HarkenError, StorageError, ValueFault
from harken.server.access import Refused, is_same_origin
from harken.server.identities import Identities, current
from harken.server.server_sent_events import API
from harken.settings import Settings

PUBLIC = frozenset(
    {
        *("/login", "/register", "/forgotten", "/redeem", "/session"),
        *(f"{API}/openapi.json", "/health/live", "/health/ready"),
    }
)
"""Paths without access control: they show nothing from the database."""
PUBLIC_FOLDER = "/static/"
LINKS_FOLDER = "/unsubscribe/"
"""Whoever has a link below this may use it, from anywhere: mail programs do, with a form, as RFC
8058 says. The link itself is the secret."""
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer that does not set its own: no other page can frame it, embed it, or learn
its URL."""


WITH_BODY = ("POST", "PUT", "PATCH")


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class SecurityHeaders:
    """Adds the headers that keep other pages away from an answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Guard:
    """Refuses requests by their head, and bodies that are too large or too slow."""

    def __init__(
        self,
        app: ASGIApp,
        identities: Identities,
        settings: Settings,
        answer: Callable[[HarkenError], Response],
    ) -> None:
        self._app = app
        self._identities = identities
        self._largest_head: int = settings["max_header_bytes"]
        self._largest_body: int = settings["max_body_bytes"]
        self._body_timeout: float = settings["body_timeout"]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._handshake(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if scope["method"] in WITH_BODY or (scope["method"] == "DELETE" and _has_body(scope)):
                receive = replay(await self.admit(scope, receive), receive)
            else:
                await self._check_head(scope)
        except HarkenError as error:
            answer = self._answer(error)
            if error.code == "not-allowed" and _wants_page(scope):
                answer = RedirectResponse(sign_in_path(scope), 303)
            await answer(scope, receive, send)
            return
        except ClientGone:
            return
        await self._app(scope, receive, send)

    async def _handshake(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket is opened by any page, with the cookies of its reader, and no browser asks
        first: so its Origin must be this service, unless it brings a token."""
        try:
            await self._check_head({**scope, "method": "GET"})
            headers = Headers(scope=scope)
            if current.get().has_cookie(headers) and not is_same_origin(headers):
                raise Refused(
                    "this connection comes from a page of another site",
                    code="not-allowed",
                    hint="use a page of this service, or an API token",
                )
        except HarkenError as error:
            await self._answer(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def admit(self, scope: Scope, receive: Receive) -> bytes:
        """Check the head of a request that may have a body, and then read it."""
        await self._check_head(scope)
        return await self._body(scope, receive)

    async def _check_head(self, scope: Scope) -> None:
        """From here on it is known who sent the request: `identities.current`."""
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > self._largest_head:
            raise _too_large("head", self._largest_head, "max_header_bytes")
        headers, query = Headers(scope=scope), QueryParams(scope["query_string"])
        path: str = scope["path"]
        if path.startswith(LINKS_FOLDER):
            return
        if path in PUBLIC or path.startswith(PUBLIC_FOLDER) or (path == "/" and "view" in query):
            self._identities.check_place(headers, is_page=scope["method"] == "GET")
            return
        current.set(await self._identities.of(headers, query, scope["method"], path))

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_link = scope["path"].startswith(LINKS_FOLDER)
        if (
            kind != "application/json" and not is_link
        ):  # a form on another page can send any other type
            raise ValueFault(
                "the body must be sent as JSON",
                code="bad-value",
                hint="send the header `Content-Type: application/json`",
            )
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._largest_body:
            raise _too_large("body", self._largest_body, "max_body_bytes")
        try:
            async with asyncio.timeout(self._body_timeout):
                return await self._read(receive)
        except TimeoutError:
            raise StorageError(
                f"the body did not arrive within {self._body_timeout:g} s",
                code="too-slow",
                hint="send it faster or in parts; the setting body_timeout is the limit",
            ) from None

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            size += len(part)
            if size > self._largest_body:
                raise _too_large("body", self._largest_body, "max_body_bytes")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _wants_page(scope: Scope) -> bool:
    """Is it a browser that wants to show a page?"""
    accepted = Headers(scope=scope).get("accept", "")
    return scope["method"] == "GET" and "text/html" in accepted and scope["path"] != "/login"


def sign_in_path(scope: Scope) -> str:
    """The page for signing in, which leads back."""
    query = scope["query_string"].decode("latin-1")
    path = scope["path"] + (f"?{query}" if query else "")
    return "/login" if path == "/" else f"/login?next={quote(path, safe='')}"


def replay(body: bytes, receive: Receive) -> Receive:
    """Delivers the body as one message, then whatever follows it."""
    waiting = [body]

    async def next_message() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return next_message


def _too_large(part: str, limit: int, setting: str) -> StorageError:
    return StorageError(
        f"the {part} of the request is larger than {limit:,} bytes",
        code="too-large",
        hint=f"send less at once; the setting {setting} is the limit",
    )
