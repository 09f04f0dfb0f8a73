"""The conflict set: the triggered activations of rules, each with its action set.

An action set has the tuples that the condition of an activation has gained and not lost again. The
most urgent activation acts first: priority 5 before 0, then the order of activation (thesis,
section 8.5).

Law: a tuple is in an action set exactly if its net change is a gain, since the transaction began or
since the activation last acted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from harken.consumers.rules.definition import CompiledRule
from harken.propagation.watched_events import Summed
from harken.propagation.wave import ViewChange
from harken.values.rows import Row

Key: TypeAlias = tuple[str, Row]
"""An activation: the name of the rule, and the arguments it is activated for."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A rule with the stored arguments it is activated for."""

    rule: CompiledRule
    arguments: Row
    priority: int
    sequence: int

    @property
    def name(self) -> str:
        return self.rule.rule.name

    @property
    def key(self) -> Key:
        return self.name, self.arguments


@dataclass(frozen=True, slots=True)
class ConflictState:
    """A snapshot."""

    action_sets: dict[Key, dict[Row, int]]
    events: dict[str, Summed]


class ConflictSet:
    def __init__(self) -> None:
        self._action_sets: dict[Key, dict[Row, int]] = {}
        """For each activation its tuples, with their net change."""
        self._waiting: Counter[str] = Counter()
        """The number of triggered activations of each rule."""
        self.events: dict[str, Summed] = {}
        """For each rule, the summed events of the transaction so far."""

    def waiting(self) -> list[Key]:
        """The triggered activations."""
        return list(self._action_sets)

    def waits(self, rule: str) -> bool:
        """Whether any activation of a rule is in the conflict set."""
        return self._waiting[rule] > 0

    def add(self, change: ViewChange, inputs: int, keep_losses: bool) -> None:
        """Add the gains and losses of a rule's condition; the first columns are the rule's
        arguments.

        For an immediate rule each statement is a check of its own. For other rules the whole
        transaction is, and `keep_losses` says that a lost tuple may come back before it ends.
        """
        name = change.view.name
        if change.summed is not None:
            self.events[name] = self.events.get(name, Summed()).add(change.summed)
        for row in change.minus:
            self._weigh((name, row[:inputs]), row, -1, keep_losses)
        for row in change.plus:
            self._weigh((name, row[:inputs]), row, 1, keep_losses)

    def _weigh(self, key: Key, row: Row, weight: int, keep_losses: bool) -> None:
        rows = self._action_sets.get(key, {})
        total = min(rows.get(row, 0) + weight, 1)
        if total > 0 or (total < 0 and keep_losses):
            rows[row] = total
        else:
            rows.pop(row, None)
        self._put(key, rows)

    def _put(self, key: Key, rows: dict[Row, int]) -> None:
        if not rows:
            self.drop(key)
        elif key not in self._action_sets:
            self._action_sets[key] = rows
            self._waiting[key[0]] += 1
        else:
            self._action_sets[key] = rows

    def take_all(self, rule: str) -> tuple[list[Row], list[Row]]:
        """Remove and return what all activations of a rule have gained, and what they have lost."""
        gained, lost = list[Row](), list[Row]()
        for key in [key for key in self._action_sets if key[0] == rule]:
            for row, weight in self._action_sets[key].items():
                (gained if weight > 0 else lost).append(row)
            self.drop(key)
        return gained, lost

    def remove(self, done: dict[Key, list[Row]]) -> None:
        """Remove tuples that were acted on already."""
        for key, rows in done.items():
            left = {r: w for r, w in self._action_sets.get(key, {}).items() if r not in rows}
            self._put(key, left)

    def put(self, rule: str, inputs: int, rows: list[Row]) -> None:
        """Add tuples that a rule is to act on."""
        for row in rows:
            self._weigh((rule, row[:inputs]), row, 1, False)

    def settle_losses(self) -> None:
        """From here on each wave is a check of its own: tuples that were only lost are final."""
        for key in self.waiting():
            gained = {row: weight for row, weight in self._action_sets[key].items() if weight > 0}
            self._put(key, gained)

    def settle_events(self, rule: CompiledRule, summed: Summed, holds_now: list[Row]) -> None:
        """Keep only the tuples of a rule's action sets that its events concern. `holds_now` has all
        tuples of the condition, if the rule acts on those rather than on gains."""
        name = rule.name
        about = summed.occurrence(rule)
        for key in [key for key in self._action_sets if key[0] == name]:
            rows = about.concerning(list(self._action_sets[key])) if rule.acts_on_gains else []
            self._put(key, dict.fromkeys(rows, 1))
        inputs = len(rule.rule.parameters)
        for row in about.concerning(holds_now) if about.happened else ():
            self._weigh((name, row[:inputs]), row, 1, False)

    def gained(self, key: Key) -> list[Row]:
        return [row for row, weight in self._action_sets[key].items() if weight > 0]

    def drop(self, key: Key) -> None:
        if self._action_sets.pop(key, None) is not None:
            self._waiting[key[0]] -= 1

    def take(self, key: Key) -> list[Row]:
        """Remove and return the action set of an activation."""
        rows = self.gained(key)
        self.drop(key)
        return rows

    def snapshot(self) -> ConflictState:
        acting = {key: dict(rows) for key, rows in self._action_sets.items()}
        return ConflictState(acting, dict(self.events))

    def restore(self, state: ConflictState) -> None:
        self._action_sets, self.events = state.action_sets, state.events
        self._waiting = Counter(name for name, _ in self._action_sets)

    def clear(self) -> None:
        self._action_sets.clear()
        self._waiting.clear()
        self.events.clear()
