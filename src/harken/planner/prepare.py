"""From a program as it was translated to one an engine can run: check, then rewrite in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from harken.calculus.magic import OnDemand, magic
from harken.calculus.past_states import with_histories
from harken.errors import SafetyFault
from harken.ir.clauses import Definition, Program, atoms
from harken.ir.relations import COPIES, RANGES, Kind, Relation
from harken.ir.safety import Needs, check_program, order, required_inputs
from harken.ir.strata import Stratum, components, stratify
from harken.ir.typing import check_types
from harken.planner.exhaustive import exhaustive
from harken.planner.expand import CLAUSE_LIMIT, expand
from harken.planner.specialize import specialize
from harken.planner.tabulate import tabulate
from harken.values.types import Hierarchy

FEW = 12
"""So many clauses a definition may come to have in a recursion, where each is a statement for every
relation of it that grows."""

BUILT_IN = frozenset({COPIES, *RANGES.values()})


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked and rewritten program, its strata lowest first, and the inputs relations need.

    `tabulated` relations are not recursive, and are to be computed first all the same."""

    program: Program
    strata: tuple[Stratum, ...]
    needs: Needs
    tabulated: frozenset[str] = frozenset()
    layers: Mapping[str, int] = field(default_factory=dict)
    """Of relations that depend on each other also through what is not there: which of them must
    have come to rest before others may look."""
    questions: Mapping[str, tuple[Relation, bool]] = field(default_factory=dict)
    """For each relation of questions the one that is asked, and whether for single rows: when all
    of these are there, it need not be derived any further."""
    as_whole: bool = False
    """Are all rows of what is recursive wanted?"""
    otherwise: Plan | None = None
    """The same rows without questions: each relation that is derived on demand here, derived once
    as a whole."""

    @property
    def computed(self) -> tuple[Stratum, ...]:
        """The strata that become tables before the goal is asked for."""
        return tuple(
            stratum
            for stratum in self.strata
            if stratum.recursive or not self.tabulated.isdisjoint(stratum.names)
        )

    @property
    def recursive(self) -> tuple[Stratum, ...]:
        return tuple(stratum for stratum in self.strata if stratum.recursive)


def prepare(
    program: Program,
    hierarchy: Hierarchy,
    given: Iterable[int] = (),
    wanted: Collection[str] = (),
    as_whole: bool = False,
    alternatives: int = CLAUSE_LIMIT,
) -> Plan:
    """`given` are the columns of the goal whose values the caller brings. Of derived relations that
    are `wanted` beside the goal, the rows are tables. Evaluated `as_whole`, a recursive relation is
    derived once with all its rows, instead of those that are asked for one by one."""
    program = with_histories(program)
    check_types(program, hierarchy)
    needs = required_inputs(program)
    tabulated = tabulate(program, needs) | exhaustive(program, needs) | frozenset(wanted)
    rewritten = specialize(expand(program, hierarchy, needs, tabulated, alternatives))
    plan = Plan(
        rewritten,
        stratify(rewritten),
        check_program(rewritten, given),
        tabulated,
        as_whole=as_whole or bool(wanted),
    )
    for stratum in plan.recursive:
        _refuse_open_recursion(stratum, plan.needs)
    return plan


def on_demand(plan: Plan) -> Plan:
    """The plan with its recursive relations derived on demand, if that is less than all of them."""
    if not plan.recursive or plan.as_whole or plan.layers:
        return plan
    made = magic(plan.program, plan.needs)
    if made is None:
        return replace(plan, as_whole=True)
    return replace(layered(made, plan), otherwise=_bottom_up(made, plan))


def prepare_change(program: Program, hierarchy: Hierarchy, driven: Collection[str]) -> Plan:
    """For the change of recursive relations: those that are `driven` by it go on by themselves and
    are tables, what is recursive besides is derived on demand."""
    plan = prepare(program, hierarchy, wanted=driven, alternatives=FEW)
    found = frozenset(driven) & plan.program.definitions.keys()
    made = magic(plan.program, plan.needs, found)
    if made is None:
        return plan
    return replace(layered(made, plan), otherwise=_bottom_up(made, plan))


def _bottom_up(made: OnDemand, plan: Plan) -> Plan | None:
    """The plan with a table for each relation that is asked for; None if a Python function is
    called, which may take any time for a row that nobody asks for."""
    program = plan.program
    if any(each.kind is Kind.FOREIGN for each in _mentioned(program) if each not in BUILT_IN):
        return None
    wanted = made.tables & program.definitions.keys()
    return replace(plan, tabulated=plan.tabulated | wanted, as_whole=True)


def _mentioned(program: Program) -> Iterator[Relation]:
    for definition in program.definitions.values():
        for clause in definition.clauses:
            yield from (atom.relation for atom in atoms(clause.body))


def layered(made: OnDemand, plan: Plan) -> Plan:
    program = made.program
    tables = made.tables | (plan.tabulated & program.definitions.keys())
    needs = {name: each for name, each in plan.needs.items() if name in program.definitions}
    return Plan(program, components(program), needs, tables, made.layers, made.questions)


def check(program: Program, hierarchy: Hierarchy) -> None:
    """Raise what `prepare` would, without the work of rewriting; for many goals at once."""
    program = with_histories(program)
    check_types(program, hierarchy)
    needs = check_program(program)
    for stratum in stratify(program):
        if stratum.recursive:
            _refuse_open_recursion(stratum, needs)


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
