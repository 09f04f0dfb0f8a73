"""From a program as it was translated to one an engine can run: check, then rewrite in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harken.errors import SafetyFault
from harken.ir.clauses import Definition, Program
from harken.ir.safety import Needs, check_program, order, required_inputs
from harken.ir.strata import Stratum, stratify
from harken.ir.types import Hierarchy
from harken.ir.typing import check_types
from harken.planner.expand import expand
from harken.planner.specialize import specialize


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked and rewritten program, its strata lowest first, and the inputs relations need."""

    program: Program
    strata: tuple[Stratum, ...]
    needs: Needs

    @property
    def recursive(self) -> tuple[Stratum, ...]:
        return tuple(stratum for stratum in self.strata if stratum.recursive)


def prepare(program: Program, hierarchy: Hierarchy, given: Iterable[int] = ()) -> Plan:
    """`given` are the columns of the goal whose values the caller brings."""
    check_types(program, hierarchy)
    rewritten = specialize(expand(program, hierarchy, required_inputs(program)))
    plan = Plan(rewritten, stratify(rewritten), check_program(rewritten, given))
    for stratum in plan.recursive:
        _refuse_open_recursion(stratum, plan.needs)
    return plan


def _refuse_open_recursion(stratum: Stratum, needs: Needs) -> None:
    for definition in stratum.definitions:
        if needs.get(definition.relation.id):
            raise _open_recursion(definition)
        for clause in definition.clauses:
            try:
                order(clause.body, (), needs, solving=False)
            except SafetyFault:
                raise _open_recursion(definition) from None


def _open_recursion(definition: Definition) -> SafetyFault:
    """`f(n) = n * f(n - 1)` would count upwards for ever: its argument comes from nowhere."""
    return SafetyFault(
        f"{definition.relation.name} calls itself with an argument that nothing bounds",
        code="unsafe",
        hint="let the argument range over a type or a stored function, or write a procedure",
    )
