"""Who may ask.

With a token, whoever has it. Without one the service listens on this machine only, and answers only
requests that are meant for it: a page from elsewhere must not reach it through the browser of
somebody who works here, neither under a name of its own (the Host header), nor by a request from a
script (Origin), nor by an image or a link (Sec-Fetch-Site).

Law: a request is checked from its head alone, before its body is read.
"""

from __future__ import annotations

import hmac
import ipaddress
import re

from starlette.datastructures import Headers, QueryParams

from harken.errors import HarkenError

HERE = r"(?i:localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
ORIGIN_HERE = rf"(?i:https?)://{HERE}"
TOKEN_PARAMETER = "token"
FROM_A_FILE = "null"
"""The origin of a page that was opened from a file, or hides where it is from."""
OWN_SITES = ("same-origin", "none")
"""What Sec-Fetch-Site says of a request by our own page, and of one that a person typed."""
BROWSER = "mozilla/"
"""How the User-Agent of every browser begins."""


class Refused(HarkenError):
    """not-allowed."""


class Access:
    def __init__(self, token: str | None) -> None:
        self._token = token

    @property
    def origins(self) -> str:
        """The pages that may read answers."""
        return ORIGIN_HERE if self._token is None else f"{ORIGIN_HERE}|{FROM_A_FILE}"

    def check(self, headers: Headers, query: QueryParams) -> None:
        if self._token is not None:
            self._check_token(headers, query, self._token)
        else:
            _check_local(headers)

    def _check_token(self, headers: Headers, query: QueryParams, token: str) -> None:
        kind, _, header = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            # The bytes of a header are read as Latin-1, and most programs send UTF-8.
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
    if not re.fullmatch(HERE, headers.get("host", "")):
        raise _elsewhere()
    if origin is not None:
        if not re.fullmatch(ORIGIN_HERE, origin):
            raise _elsewhere()
    elif site is not None:
        if site.lower() not in OWN_SITES:
            raise _elsewhere()
    elif headers.get("user-agent", "").lower().startswith(BROWSER):
        raise Refused(
            "this browser does not say which page a request comes from",
            code="not-allowed",
            hint="use one that sends Sec-Fetch-Site (all since 2023), or start the service with a "
            "token",
        )


def _elsewhere() -> Refused:
    return Refused(
        "this service answers only pages and programs of this machine",
        code="not-allowed",
        hint="start it with a token to let others in: harken serve --token TOKEN",
    )


def check_start(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach us, unless they need a token."""
    if token == "":
        raise Refused("the token is empty", code="not-allowed", hint="give a long random text")
    if token is None and not is_loopback(host):
        raise Refused(
            f"on {host} others than this machine can reach the service, so it needs a token",
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
