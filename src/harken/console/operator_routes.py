"""What an operator does in the console: the mail server, allowed addresses, announcements, grants,
backups. Each is checked by the method of the database that does it, and recorded in the audit log.
"""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse, Response

from harken.api.database import Database
from harken.console.rendering import sql_name
from harken.database.permissions import Privilege
from harken.errors import ValueFault
from harken.server.identities import current
from harken.server.service import Service

NO_STORE = {"cache-control": "no-store"}
Text = Annotated[str, Body(max_length=1_000)]
LongText = Annotated[str, Body(max_length=100_000)]
PASSWORD_NAME = "mail-server"
"""The secret with the password of the mail server."""
RIGHTS = tuple(str(each) for each in Privilege)


def operator_routes(service: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    _mail(routes, service)
    _people(routes, service)
    _file(routes, service)
    return routes


def _by() -> str:
    identity = current.get()
    identity.check_operator()
    return identity.name


def _mail(routes: APIRouter, service: Service) -> None:
    @routes.post("/operator/mail")
    async def mail(
        host: Text,
        sender: Text,
        port: Annotated[int, Body(ge=1, le=65_535)] = 587,
        security: Text = "starttls",
        user: Text = "",
        password: Text = "",
    ) -> Response:
        by = _by()

        def work(db: Database) -> None:
            kept: dict[str, Any] = {
                "smtp_host": host.strip(),
                "smtp_from": sender.strip(),
                "smtp_port": port,
                "smtp_security": security,
                "smtp_user": user.strip(),
            }
            if password:
                reference = db.configuration.store_secret(PASSWORD_NAME, password, by=by)
                kept["smtp_password"] = reference
            elif not user.strip():
                kept["smtp_password"] = None
            db.configuration.keep(kept, by=by)

        await service.write(work)
        return _told("Kept. Send a test to see that it works.")

    @routes.post("/operator/mail/test")
    async def test(address: Annotated[str, Body(max_length=1_000, embed=True)]) -> Response:
        _by()

        text = "This is a test: Harken can send mails to this address."
        sample = await service.read(
            lambda db: db.notifications.sample("email", address.strip(), text)
        )
        await asyncio.to_thread(sample.send)
        return _told(f"Sent to {address}. Look into that mailbox.")

    @routes.post("/operator/addresses")
    async def addresses(allowed: Annotated[bool, Body(embed=True)]) -> Response:
        """Whether sources and webhooks may reach this machine and its network."""
        by = _by()
        kept = {"allow_private_addresses": allowed}
        await service.write(lambda db: db.configuration.keep(kept, by=by))
        return JSONResponse({"next": "/operator?tab=settings"}, headers=NO_STORE)


def _people(routes: APIRouter, service: Service) -> None:
    @routes.post("/operator/announce")
    async def announce(text: LongText, subject: Text = "") -> Response:
        _by()
        if not text.strip():
            raise ValueFault("the announcement is empty", code="bad-value", hint="write a text")
        numbers, _ = await service.write(
            lambda db: db.notifications.announce(text, subject=subject.strip())
        )
        await service.publish()
        people = "1 person" if len(numbers) == 1 else f"{len(numbers):,} people"
        return _told(
            f"On its way to {people}."
            if numbers
            else "Nobody is notified by a continual query, so there is nobody to tell."
        )

    @routes.post("/operator/grant")
    async def grant(
        on: Text, to: Text, right: Text = "SELECT", take: bool = Body(False)
    ) -> Response:
        _by()
        if right not in RIGHTS:
            raise ValueFault(f"there is no right {right}", code="bad-value", hint=", ".join(RIGHTS))
        who = "PUBLIC" if to.strip().upper() == "PUBLIC" else sql_name(to.strip())
        verb, way = ("REVOKE", "FROM") if take else ("GRANT", "TO")
        what = f"CHANNEL {on}" if right == Privilege.NOTIFY else sql_name(on)
        await service.write(lambda db: db.sql(f"{verb} {right} ON {what} {way} {who}"))
        return JSONResponse({"next": "/operator?tab=grants"}, headers=NO_STORE)


def _file(routes: APIRouter, service: Service) -> None:
    @routes.post("/operator/backup")
    async def backup() -> Response:
        """A backup beside the database, named after the moment."""
        _by()
        now = datetime.datetime.now(datetime.UTC)
        path = Path(service.path)
        place = path.with_name(f"{path.stem}-{now:%Y%m%d-%H%M%S}.harken")
        made = await service.inspect(lambda db: db.backup(str(place)))
        return _told(f"Written to {made.path}, {made.bytes:,} bytes. Secrets are not in it.")


def _told(text: str) -> JSONResponse:
    return JSONResponse({"told": text}, headers=NO_STORE)
