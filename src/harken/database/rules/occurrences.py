"""The events of a rule: whether what it waits for occurred, and for which tuples.

A rule with events acts on a tuple only if one of them occurred for it in the transaction. A rule
without a condition acts on every tuple that its events are about.

Law: `f` was added for the arguments for which it gained a value, removed for those for which it
lost one, and updated for those for which it did both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.calculus.differentials import differentiate
from harken.database.rules.conditions import CompiledEvent
from harken.database.rules.nodes import ConditionNode, Planning, Row
from harken.ir.clauses import stored_relations


@dataclass(slots=True)
class Occurrence:
    """For which tuples of a condition its events occurred; None in `about` means for all."""

    happened: bool = False
    about: list[tuple[tuple[int, ...], set[Row]]] | None = field(default_factory=list)

    def add(self, positions: tuple[int, ...] | None, arguments: set[Row]) -> None:
        self.happened = True
        if positions is None:
            self.about = None
        elif self.about is not None:
            self.about.append((positions, arguments))

    def concerning(self, rows: list[Row]) -> list[Row]:
        about = self.about
        if about is None:
            return rows
        return [
            row
            for row in rows
            if any(tuple(row[i] for i in places) in given for places, given in about)
        ]


def what_happened(node: ConditionNode, stored: frozenset[str], planning: Planning) -> Occurrence:
    """Which of the rule's events occurred, and for which of its tuples."""
    happened = Occurrence()
    for event in node.condition.events:
        arguments = _occurrences(node, event, stored, planning)
        if arguments:
            happened.add(event.positions, arguments)
    return happened


def _occurrences(
    node: ConditionNode, event: CompiledEvent, stored: frozenset[str], planning: Planning
) -> set[Row]:
    """The arguments for which the watched function gained, lost or changed a value."""
    concerned = frozenset(stored & stored_relations(event.program).keys())
    if not concerned:
        return set()
    key = (event.program.goal.id, concerned)
    queries = node.events.get(key)
    if queries is None:
        change = differentiate(event.program, concerned)
        compiled = (planning.compile(each) for each in (change.plus, change.minus))
        queries = node.events[key] = (next(compiled), next(compiled))
    inputs = event.program.goal.inputs
    gained = {row[:inputs] for row in queries[0].rows(())}
    if event.kind == "added":
        return gained
    lost = {row[:inputs] for row in queries[1].rows(())}
    return lost if event.kind == "removed" else gained & lost
