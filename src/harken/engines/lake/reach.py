"""How the rows of far relations are reached by a plan, for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.engines.lake import limits
from harken.ir.clauses import atoms, stored_relations
from harken.ir.printer import print_definition
from harken.planner.demand import Demand, demands
from harken.planner.prepare import Plan, on_demand

if TYPE_CHECKING:
    from harken.engines.lake.engine import LakeEngine

KEYS, ROUNDS, WHOLE, SPARK = "keys", "rounds", "whole", "spark"


@dataclass(frozen=True, slots=True)
class Reach:
    """One demand of a plan: `how` is `keys`, `rounds`, `whole` or `spark`."""

    relation: str
    rows: int
    how: str
    columns: tuple[str, ...] = ()
    keys: str = ""
    """The clause that says which values the columns can have."""
    sources: tuple[str, ...] = ()
    """The relations in that clause; without any, the values are given."""

    def __str__(self) -> str:
        size = f"{self.relation}, {self.rows:,} rows:"
        if self.how == KEYS:
            origin = f"found in {', '.join(self.sources)}" if self.sources else "given"
            return f"{size} fetched by {', '.join(self.columns)}, with the values {origin}"
        if self.how == ROUNDS:
            return f"{size} fetched by what each round of the recursion finds"
        if self.how == SPARK:
            return f"{size} all of them are needed, which is too many to bring here: Spark answers"
        if self.columns:
            return f"{size} brought here as a whole, because they are few"
        return f"{size} all of them are needed, and brought here"


def reaches(engine: LakeEngine, plan: Plan) -> tuple[Reach, ...]:
    """What a plan asks of the lake; nothing if it reads no far relation. Whether so many keys turn
    up that Spark is better is seen only when it runs."""
    if not engine.far:
        return ()
    if on_demand(plan).layers:
        stored = stored_relations(plan.program).values()
        return tuple(_reach(engine, Demand(each), ROUNDS) for each in stored if engine.is_far(each))
    return tuple(_reach(engine, demand) for demand in demands(plan, engine.is_far))


def _reach(engine: LakeEngine, demand: Demand, how: str = KEYS) -> Reach:
    relation = demand.relation
    rows = engine.count(relation)
    if how == ROUNDS:
        names = tuple(column.name for column in relation.columns)
        return Reach(relation.id, rows, ROUNDS if rows > limits.SMALL else WHOLE, names)
    if demand.plan is None:
        how = WHOLE if rows <= limits.MOST_ROWS else SPARK
        return Reach(relation.id, rows, how)
    columns = tuple(relation.columns[i].name for i in demand.columns)
    if rows <= limits.SMALL:
        return Reach(relation.id, rows, WHOLE, columns)
    clauses = demand.plan.program.definitions[demand.plan.program.goal.id]
    sources = (
        atom.relation.id.replace("Δ ", "Δ") for each in clauses.clauses for atom in atoms(each.body)
    )
    return Reach(
        relation.id,
        rows,
        KEYS,
        columns,
        print_definition(clauses),
        tuple(dict.fromkeys(sources)),
    )


def described(found: tuple[Reach, ...]) -> list[str]:
    """The parts of an explanation about the lake. Of what is fetched in the same way for several
    reasons, the simplest is told."""
    if not found:
        return []
    simplest = sorted(found, key=lambda each: len(each.sources), reverse=True)
    told = {(each.relation, each.columns, each.sources[:1]): each for each in simplest}
    lines = [str(each) for each in reversed(told.values())]
    if any(each.how in (KEYS, ROUNDS) for each in found):
        lines.append(f"for more than {limits.MOST_KEYS:,} keys, Spark answers")
    return ["Of what is in the lake:", "\n".join(lines)]
