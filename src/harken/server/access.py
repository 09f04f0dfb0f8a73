"""Who may ask.

With a token, whoever has it. Without one the service listens on this machine only, and answers only
what was meant for it: a page from elsewhere must not reach it through the browser of somebody who
works here, neither by a request of its own (its Origin) nor under a name of its own (the Host).
"""

from __future__ import annotations

import hmac
import ipaddress
import re

from fastapi import Request

from harken.errors import HarkenError

HERE = r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
ORIGIN_HERE = rf"https?://{HERE}"
TOKEN_PARAMETER = "token"
FROM_A_FILE = "null"
"""What a page says of its origin that was opened from a file, or hides where it is from."""


class Refused(HarkenError):
    """not-allowed."""


class Access:
    def __init__(self, token: str | None) -> None:
        self._token = token

    @property
    def origins(self) -> str:
        """The pages that may read answers."""
        return ORIGIN_HERE if self._token is None else f"{ORIGIN_HERE}|{FROM_A_FILE}"

    def __call__(self, request: Request) -> None:
        if self._token is not None:
            self._check_token(request)
        else:
            _check_local(request)

    def _check_token(self, request: Request) -> None:
        kind, _, header = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            # The bytes of a header are read as Latin-1, and most programs send UTF-8.
            given = [header.encode(), header.encode("latin-1")]
        else:
            given = [request.query_params.get(TOKEN_PARAMETER, "").encode()]
        wanted = str(self._token).encode()
        if not any(hmac.compare_digest(each, wanted) for each in given):
            raise Refused(
                "the token is missing or wrong",
                code="not-allowed",
                hint="send the header `Authorization: Bearer TOKEN`, or ?token=TOKEN",
            )


def _check_local(request: Request) -> None:
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not re.fullmatch(HERE, host) or not (origin is None or re.fullmatch(ORIGIN_HERE, origin)):
        raise Refused(
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
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
