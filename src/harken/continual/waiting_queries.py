"""The queries that a session's content triggers wait for, and what they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from harken.continual.fired_rows import FiredRows
from harken.continual.trigger_conditions import (
    CompiledTrigger,
    Reference,
    WatchedCondition,
    subscription,
)
from harken.continual.trigger_kinds import Cause
from harken.database.subscription_parameters import Parameters
from harken.errors import HarkenError
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.continual.installed_queries import InstalledQuery


@dataclass(frozen=True, slots=True)
class ContentTrigger:
    """A condition, as text: WHEN condition, WHILE condition, or the thesis's layout."""

    text: str

    def __str__(self) -> str:
        return self.text


class ContinualQueriesOf(Protocol):
    """The continual queries of a session, as their content triggers see them."""

    def live(self) -> Iterable[InstalledQuery]:
        """The active queries with content triggers."""

    def find(self, number: int) -> InstalledQuery | None:
        """One of them."""

    def changed_since(self, version: int) -> Iterable[int] | None:
        """The queries that were changed after a version; None if that is no longer known."""

    def version(self) -> int:
        """Increases when a query is installed, changed or dropped."""

    def fire(self, number: int, cause: Cause) -> None: ...

    def catch_up(self, number: int, cause: Cause) -> None:
        """Fire a query now, even if it fails and waits for another attempt."""

    def fail(self, number: int, error: HarkenError) -> None:
        """Record that a query fails, and tell its owner."""


@dataclass(slots=True)
class WaitingQuery:
    """A query that waits for its condition."""

    query: InstalledQuery
    trigger: CompiledTrigger

    @property
    def text(self) -> str:
        return str(self.query.clauses.trigger)


@dataclass(slots=True)
class SharedCondition:
    """A condition of the network, and the subscriptions that share it."""

    view: WatchedCondition
    parameters: Parameters
    subscriptions: set[int] = field(default_factory=set)


class LeafRows:
    def __init__(self, waiting: WaitingQuery, rows: FiredRows) -> None:
        self._waiting, self._rows = waiting, rows

    def rows(self, leaf: int) -> list[Row]:
        number = subscription(self._waiting.query.number, leaf)
        return self._rows.present(self._waiting.trigger.leaves[leaf], number)


def cached(number: int, trigger: CompiledTrigger) -> tuple[list[int], list[Reference]]:
    """The subscriptions that need previous values, and of what."""
    numbers = [subscription(number, i) for i, leaf in enumerate(trigger.leaves) if leaf.references]
    references = {e.relation.id: e for leaf in trigger.leaves for e in leaf.references}
    return numbers, list(references.values())
