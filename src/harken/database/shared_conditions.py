"""One condition for subscriptions that differ in constants alone.

    shared(S, X) ← parameters(S, C) ∧ condition(X, C)

So one differential finds the subscriptions that a changed row concerns, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken.database.system import parameters_relation
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.terms import Variable
from harken.planner.lift import compared_with
from harken.values.types import INTEGER


@dataclass(frozen=True, slots=True)
class SharedCondition:
    definition: Definition
    parameters: Relation
    looked_up: tuple[int, ...]
    """The columns of the parameters that are compared with columns of the condition."""

    @property
    def goal(self) -> Relation:
        return self.definition.relation


def shared_condition(
    relation: Relation, clause: Clause, constants: Sequence[Variable], name: str, label: str
) -> SharedCondition:
    """The condition of a clause that has variables where subscriptions have their constants;
    `relation` has its rows. `label` names the parameters."""
    goal = Relation(
        name,
        (Column("subscription", INTEGER), *relation.columns),
        0,
        Kind.DERIVED,
        relation.semantics,
        None if relation.key is None else (0, *(i + 1 for i in relation.key)),
        role=Role.CONDITION,
        of=relation,
    )
    parameters = parameters_relation(label, [each.type for each in constants])
    number = Variable("SUBSCRIPTION#", INTEGER)
    active = Atom(parameters, (number, *constants))
    head = Atom(goal, (number, *clause.head.terms))
    compared = compared_with(clause)
    return SharedCondition(
        Definition(goal, (Clause(head, (active, *clause.body)),)),
        parameters,
        tuple(i for i, each in enumerate(constants, start=1) if each in compared),
    )
