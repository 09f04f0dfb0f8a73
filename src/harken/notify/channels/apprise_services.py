"""`NOTIFY APPRISE 'tgram://bot/chat'`: every service that the package apprise knows.

An address holds the password of the service, so it is best stored as a secret: `'secret:chat'`. A
scheme whose address names a host, a file or this machine is the operator's to allow, by the setting
`apprise_schemes`; the others reach the one service that they are for. Their parameters after `?`
may name hosts and files too, so they come with allowed schemes only.
"""

from __future__ import annotations

import logging
import warnings
from functools import cache
from typing import Any

from harken.database.messages import Recipient, StoredMessage
from harken.database.secrets import is_reference
from harken.errors import HarkenError, ValueFault
from harken.notify.channel_registry import NotDelivered, Surroundings
from harken.packages import needs

ELSEWHERE = frozenset({"host", "path", "fullpath", "keyfile", "instance", "webhook", "facility"})
"""Parts of addresses that say where to connect, or name a file or a facility of this machine."""


class AppriseServices:
    name = "apprise"

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        _library()
        if not is_reference(recipient.address):
            _check_scheme(recipient.address, around)

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        address = message.message.recipient.address
        scheme = _check_scheme(address, around)
        apprise = _library()
        service = apprise.Apprise.instantiate(address, suppress_exceptions=True)
        if service is None:
            raise NotDelivered(f"apprise cannot read the address of {scheme}", retry=False)
        texts = around.texts(message)
        failed = message.message.kind in ("error", "operator_error")
        kind = apprise.NotifyType.FAILURE if failed else apprise.NotifyType.INFO
        accepted = service.notify(
            body=texts.text,
            title=texts.subject,
            notify_type=kind,
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not accepted:
            raise NotDelivered(f"the service {scheme} did not accept the message")


def _check_scheme(address: str, around: Surroundings) -> str:
    """The scheme of an address that may be used here."""
    scheme = address.partition("://")[0].lower()
    if scheme not in services():
        raise ValueFault(
            "apprise knows no service with this scheme",
            code="bad-value",
            hint="an address begins as tgram://... or slack://...; "
            "https://appriseit.com lists all of them",
        )
    allowed = {each.strip().lower() for each in around.setting("apprise_schemes").split(",")}
    if scheme in allowed:
        return scheme
    if not services()[scheme] or "?" in address:
        raise HarkenError(
            f"addresses {scheme}:// can name a host or a file, and are not allowed here",
            code="not-allowed",
            hint=f"the operator can allow them: --set apprise_schemes={scheme}"
            if not services()[scheme]
            else "leave out what follows the ?, or let the operator allow it: "
            f"--set apprise_schemes={scheme}",
        )
    return scheme


@cache
def _library() -> Any:
    with needs("notify"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import apprise

        apprise.Apprise().details()  # imports all services, some of which cause warnings
    # What apprise logs may hold the address, which is a secret.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return apprise


@cache
def services() -> dict[str, bool]:
    """The schemes that apprise knows, and whether each reaches one service outside only."""
    found = {}
    for service in _library().Apprise().details()["schemas"]:
        closed = _is_closed(service)
        secure = service["secure_protocols"] or ()
        for scheme in (*(service["protocols"] or ()), *secure):
            found[str(scheme)] = closed and scheme in secure
    return found


def _is_closed(service: dict[str, Any]) -> bool:
    tokens = {name for name in service["details"]["tokens"] if name != "schema"}
    return bool(tokens) and not tokens & ELSEWHERE
