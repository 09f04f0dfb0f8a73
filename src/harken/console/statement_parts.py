"""The parts of a query and of a trigger that a form has fields for: the query of figure 6-12 of the
thesis, and the groups of events of figure 6-15.

Law: parts are found only where their fields say all that the text says; any other text is None, and
is changed as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harken.continual.words import Word, words_of
from harken.errors import HarkenError

CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER")
MORE = frozenset({"HAVING", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "WINDOW", "QUALIFY", "OFFSET"})
"""Words of a query for which there is no field."""
FUNCTIONS = ("AVG", "COUNT", "MAX", "MIN", "SUM")
OPERATORS = (
    *("CHANGES", "<>", "=", "<", ">", "<=", ">=", "CONTAINS", "LIKE"),
    *("INCBY", "DECBY", "INCBYP", "DECBYP"),
)
"""In the order of the thesis. The last four: went up or down by, in units and in percent."""
JOINS = ("AND", "OR")


@dataclass(frozen=True, slots=True)
class _Text:
    """Words of one text; those inside of parentheses have a depth."""

    text: str
    words: Sequence[Word]
    depths: Sequence[int]

    @classmethod
    def of(cls, text: str) -> _Text:
        words, depths, depth = words_of(text), list[int](), 0
        for word in words:
            depth -= word.text == ")"
            depths.append(depth)
            depth += word.text == "("
        return cls(text, words, depths)

    def places(self, *names: str) -> list[int]:
        """Where one of these words stands outside of all parentheses."""
        found = enumerate(zip(self.words, self.depths, strict=True))
        return [at for at, (word, depth) in found if not depth and word.upper in names]

    def between(self, first: int, last: int) -> str:
        """The text of the words from one to another, which is not part of it."""
        if first >= last:
            return ""
        return self.text[self.words[first].start : self.words[last - 1].end]


def query_parts(text: str) -> dict[str, str] | None:
    """
    >>> query_parts("SELECT a, max(b) FROM t WHERE c IN (SELECT d FROM u) GROUP BY a")
    ... # doctest: +NORMALIZE_WHITESPACE
    {'select': 'a, max(b)', 'from': 't', 'where': 'c IN (SELECT d FROM u)', 'group': 'a',
     'order': ''}
    """
    found = _read(text)
    if found is None or found.places(*MORE):
        return None
    places = found.places(*CLAUSES)
    names = [found.words[at].upper for at in places]
    in_order = [CLAUSES.index(name) for name in names]
    if names[:2] != ["SELECT", "FROM"] or places[0] or in_order != sorted(set(in_order)):
        return None
    parts = dict.fromkeys(("select", "from", "where", "group", "order"), "")
    for at, end in pairwise([*places, len(found.words)]):
        name = found.words[at].upper
        first = at + 1 + (name in ("GROUP", "ORDER"))
        parts[name.lower()] = found.between(first, end)
    is_whole = all(parts[name.lower()] for name in names)
    return parts if is_whole else None


def event_groups(trigger: str) -> list[dict[str, str]] | None:
    """
    >>> event_groups("WHEN (stock.price DECBYP 5 WHERE stock.item = 'I') OR MAX(stock.volume) < 9")
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'join': '', 'function': '', 'column': 'stock.price', 'operator': 'DECBYP', 'value': '5',
      'where': "stock.item = 'I'", 'by': '', 'apart': 'yes'},
     {'join': 'OR', 'function': 'MAX', 'column': 'stock.volume', 'operator': '<', 'value': '9',
      'where': '', 'by': '', 'apart': ''}]
    """
    found = _read(trigger)
    if found is None or not found.words or found.words[0].upper != "WHEN":
        return None
    clause = found.places("WHERE", "GROUP", "GROUPBY")
    joins = [] if clause else found.places(*JOINS)
    groups = []
    for before, end in pairwise([0, *joins, len(found.words)]):
        join = found.words[before].upper if before else ""
        group = _group(found.between(before + 1, end))
        if group is None:
            return None
        groups.append({"join": join, **group})
    return groups


def _group(text: str) -> dict[str, str] | None:
    """`apart` says that it stands in parentheses, and so is about rows of its own."""
    found = _read(text)
    if found is None or not found.words:
        return None
    if found.words[0].text == "(" and found.words[-1].text == ")" and all(found.depths[1:-1]):
        inner = _group(found.between(1, len(found.words) - 1))
        return None if inner is None else {**inner, "apart": "yes"}
    where, by = found.places("WHERE"), found.places("GROUP", "GROUPBY")
    ends = [*where, *by, len(found.words)]
    test = _test(found, ends[0])
    if test is None or len(where) > 1 or len(by) > 1 or ends != sorted(ends):
        return None
    restricted = found.between(where[0] + 1, ends[1]) if where else ""
    grouped = ""
    if by:
        grouped = found.between(by[0] + 1 + (found.words[by[0]].upper == "GROUP"), ends[-1])
    return {**test, "where": restricted, "by": grouped, "apart": ""}


def _test(found: _Text, end: int) -> dict[str, str] | None:
    """`t.x = 5`, `MAX(t.x) < 5` or `t.x CHANGES`, of the words up to an end."""
    at, function = 0, ""
    if end > 2 and found.words[0].upper in FUNCTIONS and found.words[1].text == "(":
        function = found.words[0].upper
        closing = next((i for i in range(2, end) if not found.depths[i]), end)
        column, at = found.between(2, closing), closing + 1
    else:
        at = next((i for i in range(end) if _is_operator(found.words[i])), end)
        column = found.between(0, at)
    if at >= end or not column or not _is_operator(found.words[at]):
        return None
    operator, value = found.words[at].upper, found.between(at + 1, end)
    is_one = len(words_of(value)) in (1, 2, 3)
    if (operator == "CHANGES" and value) or (operator != "CHANGES" and not is_one):
        return None
    return {"function": function, "column": column, "operator": operator, "value": value}


def _is_operator(word: Word) -> bool:
    return word.upper in OPERATORS


def _read(text: str) -> _Text | None:
    try:
        return _Text.of(text)
    except HarkenError:
        return None


def shown_parts(query: str, trigger: str) -> dict[str, Any]:
    """The parts of a statement that the form has fields for."""
    return {"parts": query_parts(query), "groups": event_groups(trigger)}
