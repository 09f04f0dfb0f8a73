"""The two states of a transaction, and what lies between them.

    R@old = (R − Δ+R) ∪ Δ−R        (logical rollback: thesis 5.3, chapter 1.5.1)

The tables hold the new state. The old state of a relation is written as clauses over the new one
and its Δ-set, and only where the relation has changed: an unchanged relation is its own old state.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Definition,
    Literal,
    Program,
    atoms,
)
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.strata import depends_on
from harken.ir.terms import Constant, Variable
from harken.ir.types import INTEGER

ADDED = Constant(1, INTEGER)
REMOVED = Constant(-1, INTEGER)


def delta(relation: Relation) -> Relation:
    """ΔR: the columns of R and a weight. For a set the row alone is the key."""
    return Relation(
        name=f"Δ{relation.name}",
        columns=(*relation.columns, Column("weight", INTEGER)),
        inputs=relation.inputs,
        kind=Kind.STORED,
        semantics=Semantics.SET,
        key=tuple(range(relation.arity)),
    )


def is_delta(relation: Relation) -> bool:
    return relation.name.startswith("Δ")


def added(atom: Atom) -> Atom:
    """Δ+R(X): the rows of the atom's relation that are new."""
    return Atom(delta(atom.relation), (*atom.terms, ADDED), span=atom.span)


def removed(atom: Atom) -> Atom:
    return Atom(delta(atom.relation), (*atom.terms, REMOVED), span=atom.span)


def old(relation: Relation) -> Relation:
    """R@old, a derived relation with the columns and the key of R."""
    return replace(relation, name=f"old {relation.name}", kind=Kind.DERIVED)


def old_definition(relation: Relation) -> Definition:
    """The old state of a stored set, by logical rollback."""
    terms = tuple(
        Variable(f"X{position}", column.type) for position, column in enumerate(relation.columns)
    )
    before = old(relation)
    atom = Atom(relation, terms)
    kept = Clause(Atom(before, terms), (atom, replace(added(atom), negated=True)))
    gone = Clause(Atom(before, terms), (removed(atom),))
    return Definition(before, (kept, gone), exclusive=True)


def affected_relations(program: Program, changed: Collection[str]) -> frozenset[str]:
    """The ids of all relations of a program whose rows may differ between the two states."""
    affected = set(changed)
    size = -1
    while size != len(affected):
        size = len(affected)
        for name, definition in program.definitions.items():
            if affected.intersection(depends_on(definition)):
                affected.add(name)
    return frozenset(affected)


def literal_in_old(literal: Literal, affected: Collection[str]) -> Literal:
    """The literal as it was before the transaction."""
    match literal:
        case Atom() if literal.relation.id in affected:
            return replace(literal, relation=old(literal.relation))
        case Aggregation() if literal.atom.relation.id in affected:
            return replace(literal, atom=replace(literal.atom, relation=old(literal.atom.relation)))
    return literal


def old_definitions(program: Program, changed: Collection[str]) -> dict[str, Definition]:
    """Definitions for the old state of everything that the changed relations affect."""
    affected = affected_relations(program, changed)
    made: dict[str, Definition] = {}
    for definition in program.definitions.values():
        if definition.relation.id in affected:
            before = old(definition.relation)
            clauses = tuple(
                Clause(
                    replace(clause.head, relation=before),
                    tuple(literal_in_old(literal, affected) for literal in clause.body),
                )
                for clause in definition.clauses
            )
            made[before.id] = Definition(before, clauses, definition.exclusive)
        for clause in definition.clauses:
            for atom in atoms(clause.body):
                if atom.relation.id in changed and atom.relation.kind is Kind.STORED:
                    rolled_back = old_definition(atom.relation)
                    made[rolled_back.relation.id] = rolled_back
    return made
