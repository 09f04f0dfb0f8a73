"""The query of a continual query, compiled: a program that the network can watch and recompute.

The language of queries is not known here: `Compiler` is what a front end gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from harken.ir.clauses import Definition, Program
from harken.ir.relations import Column, Relation


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    program: Program
    columns: tuple[Column, ...]
    mentions: frozenset[str]
    """The names of the tables and views that it mentions."""
    sources: tuple[str, ...]
    """The stored relations that it reads in the end."""
    own: tuple[Definition, ...] = ()
    """The definitions that are the query's own, that of its rows first."""
    key: tuple[int, ...] | None = None
    """The positions of columns that are known to identify a row."""
    triggered: Relation | None = None
    """The relation of the rows for which its trigger became true, if the query reads it."""
    untold: str = ""
    """Why its changes cannot be followed; empty if they can."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class LiftedQuery:
    """A query in which parameters stand for constants, for all queries that differ in them."""

    goal: Relation
    own: tuple[Definition, ...]
    mentions: frozenset[str]


class LiftedCompiler(Protocol):
    def __call__(self, text: str) -> tuple[LiftedQuery, tuple[Any, ...]] | None:
        """The query without its constants, and the values of its parameters. Texts that differ in
        constants give the same object, as long as the catalog stays as it is. None if a text must
        be compiled by itself."""


class Compiler(Protocol):
    def __call__(
        self, text: str, owner: str, base: int = 0, triggered: Relation | None = None
    ) -> CompiledQuery:
        """Compile a query with the present catalog. Relations that belong to it are named after
        `owner`; `base` is where the text starts in its statement, for the places of errors. In
        it, `triggered` means that relation."""
