"""The two states of a transaction, and what lies between them.

    R@old = (R − Δ+R) ∪ Δ−R        (logical rollback: thesis 5.3, chapter 1.5.1)

or for bags, with multiplicities, R@old = R − ΔR.

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
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    atoms,
    rename_relations,
)
from harken.ir.relations import COPIES, Column, Kind, Relation, Role, Semantics
from harken.ir.strata import depends_on, reachable
from harken.ir.terms import Constant, Variable
from harken.values.types import INTEGER

ADDED = Constant(1, INTEGER)
REMOVED = Constant(-1, INTEGER)
NOTHING = Constant(0, INTEGER)
WEIGHT = Variable("WEIGHT#", INTEGER)
"""No user's variable has a # in its name, but one may well be called `weight`."""


def delta(relation: Relation) -> Relation:
    """ΔR: the columns of R and a weight. For a set the row alone is the key."""
    return Relation(
        name=f"Δ{relation.name}",
        columns=(*relation.columns, Column("weight", INTEGER)),
        inputs=relation.inputs,
        kind=Kind.STORED,
        semantics=Semantics.SET,
        key=tuple(range(relation.arity)),
        past=True,
        role=Role.DELTA,
        of=relation,
    )


def is_delta(relation: Relation) -> bool:
    """Whether a relation is small because it is a change."""
    return relation.role in (Role.DELTA, Role.HISTORY)


def made_from(relation: Relation) -> Relation:
    """The relation that a Δ-set, an old state or another variant was made from."""
    assert isinstance(relation.of, Relation), relation.id
    return relation.of


def added(atom: Atom) -> tuple[Literal, ...]:
    """Δ+R(X): the rows of the atom's relation that it has gained."""
    return _signed(atom, ADDED, ">")


def removed(atom: Atom) -> tuple[Literal, ...]:
    """Δ−R(X): the rows of the atom's relation that it has lost."""
    return _signed(atom, REMOVED, "<")


def _signed(atom: Atom, weight: Constant, operator: str) -> tuple[Literal, ...]:
    """In a set the weight is ±1; in a bag only its sign matters here."""
    if atom.relation.is_set:
        return (Atom(delta(atom.relation), (*atom.terms, weight), span=atom.span),)
    changed = Atom(delta(atom.relation), (*atom.terms, WEIGHT), span=atom.span)
    return (changed, Comparison(operator, WEIGHT, NOTHING))


def old(relation: Relation) -> Relation:
    """R@old, a derived relation with the columns and the key of R."""
    return relation.variant(Role.OLD, f"old {relation.name}", kind=Kind.DERIVED, past=True)


def is_old(relation: Relation) -> bool:
    return relation.role is Role.OLD


def copy_of(relation: Relation) -> Relation:
    """R@old where it is stored: a copy of R as it was after the last transaction."""
    name = f"copy {relation.name}"
    return relation.variant(Role.COPY, name, kind=Kind.STORED, key=None, past=True)


def from_copies(program: Program, names: Collection[str]) -> Program:
    """The program reading copies of derived relations instead of deriving them; they are those of
    the state in which it reads the relations."""

    def named(relation: Relation) -> Relation:
        return copy_of(relation) if relation.id in names else relation

    definitions = {
        name: replace(each, clauses=rename_relations(each, named).clauses)
        for name, each in program.definitions.items()
        if name not in names
    }
    return Program(program.goal, reachable(program.goal, definitions))


def old_definitions_of(relation: Relation) -> tuple[Definition, ...]:
    """The old state of a stored relation, by logical rollback, and what it is defined with."""
    return rolled_back(relation, old(relation), delta(relation))


def rolled_back(relation: Relation, before: Relation, change: Relation) -> tuple[Definition, ...]:
    """What a stored relation was `before` a change, whose rows have weights."""
    terms = tuple(
        Variable(f"X{position}", column.type) for position, column in enumerate(relation.columns)
    )
    roll_back = _old_set if relation.is_set else _old_bag
    return roll_back(relation, before, change, terms)


def _old_set(
    relation: Relation, before: Relation, change: Relation, terms: tuple[Variable, ...]
) -> tuple[Definition, ...]:
    gained, lost = (Atom(change, (*terms, weight)) for weight in (ADDED, REMOVED))
    kept = Clause(Atom(before, terms), (Atom(relation, terms), replace(gained, negated=True)))
    gone = Clause(Atom(before, terms), (lost,))
    return (Definition(before, (kept, gone), exclusive=True),)


def _old_bag(
    relation: Relation, before: Relation, change: Relation, terms: tuple[Variable, ...]
) -> tuple[Definition, ...]:
    """A row that changed by w was there n − w times, if it is there n times now."""
    touched = change.variant(
        Role.AUXILIARY,
        f"touched {relation.name}",
        columns=relation.columns,
        key=None,
        kind=Kind.DERIVED,
    )
    rows = relation.variant(Role.AUXILIARY, f"present {relation.name}", kind=Kind.DERIVED)
    now, copies, which = (Variable(name, INTEGER) for name in ("NOW", "COPIES", "WHICH"))
    changed = Atom(change, (*terms, WEIGHT))
    is_touched = Clause(Atom(touched, terms), (changed, Comparison("!=", WEIGHT, NOTHING)))
    untouched = Clause(
        Atom(before, terms), (Atom(relation, terms), Atom(touched, terms, negated=True))
    )
    restored = Clause(
        Atom(before, terms),
        (
            changed,
            Comparison("!=", WEIGHT, NOTHING),
            Aggregation(now, "count", None, Atom(rows, terms), terms),
            Computation(copies, "-", (now, WEIGHT)),
            Atom(COPIES, (copies, which)),
        ),
    )
    return (
        Definition(before, (untouched, restored), exclusive=True),
        Definition(touched, (is_touched,)),
        Definition(rows, (Clause(Atom(rows, terms), (Atom(relation, terms),)),)),
    )


def affected_relations(
    program: Program, changed: Collection[str], nodes: Collection[str] = ()
) -> frozenset[str]:
    """The ids of all relations of a program whose rows may differ between the two states.

    `nodes` are derived relations whose change is known: they differ only if they are in `changed`.
    """
    affected = set(changed)
    size = -1
    while size != len(affected):
        size = len(affected)
        for name, definition in program.definitions.items():
            if name not in nodes and affected.intersection(depends_on(definition)):
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


def _old_id(name: str, program: Program, affected: Collection[str]) -> str:
    definition = program.definitions.get(name)
    return old(definition.relation).id if definition and name in affected else name


def in_old_state(program: Program, changed: Collection[str]) -> Program:
    """The program of the rows that the goal had before the changes."""
    definitions = {**program.definitions, **old_definitions(program, changed)}
    before = old(program.goal)
    return Program(before if before.id in definitions else program.goal, definitions)


def old_definitions(
    program: Program, changed: Collection[str], nodes: Collection[str] = ()
) -> dict[str, Definition]:
    """Definitions for the old state of everything that the changed relations affect.

    What has a Δ-set, a stored relation or a node, is rolled back; the rest follows its clauses.
    """
    affected = affected_relations(program, changed, nodes)
    made: dict[str, Definition] = {}
    for definition in program.definitions.values():
        name = definition.relation.id
        if name in affected and name not in changed:
            before = old(definition.relation)
            clauses = tuple(
                Clause(
                    replace(clause.head, relation=before),
                    tuple(literal_in_old(literal, affected) for literal in clause.body),
                )
                for clause in definition.clauses
            )
            groups = frozenset(_old_id(each, program, affected) for each in definition.groups)
            first = definition.first
            if first is not None:
                first = replace(first, relation=_old_id(first.relation, program, affected))
            numbered = definition.numbered
            if numbered is not None:
                numbered = replace(numbered, relation=_old_id(numbered.relation, program, affected))
            made[before.id] = replace(
                definition,
                relation=before,
                clauses=clauses,
                groups=groups,
                first=first,
                numbered=numbered,
            )
        for clause in definition.clauses:
            for atom in atoms(clause.body):
                if atom.relation.id in changed:
                    made.update({d.relation.id: d for d in old_definitions_of(atom.relation)})
    return made
