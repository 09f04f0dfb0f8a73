"""What a change of each influent does to a view or a condition: its differentials, as clauses and
as SQL."""

from __future__ import annotations

from dataclasses import dataclass

from harken.calculus.bags import differentiate_bag
from harken.calculus.differentials import differentiate
from harken.database.runtime import Runtime
from harken.engines.access_paths import Reach, described
from harken.ir.clauses import Program
from harken.ir.printer import print_clause
from harken.ir.relations import Kind, Relation, Role
from harken.maintenance.nodes import ViewNode
from harken.planner.prepare import prepare


@dataclass(frozen=True, slots=True)
class InfluentExplanation:
    """What a change of one influent does to the condition, or to the view."""

    relation: str
    rows: int
    gains: tuple[str, ...]
    """Of a bag: its whole change, each row with the number of copies that come or go."""
    losses: tuple[str, ...]
    gain_sql: str
    loss_sql: str
    lake: tuple[Reach, ...] = ()
    """How the rows of lake relations are reached, for both."""
    is_bag: bool = False

    def paragraphs(self) -> list[str]:
        if self.is_bag:
            heading = f"When {self.relation} changes, copies of rows are gained and lost by"
            return [heading, *self.gains, self.gain_sql, *described(self.lake)]
        return [
            f"When {self.relation} changes, rows are gained by",
            *(*self.gains, self.gain_sql),
            "and lost by",
            *(*self.losses, self.loss_sql, *described(self.lake)),
        ]


def explain_influents(runtime: Runtime, node: ViewNode) -> tuple[InfluentExplanation, ...]:
    explained = _of_set if node.part.relation.is_set else _of_bag
    changing = (each for each in node.part.influents.values() if each.role is not Role.BEFORE)
    return tuple(explained(runtime, node, each) for each in changing)


def _of_set(runtime: Runtime, node: ViewNode, relation: Relation) -> InfluentExplanation:
    part = node.part
    change = differentiate(part.program, {relation.id}, node.view.strict, part.nodes)

    def clauses(sign: int) -> tuple[str, ...]:
        found = (each.clause for each in change.differentials if each.sign == sign)
        return tuple(map(print_clause, found))

    gain_sql, gain_reaches = _planned(runtime, change.plus)
    loss_sql, loss_reaches = _planned(runtime, change.minus)
    return InfluentExplanation(
        relation=relation.label,
        rows=_rows(runtime, relation),
        gains=clauses(1),
        losses=clauses(-1),
        gain_sql=gain_sql,
        loss_sql=loss_sql,
        lake=tuple(dict.fromkeys([*gain_reaches, *loss_reaches])),
    )


def _of_bag(runtime: Runtime, node: ViewNode, relation: Relation) -> InfluentExplanation:
    change = differentiate_bag(node.part.program, {relation.id}, node.part.nodes)
    sql, reaches = _planned(runtime, change)
    return InfluentExplanation(
        relation=relation.label,
        rows=_rows(runtime, relation),
        gains=tuple(map(print_clause, change.definitions[change.goal.id].clauses)),
        losses=(),
        gain_sql=sql,
        loss_sql="",
        lake=reaches,
        is_bag=True,
    )


def _planned(runtime: Runtime, program: Program) -> tuple[str, tuple[Reach, ...]]:
    plan = prepare(program, runtime.catalog.hierarchy)
    return runtime.engine.explain_sql(plan), runtime.engine.reaches(plan)


def _rows(runtime: Runtime, relation: Relation) -> int:
    return runtime.engine.count(relation) if relation.kind is Kind.STORED else 0
