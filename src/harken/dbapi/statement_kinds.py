"""What a text does to the transaction of a connection, told by its first words.

>>> [kind_of(text) for text in ("SELECT 1", "-- new\\n update t SET a = 1", "commit", "")]
[<Kind.READS: 'reads'>, <Kind.CHANGES: 'changes'>, <Kind.ENDS: 'ends'>, <Kind.READS: 'reads'>]
>>> kind_of("WITH c AS (SELECT 1 AS a) INSERT INTO t SELECT a FROM c")
<Kind.CHANGES: 'changes'>
"""

from __future__ import annotations

import enum
import re


class Kind(enum.Enum):
    READS = "reads"
    CHANGES = "changes"
    ENDS = "ends"
    """It begins or ends a transaction itself."""
    ALONE = "alone"
    """It cannot run inside a transaction."""


_LEADING = re.compile(r"(\s|--[^\n]*(\n|$)|/\*.*?\*/|;)*", re.DOTALL)
_READS = frozenset({"SELECT", "VALUES", "FROM", "TABLE", "WITH", "(", "SET", "RESET"}) | frozenset(
    {"SHOW", "DESCRIBE", "DESC", "EXPLAIN"}
)
_ENDS = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK"})
_WORD = re.compile(r"\w+|\(")
_CHANGE = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_SEVERAL = re.compile(r";\s*\w")
"""Later statements may change something."""
_KEPT_VIEW = re.compile(r"CREATE\s+(OR\s+REPLACE\s+)?MATERIALIZED\b", re.IGNORECASE)


def kind_of(text: str) -> Kind:
    rest = text[_LEADING.match(text).end() :]  # type: ignore[union-attr]  # it matches everything
    found = _WORD.match(rest)
    word = found[0].upper() if found else ""
    if word in _ENDS:
        return Kind.ENDS
    if word == "WITH" and _CHANGE.search(rest):
        return Kind.CHANGES
    if not word or word in _READS:
        return Kind.CHANGES if _SEVERAL.search(rest) else Kind.READS
    return Kind.ALONE if _KEPT_VIEW.match(rest) else Kind.CHANGES
