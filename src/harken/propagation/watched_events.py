"""The events of a rule: which rows changed, and which tuples of the condition they concern.

An event of `f` occurs with a row of `f`, its arguments and results as a set:

    added(f)      a row that f gained
    removed(f)    a row that f lost
    updated(f)    a row that f gained or lost, for arguments for which it did both
    created(t)    an object that t gained, and so did the type of all objects; deleted(t) likewise

An event concerns the tuples of the condition that agree with the row where the event binds them
(`bindings`). A strict rule acts on what its condition gained, as far as an event concerns it. A
nervous rule, and one without a condition, acts on all tuples for which the condition holds and that
an event concerns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from harken.calculus.differentials import Change, changed_relation, differentiate
from harken.errors import HarkenError, is_of_data
from harken.ir.clauses import Atom, Clause, Definition, Program, stored_relations
from harken.ir.relations import Kind, Relation, Role
from harken.ir.terms import Constant, Variable
from harken.maintenance.event_bindings import Binding
from harken.maintenance.nodes import ViewNode
from harken.maintenance.watched import CompiledEvent, WatchedView
from harken.propagation.separate_states import States
from harken.values.rows import Row
from harken.values.types import INTEGER

Changes: TypeAlias = dict[int, tuple[list[Row], list[Row]]]
"""For the number of each event, the rows that its function gained and lost."""


@dataclass(slots=True)
class Occurrence:
    """The events of a condition: for each binding, the values that it binds."""

    bound: dict[Binding, set[Row]] = field(default_factory=dict)

    @property
    def happened(self) -> bool:
        return bool(self.bound)

    def add(self, bindings: Iterable[Binding], rows: list[Row]) -> None:
        for binding in bindings if rows else ():
            values = {tuple(row[column] for column, _ in binding) for row in rows}
            self.bound.setdefault(binding, set()).update(values)

    def concerning(self, rows: list[Row]) -> list[Row]:
        """The tuples that an event concerns."""
        return [row for row in rows if self._concerns(row)]

    def _concerns(self, row: Row) -> bool:
        return any(
            tuple(row[place] for _, place in binding) in values
            for binding, values in self.bound.items()
        )


@dataclass(slots=True)
class Summed:
    """The net change of the functions of a rule's events, from one propagation to the next. Other
    rules may be checked after each statement, but for this one the transaction counts."""

    weights: dict[int, dict[Row, int]] = field(default_factory=dict)

    def add(self, changes: Changes) -> Summed:
        """A copy with these changes added, because this one may be part of a snapshot."""
        found = {number: dict(rows) for number, rows in self.weights.items()}
        for number, (gained, lost) in changes.items():
            rows = found.setdefault(number, {})
            for sign, changed in ((1, gained), (-1, lost)):
                for row in changed:
                    rows[row] = rows.get(row, 0) + sign
        return Summed(found)

    def occurrence(self, condition: WatchedView) -> Occurrence:
        found = Occurrence()
        for number, rows in self.weights.items():
            event = condition.events[number]
            gained = [row for row, weight in rows.items() if weight > 0]
            lost = [row for row, weight in rows.items() if weight < 0]
            found.add(event.bindings, occurred(event, gained, lost))
        return found


def occurred(event: CompiledEvent, gained: list[Row], lost: list[Row]) -> list[Row]:
    """The changed rows of its function with which an event occurred."""
    if event.kind in ("added", "removed"):
        return gained if event.kind == "added" else lost
    if event.kind in ("created", "deleted"):
        changed = gained if event.kind == "created" else lost
        whole = {row[0] for row in changed if row[1]}
        return [row for row in changed if not row[1] and row[0] in whole]
    inputs = event.program.goal.inputs
    both = {row[:inputs] for row in gained} & {row[:inputs] for row in lost}
    return [row for row in (*gained, *lost) if row[:inputs] in both]


def what_happened(node: ViewNode, stored: frozenset[str], states: States) -> Occurrence:
    """Which of the rule's events occurred, and with which rows."""
    found = Occurrence()
    for number, event in enumerate(node.view.events):
        found.add(event.bindings, _rows(node, number, stored, states, "occurred"))
    return found


def holding(node: ViewNode, stored: frozenset[str], states: States) -> list[Row]:
    """The tuples for which the condition holds and that one of its events concerns."""
    events = range(len(node.view.events))
    found = (row for n in events for row in _rows(node, n, stored, states, "holding"))
    return list(dict.fromkeys(found))


def changes(node: ViewNode, stored: frozenset[str], states: States) -> Changes:
    """What the function of each event gained and lost."""
    return {
        number: (
            _rows(node, number, stored, states, "gained"),
            _rows(node, number, stored, states, "lost"),
        )
        for number in range(len(node.view.events))
    }


def _rows(
    node: ViewNode, number: int, stored: frozenset[str], states: States, wanted: str
) -> list[Row]:
    """Rows gained or lost by the function of an event, rows with which the event occurred, or
    tuples that it concerns and for which the condition holds."""
    event = node.view.events[number]
    changed = frozenset(stored & stored_relations(event.program).keys())
    if not changed:
        return []
    key = (number, changed, wanted)
    query = node.events.get(key)
    if query is None:
        program = _program(node, event, changed, wanted)
        query = node.events[key] = states.planning.compile(program)
    try:
        return query.rows(())
    except HarkenError as error:
        if not is_of_data(error):
            raise
        return _rows_by_states(node, event, changed, states, wanted)


def _rows_by_states(
    node: ViewNode, event: CompiledEvent, changed: frozenset[str], states: States, wanted: str
) -> list[Row]:
    """The same from the rows of each state separately, after an expression failed between them."""
    now = set(states.planning.compile(event.program).rows(()))
    before = set(states.rows_before(event.program, changed) or ())
    gained, lost = list(now - before), list(before - now)
    if wanted in ("gained", "lost"):
        return gained if wanted == "gained" else lost
    changed_rows = occurred(event, gained, lost)
    if wanted == "occurred":
        return changed_rows
    about = Occurrence()
    about.add(event.bindings, changed_rows)
    return about.concerning(states.now(node))


def _program(node: ViewNode, event: CompiledEvent, changed: frozenset[str], wanted: str) -> Program:
    if wanted in ("gained", "lost"):
        change = differentiate(event.program, changed)
        return change.plus if wanted == "gained" else change.minus
    occurring = _occurring(event, changed)
    if wanted == "occurred":
        return occurring
    return _concerned(occurring, event.bindings, node.part.program)


def _occurring(event: CompiledEvent, changed: frozenset[str]) -> Program:
    """The program for the rows with which an event occurs."""
    change = differentiate(event.program, changed)
    goal = event.program.goal
    occurred = goal.variant(Role.AUXILIARY, f"{event.kind} {goal.name}")
    clauses = tuple(_occurrences(event.kind, occurred, change))
    known = {**change.plus.definitions, **change.minus.definitions}
    return Program(occurred, {**known, occurred.id: Definition(occurred, clauses)})


def _occurrences(kind: str, occurred: Relation, change: Change) -> Iterable[Clause]:
    row = tuple(Variable(f"X{i}", each.type) for i, each in enumerate(occurred.columns))
    other = tuple(Variable(f"Y{i}", each.type) for i, each in enumerate(occurred.columns))
    beside = (*row[: occurred.inputs], *other[occurred.inputs :])
    gained, lost = (changed_relation(change.relation, sign) for sign in (1, -1))
    head = Atom(occurred, row)
    if kind == "added":
        yield Clause(head, (Atom(gained, row),))
    elif kind == "removed":
        yield Clause(head, (Atom(lost, row),))
    elif kind in ("created", "deleted"):
        changed = gained if kind == "created" else lost
        of_type, of_all = (Constant(number, INTEGER) for number in (0, 1))
        both = tuple(Atom(changed, (row[0], each)) for each in (of_type, of_all))
        yield Clause(Atom(occurred, (row[0], of_type)), both)
    else:
        yield Clause(head, (Atom(gained, row), Atom(lost, beside)))
        yield Clause(head, (Atom(lost, row), Atom(gained, beside)))


def _concerned(occurring: Program, bindings: Iterable[Binding], condition: Program) -> Program:
    """The program for the tuples for which a condition holds and that an event concerns."""
    name = f"{condition.goal.name} by event"
    goal = condition.goal.variant(Role.AUXILIARY, name, kind=Kind.DERIVED)
    row = tuple(Variable(f"T{i}", each.type) for i, each in enumerate(goal.columns))
    clauses = []
    for binding in bindings:
        bound = dict(binding)
        terms = tuple(
            row[bound[i]] if i in bound else Variable(f"X{i}", each.type)
            for i, each in enumerate(occurring.goal.columns)
        )
        body = (Atom(occurring.goal, terms), Atom(condition.goal, row))
        clauses.append(Clause(Atom(goal, row), body))
    known = {**condition.definitions, **occurring.definitions}
    return Program(goal, {**known, goal.id: Definition(goal, tuple(clauses))})
