"""Partial differentials of a set: the changes of P, from the change of one literal at a time.

For each clause of P and each literal Q in its body that has changed (thesis 5.3, table 1 of the
chapter):

    ΔP/Δ+Q ← Δ+Q ∧ the other literals in the new state
    ΔP/Δ−Q ← Δ−Q ∧ the other literals in the old state

A negated Q exchanges the signs. What an aggregate or a negated conjunction ranges over is not
differentiated through: the clause is evaluated, in both states, for the keys it is affected by
(`affected`). Each gives candidates, perhaps too many; the exact changes are

    Δ+P = candidates in the new state − P@old        Δ−P = candidates in the old state − P

Law: Δ+P = P − P@old and Δ−P = P@old − P, for every combination of changed relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from harken.calculus.affected import Affected, is_keys
from harken.calculus.clock import moved
from harken.calculus.states import (
    ADDED,
    REMOVED,
    added,
    affected_relations,
    copy_of,
    literal_in_old,
    old,
    old_definitions,
    removed,
)
from harken.ir.clauses import Atom, Clause, Definition, Literal, Program, clause_variables
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import required_inputs
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Differential:
    """ΔP/Δ+Q or ΔP/Δ−Q: candidates for a change of P, before the check against the other state.

    `influent` is what changed, `sign` +1 for rows that P may gain and −1 for rows it may lose.
    """

    influent: Relation
    sign: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Change:
    """What computes the change of P when `changed` relations have changed: the goals of `plus`
    and `minus` are Δ+P and Δ−P."""

    relation: Relation
    changed: frozenset[str]
    differentials: tuple[Differential, ...]
    plus: Program
    minus: Program


def differentiate(
    program: Program,
    changed: Collection[str],
    checked: bool = True,
    nodes: Collection[str] = (),
) -> Change:
    """The change of the goal of a program, given which relations have Δ-sets.

    `nodes` are derived relations that have a Δ-set of their own when they change: the network has
    looked below them already, and they are differentiated like stored ones.

    Without `checked`, Δ+P may hold rows that P already had (nervous semantics, thesis 5.3.1); Δ−P
    is always exact, for a row too many in it would hide a change.
    """
    affected = affected_relations(program, changed, nodes)
    finder = Affected(program, changed, affected, required_inputs(program))
    definition = program.definitions[program.goal.id]
    found = tuple(
        differential
        for clause in definition.clauses
        for differential in differentials_of(clause, finder)
    )
    known = {**program.definitions, **old_definitions(program, changed, nodes), **finder.made}
    return Change(
        program.goal,
        frozenset(changed),
        found,
        _exact(definition, 1, found, known, checked),
        _exact(definition, -1, found, known),
    )


def differentials_of(clause: Clause, finder: Affected) -> Iterator[Differential]:
    """Those of one clause of P."""
    before = tuple(literal_in_old(literal, finder.affected) for literal in clause.body)
    for position, literal in enumerate(clause.body):
        new = clause.body[:position] + clause.body[position + 1 :]
        past = before[:position] + before[position + 1 :]
        if finder.reaches(literal):
            keys = finder.keys(literal)
            yield _differential(clause, keys.relation, 1, (keys, literal, *new))
            yield _differential(clause, keys.relation, -1, (keys, before[position], *past))
        elif isinstance(literal, Atom) and literal.relation.id in finder.changed:
            yield from _of_atom(clause, literal, before[position], new, past)


def _of_atom(
    clause: Clause,
    atom: Atom,
    atom_before: Literal,
    new: tuple[Literal, ...],
    past: tuple[Literal, ...],
) -> Iterator[Differential]:
    influent = atom.relation
    positive = replace(atom, negated=False)
    if atom.negated:
        yield _differential(clause, influent, 1, (*removed(positive), atom, *new))
        yield _differential(clause, influent, -1, (*added(positive), atom_before, *past))
    else:
        for guard in moved(clause, atom, ADDED):
            yield _differential(clause, influent, 1, (*added(positive), *guard, *new))
        for guard in moved(clause, atom, REMOVED):
            yield _differential(clause, influent, -1, (*removed(positive), *guard, *past))


def _differential(
    clause: Clause, influent: Relation, sign: int, body: tuple[Literal, ...]
) -> Differential:
    head = replace(clause.head, relation=changed_relation(clause.head.relation, sign))
    return Differential(influent, sign, Clause(head, body))


def changed_relation(relation: Relation, sign: int) -> Relation:
    """The relation Δ+P or Δ−P, with the columns of P."""
    role, mark = (Role.GAINED, "+") if sign > 0 else (Role.LOST, "−")
    return relation.variant(role, f"Δ{mark}{relation.name}", kind=Kind.DERIVED, key=None)


def _exact(
    definition: Definition,
    sign: int,
    differentials: tuple[Differential, ...],
    known: dict[str, Definition],
    checked: bool = True,
) -> Program:
    """The candidates of one sign that do not hold in the other state."""
    goal = definition.relation
    target = changed_relation(goal, sign)
    other_state = old(goal) if sign > 0 else goal
    clauses = tuple(
        Clause(
            each.clause.head,
            (
                *each.clause.body,
                *_check(other_state, each, checked and not _is_exact(each, definition)),
            ),
        )
        for each in differentials
        if each.sign == sign
    )
    return Program(target, {target.id: Definition(target, clauses), **known})


def _check(other_state: Relation, each: Differential, checked: bool) -> tuple[Literal, ...]:
    return (Atom(other_state, each.clause.head.terms, negated=True),) if checked else ()


def _is_exact(differential: Differential, definition: Definition) -> bool:
    """Can a candidate not have been there? If a row is all that there is to a solution, then it was
    not: a part of it has come or gone."""
    clauses = definition.clauses
    influent = differential.influent
    if len(clauses) > 1 or is_keys(influent) or not influent.is_set:
        return False
    return clause_variables(clauses[0]) <= set(clauses[0].head.terms)


def recompute(
    program: Program,
    changed: Collection[str],
    nodes: Collection[str] = (),
    copied: bool = False,
) -> Change:
    """The same change by evaluating P in both states: Δ+P = P − P@old, Δ−P = P@old − P.

    If P is `copied`, its old state is stored and need not be computed.
    """
    goal = program.goal
    before = old(goal)
    known = dict(program.definitions)
    if copied:
        before = copy_of(goal)
    else:
        known |= old_definitions(program, changed, nodes)
        if before.id not in known:
            return Change(goal, frozenset(changed), (), _nothing(goal, 1), _nothing(goal, -1))
    variables = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(goal.columns))
    now, then = Atom(goal, variables), Atom(before, variables)
    programs = []
    for sign, here, there in ((1, now, then), (-1, then, now)):
        target = changed_relation(goal, sign)
        clause = Clause(Atom(target, variables), (here, replace(there, negated=True)))
        programs.append(Program(target, {target.id: Definition(target, (clause,)), **known}))
    return Change(goal, frozenset(changed), (), programs[0], programs[1])


def _nothing(goal: Relation, sign: int) -> Program:
    target = changed_relation(goal, sign)
    return Program(target, {target.id: Definition(target, ())})
