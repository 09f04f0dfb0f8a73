"""Fetches what the rules of a recursion read of lake relations, before each of them runs.

A rule is a statement driven by the rows that the last round found. The keys of lake relations it
can need are computed as for any statement (`planner.demand`), with the tables of the recursion
beside it:

    path(X, Z) ← recent path(X, Y) ∧ edge(Y, Z)        edge(Y, ·) is needed for each recent Y

Law: when a rule runs, the cache holds every row of a lake relation that could add to its answer
or rule it out; if there are too many, the rule does not run and `TooManyRows` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harken.engines.protocol import TooManyRows
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.recursion import Bind, Slotted
from harken.engines.sqlite.slots import Slots
from harken.ir.clauses import Definition
from harken.planner.demand import Demand, demands_beside
from harken.planner.prepare import Plan
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement.placement import Placement

Ask = Callable[[], Collection[Row]] | None
"""A statement for the keys of a demand; None if it is for all rows."""


@dataclass(frozen=True, slots=True)
class Fetching:
    engine: Placement
    asked: tuple[tuple[Demand, str, Slotted], ...]
    """For each demand, the statement that finds its keys."""

    def __call__(self, bind: Bind) -> None:
        wanted = [
            (demand, partial(self._keys, sql, bind(slots)) if sql else None)
            for demand, sql, slots in self.asked
        ]
        if not self.engine.at_hand.have(wanted, many_times=True):
            raise TooManyRows

    def _keys(self, sql: str, values: Row) -> Collection[Row]:
        return set(self.engine.connection.rows(sql, values))


def fetching(
    engine: Placement, definition: Definition, plan: Plan, compiler: Compiler
) -> Fetching | None:
    """None if the definition reads no lake relation."""
    wanted = demands_beside(
        definition, plan, compiler.tables.keys(), engine.is_in_lake, compiler.driving.is_small
    )
    if not wanted:
        return None
    return Fetching(engine, tuple((each, *_question(each, compiler)) for each in wanted))


def _question(demand: Demand, compiler: Compiler) -> tuple[str, Slotted]:
    if demand.plan is None:
        return "", ()
    program = demand.plan.program
    compiler.slots = Slots()
    sql = compiler.definition(program.definitions[program.goal.id])
    return sql, compiler.slots.bound_in(sql)
