"""Activations that one transaction ended and began again.

The activations of a rule are as they were, so nothing that the condition depends on has changed.
But the rule was activated, and acts on all that its condition holds for then.

Law: an activation waits exactly if it was active, was deactivated and then activated in the open
transaction, and has not been evaluated since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.consumers.rules.conflict_set import Key


class Reactivated:
    def __init__(self) -> None:
        self._ended: set[Key] = set()
        self.waiting: set[Key] = set()

    def deactivate(self, rule: str, arguments: tuple[Any, ...]) -> None:
        self._ended.add((rule, arguments))
        self.waiting.discard((rule, arguments))

    def activate(self, rule: str, arguments: tuple[Any, ...]) -> None:
        if (rule, arguments) in self._ended:
            self._ended.discard((rule, arguments))
            self.waiting.add((rule, arguments))

    def take(self, is_due: Callable[[str], bool]) -> list[Key]:
        """Remove and return those whose rule is checked now."""
        due = [key for key in self.waiting if is_due(key[0])]
        self.waiting.difference_update(due)
        return sorted(due)

    def snapshot(self) -> tuple[frozenset[Key], frozenset[Key]]:
        return frozenset(self._ended), frozenset(self.waiting)

    def restore(self, state: Any) -> None:
        ended, waiting = state
        self._ended, self.waiting = set(ended), set(waiting)

    def clear(self) -> None:
        self._ended.clear()
        self.waiting.clear()
