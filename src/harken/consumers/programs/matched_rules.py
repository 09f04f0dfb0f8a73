"""The instances of a rule that are in the conflict set, kept as the network changes them.

A rule is matched when it is first tried; from then on every wave brings its changes. Law: the rows
are those of the rule's views in the present state, without the ones that refraction excludes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harken.consumers.programs.compiled_programs import CompiledRule, RuleView
from harken.ir.productions import HeadLiteral
from harken.ir.relations import Relation
from harken.ir.terms import Constant, Term, Variable
from harken.values.encoding import encode
from harken.values.rows import Row

MANY = 200
"""From so many new rows on, a list is sorted again instead of inserting one by one."""

Template = tuple[tuple[bool, Any], ...]
"""For each column of a fact whether it is a column of the instance, and which; or its value."""


class SortedRows:
    """Rows in the order of a key; the greatest is chosen first."""

    def __init__(self, key: Callable[[Row], Any] | None = None) -> None:
        self._key = key
        self._sorted: list[Any] = []
        self._keys: dict[Row, Any] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def __contains__(self, row: Row) -> bool:
        return row in self._keys

    def add(self, rows: Sequence[Row]) -> None:
        fresh = [row for row in dict.fromkeys(rows) if row not in self._keys]
        entries = [row if self._key is None else (self._key(row), row) for row in fresh]
        self._keys.update(zip(fresh, entries, strict=True))
        if len(entries) > MANY:
            self._sorted = sorted([*self._sorted, *entries])
        else:
            for entry in entries:
                insort(self._sorted, entry)

    def remove(self, rows: Iterable[Row]) -> None:
        gone = [self._keys.pop(row) for row in rows if row in self._keys]
        if len(gone) > MANY:
            self._sorted = sorted(self._keys.values())
            return
        for entry in gone:
            del self._sorted[bisect_left(self._sorted, entry)]

    @property
    def greatest(self) -> Row | None:
        if not self._sorted:
            return None
        row: Row = self._sorted[-1] if self._key is None else self._sorted[-1][1]
        return row

    def rows(self) -> list[Row]:
        """The greatest first."""
        found = reversed(self._sorted)
        return list(found) if self._key is None else [row for _, row in found]


@dataclass(frozen=True, slots=True)
class MatchedState:
    """A snapshot of what is firable of a rule."""

    firable: tuple[Row, ...]
    fresh: tuple[Row, ...]
    tokens: dict[tuple[str, bool], dict[Row, None]]


class MatchedRule:
    """`fired` are the instances that refraction excludes, `fresh` those whose procedures have not
    been called since the body came to hold for them."""

    def __init__(self, compiled: CompiledRule, key: Callable[[Row], Any] | None) -> None:
        self.compiled = compiled
        self.rule = compiled.rule
        self.order = key or (lambda row: row)
        self.firable = SortedRows(key)
        self.fresh = SortedRows(key)
        self.tokens: dict[tuple[str, bool], dict[Row, None]] = {}
        """Of a set-oriented rule, its output tokens by relation and sign."""
        self.targets: dict[str, Relation] = {}
        columns = {each: i for i, each in enumerate(self.rule.columns)}
        self._heads = [(each, template(each.terms, columns)) for each in self.rule.heads]
        self._calls = [(each, template(each.terms, columns)) for each in self.rule.calls]
        self._facts = [
            (relation.id, template(terms, columns)) for relation, terms in self.rule.facts or ()
        ]

    def put(self, view: RuleView, plus: list[Row], minus: list[Row]) -> None:
        """The rows that a view of the rule gained and lost."""
        if view.target is not None:
            self.targets[view.target.id] = view.target
            held = self.tokens.setdefault((view.target.id, view.deletes), {})
            for row in minus:
                held.pop(row, None)
            held.update(dict.fromkeys(plus))
            return
        rows = self.fresh if view.key.endswith(" calls") else self.firable
        rows.remove(minus)
        rows.add(plus)

    @property
    def is_firable(self) -> bool:
        return bool(self.firable or self.fresh or any(self.tokens.values()))

    def state(self) -> MatchedState:
        tokens = {key: dict(rows) for key, rows in self.tokens.items()}
        return MatchedState(tuple(self.firable.rows()), tuple(self.fresh.rows()), tokens)

    def restore(self, state: MatchedState) -> None:
        for rows, kept in ((self.firable, state.firable), (self.fresh, state.fresh)):
            rows.remove(rows.rows())
            rows.add(kept)
        self.tokens = {key: dict(rows) for key, rows in state.tokens.items()}

    def facts_of(self, row: Row) -> list[tuple[str, Row]]:
        """The facts that an instance is made of."""
        return [(relation, filled(each, row)) for relation, each in self._facts]

    def heads_of(self, row: Row) -> list[tuple[HeadLiteral, Row]]:
        return [(literal, filled(each, row)) for literal, each in self._heads]

    def calls_of(self, row: Row) -> list[tuple[Any, Row]]:
        return [(call, filled(each, row)) for call, each in self._calls]


def template(terms: Sequence[Term], columns: dict[Variable, int]) -> Template:
    found: list[tuple[bool, Any]] = []
    for term in terms:
        if isinstance(term, Variable):
            found.append((True, columns[term]))
        else:
            assert isinstance(term, Constant)
            found.append((False, encode(term.value, term.type)))
    return tuple(found)


def filled(template: Template, row: Row) -> Row:
    return tuple(row[value] if is_column else value for is_column, value in template)
