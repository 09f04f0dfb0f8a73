"""Hints for people who write SQL in AMOSQL.

Only a text that does not parse gets here, so a valid program that uses an SQL keyword as a name is
never affected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from lark import Token

from harken.errors import Span, SyntaxFault

COMMENTS = "comments stand between /* and */, and -- is two minus signs"
_NO_ORDER = "rows have no order: sort them where they are used"
_NO_LIMIT = "compare with an aggregate instead, as in price(i) = max(select price(j) ...)"
_NO_GROUPS = "ask for an aggregate for each thing: select d, count(staff(d)) for each department d"
_NO_ALTERNATIVES = "join conditions with `or`, `and` and `and not`, in one query"
_DELETE = "write delete type T, delete function f, delete rule r, or delete :x for an object"
_FOR_EACH = "write what it ranges over after the values: select name(i) for each item i"
_TRANSACTION = "a transaction begins by itself; `commit` or `rollback` ends it"


def _patterns(*habits: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in habits)


# A statement that begins like this.
_STATEMENTS = _patterns(
    (r"drop\s+\w+", _DELETE),
    (r"insert\s+into\b", 'write create item(name) instances :x("Pen"), or add f(:x) = 5'),
    (r"update\s+\w+\s+set\b", "write set f(:x) = 5, or for each item i where ... set f(i) = 5"),
    (r"delete\s+from\b", "write delete :x, or for each item i where ... delete i"),
    (r"truncate\s+\w+", "write for each item i delete i"),
    (r"alter\s+\w+", "add to a type with create function f(T) -> integer, or delete function f"),
    (r"create\s+table\b", "write create type item properties (name charstring, price number)"),
    (
        r"create\s+view\b",
        "write create function dear() -> item as select i for each item i where ...",
    ),
    (r"create\s+(?:unique\s+)?index\b", "indexes are made where they are needed"),
    (r"create\s+trigger\b", "write create rule r() as when ... do ..."),
    (r"create\s+procedure\b", "write create function f(item i) -> boolean as begin ... end"),
    (r"start\s+transaction\b", _TRANSACTION),
    (r"select\s+(?:distinct\s+)?\*", "name the values: select name(i), price(i) for each item i"),
    (r"select\s+top\s+[0-9]+", _NO_LIMIT),
)
# Words where the parser stopped.
_CLAUSES = _patterns(
    (r"order\s+by\b", _NO_ORDER),
    (r"group\s+by\b", _NO_GROUPS),
    (r"having\b(?!\s*\()", "an aggregate is a value like any other, and can stand in `where`"),
    (r"(?:limit|offset)\s+(?=[\w:])", _NO_LIMIT),
    (r"fetch\s+first\b", _NO_LIMIT),
    (r"(?:union|intersect|except)(?=\s+(?:all|select)\b)", _NO_ALTERNATIVES),
    (r"(?:(?:left|right|full|inner|outer|cross)\s+)*join\b", "a call within a call is a join"),
    (r"from\b", _FOR_EACH),
    (r"as\b", "a value has no name of its own here; leave it out"),
    (r"(?:not\s+)?like\b(?!\s*\()", 'like is a function: like(name(i), "shoe%")'),
    (r"is\s+null\b", "there is no NULL: write not some(f(x)) where f(x) may have no value"),
    (r"is\s+not\s+null\b", "there is no NULL: write some(f(x)) where f(x) may have no value"),
    (r"(?:not\s+)?between\b(?!\s*\()", "write low <= x and x <= high"),
)
_COUNTING = re.compile(r"(\w+)\s*\(\s*$")
_LISTING = re.compile(r"\bin\s*\([^()]*$", re.IGNORECASE)


def sql_habit_fault(text: str, statement: Sequence[Token], position: int) -> SyntaxFault | None:
    """The fault to report, if SQL syntax stopped the parser at the position; else None."""
    return (
        _comment(text, statement, position)
        or _doubled_quote(text, statement, position)
        or _statement(text, statement)
        or _clause(text, statement, position)
        or _star_or_list(text, position)
    )


def follows_minus_minus(text: str, place: int) -> bool:
    """Was it meant as a comment, as in `select 1; -- done`? That is right by the grammar."""
    return text[:place].rstrip().endswith("--")


def _comment(text: str, statement: Sequence[Token], position: int) -> SyntaxFault | None:
    for one, other in pairwise(statement):
        if one.type == other.type == "MINUS" and one.end_pos == other.start_pos:
            start = one.start_pos or 0
            return _fault("`--` does not begin a comment", start, start + 2, COMMENTS)
    for start in (position, position - 1):
        if text[max(start, 0) : start + 2] == "//":
            hint = "comments stand between /* and */"
            return _fault("`//` does not begin a comment", start, start + 2, hint)
    return None


def _doubled_quote(text: str, statement: Sequence[Token], position: int) -> SyntaxFault | None:
    if not statement or statement[-1].type != "STRING" or statement[-1].end_pos != position:
        return None
    quote = text[position : position + 1]
    if not quote or quote != statement[-1][-1]:
        return None
    return _fault(
        "a quote inside a string is not written twice",
        position - 1,
        position + 1,
        f"write it as \\{quote}, or put the string between the other kind of quotes",
    )


def _statement(text: str, statement: Sequence[Token]) -> SyntaxFault | None:
    if not statement:
        return None
    start = statement[0].start_pos or 0
    for pattern, hint in _STATEMENTS:
        if match := pattern.match(text, start):
            return _foreign_words(match, hint)
    return None


def _clause(text: str, statement: Sequence[Token], position: int) -> SyntaxFault | None:
    queries = statement and statement[0].type in ("SELECT", "FOR")
    for pattern, hint in _CLAUSES:
        match = pattern.match(text, position)
        if match and (queries or not match[0].lower().startswith(("from", "as"))):
            return _foreign_words(match, hint)
    return None


def _star_or_list(text: str, position: int) -> SyntaxFault | None:
    before = text[max(0, position - 200) : position]
    if text[position : position + 1] == "*" and (called := _COUNTING.search(before)):
        hint = f"say of what: {called[1]}(select i for each item i)"
        return _fault("`(*)` is SQL, not AMOSQL", position, position + 1, hint)
    if text[position : position + 1] == "," and _LISTING.search(before):
        hint = "write x = 1 or x = 2, or keep the values in a `bag of` function"
        return _fault("a list of values is SQL, not AMOSQL", position, position + 1, hint)
    return None


def _foreign_words(match: re.Match[str], hint: str) -> SyntaxFault:
    words = " ".join(match[0].lower().split())
    return _fault(f"`{words}` is SQL, not AMOSQL", match.start(), match.end(), hint)


def _fault(message: str, start: int, end: int, hint: str) -> SyntaxFault:
    return SyntaxFault(message, span=Span(start, end), hint=hint)
