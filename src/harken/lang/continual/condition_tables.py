"""The tables that a condition is about, as the catalog knows them.

A table has its columns and its key, by which a row is the same row after a change. Groups of rows,
and the previous values of a table, are tables too: they are made when a condition needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from harken.ir.relations import Column
from harken.values.types import Type

SINCE_POSITION, UNTIL_POSITION, WAS_THERE = "from position", "to position", "was there"
"""Columns of previous values: the executions that they are the previous values of, and whether
there was a row at all."""
COPIES = "number of copies"
"""How often a row is there, in a table without a key."""


@dataclass(frozen=True, slots=True)
class ConditionTable:
    name: str
    """Its name in FROM."""
    title: str
    """Its name in errors."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    has_key: bool = True
    """False if the key is made of all columns, because there is no other."""

    def type_of(self, column: str) -> Type | None:
        return next((each.type for each in self.columns if each.name == column), None)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that are not of the key."""
        return tuple(each for each in self.columns if each.name not in self.key)


class ConditionTables(Protocol):
    @property
    def defaults(self) -> Sequence[tuple[str, str]]:
        """The tables of the query, each with the name that the query gives it: columns without a
        table are theirs."""

    def table(self, name: str) -> ConditionTable | None:
        """A table or view, or the one that is read from a host of this name."""

    def names(self) -> Iterable[str]: ...

    def predicate(self, name: str, arguments: int) -> Sequence[str] | None:
        """The columns of a Python function with so many arguments: these, then its result."""

    def groups(self, query: exp.Select, key: Sequence[str]) -> ConditionTable:
        """The rows of a query as a table; the key are names of its columns."""

    def counted(self, table: ConditionTable) -> ConditionTable:
        """A table without a key, each row once, with how often it is there (`COPIES`)."""

    def previous(self, table: ConditionTable) -> str:
        """The name of the table of its previous values. Its columns are those of `key_name` and
        `value_name`, the positions, and whether there was a row."""


def key_name(column: str) -> str:
    return f"key {column}"


def value_name(column: str) -> str:
    return f"value {column}"


def quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def column(name: str, table: str) -> exp.Column:
    return exp.Column(this=quoted(name), table=quoted(table))


def from_table(name: str, alias: str) -> exp.Expr:
    return exp.alias_(exp.Table(this=quoted(name)), alias, table=True, quoted=True)
