"""Many rows at once, as objects of a type or rows of a table: `db.load`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.api.internals import Internals
from harken.database.arguments import check_names, check_text
from harken.database.objects import Object
from harken.statements.amosql.load import load_objects
from harken.statements.sql.load import load_rows, table_to_load


def load(
    internals: Internals, name: str, rows: Any, properties: Sequence[str] | None
) -> Sequence[Object]:
    """Returns the new objects; a table of SQL gets rows without objects."""
    check_text(name, "the name of a type or table")
    if properties is not None:
        properties = check_names(properties, "the properties")
    with internals.alone():
        table = table_to_load(internals.runtime, name)
        if table is not None:
            load_rows(internals.runtime, table, rows, properties)
            return ()
        return load_objects(internals.runtime, name, rows, properties)
