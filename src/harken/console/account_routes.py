"""Signing in, registering, and what people do with their own account; and the operator's users.

Pages are shown to whoever asks; what they send is checked by the routes that receive it. A wrong
name and a wrong password are answered alike, and so are addresses that are known and unknown.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response

from harken.api.database import Database
from harken.console.rendering import Page, html_answer, render
from harken.database.accounts import KeyKind, State
from harken.errors import IntegrityError
from harken.server.access import Refused, is_same_origin
from harken.server.identities import COOKIE, Identities, csrf_of, current, session_of
from harken.server.service import Service
from harken.server.throttle import Throttle

NO_STORE = {"cache-control": "no-store"}
Text = Annotated[str, Body(max_length=1_000)]
DAY_SECONDS = 86_400
HASHES_AT_ONCE = 2
"""A password takes a processor for a while; others wait."""
HASHES_WAITING = 20


class Entrance:
    """What the routes share: the service, who is known, and how often passwords were tried."""

    def __init__(self, service: Service, identities: Identities) -> None:
        self.service = service
        self.identities = identities
        self.throttle = Throttle()
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self._waiting = 0

    async def is_password(self, name: str, password: str) -> bool:
        if self._waiting >= HASHES_WAITING:
            raise IntegrityError(
                "many people are signing in", code="too-many", hint="try again in a moment"
            )
        self._waiting += 1
        try:
            async with self._hashing:
                return await self.service.read_unchecked(
                    lambda db: db.users.is_password(name, password)
                )
        finally:
            self._waiting -= 1

    def setting(self, name: str) -> Any:
        return self.service.settings[name]

    async def signed_in(self, request: Request, name: str) -> tuple[str, str]:
        """A new session for somebody: its cookie, and its CSRF token."""
        days = float(self.setting("session_days"))
        address = request.client.host if request.client else ""
        agent = request.headers.get("user-agent", "")
        text = await self.service.write_unchecked(
            lambda db: db.users.sign_in(name, agent=agent, address=address, days=days)
        )
        self.identities.forget()
        return cookie(text, days * DAY_SECONDS, is_secure=self.is_secure(request)), csrf_of(text)

    def is_secure(self, request: Request) -> bool:
        """Does the browser reach the service by HTTPS, directly or through a proxy?"""
        address = str(self.setting("public_address"))
        return request.url.scheme == "https" or address.startswith("https://")

    async def mail(self, address: str, text: str) -> None:
        """Write a mail, which leaves with the next delivery."""
        await self.service.write_unchecked(lambda db: db.notifications.send("email", address, text))

    def link(self, request: Request, path: str) -> str:
        """An address of this service for a mail. The Host of a request is anybody's choice, so it
        is used only where nothing else is known and the service is local."""
        address = str(self.setting("public_address")).rstrip("/")
        return f"{address or str(request.base_url).rstrip('/')}{path}"


def cookie(text: str, seconds: float, *, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={text}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds:.0f}{secure}"


def account_routes(service: Service, identities: Identities) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    entrance = Entrance(service, identities)
    _pages(routes, entrance)
    _signing_in(routes, entrance)
    _registering(routes, entrance)
    _own_account(routes, entrance)
    _users(routes, entrance)
    return routes


def _pages(routes: APIRouter, entrance: Entrance) -> None:
    def page(template: str, title: str, **values: Any) -> Response:
        registration = entrance.setting("registration")
        shown = render(template, Page(title, "/login"), registration=registration, **values)
        return html_answer(shown)

    @routes.get("/login")
    async def login(next: str = "/") -> Response:
        return page("login.html", "Sign in", next=local_path(next))

    @routes.get("/register")
    async def register() -> Response:
        return page("register.html", "Register")

    @routes.get("/forgotten")
    async def forgotten() -> Response:
        return page("forgotten.html", "Forgotten password")

    @routes.get("/redeem")
    async def redeem(key: str = "", kind: str = KeyKind.INVITATION) -> Response:
        return page("redeem.html", "Set your password", key=key, kind=kind)


def _signing_in(routes: APIRouter, entrance: Entrance) -> None:
    @routes.post("/session")
    async def sign_in(request: Request, name: Text, password: Text, next: Text = "/") -> Response:
        _check_origin(request)
        address = request.client.host if request.client else ""
        who = f"name {name.strip().lower()}", f"address {address}"
        entrance.throttle.check(*who)
        if not await entrance.is_password(name, password):
            entrance.throttle.fail(*who)
            raise Refused(
                "the name or the password is wrong",
                code="not-allowed",
                hint="a forgotten password can be replaced at /forgotten",
            )
        set_cookie, csrf = await entrance.signed_in(request, name)
        entrance.throttle.succeed(who[0])
        answer = {"next": local_path(next), "csrf": csrf}
        return JSONResponse(answer, headers={**NO_STORE, "set-cookie": set_cookie})

    @routes.post("/session/end")
    async def sign_out(request: Request) -> Response:
        identity = current.get()
        if identity.key is not None and session_of(request.headers) is not None:
            digest = identity.key.digest
            await entrance.service.write_unchecked(
                lambda db: db.users.end_key(digest, name=identity.name)
            )
            entrance.identities.forget()
        headers = {**NO_STORE, "set-cookie": cookie("", 0, is_secure=entrance.is_secure(request))}
        return JSONResponse({"next": "/login"}, headers=headers)


def _registering(routes: APIRouter, entrance: Entrance) -> None:
    @routes.post("/register")
    async def register(request: Request, name: Text, email: Text, password: Text) -> Response:
        _check_origin(request)
        if entrance.setting("registration") != "open":
            raise Refused(
                "nobody can register here",
                code="not-allowed",
                hint="ask the operator to invite you",
            )
        address = request.client.host if request.client else ""
        entrance.throttle.check(f"register {address}")
        entrance.throttle.fail(f"register {address}")
        confirmed = not entrance.setting("smtp_host")
        key = await entrance.service.write_unchecked(
            lambda db: db.users.register(name, email, password, confirmed=confirmed)
        )
        entrance.identities.forget()
        if confirmed:
            return JSONResponse({"next": "/login", "told": "You can sign in now."})
        link = entrance.link(request, f"/redeem?kind=confirmation&key={key}")
        await entrance.mail(email, f"Welcome to Harken. Confirm your mail address here: {link}")
        return JSONResponse(
            {"told": "Look at your mail: it has a link that ends the registration."}
        )

    @routes.post("/forgotten")
    async def forgotten(request: Request, name: Text) -> Response:
        """The answer is the same whether there is such an account or not."""
        _check_origin(request)
        address = request.client.host if request.client else ""
        entrance.throttle.check(f"forgotten {address}")
        entrance.throttle.fail(f"forgotten {address}")
        found = await entrance.service.write_unchecked(lambda db: db.users.begin_reset(name))
        if found is not None and entrance.setting("smtp_host"):
            account, key = found
            link = entrance.link(request, f"/redeem?kind=reset&key={key}")
            text = f"Set a new password for {account.name} within the next hour: {link}"
            await entrance.mail(account.email, text)
        return JSONResponse(
            {"told": "If there is such an account, a mail with a link is on its way to it."}
        )

    @routes.post("/redeem")
    async def redeem(
        request: Request, key: Text, kind: Text, password: Annotated[str | None, Body()] = None
    ) -> Response:
        _check_origin(request)
        if kind not in (KeyKind.INVITATION, KeyKind.RESET, KeyKind.CONFIRMATION):
            raise IntegrityError("there are no such links", code="not-allowed")
        given = None if kind == KeyKind.CONFIRMATION else (password or "")
        account = await entrance.service.write_unchecked(
            lambda db: db.users.redeem(KeyKind(kind), key, given)
        )
        entrance.identities.forget()
        set_cookie, csrf = await entrance.signed_in(request, account.name)
        return JSONResponse(
            {"next": "/", "csrf": csrf}, headers={**NO_STORE, "set-cookie": set_cookie}
        )


def _own_account(routes: APIRouter, entrance: Entrance) -> None:
    @routes.post("/account/password")
    async def password(request: Request, old: Text, new: Text) -> Response:
        name = _own_name()
        entrance.throttle.check(f"name {name}")
        if not await entrance.is_password(name, old):
            entrance.throttle.fail(f"name {name}")
            raise Refused("the old password is wrong", code="not-permitted", hint="try again")
        await entrance.service.write_unchecked(lambda db: db.users.set_password(name, new))
        set_cookie, csrf = await entrance.signed_in(request, name)
        answer = {"next": "/account", "csrf": csrf, "told": "The password is changed."}
        return JSONResponse(answer, headers={**NO_STORE, "set-cookie": set_cookie})

    @routes.post("/account/tokens")
    async def make_token(
        label: Text, scope: Text = "", days: Annotated[int | None, Body()] = None
    ) -> Response:
        name, scopes = _own_name(), tuple(scope.split())
        text = await entrance.service.write_unchecked(
            lambda db: db.users.make_token(name, label, scopes=scopes, days=days)
        )
        told = "Copy the token now: it is not shown again."
        return JSONResponse({"token": text, "told": told}, headers=NO_STORE)

    @routes.post("/account/end")
    async def end_key(digest: Text) -> Response:
        name = _own_name()
        await entrance.service.write_unchecked(lambda db: db.users.end_key(digest, name=name))
        entrance.identities.forget()
        return JSONResponse({"next": "/account"}, headers=NO_STORE)


def _users(routes: APIRouter, entrance: Entrance) -> None:
    @routes.post("/operator/users")
    async def add(
        request: Request, name: Text, role: Text = "reader", email: Text = "", password: Text = ""
    ) -> Response:
        by = _operator_name()

        def work(db: Database) -> str | None:
            db.users.add(name, role=role, email=email, password=password or None, by=by)
            return None if password else db.users.invite(name, by=by)

        key = await entrance.service.write_unchecked(work)
        entrance.identities.forget()
        return await _invited(entrance, request, email, key)

    @routes.post("/operator/users/invite")
    async def invite(request: Request, name: Text) -> Response:
        by = _operator_name()

        def work(db: Database) -> tuple[str, str]:
            return db.users.find(name).email, db.users.invite(name, by=by)

        email, key = await entrance.service.write_unchecked(work)
        return await _invited(entrance, request, email, key)

    @routes.post("/operator/users/change")
    async def change(name: Text, role: Text = "", state: Text = "") -> Response:
        by = _operator_name()

        def work(db: Database) -> None:
            if role:
                db.users.set_role(name, role, by=by)
            if state:
                db.users.set_active(name, state == State.ACTIVE, by=by)

        await entrance.service.write_unchecked(work)
        entrance.identities.forget()
        return JSONResponse({"next": "/operator?tab=users"}, headers=NO_STORE)


async def _invited(
    entrance: Entrance, request: Request, email: str, key: str | None
) -> JSONResponse:
    """The link goes by mail where that can be sent, else the operator passes it on."""
    if key is None:
        return JSONResponse({"next": "/operator?tab=users"}, headers=NO_STORE)
    link = entrance.link(request, f"/redeem?kind=invitation&key={key}")
    if email and entrance.setting("smtp_host"):
        await entrance.mail(email, f"You are invited to Harken. Set your password here: {link}")
        return JSONResponse({"told": f"A mail with a link is on its way to {email}."})
    told = "Pass this link on: it sets the password, once, within 14 days."
    return JSONResponse({"told": told, "token": link}, headers=NO_STORE)


def _operator_name() -> str:
    identity = current.get()
    identity.check_operator()
    return identity.name


def account_values(db: Database, name: str) -> dict[str, Any]:
    """What the page of an account shows."""
    return {
        "account": db.users.find(name),
        "sessions": db.users.keys(name, KeyKind.SESSION),
        "tokens": db.users.keys(name, KeyKind.API),
    }


def _own_name() -> str:
    identity = current.get()
    if identity.user is None or identity.key is None:
        raise IntegrityError(
            "whoever works on this machine has no account",
            code="not-allowed",
            hint="harken user add NAME creates one",
        )
    return identity.user.name


def _check_origin(request: Request) -> None:
    """A page of another site must not sign anybody in, or use up the attempts of somebody."""
    if not is_same_origin(request.headers):
        raise Refused(
            "this request comes from another site", code="not-allowed", hint="use the page /login"
        )


def local_path(path: str) -> str:
    """Where to go after signing in: a page of this service and of no other.

    >>> local_path("/data/sale?tab=how"), local_path("//evil.example"), local_path("https://evil")
    ('/data/sale?tab=how', '/', '/')
    """
    return path if re.fullmatch(r"/(?![/\\])[^\s\\]*", path) else "/"
