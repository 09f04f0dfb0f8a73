"""`NOTIFY WEBHOOK 'https://example.org/hook'`: an HTTP POST of JSON.

With the option `secret` it is signed as the Standard Webhooks specification says
(https://www.standardwebhooks.com).

The body is `{"type": kind, "timestamp": at, "data": {...}}`. Several secrets in one, separated by
spaces, sign with each of them, so that a secret can be replaced without a lost message.

Law: the connection goes to an address that the network guard has checked, never to a name, and no
redirection is followed.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
import socket
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harken.database.messages import Recipient, StoredMessage
from harken.database.results import to_json
from harken.database.secrets import has_password, is_reference
from harken.errors import ValueFault
from harken.network_guard import permitted_addresses
from harken.notify.channel_registry import NotDelivered, Surroundings
from harken.notify.channels.file_lines import as_object
from harken.notify.tls import trusted
from harken.packages import needs

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS, SECONDS = 10.0, 20.0
"""How long a receiver may take to be reached, and for each part of its answer."""
MOST_BYTES = 5 * 2**20
"""The largest body that is sent."""
GONE = 410
PREFIX = "whsec_"
LEAST_SECRET, MOST_SECRET = 24, 64
"""Bytes of a secret in the specification."""


class Webhooks:
    name = "webhook"
    options = ("secret",)

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        with needs("notify"):
            import httpx  # noqa: F401
        if not is_reference(recipient.address):
            _host(recipient.address)
            if has_password(recipient.address):
                raise ValueFault(
                    "the address of a webhook must not hold a password or a token",
                    code="bad-value",
                    hint="store the whole address as a secret, and write secret:NAME",
                )
        secret = recipient.options.get("secret")
        if secret is not None and not is_reference(secret):
            raise ValueFault(
                "the secret of a webhook is not part of a definition",
                code="bad-value",
                hint="store it with `harken secret set NAME` and write secret:NAME",
            )

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        with needs("notify"):
            import httpx
        to = message.message.recipient
        body = to_json(_body(message)).encode()
        if len(body) > MOST_BYTES:
            raise NotDelivered(
                f"the message has {len(body):,} bytes, and {MOST_BYTES:,} are sent", retry=False
            )
        headers = {"content-type": "application/json", **_signed(message, body, around)}
        try:
            request = _pinned(to.address, around)
        except OSError as error:
            raise NotDelivered(f"{_shown(to.address)} cannot be found") from error
        url, host, name = request
        timeout = httpx.Timeout(SECONDS, connect=CONNECT_SECONDS)
        try:
            with (
                httpx.Client(
                    trust_env=False, timeout=timeout, follow_redirects=False, verify=trusted()
                ) as client,
                client.stream(
                    "POST",
                    url,
                    content=body,
                    headers={**headers, "host": host},
                    extensions={"sni_hostname": name},
                ) as answer,
            ):
                _judge(answer, around)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotDelivered(f"{_shown(to.address)}: {type(error).__name__}") from error


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message in the Standard Webhooks specification.

    >>> secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    >>> signature(secret, id, 1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = f"{id}.{timestamp}.".encode() + body
    made = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(made).decode()


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not LEAST_SECRET <= len(key) <= MOST_SECRET:
        raise NotDelivered(
            f"the secret of the webhook must be {PREFIX} and the base64 of {LEAST_SECRET} to "
            f"{MOST_SECRET} bytes"
        )
    return key


def _signed(message: StoredMessage, body: bytes, around: Surroundings) -> dict[str, str]:
    timestamp = int(around.now().timestamp())
    headers = {"webhook-id": message.id, "webhook-timestamp": str(timestamp)}
    secrets = str(message.message.recipient.options.get("secret", "")).split()
    if secrets:
        headers["webhook-signature"] = " ".join(
            signature(secret, message.id, timestamp, body) for secret in secrets
        )
    return headers


def _body(message: StoredMessage) -> dict[str, object]:
    return {
        "type": message.message.kind,
        "timestamp": message.message.at.isoformat(),
        "data": as_object(message),
    }


def _host(address: str) -> tuple[str, int]:
    """Host and port of the address of a webhook."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if (
        parts.scheme not in ("http", "https")
        or not host
        or not address.isprintable()
        or " " in address
    ):
        raise ValueFault(
            "a webhook is an address of http or https",
            code="bad-value",
            hint="as NOTIFY WEBHOOK 'https://example.org/hook'",
        )
    return host, port or (443 if parts.scheme == "https" else 80)


def _pinned(address: str, around: Surroundings) -> tuple[httpx.URL, str, str]:
    """The address to connect to, and what to put into the header Host and TLS's server name."""
    import httpx

    host, port = _host(address)
    allowed = permitted_addresses(
        host,
        port,
        allow_private=around.setting("allow_private_addresses"),
        resolve=socket.getaddrinfo,
    )
    if not allowed:
        raise OSError(host)
    try:
        url = httpx.URL(address)
        named = url.netloc.decode("ascii")
        return url.copy_with(host=allowed[0]), named, url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueFault("the address of the webhook cannot be read", code="bad-value") from error


def _judge(answer: httpx.Response, around: Surroundings) -> None:
    if answer.is_success:
        return
    said = f"the receiver answered {answer.status_code}"
    if answer.status_code == GONE:
        raise NotDelivered(f"{said}: it wants no more messages", retry=False)
    raise NotDelivered(said, after=_retry_after(answer.headers.get("retry-after"), around))


def _retry_after(text: str | None, around: Surroundings) -> float | None:
    """The seconds that a receiver asks to wait, which come as a number or as a date."""
    if not text:
        return None
    if text.strip().isdecimal() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)
    return max(0.0, (at - around.now()).total_seconds())


def _shown(address: str) -> str:
    """An address without its path and parameters, which may hold a token."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}"
