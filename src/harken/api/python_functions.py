"""Python implementations of AMOSQL functions: `db.foreign`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harken.api.internals import Internals
from harken.api.sensors import Sensor, activate
from harken.database.arguments import check_name
from harken.errors import ValueFault
from harken.statements.amosql import foreign

if TYPE_CHECKING:
    from harken.api.database import Database


def register_foreign(
    db: Database,
    name: str,
    function: Callable[..., Any],
    active: bool,
    every: datetime.timedelta | None,
) -> Sensor | None:
    """A passive function, or a sensor."""
    if active:
        check_name(name, "the name of a function")
        db.internals.look()
        return activate(db, name, function, every)
    if every is not None:
        raise ValueFault(
            f"{name} is passive, and asked when a query needs it",
            code="bad-value",
            hint="pass active=True to have it polled",
        )
    register_python(db.internals, name, function)
    return None


def register_python(internals: Internals, name: str, function: Callable[..., Any]) -> None:
    internals.look()
    check_name(name, "the name of a function")
    runtime, reactions = internals.runtime, internals.reactions
    replaced = foreign.replaced_by(runtime, name, function)
    if internals.connection.read_only or not any(map(reactions.reads, replaced)):
        foreign.register_in_session(runtime, name, function)
        return
    internals.check_committed(
        f"something depends on {name}, so its implementation cannot be replaced now"
    )
    with foreign.put_back(runtime, replaced), internals.transactions.block():
        reactions.before_schema_change({name})
        foreign.register_in_session(runtime, name, function)
        for each in replaced:
            reactions.foreign_changed(each)
