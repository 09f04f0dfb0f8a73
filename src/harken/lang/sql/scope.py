"""Name resolution: columns of the FROM items of a query first, then of the enclosing queries.

A column of an enclosing query is *captured*: it becomes an argument of the inner query's relation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harken.errors import NameFault, Span, TypeFault, nearest, offered
from harken.ir.terms import Term, Variable


@dataclass(frozen=True, slots=True)
class Field:
    """A column. `key` is a unique name for it where several columns share a name."""

    name: str
    term: Term
    key: str = ""


@dataclass(slots=True)
class FromItem:
    """An item of FROM: its alias, and its columns with their terms in the clause.

    `merged` are the columns that USING merged with another: `*` shows them once.
    """

    alias: str
    fields: list[Field]
    merged: set[str] = field(default_factory=set)
    of_using: bool = False
    """True for the merged columns of a join with USING, which have no alias of their own."""

    def __post_init__(self) -> None:
        """`SELECT t.a, u.a` in FROM: `*` has both, and a name means neither."""
        names = [each.name for each in self.fields]
        self.fields = [
            each if names.count(each.name) == 1 else replace(each, key=f"{each.name} {place}")
            for place, each in enumerate(self.fields)
        ]


@dataclass(slots=True)
class Scope:
    parent: Scope | None = None
    sources: list[FromItem] = field(default_factory=list)
    captured: dict[Variable, None] = field(default_factory=dict)
    hidden: Scope | None = None
    """The scope below GROUP BY. Its columns exist but cannot be used above the grouping."""
    apart: tuple[Variable, ...] = ()
    """Row numbers that distinguish equal rows, where random values need them."""

    def column(self, table: str | None, name: str, span: Span) -> Term:
        found = self._own(table, name, span)
        if found is not None:
            return found
        if self.hidden is not None and self.hidden.own(table, name):
            raise TypeFault(
                f"the column {name} must be in GROUP BY, or in an aggregate",
                code="ungrouped",
                span=span,
                hint=f"group by it, or take any_value({name}): a group has many rows",
            )
        if self.parent is not None and self.parent.knows(table, name):
            term = self.parent.column(table, name, span)
            self.capture(term)
            return term
        raise self._unknown(table, name, span)

    def capture(self, term: Term) -> None:
        if isinstance(term, Variable):
            self.captured[term] = None

    def knows(self, table: str | None, name: str) -> bool:
        if self.own(table, name) or (self.hidden is not None and self.hidden.own(table, name)):
            return True
        return self.parent is not None and self.parent.knows(table, name)

    def own(self, table: str | None, name: str) -> list[Term]:
        """The columns that a name can mean here, not in the queries around."""
        return [
            each.term
            for source in self.sources
            if table is None or source.alias == table
            for each in source.fields
            if name in (each.name, each.key) and not (table is None and name in source.merged)
        ]

    def _own(self, table: str | None, name: str, span: Span) -> Term | None:
        found = self.own(table, name)
        if len(found) > 1:
            having = [s for s in self.sources if any(f.name == name for f in s.fields)]
            tables = [source.alias for source in having if not source.of_using]
            raise TypeFault(
                f"the column {name} is in {' and in '.join(tables)}"
                if len(tables) > 1
                else f"the column {name} is twice in {tables[0]}",
                code="ambiguous",
                span=span,
                hint=f"say which: {tables[0]}.{name}"
                if len(tables) > 1
                else f"several columns of {tables[0]} have that name: call them differently",
            )
        return found[0] if found else None

    def unknown_source(self, table: str, span: Span) -> NameFault:
        here = [source.alias for source in self.sources if not source.of_using]
        return NameFault(
            f"there is no table {table} in FROM",
            code="unknown-table",
            span=span,
            hint=offered(table, here, "tables there"),
        )

    def _unknown(self, table: str | None, name: str, span: Span) -> NameFault:
        known = {
            each.name: f"{source.alias}.{each.name}"
            for source in self.sources
            for each in source.fields
        }
        if table is not None and table not in [source.alias for source in self.sources]:
            return self.unknown_source(table, span)
        here = {
            each.name: None
            for source in self.sources
            if table in (None, source.alias)
            for each in source.fields
        }
        near = nearest(name, known)
        return NameFault(
            f"there is no column {f'{table}.{name}' if table else name}",
            code="unknown-column",
            span=span,
            hint=f"did you mean {known[near]}?" if near else offered(name, here, "columns"),
        )
