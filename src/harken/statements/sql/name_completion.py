"""What can stand at a place in SQL.

The word before says what is meant: behind FROM a table, behind `t.` a column of `t`, and elsewhere
the columns of the tables that the statement names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harken.statements.completing import Candidates, KnownNames, Place

_TABLES_FOLLOW = {"from", "join", "into", "update", "table", "view", "describe", "desc", "using"}
_NAMED = re.compile(r"\b(?:from|join|into|update|table)\s+`?(\w+)`?(?:\s+(?:as\s+)?(\w+))?", re.I)


def complete(place: Place, names: KnownNames, keywords: Sequence[str]) -> Candidates:
    tables = {name.lower(): columns for name, columns in names.tables().items()}
    found = _NAMED.findall(place.text)
    named = {alias or table: table for table, alias in found} | {table: table for table, _ in found}
    if place.word.startswith("."):
        owner = re.search(r"(\w+)$", place.before)
        table = named.get(owner[1], owner[1]) if owner else ""
        yield "column", tables.get(str(table).lower(), ())
        return
    last = re.search(r"(\w+)\s*$", place.before)
    describes = place.before.strip().startswith("\\d")
    if describes or (last and last[1].lower() in _TABLES_FOLLOW):
        yield "table", tables
        return
    for table in dict.fromkeys(named.values()):
        yield f"column of {table}", tables.get(table.lower(), ())
    yield "keyword", keywords
    yield "table", tables
