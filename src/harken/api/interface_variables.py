"""Interface variables from Python: `db.assign("toys", value)` sets what AMOSQL calls `:toys`."""

from __future__ import annotations

from typing import Any

from harken.database.arguments import check_name, check_text, check_whole, wrong
from harken.database.objects import Object
from harken.database.runtime import Runtime
from harken.values.encoding import encode, literal_type


def assign(runtime: Runtime, name: str, value: Any) -> None:
    check_text(name, "the name of a variable")
    name = name.removeprefix(":")
    check_name(name, "the name of a variable")
    if isinstance(value, Object):
        runtime.objects.own(value)
    else:
        encode(value, literal_type(value))
    runtime.assign(name, value)


def name_of(runtime: Runtime, value: Object) -> str:
    """How an object prints."""
    if not isinstance(value, Object):
        raise wrong(value, "what is named", "an object", None)
    check_whole(value.oid, "the number of an object")
    return runtime.name_object(runtime.objects.own(value))
