"""Evaluating plans: a plan becomes a query, which is run as often as wanted.

Law: every engine gives the same rows for the same plan over the same relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from harken.ir.relations import Relation
from harken.planner.prepare import Plan
from harken.values.rows import Row

RunWith: TypeAlias = Callable[[Sequence[Any]], int]
"""Changes rows with these parameters, and says how many."""


class TooManyRows(Exception):
    """More rows were asked for than may come here at once; another strategy may need fewer."""


class BrokenOff(Exception):
    """A query took longer than it may."""


class Query(Protocol):
    """A plan in the engine's own terms, run as often as wanted with other values.

    Law: the rows are those of the plan in the state of the relations when it runs.
    """

    @property
    def relation(self) -> Relation: ...

    @property
    def sql(self) -> str:
        """The statement, for people to read."""

    def rows(self, values: Sequence[Any]) -> list[Row]:
        """The rows, as stored values; `values` are the parameters by index."""

    def summed(self) -> list[Row]:
        """The rows of a weighted change, each once and with the sum of its weights, the last
        column; those that come to nothing are left out."""

    def evaluated(self) -> AbstractContextManager[Callable[[Relation], list[Row]]]:
        """In the block, the rows of the relations that became tables on the way."""

    def release(self) -> None:
        """It will not run again: release its tables."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Queries that were answered ahead, together. They hold while what they read is unchanged."""

    known: Mapping[Query, Query] = field(default_factory=dict)

    def of(self, query: Query) -> Query:
        """The query with its answer; the query itself if it was not asked."""
        return self.known.get(query, query) if self.known else query


NO_ANSWERS = Answers()


class Evaluate(Protocol):
    """Answers plans.

    Law: every engine gives the same rows for the same plan over the same relations.
    """

    def compile(self, plan: Plan, short: bool = False) -> Query:
        """A query for a plan. If it is to be `short`, a plan that takes long to make ready is
        refused as too complex, because the caller knows another way."""

    def updating(
        self, plan: Plan, relation: Relation, assigned: Mapping[int, int]
    ) -> RunWith | None:
        """What sets columns of the rows of a relation that a plan finds, in one go: `assigned` says
        to which column of the plan's goal. The goal has a row for each row to change. None if this
        engine reads them first."""

    def deleting(self, plan: Plan, relation: Relation) -> RunWith | None:
        """What takes the rows of a relation out that a plan finds, in one go."""

    def answer_together(self, queries: Iterable[Query]) -> Answers:
        """Answer what is cheaper to answer together. The queries have no parameters."""

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        """Make a Python function callable from plans; registering it again replaces it."""

    def explain_sql(self, plan: Plan) -> str: ...

    def measure(self) -> None:
        """Look at relations that have grown a good deal, to plan better. This is only speed."""
