"""Who may use the service.

With a token, whoever sends it. Without one the service listens on this machine only, and answers
only requests that were meant for it. A page from another site must not reach it through the browser
of somebody who works here: not under a host name of its own (the Host header), not with a script
(Origin), not with an image or a link (Sec-Fetch-Site).

Law: a request is checked by its head alone, before its body is read.
"""

from __future__ import annotations

import hmac
import ipaddress
import re

from starlette.datastructures import Headers, QueryParams

from harken.errors import HarkenError

LOCAL_HOST = r"(?i:localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
LOCAL_ORIGIN = rf"(?i:https?)://{LOCAL_HOST}"
TOKEN_PARAMETER = "token"
FROM_A_FILE = "null"
"""The origin of a page that was opened from a file, or that hides its origin."""
OWN_SITES = ("same-origin", "none")
"""The values of Sec-Fetch-Site for a request from our own page, and for one that a person typed."""
BROWSER = "mozilla/"
"""The start of every browser's User-Agent."""


class Refused(HarkenError):
    """not-allowed."""


class Access:
    def __init__(self, token: str | None) -> None:
        self._token = token

    @property
    def origins(self) -> str:
        """The origins whose pages may read answers."""
        return LOCAL_ORIGIN if self._token is None else f"{LOCAL_ORIGIN}|{FROM_A_FILE}"

    def check(self, headers: Headers, query: QueryParams) -> None:
        if self._token is not None:
            self._check_token(headers, query, self._token)
        else:
            _check_local(headers)

    def _check_token(self, headers: Headers, query: QueryParams, token: str) -> None:
        kind, _, header = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            # The bytes of a header are decoded as Latin-1, but most programs send UTF-8.
            given = [header.encode(), header.encode("latin-1")]
        else:
            given = [query.get(TOKEN_PARAMETER, "").encode("utf-8", "surrogateescape")]
        if not any(hmac.compare_digest(each, token.encode()) for each in given):
            raise Refused(
                "the token is missing or wrong",
                code="not-allowed",
                hint="send the header `Authorization: Bearer TOKEN`, or ?token=TOKEN",
            )


def _check_local(headers: Headers) -> None:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if not re.fullmatch(LOCAL_HOST, headers.get("host", "")):
        raise _not_local()
    if origin is not None:
        if not re.fullmatch(LOCAL_ORIGIN, origin):
            raise _not_local()
    elif site is not None:
        if site.lower() not in OWN_SITES:
            raise _not_local()
    elif headers.get("user-agent", "").lower().startswith(BROWSER):
        raise Refused(
            "this browser does not say which page sent the request",
            code="not-allowed",
            hint="use a browser that sends Sec-Fetch-Site (all since 2023), or start the "
            "service with a token",
        )


def _not_local() -> Refused:
    return Refused(
        "this service answers only pages and programs on this machine",
        code="not-allowed",
        hint="start it with a token to let others in: harken serve --token TOKEN",
    )


def check_start(host: str, token: str | None) -> None:
    """Refuse to listen where other machines can connect, unless clients need a token."""
    if token == "":
        raise Refused("the token is empty", code="not-allowed", hint="choose a long random text")
    if token is None and not is_loopback(host):
        raise Refused(
            f"other machines can reach the service on {host}, so it needs a token",
            code="not-allowed",
            hint="give one with --token or in HARKEN_TOKEN, or leave out --host",
        )


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("Localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
