"""Put together the program of a goal: its own definitions and those of all it mentions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.ir.clauses import Definition, Program, atoms
from harken.ir.past_relations import PAST, made_of, parts_of, past_definition
from harken.ir.relations import Kind, Relation
from harken.ir.schema import Schema
from harken.ir.strata import reachable


def assemble(goal: Relation, own: Iterable[Definition], schema: Schema) -> Program:
    definitions = {definition.relation.id: definition for definition in own}
    waiting = list(definitions.values())
    if goal.kind is Kind.DERIVED and goal.id not in definitions:
        waiting = _add(goal, definitions, schema)
    while waiting:
        definition = waiting.pop()
        for relation in _derived(definition):
            if relation.id not in definitions:
                waiting += _add(relation, definitions, schema)
    return Program(goal, reachable(goal, definitions))


def _past(
    relation: Relation, definitions: dict[str, Definition], schema: Schema
) -> Iterator[Definition]:
    """The definition of a derived relation of the past, from that of the present one."""
    of = made_of(relation)
    if of.kind is Kind.DERIVED and of.id not in definitions:
        yield from _add(of, definitions, schema)
    yield past_definition(relation, definitions.get(of.id))
    yield from parts_of(relation)


def _add(
    relation: Relation, definitions: dict[str, Definition], schema: Schema
) -> list[Definition]:
    if relation.role in PAST:
        found: Iterable[Definition] = list(_past(relation, definitions, schema))
    else:
        found = schema.definitions(relation)
    added = [d for d in found if d.relation.id not in definitions]
    definitions.update({definition.relation.id: definition for definition in added})
    return added


def _derived(definition: Definition) -> list[Relation]:
    return [
        atom.relation
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.DERIVED
    ]
