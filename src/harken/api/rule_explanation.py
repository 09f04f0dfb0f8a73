"""How a rule is monitored: its condition as clauses, the network below it, and what a change of
each influent does to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harken.api.differential_report import InfluentExplanation, explain_influents
from harken.api.network_report import NodeExplanation, explain_preview, network_text
from harken.consumers.rules.definition import CompiledRule
from harken.database.runtime import Runtime
from harken.ir.printer import print_program
from harken.planner.clock_views import untold
from harken.propagation.network import Network


@dataclass(frozen=True, slots=True)
class RuleExplanation:
    name: str
    text: str
    semantics: str
    coupling: str
    active: bool
    condition: str
    influents: tuple[InfluentExplanation, ...]
    network: tuple[NodeExplanation, ...]
    warnings: tuple[str, ...] = ()
    """Changes that the rule does not see."""

    def __str__(self) -> str:
        state = "active" if self.active else "not active"
        parts = [
            f"{self.name} is a {self.semantics}, {self.coupling} rule, {state}",
            self.text,
            "Its condition as ObjectLog:",
            self.condition,
            *network_text(self.network),
            *(line for each in self.influents for line in each.paragraphs()),
        ]
        parts += [f"Warning: {each}" for each in self.warnings]
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
            "influents": [asdict(each) for each in self.influents],
            "network": [asdict(each) for each in self.network],
            "warnings": self.warnings,
        }


def explain_rule(runtime: Runtime, network: Network, compiled: CompiledRule) -> RuleExplanation:
    rule = compiled.rule
    condition, derived = network.graph.preview(compiled)
    return RuleExplanation(
        name=rule.name,
        text=rule.text,
        semantics=rule.semantics,
        coupling=rule.coupling,
        active=rule.name in network.graph,
        condition=print_program(condition.part.program),
        influents=explain_influents(runtime, condition),
        network=explain_preview(runtime, network, condition, derived),
        warnings=untold(compiled.program, runtime.catalog.hierarchy),
    )
