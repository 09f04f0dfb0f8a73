"""Old values and changes as values, written out for a plan.

    before(R) = (R − Δ+R) ∪ Δ−R

Until a plan is made, before(R) is a stored relation that does not change (`ir.past_relations`).
Here it becomes clauses over R and its history, the net change since the transaction began; and what
a relation gained since then becomes the exact differential of it, given the histories below.

Law: neither changes the rows.
"""

from __future__ import annotations

from dataclasses import replace

from harken.calculus.differentials import differentiate
from harken.calculus.states import NOTHING, delta, rolled_back
from harken.ir.clauses import (
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    stored_relations,
    with_atoms,
)
from harken.ir.past_relations import PAST, history, made_of, reads_past, row_of
from harken.ir.relations import COPIES, Kind, Relation, Role
from harken.ir.strata import reachable
from harken.ir.terms import Constant, Variable
from harken.values.types import INTEGER


def histories(program: Program) -> list[Relation]:
    """The stored relations whose history a plan reads."""
    return [each for each in stored_relations(program).values() if each.role is Role.HISTORY]


def with_histories(program: Program) -> Program:
    """The program with old states as clauses over the present state and histories, and net changes
    as differentials: the cost follows the size of the change."""
    if not reads_past(program):
        return program
    known = dict(program.definitions)
    for each in program.definitions.values():
        if each.relation.role in (Role.NET_GAIN, Role.NET_LOSS):
            made = _from_history(each.relation, program)
            # A differential of the wave may use the same names for its own old states.
            if all(known.get(name, found) == found for name, found in made.items()):
                known.update(made)
    written: dict[str, Definition] = {}
    for definition in known.values():
        written[definition.relation.id] = _rolled_back(definition, written)
    return Program(program.goal, reachable(program.goal, written))


def _rolled_back(definition: Definition, written: dict[str, Definition]) -> Definition:
    def changed(atom: Atom) -> Atom:
        relation = atom.relation
        if relation.role is not Role.BEFORE or relation.kind is not Kind.STORED:
            return atom
        derived = replace(relation, kind=Kind.DERIVED)
        if derived.id not in written:
            changes = history(made_of(relation), relation.since)
            rolled = rolled_back(made_of(relation), derived, changes)
            written.update({each.relation.id: each for each in rolled})
        return replace(atom, relation=derived)

    clauses = tuple(with_atoms(clause, changed) for clause in definition.clauses)
    return replace(definition, clauses=clauses) if clauses != definition.clauses else definition


def _from_history(relation: Relation, program: Program) -> dict[str, Definition]:
    """The net change of a relation by histories; empty where only its two states say it."""
    of, sign = made_of(relation), 1 if relation.role is Role.NET_GAIN else -1
    if of.kind is Kind.STORED:
        return {relation.id: _of_stored(relation, of, sign)}
    own = Program(of, reachable(of, program.definitions))
    stored = [each for each in stored_relations(own).values() if each.role not in PAST]
    if not of.is_set or any(each.role is Role.CLOCK for each in stored):
        return {}
    change = differentiate(own, [each.id for each in stored])
    found = change.plus if sign > 0 else change.minus
    histories = {delta(each).id: history(each, relation.since) for each in stored}

    def changed(atom: Atom) -> Atom:
        return replace(atom, relation=histories.get(atom.relation.id, atom.relation))

    row = row_of(relation)
    listed = Clause(Atom(relation, row), (Atom(found.goal, row),))
    made = {relation.id: Definition(relation, (listed,))}
    for each in found.definitions.values():
        clauses = tuple(with_atoms(clause, changed) for clause in each.clauses)
        made[each.relation.id] = replace(each, clauses=clauses)
    return made


def _of_stored(relation: Relation, of: Relation, sign: int) -> Definition:
    row, changes = row_of(relation), history(of, relation.since)
    if of.is_set:
        body: tuple[Literal, ...] = (Atom(changes, (*row, Constant(sign, INTEGER))),)
        return Definition(relation, (Clause(Atom(relation, row), body),))
    weight, copies, which = (Variable(name, INTEGER) for name in ("WEIGHT", "COPIES", "WHICH"))
    body = (
        Atom(changes, (*row, weight)),
        Comparison(">" if sign > 0 else "<", weight, NOTHING),
        Computation(copies, "*", (weight, Constant(sign, INTEGER))),
        Atom(COPIES, (copies, which)),
    )
    return Definition(relation, (Clause(Atom(relation, row), body),))
