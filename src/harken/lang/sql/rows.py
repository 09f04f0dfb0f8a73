"""What a query becomes."""

from __future__ import annotations

from dataclasses import dataclass

from harken.ir.relations import Column, Relation
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query became: a relation whose first columns are those it captured.

    `unknown` are the places of columns that are nothing but NULL, which is of any type."""

    relation: Relation
    captured: tuple[Variable, ...]
    names: tuple[str, ...]
    unknown: frozenset[int] = frozenset()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.relation.columns[len(self.captured) :]
