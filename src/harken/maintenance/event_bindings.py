"""What an event binds: which tuples of a condition a changed row of its function concerns.

An event names a function, not a variable, so the condition determines which variables the changed
rows belong to. Wherever the condition calls the function, directly or through other functions, the
rule's variables and parameters used there as arguments are bound to the arguments of the changed
row. If none is used as an argument, those used as results are bound to its results. If the
condition never calls the function, types decide, if they are unambiguous.

Law: if the change of the function alone makes the condition true for a tuple, then one of the
changed rows concerns that tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from harken.ir.clauses import Clause, Comparison, Program, atoms
from harken.ir.relations import Column, Relation
from harken.ir.terms import Variable
from harken.values.types import Hierarchy

Binding: TypeAlias = tuple[tuple[int, int], ...]
"""Columns of the function, each with the column of the condition that has the same value. With
none, a changed row concerns every tuple."""

Places: TypeAlias = tuple[int | None, ...]
"""For each column of a relation the column of the condition that equals it, if known."""


def bindings(program: Program, watched: Relation, hierarchy: Hierarchy) -> tuple[Binding, ...]:
    """The bindings of an event of the `watched` function in a condition. The event concerns a tuple
    if any of them matches."""
    calls = set(_calls(program, watched))
    if not calls:
        return (_by_type(program.goal.columns, watched, hierarchy),)
    found = {_arguments_first(places, watched.inputs) for places in calls}
    return ((),) if () in found else tuple(sorted(found))


def bindings_by_type(
    program: Program, watched: Relation, hierarchy: Hierarchy
) -> tuple[Binding, ...]:
    """The bindings of an event that is about objects, not about a function."""
    return (_by_type(program.goal.columns, watched, hierarchy),)


def _calls(program: Program, watched: Relation) -> Iterator[Places]:
    """The columns of the condition used in each call of the function."""
    start: tuple[Relation, Places] = (program.goal, tuple(range(program.goal.arity)))
    waiting, seen = [start], {start}
    while waiting:
        relation, places = waiting.pop()
        for clause in program.definitions[relation.id].clauses:
            known = _known(clause, places)
            for atom in atoms(clause.body):
                inside = tuple(
                    known.get(term) if isinstance(term, Variable) else None for term in atom.terms
                )
                below = (atom.relation, inside)
                if atom.relation.id == watched.id:
                    yield inside
                elif atom.relation.id in program.definitions and below not in seen:
                    seen.add(below)
                    waiting.append(below)


def _known(clause: Clause, places: Places) -> dict[Variable, int]:
    """The variables of a clause that are columns of the condition, directly or through
    equalities."""
    known: dict[Variable, int] = {}
    for term, place in zip(clause.head.terms, places, strict=True):
        if isinstance(term, Variable) and place is not None:
            known.setdefault(term, place)
    equal = [
        (each.left, each.right)
        for each in clause.body
        if isinstance(each, Comparison) and each.operator == "="
    ]
    size = -1
    while size != len(known):
        size = len(known)
        for left, right in (*equal, *((right, left) for left, right in equal)):
            if isinstance(left, Variable) and isinstance(right, Variable) and left in known:
                known.setdefault(right, known[left])
    return known


def _arguments_first(places: Places, inputs: int) -> Binding:
    found = [(column, place) for column, place in enumerate(places) if place is not None]
    arguments = tuple(pair for pair in found if pair[0] < inputs)
    return arguments or tuple(found)


def _by_type(columns: Sequence[Column], watched: Relation, hierarchy: Hierarchy) -> Binding:
    """An argument is the one column whose type fits, if that fits no other argument. A result is
    bound like this only if no argument is, and only if it is an object: numbers are too common."""
    arguments = list(enumerate(watched.columns[: watched.inputs]))
    results = list(enumerate(watched.columns))[watched.inputs :]
    objects = [(place, column) for place, column in results if column.type.surrogate]
    return _only_fits(arguments, columns, hierarchy) or _only_fits(objects, columns, hierarchy)


def _only_fits(
    given: list[tuple[int, Column]], columns: Sequence[Column], hierarchy: Hierarchy
) -> Binding:
    fits = [
        (place, position)
        for place, column in given
        for position, each in enumerate(columns)
        if hierarchy.related(each.type, column.type)
    ]
    places = [place for place, _ in fits]
    positions = [position for _, position in fits]
    return tuple(
        (place, position)
        for place, position in fits
        if places.count(place) == 1 and positions.count(position) == 1
    )
