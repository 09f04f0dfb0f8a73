"""A query whose rows SQLite can go on with: insert them, group them, weigh them.

Everything that `Placement` and `SQLiteEngine` compile is one; above the engines nobody needs to
know, so that no statement crosses the seam.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from harken.engines import protocol
from harken.engines.weighing import Weighing


class Selectable(protocol.Query, Protocol):
    @property
    def connection(self) -> protocol.Connection: ...

    @property
    def tables(self) -> Mapping[str, str]:
        """By the id of a relation the table that holds its rows while the query runs."""

    @property
    def slots(self) -> tuple[Any, ...]:
        """The parameters."""

    @property
    def fetch(self) -> Any:
        """What has at hand the rows of relations elsewhere, if it reads any."""

    @property
    def fixpoints(self) -> tuple[Any, ...]:
        """The recursions that are evaluated first, lowest first."""

    def counted(
        self, columns: Sequence[int], values: Sequence[int], present: int | None, many: bool
    ) -> list[protocol.Row] | None:
        """Some columns of the rows, each once, with how often they occur and the exact sums of
        other columns; only of rows that have a value in the column `present`. None says that the
        rows had better be counted where they are wanted, unless that is in `many` places."""

    def run_into(self, insert: str, beside: str = "") -> None:
        """Insert the rows, with what stands `beside` them."""

    def run_from(
        self, before: str, after: str, insert: str = "", conflict: str = ""
    ) -> list[tuple[Any, ...]]:
        """Run a statement around this one and give its rows, or insert them."""

    def weighed(self, weighing: Weighing, insert: str, conflict: str) -> None:
        """Insert what the rows of a change come to."""


def selectable(query: protocol.Query) -> Selectable:
    return cast(Selectable, query)


def weight_of(query: protocol.Query, weight: int | None) -> str:
    """What a row of a query weighs: a number, or what its last column says."""
    return f"c{query.relation.arity - 1}" if weight is None else str(weight)
