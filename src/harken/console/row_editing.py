"""Rows of a table, changed by hand: added, edited, deleted; and what follows is seen at once.

A row is told by its key, or by all of its values. Values come as texts of a form, and are read as
values of their columns by SQL itself; an empty field is NULL where there is a mark beside it.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse, Response

from harken.api.database import Database
from harken.console.object_pages import Shown
from harken.database.permissions import Privilege
from harken.errors import HarkenError, ValueFault
from harken.ir.relations import Column
from harken.lang.sql.table_texts import delete_text, insert_text, update_text
from harken.server.identities import current
from harken.server.service import Service

NO_STORE = {"cache-control": "no-store"}
Values = Annotated[dict[str, Any], Body(max_length=1_000)]


def can_write(db: Database, shown: Shown) -> bool:
    """Whether the page offers it; the database itself refuses what is not allowed."""
    if shown.listed.kind != "table":
        return False
    if current.get().is_operator:
        return True
    granted = {(row[0], row[2]) for row in db.sql("SHOW GRANTS").rows}
    return any((shown.name, str(right)) in granted for right in (Privilege.INSERT, "ALL"))


def row_routes(service: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.post("/rows/{name:path}")
    async def change(name: str, old: Values, new: Values) -> Response:
        """`old` is the row as it was, empty for a new one; `new` is empty for a deletion."""

        def work(db: Database) -> int:
            columns = {each.name: each for each in db.describe_table(name).columns}
            key = db.describe_table(name).primary_key
            for given in (*old, *new):
                if given not in columns:
                    raise ValueFault(f"{name} has no column {given}", code="bad-value")
            text, values = _statement(name, columns, key, old, new)
            changed = db.sql(text, values).changed
            if old and not changed:
                raise ValueFault(
                    "the row is not there any more, or somebody has changed it",
                    code="changed-meanwhile",
                    hint="look at the row as it is now, and try again",
                )
            return changed

        try:
            changed, position = await service.write(work)
        except HarkenError as error:
            found = {"message": error.message, "hint": error.hint or "", "code": error.code}
            status = 403 if error.code == "not-permitted" else 400
            return JSONResponse(found, status, headers=NO_STORE)
        await service.publish()
        return JSONResponse({"changed": changed, "position": position}, headers=NO_STORE)

    return routes


def _statement(
    name: str,
    columns: dict[str, Column],
    key: tuple[str, ...],
    old: dict[str, Any],
    new: dict[str, Any],
) -> tuple[str, list[Any]]:
    if not old and not new:
        raise ValueFault("there is no row", code="bad-value", hint="fill in a field")
    given = [columns[each] for each in new]
    if not old:
        return insert_text(name, given), list(new.values())
    identity = {each: old[each] for each in (key or tuple(old)) if each in old}
    told_by = [columns[each] for each in identity]
    if not new:
        return delete_text(name, told_by), list(identity.values())
    return update_text(name, given, told_by), [*new.values(), *identity.values()]
