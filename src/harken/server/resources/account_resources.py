"""Accounts over HTTP: one's own sessions and tokens, the users of the service, and their rights.

Everybody sees and changes the own account; everything about others is for operators, and refused
below the API.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from harken.api.database import Database
from harken.api.user_accounts import SCOPES
from harken.database.accounts import Account, Key, KeyKind, State
from harken.errors import IntegrityError, NameFault, ValueFault
from harken.server.identities import Identities, current
from harken.server.resources.described import (
    CHANGED_MEANWHILE,
    LONGEST_NAME,
    NO_CONTENT,
    Body,
    IfMatch,
    IfNoneMatch,
    Name,
    PageOf,
    example,
    router,
)
from harken.server.resources.described import Key as IdempotencyKey
from harken.server.resources.examples import ACCOUNT, AUDIT_ENTRY, KEY, page_with
from harken.server.resources.resource_exchange import Exchange, Page
from harken.server.resources.shapes import (
    AccountShape,
    AuditShape,
    InvitationShape,
    KeyShape,
    MeShape,
    NewTokenShape,
)

MOST_DAYS = 36_500
RoleName = Literal["guest", "reader", "author", "operator"]
Days = Field(default=None, ge=1, le=MOST_DAYS)
Mail = Field(default="", max_length=LONGEST_NAME)


class NewUser(Body):
    name: str = Field(max_length=LONGEST_NAME)
    role: RoleName = "reader"
    email: str = Mail
    password: str | None = Field(default=None, max_length=LONGEST_NAME)
    days: int | None = Days


class UserChange(Body):
    role: RoleName | None = None
    active: bool | None = None
    password: str | None = Field(default=None, max_length=LONGEST_NAME)


class Renewal(Body):
    days: int | None = Field(
        default=None, ge=1, le=MOST_DAYS, description="From now on; null is for ever."
    )


class NewToken(Body):
    label: str = Field(min_length=1, max_length=LONGEST_NAME)
    scopes: list[Literal["read", "write", "admin"]] = Field(
        default_factory=list, max_length=len(SCOPES), description="None is everything."
    )
    days: int | None = Days


def account_resources(exchange: Exchange, identities: Identities) -> APIRouter:
    routes = router("accounts")
    _own(routes, exchange, identities)
    _tokens(routes, exchange)
    _users(routes, exchange, identities)
    _audit(routes, exchange)
    return routes


def _own(routes: APIRouter, exchange: Exchange, identities: Identities) -> None:
    @routes.get(
        "/me",
        response_model=MeShape,
        responses=example({"name": "ann", "role": "author", "account": ACCOUNT, "scopes": []}),
    )
    async def me(request: Request, if_none_match: IfNoneMatch = None) -> Response:
        """Who sends this request."""
        identity = current.get()

        def work(db: Database) -> dict[str, Any]:
            own = None if identity.key is None else _account(db.users.find(identity.name))
            role = "operator" if identity.user is None else identity.user.role
            scopes = () if identity.key is None else identity.key.scopes
            return {"name": identity.name, "role": role, "account": own, "scopes": scopes}

        return await exchange.show(request, work, own=True)

    @routes.get("/sessions", response_model=PageOf[KeyShape], responses=example(page_with(KEY)))
    async def sessions(request: Request, page: Page) -> Response:
        """The sessions in which the sender is signed in."""
        name = _own_name()
        return await exchange.page(
            request,
            page,
            lambda db: map(_key, db.users.keys(name, KeyKind.SESSION)),
            lambda each: each["id"],
            own=True,
        )

    @routes.delete("/sessions/{id}", status_code=204, responses=NO_CONTENT)
    async def end_session(request: Request, id: Name) -> Response:
        """Sign out there."""
        return await _end(exchange, identities, request, KeyKind.SESSION, id)

    @routes.delete("/tokens/{id}", status_code=204, responses=NO_CONTENT)
    async def end_token(request: Request, id: Name) -> Response:
        """End one of the sender's API tokens."""
        return await _end(exchange, identities, request, KeyKind.API, id)


def _tokens(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get("/tokens", response_model=PageOf[KeyShape], responses=example(page_with(KEY)))
    async def tokens(request: Request, page: Page) -> Response:
        """The sender's API tokens."""
        name = _own_name()
        return await exchange.page(
            request,
            page,
            lambda db: map(_key, db.users.keys(name, KeyKind.API)),
            lambda each: each["id"],
            own=True,
        )

    @routes.post(
        "/tokens",
        status_code=201,
        response_model=NewTokenShape,
        responses=example({**KEY, "token": "hka_..."}, 201),
    )
    async def make_token(request: Request, wanted: NewToken) -> Response:
        """Make an API token. Its text is shown this once, so there is no idempotency key: it would
        be kept in the file."""
        name, own = _own_name(), current.get().key
        scopes = _allowed_scopes(own, tuple(wanted.scopes))
        refuse_key(request)

        def work(db: Database) -> dict[str, Any]:
            before = {each.digest for each in db.users.keys(name, KeyKind.API)}
            text = db.users.make_token(name, wanted.label, scopes=scopes, days=wanted.days)
            made = db.users.keys(name, KeyKind.API)
            (new,) = [each for each in made if each.digest not in before]
            return {**_key(new), "token": text}

        return await exchange.change(request, work, status=201, own=True)


def _allowed_scopes(own: Key | None, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """A token makes no token that may do more than itself."""
    if own is None or not own.scopes or "admin" in own.scopes:
        return wanted
    if not wanted or not set(wanted) <= {*own.scopes, "read"}:
        raise IntegrityError(
            f"this token is for {' and '.join(own.scopes)} alone, and makes no other",
            code="not-permitted",
            hint="sign in, or ask for fewer scopes",
        )
    return wanted


def _users(routes: APIRouter, exchange: Exchange, identities: Identities) -> None:
    @routes.get(
        "/users", response_model=PageOf[AccountShape], responses=example(page_with(ACCOUNT))
    )
    async def users(request: Request, page: Page, if_none_match: IfNoneMatch = None) -> Response:
        """The accounts, by name. For operators, as all that follows."""
        return await exchange.page(
            request, page, lambda db: map(_account, db.users.list()), lambda each: each["name"]
        )

    @routes.get("/users/{name}", response_model=AccountShape, responses=example(ACCOUNT))
    async def user(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """One account."""
        return await exchange.show(request, lambda db: _one(db, name))

    @routes.post(
        "/users", status_code=201, response_model=AccountShape, responses=example(ACCOUNT, 201)
    )
    async def add_user(request: Request, wanted: NewUser, key: IdempotencyKey = None) -> Response:
        """Create an account. Without a password, invite the user to set one."""
        by = _sender()

        def work(db: Database) -> dict[str, Any]:
            made = db.users.add(
                wanted.name,
                role=wanted.role,
                email=wanted.email,
                password=wanted.password,
                days=wanted.days,
                by=by,
            )
            return _account(made)

        return await _changing(exchange, identities, request, work, status=201)

    @routes.patch(
        "/users/{name}",
        response_model=AccountShape,
        responses={**example(ACCOUNT), **CHANGED_MEANWHILE},
    )
    async def change_user(
        request: Request, name: Name, wanted: UserChange, if_match: IfMatch = None
    ) -> Response:
        """Give somebody another role or password, or let somebody sign in or not."""
        by = _sender()

        def work(db: Database) -> dict[str, Any]:
            if wanted.role is not None:
                db.users.set_role(name, wanted.role, by=by)
            if wanted.password is not None:
                db.users.set_password(name, wanted.password, by=by)
            if wanted.active is not None:
                db.users.set_active(name, wanted.active, by=by)
            return _one(db, name)

        return await _changing(exchange, identities, request, work, seen=lambda db: _one(db, name))

    @routes.delete("/users/{name}", status_code=204, responses={**NO_CONTENT, **CHANGED_MEANWHILE})
    async def remove_user(request: Request, name: Name, if_match: IfMatch = None) -> Response:
        """Remove an account, its keys and its rights; what it owned is the operator's."""
        by = _sender()
        return await _changing(
            exchange,
            identities,
            request,
            lambda db: db.users.remove(name, by=by),
            status=204,
            seen=lambda db: _one(db, name),
        )

    @routes.post("/users/{name}/renewal", response_model=AccountShape, responses=example(ACCOUNT))
    async def renew(
        request: Request, name: Name, wanted: Renewal, key: IdempotencyKey = None
    ) -> Response:
        """Renew a subscription. The queries of an account whose subscription had ended go on."""
        by = _sender()
        return await _changing(
            exchange,
            identities,
            request,
            lambda db: _account(db.users.renew(name, wanted.days, by=by)),
        )

    @routes.post(
        "/users/{name}/invitation",
        status_code=201,
        response_model=InvitationShape,
        responses=example(
            {"name": "ann", "key": "...", "link": "/redeem?kind=invitation&key=..."}, 201
        ),
    )
    async def invite(request: Request, name: Name) -> Response:
        """A link by which somebody sets the first password, once; earlier ones end."""
        by = _sender()
        refuse_key(request)

        def work(db: Database) -> dict[str, Any]:
            key = db.users.invite(name, by=by)
            place = str(db.settings["public_address"]).rstrip("/")
            link = f"{place}/redeem?kind=invitation&key={key}"
            return {"name": name.lower(), "key": key, "link": link}

        return await _changing(exchange, identities, request, work, status=201)


def _audit(routes: APIRouter, exchange: Exchange) -> None:
    @routes.get(
        "/audit", response_model=PageOf[AuditShape], responses=example(page_with(AUDIT_ENTRY))
    )
    async def audit(request: Request, page: Page) -> Response:
        """Who changed the configuration, and who signed in: newest first. For operators."""

        def work(db: Database) -> Any:
            return db.users.audit(int(db.settings["audit_entries"]))

        return await exchange.page(request, page, work, lambda each: each.number, newest_first=True)


async def _changing(
    exchange: Exchange, identities: Identities, request: Request, work: Any, **how: Any
) -> Response:
    """A change of accounts, after which everybody is looked up anew."""
    answer = await exchange.change(request, work, **how)
    identities.forget()
    return answer


async def _end(
    exchange: Exchange, identities: Identities, request: Request, kind: KeyKind, id: str
) -> Response:
    name = _own_name()

    def work(db: Database) -> None:
        if id not in {each.digest for each in db.users.keys(name, kind)}:
            raise NameFault(
                "you have no key with this id", code="unknown-id", hint="it may have ended"
            )
        db.users.end_key(id, name=name)

    return await _changing(exchange, identities, request, work, status=204, own=True)


def refuse_key(request: Request) -> None:
    """Secrets are not kept for a repeated request."""
    if "idempotency-key" in request.headers:
        raise ValueFault(
            "this request takes no idempotency key, because its answer is a secret",
            code="bad-value",
            hint="leave the header out",
        )


def _own_name() -> str:
    identity = current.get()
    if identity.user is None or identity.key is None:
        raise IntegrityError(
            f"{identity.name} has no account",
            code="not-allowed",
            hint="`harken user add NAME --db PATH` creates one",
        )
    return identity.user.name


def _sender() -> str:
    """Who is recorded in the audit log; only operators come further."""
    identity = current.get()
    identity.check_operator()
    return identity.name


def _one(db: Database, name: str) -> dict[str, Any]:
    return _account(db.users.find(name))


def _account(found: Account) -> dict[str, Any]:
    return {
        "name": found.name,
        "email": found.email,
        "role": found.role,
        "state": State(found.state),
        "created": found.created,
        "until": found.until,
    }


def _key(found: Key) -> dict[str, Any]:
    return {
        "id": found.digest,
        "label": found.label,
        "scopes": found.scopes,
        "created": found.created,
        "used": found.used,
        "until": found.until,
        "agent": found.agent,
        "address": found.address,
    }
