"""Stored functions: an entry in the catalog, and a relation that holds the rows."""

from __future__ import annotations

from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.ir.schema import Function


def store(
    runtime: Runtime,
    function: Function,
    property_of: str | None = None,
    in_lake: bool = False,
    dependencies: Dependencies | None = None,
    resident: bool = False,
    set_valued: bool = False,
) -> Function:
    """`resident` keeps it here even where new relations go to the lake. A set-valued function
    has a set of values for each argument."""
    made = runtime.catalog.add_function(
        function,
        dependencies or Dependencies(),
        False if set_valued else None,
        property_of,
    )
    assert made.relation is not None
    engine = runtime.engine
    if in_lake or (runtime.all_in_lake and not resident):
        engine.create_own(made.relation)
    else:
        engine.create(made.relation)
    return made
