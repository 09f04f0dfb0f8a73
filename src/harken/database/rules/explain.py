"""How a rule is monitored: its condition as clauses, what influences it, and each partial
differential as a clause and as SQL."""

from __future__ import annotations

from dataclasses import dataclass

from harken.calculus.differentials import Differential, differentiate
from harken.database.rules.definition import CompiledRule
from harken.database.rules.network import Network
from harken.database.runtime import Runtime
from harken.ir.printer import print_clause, print_program
from harken.ir.relations import Kind, Relation
from harken.planner.network import Part
from harken.planner.prepare import prepare


@dataclass(frozen=True, slots=True)
class InfluentExplanation:
    """What a change of one stored relation does to the condition."""

    relation: str
    rows: int
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    gain_sql: str
    loss_sql: str


@dataclass(frozen=True, slots=True)
class RuleExplanation:
    name: str
    text: str
    semantics: str
    coupling: str
    active: bool
    condition: str
    influents: tuple[InfluentExplanation, ...]

    def __str__(self) -> str:
        state = "active" if self.active else "not active"
        parts = [
            f"{self.name} is a {self.semantics}, {self.coupling} rule, {state}",
            self.text,
            "Its condition as ObjectLog:",
            self.condition,
            "What influences it: "
            + ", ".join(f"{i.relation} ({i.rows} rows)" for i in self.influents),
        ]
        for influent in self.influents:
            parts.append(f"When {influent.relation} changes, rows are gained by")
            parts += [*influent.gains, influent.gain_sql]
            parts.append("and lost by")
            parts += [*influent.losses, influent.loss_sql]
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "rule",
            "name": self.name,
            "definition": self.text,
            "semantics": self.semantics,
            "coupling": self.coupling,
            "active": self.active,
            "condition": self.condition,
            "influents": [
                {
                    "relation": each.relation,
                    "rows": each.rows,
                    "gains": list(each.gains),
                    "losses": list(each.losses),
                    "gain_sql": each.gain_sql,
                    "loss_sql": each.loss_sql,
                }
                for each in self.influents
            ],
        }


def explain_rule(runtime: Runtime, network: Network, compiled: CompiledRule) -> RuleExplanation:
    rule = compiled.rule
    part = network.plan(compiled)
    return RuleExplanation(
        name=rule.name,
        text=rule.text,
        semantics="nervous" if rule.nervous else "strict",
        coupling=rule.coupling,
        active=rule.name in network,
        condition=print_program(part.program),
        influents=tuple(
            _influent(runtime, part, rule.nervous, relation) for relation in part.influents.values()
        ),
    )


def _influent(
    runtime: Runtime, part: Part, nervous: bool, relation: Relation
) -> InfluentExplanation:
    change = differentiate(part.program, {relation.id}, not nervous, part.nodes)

    def clauses(sign: int) -> tuple[str, ...]:
        return tuple(_shown(each) for each in change.differentials if each.sign == sign)

    hierarchy = runtime.catalog.hierarchy
    return InfluentExplanation(
        relation=relation.id,
        rows=runtime.engine.count(relation) if relation.kind is Kind.STORED else 0,
        gains=clauses(1),
        losses=clauses(-1),
        gain_sql=runtime.engine.explain_sql(prepare(change.plus, hierarchy)),
        loss_sql=runtime.engine.explain_sql(prepare(change.minus, hierarchy)),
    )


def _shown(differential: Differential) -> str:
    return print_clause(differential.clause)
