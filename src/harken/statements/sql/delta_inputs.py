"""CREATE SOURCE ... USING delta: a Delta table of someone else, which steps read.

It is the table that CREATE TABLE ... USING lake LOCATION makes, and lies where the setting
`lake_roots` allows.
"""

from __future__ import annotations

from harken.database.runtime import Runtime
from harken.errors import SourceFault, offered
from harken.lang.sql.parser import statements
from harken.lang.sql.source_statements import SourceWords
from harken.lang.sql.word_reader import literal, quoted
from harken.statements.sql.creation import create

DELTA = "delta"
PATH = "path"


def create_input(runtime: Runtime, words: SourceWords) -> None:
    """In a transaction."""
    for name in words.options:
        if name != PATH:
            raise SourceFault(
                f"the kind {DELTA} has no option {name}",
                code="bad-option",
                hint=offered(name, [PATH], "options"),
            )
    if not isinstance(words.options.get(PATH), str):
        raise SourceFault(
            f"the kind {DELTA} needs the option {PATH}",
            code="bad-option",
            hint=f"OPTIONS ({PATH} '/data/sales')",
        )
    if words.capture is not None or words.poll is not None or words.alone or words.in_lake:
        raise SourceFault(
            "a Delta table has versions, which steps read: CAPTURE, POLL, MIRROR and IN lake say "
            "nothing about it",
            code="bad-option",
            hint="leave them out",
        )
    key = f" KEY ({', '.join(map(quoted, words.key))})" if words.key else ""
    location = literal(words.options[PATH])
    text = f"CREATE TABLE {quoted(words.name)} USING lake LOCATION {location}{key}"
    (statement,) = statements(text)
    create(runtime, statement)
