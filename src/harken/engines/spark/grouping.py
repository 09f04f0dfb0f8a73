"""GROUP BY: groups and the aggregates of their members as one relation.

    groups(G) ∧ R = sum(V : members(G, V)) ∧ S = max(W : members(G, W))

becomes grouped(G, R, S), which Spark computes in one pass over the members, where the groups are
those of the members themselves (`Definition.groups`).

Law: the clause has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harken.engines.spark.aggregates import alike
from harken.ir.clauses import Aggregation, Atom, Clause, Comparison, Definition, Literal
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.safety import Needs
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Grouped:
    """What stands behind an atom grouped(G, R, S): one aggregate for each of R, S."""

    width: int
    aggregates: tuple[Aggregation, ...]
    narrow: bool
    """Are only the groups wanted that something else in the clause says? Such as have changed."""


def grouped(
    clause: Clause, definitions: Mapping[str, Definition], needs: Needs
) -> tuple[Clause, dict[str, Grouped]]:
    """The clause with its groups as single atoms, and what stands behind each."""
    made: dict[str, Grouped] = {}
    for groups in clause.body:
        if isinstance(groups, Atom) and not groups.negated and _are_variables(groups):
            found = _aggregates(clause, groups, definitions, needs)
            if found:
                clause = _as_one(clause, groups, found, made)
    return clause, made


def _are_variables(atom: Atom) -> bool:
    distinct = {term for term in atom.terms if isinstance(term, Variable)}
    return len(distinct) == len(atom.terms)


def _aggregates(
    clause: Clause, groups: Atom, definitions: Mapping[str, Definition], needs: Needs
) -> tuple[Aggregation, ...]:
    """The aggregates of the members of these groups; those that are like the first of them."""
    definition = definitions.get(groups.relation.id)
    members = definition.groups if definition is not None else frozenset()
    found = [
        each
        for each in clause.body
        if isinstance(each, Aggregation)
        and each.atom.relation.id in members
        and each.groups == groups.terms
        and not needs.get(each.atom.relation.id)
    ]
    return tuple(each for each in found if alike(each, found[0]))


def _as_one(
    clause: Clause, groups: Atom, found: tuple[Aggregation, ...], made: dict[str, Grouped]
) -> Clause:
    columns = tuple(Column(f"c{i}", each.type) for i, each in enumerate((*groups.terms, *found)))
    name = f"grouped {len(made)}"
    relation = Relation(name, columns, 0, Kind.DERIVED, role=Role.AUXILIARY)
    totals = [Variable(f"TOTAL#{len(made)}.{i}", each.type) for i, each in enumerate(found)]
    rest: list[Literal] = [each for each in clause.body if each is not groups and each not in found]
    equations = [
        Comparison("=", total, each.result, span=each.span)
        for total, each in zip(totals, found, strict=True)
    ]
    narrow = any(isinstance(each, Atom) and each.relation.past for each in rest)
    made[relation.id] = Grouped(len(groups.terms), found, narrow)
    return Clause(clause.head, (Atom(relation, (*groups.terms, *totals)), *rest, *equations))
