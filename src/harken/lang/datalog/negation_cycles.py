"""Reject a relation that depends on its own negation, and report the cycle."""

from __future__ import annotations

from itertools import pairwise

from harken.errors import SafetyFault, Span
from harken.ir.clauses import Aggregation, Atom, Program


def refuse_negative_cycles(program: Program) -> None:
    """SafetyFault if the goal depends on itself through `!` or an aggregate, naming the cycle.

    Auxiliary relations are passed over: a person knows only their owners.
    """
    goal = program.goal.id
    seen: dict[tuple[str, bool], tuple[str, bool] | None] = {(goal, False): None}
    places: dict[tuple[str, bool], Span | None] = {}
    waiting: list[tuple[str, bool]] = [(goal, False)]
    while waiting:
        state = waiting.pop(0)
        for name, negative, span in _edges(program, state[0]):
            there = (name, state[1] or negative)
            place = span if negative else places.get(state)
            if there == (goal, True):
                raise _cycle(program, seen, state, negative, place)
            if there not in seen:
                seen[there] = state
                places[there] = place
                waiting.append(there)


def _edges(program: Program, name: str) -> list[tuple[str, bool, Span | None]]:
    found: list[tuple[str, bool, Span | None]] = []
    definition = program.definitions.get(name)
    for clause in definition.clauses if definition is not None else ():
        for literal in clause.body:
            if isinstance(literal, Atom):
                found.append((literal.relation.id, literal.negated, literal.span))
            elif isinstance(literal, Aggregation):
                found.append((literal.atom.relation.id, True, literal.span))
    return found


def _cycle(
    program: Program,
    seen: dict[tuple[str, bool], tuple[str, bool] | None],
    last: tuple[str, bool],
    negative: bool,
    place: Span | None,
) -> SafetyFault:
    """The way from the goal to itself; the step that negates is marked with `!`."""
    goal = program.goal.name
    way = [(goal, last[1] or negative)]
    at: tuple[str, bool] | None = last
    while at is not None:
        way.append((program.definitions[at[0]].relation.name, at[1]))
        at = seen[at]
    way.reverse()
    shown = [goal]
    waiting = False
    for (_, before), (name, after) in pairwise(way):
        waiting = waiting or after != before
        if " " not in name:  # a name with a blank is that of an auxiliary relation
            shown.append(f"{'!' if waiting else ''}{name}")
            waiting = False
    return SafetyFault(
        f"{goal} depends on its own absence or on an aggregate of itself: {' → '.join(shown)}",
        code="not-stratified",
        span=place,
        hint="`!` and aggregates are about relations that are complete before",
    )
