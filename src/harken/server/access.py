"""Which requests a service without a token answers, and where a service may listen.

Without a token the service listens on this machine only, and answers only requests that were meant
for it. A page from another site must not reach it through the browser
of somebody who works here: not under a host name of its own (the Host header), not with a script
(Origin), not with an image or a link (Sec-Fetch-Site).

Law: a request is checked by its head alone, before its body is read.
"""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers

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


def origins(token: str | None) -> str:
    """The origins whose pages may read answers."""
    return LOCAL_ORIGIN if token is None else f"{LOCAL_ORIGIN}|{FROM_A_FILE}"


def is_same_origin(headers: Headers) -> bool:
    """Does the browser say that a page of this very service sent the request?"""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None and site.lower() not in OWN_SITES:
        return False
    return origin is None or origin.partition("://")[2] == headers.get("host", "")


def check_local(headers: Headers) -> None:
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


def check_start(
    host: str, token: str | None, *, has_accounts: bool = False, is_encrypted: bool = False
) -> None:
    """Refuse to listen where other machines can connect, unless people sign in over an encrypted
    connection, or programs send a token."""
    if token == "":
        raise Refused("the token is empty", code="not-allowed", hint="choose a long random text")
    if token is not None or is_loopback(host):
        return
    if not has_accounts:
        raise Refused(
            f"other machines can reach the service on {host}, so it needs accounts or a token",
            code="not-allowed",
            hint="`harken user add NAME --db PATH` creates an account; give a token with --token "
            "or in HARKEN_TOKEN; or leave out --host",
        )
    if not is_encrypted:
        raise Refused(
            f"other machines can reach the service on {host}, and would send passwords that "
            "everybody on the way can read",
            code="not-allowed",
            hint="give a certificate with --tls-cert and --tls-key, or say --behind-proxy if a "
            "proxy encrypts",
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
