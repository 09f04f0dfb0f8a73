"""Python implementations of AMOSQL functions: `db.foreign`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.api.internals import Internals
from harken.database.arguments import check_name
from harken.statements.amosql import foreign


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
