"""Who sends a request.

- Without accounts and without a token, the service listens on this machine only, and whoever works
  here is the operator (`access.py` keeps pages of other sites out).
- With a token (`HARKEN_TOKEN`), whoever sends it is the operator.
- With accounts, a request comes with the cookie of a session or with an API token. One that comes
  with neither is a guest's, if guests are allowed, and is refused otherwise.

A request with a cookie that changes anything must also send the session's CSRF token in a header,
which no other site can read.

Law: an identity is good for at most `CACHED_SECONDS` after its key was ended.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, QueryParams

from harken.api.database import Database
from harken.database.accounts import Account, Key, KeyKind
from harken.database.permissions import Role, User
from harken.server.access import TOKEN_PARAMETER, Refused, check_local, is_same_origin

COOKIE = "harken_session"
CSRF_HEADER = "x-csrf"
CACHED_SECONDS = 2.0
MOST_CACHED = 10_000
NO_CHANGE = ("GET", "HEAD", "OPTIONS")
READ_ONLY_POSTS = ("/query", "/query/complete")
"""Posts that change nothing by themselves, which a token for reading may make."""

ReadDatabase = Callable[[Callable[[Database], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Identity:
    """`user` is None for the operator without an account."""

    user: User | None = None
    key: Key | None = None
    csrf: str = ""

    @property
    def name(self) -> str:
        return "operator" if self.user is None else self.user.name

    @property
    def is_operator(self) -> bool:
        return self.user is None or self.user.is_operator

    def has_cookie(self, headers: Headers) -> bool:
        """Is it known by the cookie of a session?"""
        return (
            self.key is not None
            and self.key.kind is KeyKind.SESSION
            and session_of(headers) is not None
        )

    @property
    def is_author(self) -> bool:
        return self.user is None or self.user.role in (Role.AUTHOR, Role.OPERATOR)

    def check_operator(self) -> None:
        if not self.is_operator:
            raise Refused(
                f"{self.name} is no operator", code="not-permitted", hint="ask an operator"
            )


OPERATOR = Identity()
GUEST = Identity(User("guest", Role.GUEST))
current: ContextVar[Identity] = ContextVar("identity", default=OPERATOR)
"""Who sent the request that is being answered."""


class Identities:
    def __init__(self, read: ReadDatabase, token: str | None, *, guests: bool, local: bool) -> None:
        """`local` says that only this machine can connect, so that a request that was meant for
        another host comes from a page that must not reach the service."""
        self._read = read
        self._token = token
        self._guests = guests
        self._local = local and token is None
        self._known: OrderedDict[str, tuple[float, Identity | None]] = OrderedDict()
        self._accounts: tuple[float, bool] = (0.0, False)

    async def of(self, headers: Headers, query: QueryParams, method: str, path: str) -> Identity:
        """Who sends a request with this head; Refused if nobody may."""
        self.check_place(headers)
        bearer = bearer_of(headers)
        given = bearer or query.get(TOKEN_PARAMETER)
        if self._token is not None and given is not None and _is_same(given, self._token):
            return OPERATOR
        if bearer is not None and bearer.startswith("hka_"):
            found = await self._holder(KeyKind.API, bearer)
            if found is not None:
                _check_scope(found, method, path)
                return found
        cookie = session_of(headers)
        if cookie is not None:
            found = await self._holder(KeyKind.SESSION, cookie)
            if found is not None:
                _check_csrf(found, headers, method)
                return found
        if self._token is None and not await self.has_accounts():
            return OPERATOR
        if self._guests and given is None:
            return GUEST
        raise Refused(
            "the token is missing or wrong"
            if given is not None or self._token is not None
            else "sign in first",
            code="not-allowed",
            hint="send the header `Authorization: Bearer TOKEN`, or ?token=TOKEN"
            if self._token is not None
            else "sign in at /login, or send an API token: `Authorization: Bearer TOKEN`",
        )

    def check_place(self, headers: Headers, *, is_page: bool = False) -> None:
        """Keep pages of other sites out where being on this machine is all that it takes."""
        if self._local and not is_page:
            check_local(headers)

    async def has_accounts(self) -> bool:
        """Without accounts, whoever works on this machine is the operator."""
        until, found = self._accounts
        now = time.monotonic()
        if now >= until:
            found = bool(await self._read(lambda db: bool(db.users.list())))
            self._accounts = (now + CACHED_SECONDS, found)
        return found

    async def _holder(self, kind: KeyKind, text: str) -> Identity | None:
        name, now = f"{kind} {hashlib.sha256(text.encode()).hexdigest()}", time.monotonic()
        until, found = self._known.get(name, (0.0, None))
        if now < until:
            return found
        held = await self._read(lambda db: db.users.holder(kind, text))
        found = None if held is None else _identity(held[0], held[1], text)
        self._known[name] = (now + CACHED_SECONDS, found)
        while len(self._known) > MOST_CACHED:
            self._known.popitem(last=False)
        return found

    def forget(self) -> None:
        """An account or a key has changed here."""
        self._known.clear()
        self._accounts = (0.0, False)


def _identity(account: Account, key: Key, text: str) -> Identity:
    return Identity(account.user, key, csrf_of(text))


def csrf_of(session: str) -> str:
    """What a page of this session sends with its changes."""
    return hashlib.sha256(f"csrf {session}".encode()).hexdigest()[:40]


def bearer_of(headers: Headers) -> str | None:
    kind, _, header = headers.get("authorization", "").partition(" ")
    return header.strip() if kind.lower() == "bearer" and header.strip() else None


def session_of(headers: Headers) -> str | None:
    """The key in the cookie, if there is one."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _is_same(given: str, token: str) -> bool:
    """The bytes of a header are decoded as Latin-1, but most programs send UTF-8."""
    wanted = token.encode()
    forms = [given.encode("utf-8", "surrogateescape")]
    forms += [given.encode("latin-1", "replace")]
    return any(hmac.compare_digest(each, wanted) for each in forms)


def _check_csrf(identity: Identity, headers: Headers, method: str) -> None:
    if method in NO_CHANGE:
        return
    if not is_same_origin(headers) or not hmac.compare_digest(
        headers.get(CSRF_HEADER, "").encode(), identity.csrf.encode()
    ):
        raise Refused(
            "this request does not come from a page of this service",
            code="not-allowed",
            hint="load the page again; programs use an API token instead of a cookie",
        )


def _check_scope(identity: Identity, method: str, path: str) -> None:
    assert identity.key is not None
    scopes = identity.key.scopes
    needed = "read" if method in NO_CHANGE or path in READ_ONLY_POSTS else "write"
    if not scopes or needed in scopes or "admin" in scopes:
        return
    if needed == "read" and "write" in scopes:
        return
    raise Refused(
        f"this token is not for {needed}ing" if needed == "read" else "this token is for reading",
        code="not-permitted",
        hint=f"make one with the scope {needed}",
    )
