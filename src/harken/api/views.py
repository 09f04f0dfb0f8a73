"""The views of a session for clients that follow them: a list, their rows, and their changes.

A position is the number of a transaction, from a counter in the file. Law: the rows of a view at a
position plus the changes after it are the present rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harken.api.internals import Internals
from harken.api.view_history import ViewHistory
from harken.consumers.monitors.outbox import OutboxStatus
from harken.consumers.monitors.subscription import (
    MonitorOptions,
    Subscription,
    check_position,
    read_view,
    subscribe,
    watched_view,
)
from harken.consumers.monitors.view import Watched
from harken.database.arguments import check_text, check_whole
from harken.database.changes import Change
from harken.database.exclusive import SessionLock
from harken.ir.relations import Column, Kind
from harken.ir.schema import Function
from harken.statements.sql.restricted import row_columns
from harken.statements.sql.view_clauses import is_view

Condition = str | Mapping[str, Any] | None
"""On the columns of a view: in SQL, or as `{column: value}`."""


@dataclass(frozen=True, slots=True)
class ViewDescription:
    """Something with rows that can be followed: a table, a view, a relation or a function."""

    name: str
    kind: str
    """`stored` or `derived`."""
    columns: tuple[Column, ...]
    """The columns of the rows that a monitor reports; their names are distinct."""
    is_view: bool
    """Whether it is defined by others: a view of SQL, a relation with rules, a derived function."""
    where: str | None = None
    """The condition on its rows that was asked about."""
    warnings: tuple[str, ...] = ()
    """Changes that its monitors do not report, such as those made by time alone; filled in by
    `db.describe`."""


class Views:
    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self._monitors = internals.monitors
        self._session_lock = session_lock

    # --- listing ---------------------------------------------------------------------------

    def all(self) -> list[ViewDescription]:
        """In the order of their creation."""
        self._internals.look()
        return list({each.name: each for each in self._described()}.values())

    def _described(self) -> Iterator[ViewDescription]:
        catalog = self._internals.catalog
        for function in catalog.functions():
            if _has_rows(function) and self._internals.runtime.permissions.may_see(function):
                plain = len(catalog.named(function.name)) == 1 or not function.parameters
                prefix = "" if plain else f"{function.parameters[0].type}."
                yield _description(f"{prefix}{function.name}", function)

    def describe(self, name: str, where: Condition) -> ViewDescription:
        function, watched = self._watched(name, where)
        warnings = self._monitors.warnings(watched)
        return _description(name, function, watched.where, warnings)

    def outboxes(self) -> list[OutboxStatus]:
        self._internals.look()
        return self._monitors.outbox.status()

    # --- rows and changes ------------------------------------------------------------------

    @property
    def position(self) -> int:
        self._internals.check_open()
        return self._monitors.logs.position()

    def monitor(self, name: str, options: MonitorOptions) -> Subscription:
        internals = self._internals
        internals.look()
        check_text(name, "the name of a function")
        if options.durable is not None:
            check_text(options.durable, "the name of a durable monitor")
        function = internals.function(name)
        with internals.connection.watch.statement():
            return subscribe(
                internals.runtime,
                internals.transactions,
                internals.monitors,
                function,
                name,
                options,
                self._session_lock,
            )

    def snapshot(self, name: str, where: Condition) -> Change:
        _, watched = self._watched(name, where)
        return read_view(self._internals.transactions, self._monitors, watched, name)

    def changes_after(
        self, name: str, position: int, where: Condition, net: bool
    ) -> tuple[list[Change], int]:
        check_whole(position, "a position")
        _, watched = self._watched(name, where)
        if self._monitors.logs.find(watched) is None:
            check_position(position, self.position)
            change = read_view(self._internals.transactions, self._monitors, watched, name)
            return [change], change.position
        with self.monitor(name, MonitorOptions(where=where, since=position)) as subscription:
            return subscription.changes(net=net), subscription.position

    def history(self, name: str) -> ViewHistory:
        function, watched = self._watched(name, None)
        log = self._monitors.logs.find(watched)
        now = read_view(self._internals.transactions, self._monitors, watched, name)
        floor, kept = now.position, list[Change]()
        if log is not None and log.floor <= now.position:
            found, _ = self.changes_after(name, log.floor, None, False)
            if not any(each.fresh for each in found):
                floor, kept = log.floor, [each for each in found if each.position <= now.position]
        return ViewHistory(
            name,
            row_columns(function),
            now.shape.key or (),
            floor,
            now.position,
            now.plus,
            kept,
            log is not None,
        )

    def _watched(self, name: str, where: Condition) -> tuple[Function, Watched]:
        """What a monitor of this function with this condition watches."""
        self._internals.look()
        check_text(name, "the name of a function")
        function = self._internals.function(name)
        return function, watched_view(self._monitors, function, where)


def _description(
    name: str, function: Function, where: str | None = None, warnings: tuple[str, ...] = ()
) -> ViewDescription:
    return ViewDescription(
        name, function.kind.value, row_columns(function), is_view(function), where, warnings
    )


def _has_rows(function: Function) -> bool:
    relation = function.relation
    is_hidden = function.system or bool(function.facts_of)
    return not (relation is None or is_hidden or relation.kind is Kind.FOREIGN)
