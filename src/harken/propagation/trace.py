"""What the check phase does, line by line (`db.trace`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harken.ir.relations import Relation
from harken.propagation.wave import NodeChange, ViewChange
from harken.values.types import Type

ShowRows = Callable[[list[tuple[Any, ...]], Sequence[Type]], str]
"""Formats stored rows of these types for people."""


class Trace:
    def __init__(self, show: ShowRows) -> None:
        self._show = show
        self.listener: Callable[[str], None] | None = None

    @property
    def is_on(self) -> bool:
        return self.listener is not None

    def say(self, line: str) -> None:
        if self.listener is not None:
            self.listener(line)

    def incoming(self, relation: Relation, plus: list[Any], minus: list[Any]) -> None:
        """What a stored relation gained and lost."""
        self.say(f"Δ{relation.label} = {self._shown(relation, plus, minus)}")

    def view(self, change: ViewChange) -> None:
        goal = change.view.program.goal
        self._change(goal, goal.name, change)

    def node(self, change: NodeChange) -> None:
        self._change(change.relation, change.relation.label, change)

    def _change(self, relation: Relation, name: str, change: ViewChange | NodeChange) -> None:
        influents = ", ".join(sorted(change.changed))
        shown = self._shown(relation, change.plus, change.minus)
        self.say(f"Δ{name} from {influents} ({change.decision.label}): {shown}")

    def _shown(self, relation: Relation, plus: list[Any], minus: list[Any]) -> str:
        types = [column.type for column in relation.columns]
        return f"<{{{self._show(plus, types)}}}, {{{self._show(minus, types)}}}>"
