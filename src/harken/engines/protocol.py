"""What the rest of Harken asks of an engine.

An engine stores relations, changes them inside transactions, and evaluates plans. It never parses
a user's text and never decides what to compute; it only knows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from harken.ir.relations import Relation
from harken.planner.prepare import Plan


class TooManyRows(Exception):
    """More rows were asked for than may come here at once; another strategy may need fewer."""


class BrokenOff(Exception):
    """A query took longer than it may."""


class CompiledQuery(Protocol):
    """A plan in the engine's own terms, run as often as wanted with other values."""

    @property
    def relation(self) -> Relation: ...

    @property
    def sql(self) -> str: ...

    def rows(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows, as stored values; `values` are the parameters by index."""


class Engine(Protocol):
    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None: ...

    def drop(self, relation: Relation) -> None: ...

    def compile(self, plan: Plan) -> CompiledQuery: ...

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None: ...

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None: ...

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...
