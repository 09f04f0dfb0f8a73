"""The catalog's derived relations: which rules are active, for what, and the types of an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harken.database.system import ACTIVATED, TYPES_OF, activations_relation
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Relation, extent_relation
from harken.ir.terms import Constant, Variable
from harken.values.types import BOOLEAN, RULE, TYPE, Hierarchy, Type


def activated(oids: Mapping[str, int], parameters: Mapping[str, tuple[Column, ...]]) -> Definition:
    """activated(R, P, S): rule R is active for some arguments, with priority P."""
    clauses = []
    for name, oid in oids.items():
        stored = activations_relation(name, parameters[name])
        terms = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(stored.columns))
        head = Atom(ACTIVATED, (Constant(oid, RULE), *terms[-2:]))
        clauses.append(Clause(head, (Atom(stored, terms),)))
    return Definition(ACTIVATED, tuple(clauses))


def activation_arguments(
    relation: Relation, rule: str, parameters: tuple[Column, ...]
) -> Definition:
    """r_activations(): the arguments for which rule r is active (thesis, section 4.3)."""
    stored = activations_relation(rule, parameters)
    terms = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(stored.columns))
    head = terms[:-2] or (Constant(True, BOOLEAN),)
    return Definition(relation, (Clause(Atom(relation, head), (Atom(stored, terms),)),))


def types_of(hierarchy: Hierarchy, oid_of: Callable[[str], int]) -> Definition:
    """typesof(O, T): O is in T and in no subtype of T."""
    clauses = []
    for name in hierarchy:
        variable = Variable("O", Type(name))
        below = [
            Atom(extent_relation(Type(child)), (variable,), negated=True)
            for child in hierarchy.children(name)
        ]
        head = Atom(TYPES_OF, (variable, Constant(oid_of(name), TYPE)))
        body = (Atom(extent_relation(Type(name)), (variable,)), *below)
        clauses.append(Clause(head, body))
    return Definition(TYPES_OF, tuple(clauses), exclusive=True)
