"""Columns that are computed and that nobody reads: they go, and what computed them goes with them.

Where a relation is written out in the clause that mentions it, `simplify` does that. Where it has
rows of its own, as below a window or as a node of a network, it would have the column all the same,
and fail over a value that no one asked for.

Law: the goal has the same rows, with the same multiplicities. A set keeps its columns, for they
tell its rows apart, and so does what is ordered or numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Computation,
    Definition,
    Literal,
    atoms,
    literal_terms,
    with_atoms,
)
from harken.ir.relations import Relation
from harken.ir.terms import Term, Variable
from harken.planner.simplify import without_unread_results

Places = dict[str, set[int]]


def without_unread_columns(
    goal: Relation, definitions: Mapping[str, Definition]
) -> dict[str, Definition]:
    found = dict(definitions)
    fixed = {goal.id}
    for each in found.values():
        ordered = [way for way in (each.first, each.numbered) if way is not None]
        fixed |= {each.relation.id for _ in ordered} | {way.relation for way in ordered}
        if each.relation.is_set or each.relation.in_rounds:
            fixed.add(each.relation.id)
    while True:
        found = {name: _without_results(each) for name, each in found.items()}
        computed, read = _computed(found), _read(found)
        unread = {name: computed[name] - read.get(name, set()) for name in found.keys() - fixed}
        if not any(unread.values()):
            return found
        found = {name: _without(each, unread) for name, each in found.items()}


def _without_results(definition: Definition) -> Definition:
    clauses = tuple(
        Clause(each.head, without_unread_results(each.body, each.head.terms))
        for each in definition.clauses
    )
    return replace(definition, clauses=clauses)


def _computed(definitions: Mapping[str, Definition]) -> Places:
    """The columns that are the result of a computation, there or further below."""
    found: Places = {name: set() for name in definitions}
    while True:
        before = sum(map(len, found.values()))
        for name, definition in definitions.items():
            for clause in definition.clauses:
                results = _results(clause, found)
                found[name] |= {i for i, each in enumerate(clause.head.terms) if each in results}
        if sum(map(len, found.values())) == before:
            return found


def _results(clause: Clause, computed: Places) -> set[Term]:
    results: set[Term] = set()
    for literal in clause.body:
        if isinstance(literal, Computation | Aggregation):
            results.add(literal.result)
        elif isinstance(literal, Atom):
            places = computed.get(literal.relation.id, ())
            results |= {literal.terms[i] for i in places}
    return results


def _read(definitions: Mapping[str, Definition]) -> Places:
    """The columns that something else in a clause mentions, too."""
    found: Places = {}
    for definition in definitions.values():
        for clause in definition.clauses:
            uses = Counter([*clause.head.terms, *(t for each in clause.body for t in _all(each))])
            for atom in atoms(clause.body):
                found.setdefault(atom.relation.id, set()).update(
                    i
                    for i, term in enumerate(atom.terms)
                    if not isinstance(term, Variable) or uses[term] > 1
                )
    return found


def _all(literal: Literal) -> tuple[Term, ...]:
    if not isinstance(literal, Aggregation):
        return literal_terms(literal)
    value = () if literal.value is None else (literal.value,)
    return (*literal_terms(literal), *literal.atom.terms, *value, *literal.others)


def _without(definition: Definition, unread: Mapping[str, Collection[int]]) -> Definition:
    def atom(each: Atom) -> Atom:
        places = unread.get(each.relation.id)
        if not places:
            return each
        kept = [i for i in range(each.relation.arity) if i not in places]
        columns = tuple(each.relation.columns[i] for i in kept)
        terms = tuple(each.terms[i] for i in kept)
        return replace(each, relation=replace(each.relation, columns=columns), terms=terms)

    clauses = tuple(with_atoms(clause, atom) for clause in definition.clauses)
    places = unread.get(definition.relation.id, ())
    kept = tuple(c for i, c in enumerate(definition.relation.columns) if i not in places)
    return replace(definition, relation=replace(definition.relation, columns=kept), clauses=clauses)
