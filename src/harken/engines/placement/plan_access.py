"""What a plan asks of the lake, found without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.engines import fetch_limits as limits
from harken.engines.access_paths import KEYS, ROUNDS, SPARK, WHOLE, Reach
from harken.ir.clauses import atoms, stored_relations
from harken.ir.printer import print_definition
from harken.planner.demand import Demand, demands
from harken.planner.prepare import Plan, on_demand

if TYPE_CHECKING:
    from harken.engines.placement.placement import Placement


def reaches(engine: Placement, plan: Plan) -> tuple[Reach, ...]:
    """What a plan asks of the lake; nothing if it reads no lake relation. Whether so many keys turn
    up that Spark is better is seen only when it runs."""
    if not engine.lake_relations:
        return ()
    if on_demand(plan).layers:
        stored = stored_relations(plan.program).values()
        return tuple(
            _reach(engine, Demand(each), ROUNDS) for each in stored if engine.is_in_lake(each)
        )
    return tuple(_reach(engine, demand) for demand in demands(plan, engine.is_in_lake))


def _reach(engine: Placement, demand: Demand, how: str = KEYS) -> Reach:
    relation = demand.relation
    rows = engine.count(relation)
    if how == ROUNDS:
        names = tuple(column.name for column in relation.columns)
        how = ROUNDS if rows > limits.SMALL else WHOLE
        return Reach(relation.label, rows, how, names)
    if demand.plan is None:
        how = WHOLE if rows <= limits.MOST_ROWS else SPARK
        return Reach(relation.label, rows, how)
    columns = tuple(relation.columns[i].name for i in demand.columns)
    if rows <= limits.SMALL:
        return Reach(relation.label, rows, WHOLE, columns)
    clauses = demand.plan.program.definitions[demand.plan.program.goal.id]
    sources = (atom.relation.label for each in clauses.clauses for atom in atoms(each.body))
    return Reach(
        relation.label,
        rows,
        KEYS,
        columns,
        print_definition(clauses),
        tuple(dict.fromkeys(sources)),
    )
