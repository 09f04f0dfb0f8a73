"""The layout in which the thesis prints a continual query.

    Create CQ banking_activity_watch as
    Query: SELECT ... ;
    Trigger: 6:00pm everyday
    Stop: 1 year (by default)

A clause begins with its name and a colon, for which a semicolon is printed once. Semicolons and
full stops at its end, and remarks in parentheses such as `(by default)`, say nothing; nor does a
semicolon before AND or OR, which is printed in the middle of a condition.
"""

from __future__ import annotations

import re

from harken.continual.clause_texts import NAMES, QUERY, Part
from harken.errors import SyntaxFault

_NAME = "|".join((QUERY, *NAMES))
_START = re.compile(rf"\b({_NAME})\s*:|;\s*({_NAME})\s*;(?!\s*(?:{_NAME})\s*:)", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_REMARK = re.compile(r"\s*\(\s*(?:by\s+)?default\s*\)\s*", re.IGNORECASE)
_STRAY = re.compile(r";(?=\s*(?:OR|AND)\b)", re.IGNORECASE)
_END = re.compile(r"[\s;.]*$")


def parts_of_thesis(text: str, base: int = 0) -> list[Part]:
    """
    >>> [(each.name, each.text) for each in parts_of_thesis("Query: SELECT 1; Stop: six months.")]
    [('QUERY', 'SELECT 1'), ('STOP', 'six months')]
    """
    hidden = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    starts = list(_START.finditer(hidden))
    if not starts or hidden[: starts[0].start()].strip():
        raise SyntaxFault("Query: is missing", code="syntax", hint="Create CQ name as Query: ...")
    ends = [each.start() for each in starts[1:]] + [len(text)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        said = text[start.end() : end]
        lead = len(said) - len(said.lstrip())
        name = (start[1] or start[2]).upper()
        said = _cleaned(said.strip(), name)
        if said or name == QUERY:
            found.append(Part(name, said, base + start.end() + lead))
    return found


def _cleaned(text: str, name: str) -> str:
    text = _STRAY.sub(" ", text) if name == QUERY else _REMARK.sub("", text)
    return _END.sub("", text)
