"""Maps each watched view to the condition in the network that yields its changes.

A view has a condition of its own, or shares one with all views restricted by conditions of the same
shape. The rows of a shared condition start with the number of the subscription they are for.

Law: every watched view is at one condition, and every condition of a monitor has a view at it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import KeysView
from dataclasses import dataclass, field
from itertools import count

from harken.consumers.monitors.view import MonitoredView, Selection, Watched
from harken.database.subscription_parameters import Parameters
from harken.engines.protocol import Engine
from harken.values.rows import Row


@dataclass(slots=True)
class Place:
    """A condition of the network, and the views that receive its changes."""

    view: MonitoredView
    parameters: Parameters | None
    subscriptions: dict[int, Watched] = field(default_factory=dict)


class Places:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._numbers = count(1)
        self._places: dict[str, Place] = {}
        self._found: dict[Watched, tuple[Place, int]] = {}
        self._may_be_undone = False
        """Whether an open transaction has changed a table of parameters."""

    def __contains__(self, watched: Watched) -> bool:
        return watched in self._found

    def watched(self) -> KeysView[Watched]:
        return self._found.keys()

    def view(self, watched: Watched) -> MonitoredView | None:
        """The condition of a watched view."""
        found = self._found.get(watched)
        return None if found is None else found[0].view

    def at(self, view: MonitoredView) -> list[Watched]:
        """All watched views at this condition."""
        place = self._places.get(view.name)
        return [] if place is None else list(place.subscriptions.values())

    def open(self, view: MonitoredView) -> None:
        """Make a place for a condition before it enters the network, or for one that replaces
        another of the same name."""
        known = self._places.get(view.name)
        if known is not None:
            known.view = view
            return
        parameters = None
        if view.parameters is not None:
            parameters = Parameters(self._engine, view.parameters, view.looked_up)
            parameters.create()
            self._note_change()
        self._places[view.name] = Place(view, parameters)

    def join(self, watched: Watched, selection: Selection) -> None:
        place = self._places[selection.view.name]
        if watched in self._found:
            return
        number = next(self._numbers)
        place.subscriptions[number] = watched
        self._found[watched] = (place, number)
        if place.parameters is not None:
            place.parameters.add(number, selection.stored_values)
            self._note_change()

    def leave(self, watched: Watched) -> MonitoredView | None:
        """Remove a watched view. Returns its condition if nobody else uses it: remove that from the
        network, and close the place."""
        place, number = self._found.pop(watched)
        del place.subscriptions[number]
        if place.parameters is not None:
            place.parameters.remove(number)
            self._note_change()
        return None if place.subscriptions else place.view

    def close(self, view: MonitoredView) -> None:
        """The condition has left the network."""
        place = self._places.pop(view.name)
        if place.parameters is not None:
            place.parameters.drop()
            self._note_change()

    def clear(self) -> None:
        """All conditions have left the network."""
        self._found.clear()
        while self._places:
            _, place = self._places.popitem()
            if place.parameters is not None:
                place.parameters.drop()

    def concerned(
        self, view: MonitoredView, rows: Counter[Row], is_fresh: bool
    ) -> list[tuple[Watched, Counter[Row]]]:
        """The views that these rows concern. A fresh change concerns all, also those without
        rows."""
        split = self.split(view, rows)
        if not is_fresh:
            return split
        found = dict(split)
        return [(watched, found.get(watched, Counter())) for watched in self.at(view)]

    def split(self, view: MonitoredView, rows: Counter[Row]) -> list[tuple[Watched, Counter[Row]]]:
        """The rows of a condition with their weights, for each view at it that has any."""
        subscriptions = self._places[view.name].subscriptions
        if view.parameters is None:
            (watched,) = subscriptions.values()
            return [(watched, rows)]
        found: dict[int, Counter[Row]] = {}
        for (number, *row), weight in rows.items():
            found.setdefault(number, Counter())[tuple(row)] = weight
        return [  # a subscription may have ended in this transaction
            (subscriptions[number], weights)
            for number, weights in found.items()
            if number in subscriptions
        ]

    # --- rollback --------------------------------------------------------------------------

    def _note_change(self) -> None:
        self._may_be_undone |= self._engine.connection.in_transaction

    def restore(self) -> None:
        """After a rollback, which may have undone changes made here."""
        for place in self._places.values() if self._may_be_undone else ():
            if place.parameters is not None:
                place.parameters.restore()

    def after_transaction(self) -> None:
        self._may_be_undone = False
