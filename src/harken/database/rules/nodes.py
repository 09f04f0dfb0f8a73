"""The nodes of the propagation network: what is monitored, and the plans that compute its change.

A plan is made when a combination of changed influents first occurs, and kept. A derived node puts
its change into a Δ-set of its own, for the nodes above it; a condition hands it to the check phase.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.calculus.differentials import Change, differentiate, recompute
from harken.database import steps
from harken.database.catalog import Catalog
from harken.database.rules.definition import CompiledRule
from harken.engines.sqlite.engine import Query, SQLiteEngine
from harken.engines.sqlite.events import DeltaSet
from harken.ir.clauses import Definition, Program
from harken.planner.network import Part
from harken.planner.prepare import prepare

Row = tuple[Any, ...]

INCREMENTAL, NAIVE = "incremental", "naive"


@dataclass(slots=True)
class Plans:
    """How one change is computed; each sign is compiled when it is first wanted."""

    change: Change
    plus: Query | None = None
    minus: Query | None = None


@dataclass(slots=True, eq=False)
class Monitored:
    """A part of the network with its plans, by how the change is computed and what has changed."""

    part: Part
    plans: dict[tuple[str, frozenset[str]], Plans] = field(default_factory=dict)

    def query(
        self,
        sign: int,
        strategy: str,
        changed: Collection[str],
        planner: Planning,
        checked: bool = True,
    ) -> Query:
        key = (strategy, frozenset(changed))
        plans = self.plans.get(key)
        if plans is None:
            plans = self.plans[key] = Plans(self.change(strategy, key[1], checked))
        if sign > 0:
            if plans.plus is None:
                plans.plus = planner.compile(plans.change, 1)
            return plans.plus
        if plans.minus is None:
            plans.minus = planner.compile(plans.change, -1)
        return plans.minus

    def change(self, strategy: str, changed: frozenset[str], checked: bool = True) -> Change:
        """Naive evaluation asks what has changed in the tables; differentials ask the nodes."""
        part = self.part
        match strategy:
            case "incremental":
                return differentiate(part.program, changed, checked, part.nodes)
            case "naive":
                return recompute(part.program, changed)
            case "copied":
                return recompute(part.program, changed, copied=True)
        raise AssertionError(strategy)


@dataclass(slots=True, eq=False)
class DerivedNode(Monitored):
    """A node between the tables and the conditions, with the Δ-set that those above it read."""

    delta: DeltaSet = field(kw_only=True)
    made_from: tuple[Mapping[str, Definition], frozenset[str]] = field(kw_only=True)
    """The definitions it was planned from, and which of them have nodes."""
    level: int = 1

    @property
    def id(self) -> str:
        return self.part.relation.id


@dataclass(slots=True, eq=False)
class ConditionNode(Monitored):
    rule: CompiledRule = field(kw_only=True)
    level: int = 1
    events: dict[tuple[str, frozenset[str]], tuple[Query, Query]] = field(default_factory=dict)
    action: steps.Step | None = None
    action_epoch: int = -1

    @property
    def id(self) -> str:
        return f"rule {self.rule.rule.name}"

    def is_for(self, rule: CompiledRule) -> bool:
        """Does the node already monitor just this? Then it keeps its plans."""
        same = self.rule.program == rule.program and self.rule.events == rule.events
        if same and self.rule.rule == rule.rule:
            self.rule = rule
            return True
        return False


@dataclass(frozen=True, slots=True)
class Planning:
    """What it takes to make a plan runnable."""

    engine: SQLiteEngine
    catalog: Catalog

    def compile(self, change: Change, sign: int) -> Query:
        return self.compile_program(change.plus if sign > 0 else change.minus)

    def compile_program(self, program: Program) -> Query:
        return self.engine.compile(prepare(program, self.catalog.hierarchy))
