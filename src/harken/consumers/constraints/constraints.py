"""Constraints: views that must stay empty.

The network watches them like any other view. A table starts empty, so rows that such a view has
gained when all rules have acted violate the constraint, and the transaction is rolled back. If a
constraint is new, or something it reads was redefined, all its rows count as gained.

Law: after a commit no constraint has a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harken.database.catalog import Catalog
from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.errors import IntegrityError
from harken.ir.schema import Function
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import NetChangeView, WatchedView
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row
from harken.values.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedConstraint(NetChangeView):
    table: str
    said: str
    number: int

    @property
    def name(self) -> str:
        return f"constraint {self.table} {self.number}"

    @property
    def title(self) -> str:
        return f"{self.said} of {self.table}"


CompileConstraints = Callable[[Function, Catalog], Iterable[WatchedConstraint]]
"""The constraints of a function that is a table."""


class Constraints(Consumer):
    """Watches the constraints of every table in the catalog, and rejects transactions that violate
    one."""

    def __init__(
        self, runtime: Runtime, network: Network, compile_constraints: CompileConstraints
    ) -> None:
        self._runtime = runtime
        self._network = network
        self._compile = compile_constraints
        self._epoch = -1
        self._changes: list[ViewChange] = []
        self._excused: dict[str, Counter[Row]] = {}
        """The rows that constraints gained because time passed."""

    def synchronise(self) -> None:
        catalog = self._runtime.catalog
        if catalog.epoch == self._epoch:
            return
        self._epoch = catalog.epoch
        functions = catalog.functions()
        wanted = [each for function in functions for each in self._compile(function, catalog)]
        found = self._network.graph.hold(self, wanted)
        if catalog.changed:  # otherwise another session did it, and has checked
            self._network.graph.redefined |= set(found)

    def note_redefined(self, view: WatchedView) -> None:
        self._network.graph.redefined.add(view.name)

    def receive(self, change: ViewChange) -> None:
        self._changes.append(change)

    def begin_check(self) -> None:
        """Time cannot be refused. What it broke is complained of, unless rules repair it."""
        if self._network.clock.complaints is not None:
            self._excused = self._net()[0]

    def settle(self) -> None:
        """Raise if the net change of the transaction violates a constraint."""
        weights, views = self._net()
        for name, weight in weights.items():
            excused = self._excused.get(name, Counter())
            broken = [row for row, count in weight.items() if count > 0]
            own = next((row for row in broken if weight[row] > excused[row]), None)
            if own is not None:
                raise _broken(self._runtime, views[name], own)
            if broken and self._network.clock.complaints is not None:
                error = _broken(self._runtime, views[name], broken[0], by_time=True)
                self._network.clock.complaints.append(error)

    def _net(self) -> tuple[dict[str, Counter[Row]], dict[str, WatchedView]]:
        """The rows that each constraint gained and lost in the transaction so far."""
        weights: dict[str, Counter[Row]] = {}
        views: dict[str, WatchedView] = {}
        for change in self._changes:
            views[change.view.name] = change.view
            if (
                change.strategy == Strategy.REDEFINED
            ):  # includes all rows, also those gained earlier
                weights.pop(change.view.name, None)
            weight = weights.setdefault(change.view.name, Counter())
            if change.fresh:
                weight.clear()
            weight.update(change.plus)
            weight.subtract(change.minus)
        return weights, views

    def snapshot(self) -> object:
        return len(self._changes)

    def restore(self, state: object) -> None:
        assert isinstance(state, int)
        del self._changes[state:]

    def forget(self) -> None:
        self._changes.clear()
        self._excused.clear()


def _broken(runtime: Runtime, view: WatchedView, row: Row, by_time: bool = False) -> IntegrityError:
    columns = view.program.goal.columns
    types: tuple[Type, ...] = tuple(column.type for column in columns)
    (shown,) = decode_rows([row], types, runtime.catalog.home)
    values = ", ".join(f"{c.name} = {_sql(v)}" for c, v in zip(columns, shown, strict=True))
    if by_time:
        return IntegrityError(
            f"{view.title} does not hold any more, because time has passed: {values}",
            code="constraint",
            hint="change the row, or let a rule do so in time; nothing is rolled back",
        )
    return IntegrityError(
        f"{view.title} does not hold: {values}",
        code="constraint",
        hint="the transaction is rolled back",
    )


def _sql(value: Any) -> str:
    """
    >>> _sql("a"), _sql(None), _sql(3)
    ("'a'", 'NULL', '3')
    """
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value)
