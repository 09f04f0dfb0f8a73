"""Which view of the network finds the changes of which answers.

Queries that differ in constants alone are one view and a table of constants:

    answers(Q, X, Y) ← parameters(Q, C) ∧ stock(X, Z, Y) ∧ Z = C

so the cost of a change does not depend on how many such queries it does not concern
(`planner.share_constants`). Queries without constants that are the same are one view, too. A query
has a view of its own if it is recursive, or if each query of its shape would have first rows of
nearly all rows of a table.

Law: the rows of a shared view that begin with the number of a query, without that number, are the
answer of the query; without constants, its rows are the answer of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from harken.continual.compiled_queries import CompiledQuery, LiftedQuery
from harken.continual.installed_queries import InstalledQuery
from harken.database.catalog import Catalog
from harken.database.subscription_parameters import Parameters
from harken.database.system import parameters_relation
from harken.engines.protocol import Engine
from harken.ir.assemble import assemble
from harken.ir.clauses import Definition
from harken.ir.relations import Relation
from harken.ir.terms import Constant, Parameter
from harken.maintenance.watched import SharedView, WatchedView
from harken.planner.clock_views import untold
from harken.planner.share_constants import share_constants
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.values.encoding import encoder
from harken.values.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView(SharedView):
    called: str

    @property
    def name(self) -> str:
        return f"answer {self.label}"

    @property
    def title(self) -> str:
        return f"the continual query {self.called}"

    @property
    def may_fail(self) -> bool:
        return True

    @property
    def is_looked_at(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Selection:
    """The view of a query, and its constants as they are stored."""

    view: AnswerView
    constants: tuple[Any, ...] = ()


class Selections:
    """Which view finds the changes of which query; the forms of views are compiled once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._forms: dict[LiftedQuery, _Form | None] = {}
        self._epoch = -1

    def lifted(
        self, found: tuple[LiftedQuery, tuple[Any, ...]] | None, called: str
    ) -> Selection | None:
        """The view of a query whose constants were lifted out of its text; None if it must be
        compiled by itself."""
        if found is None:
            return None
        query, values = found
        if self._epoch != self._catalog.epoch:
            self._forms.clear()
            self._epoch = self._catalog.epoch
        if query not in self._forms:
            self._forms[query] = self._form(query.goal, query.own, called)
        form = self._forms[query]
        return None if form is None else form.selection(values)

    def compiled(self, query: InstalledQuery, compiled: CompiledQuery) -> Selection:
        form = self._form(compiled.program.goal, compiled.own, query.name)
        if form is not None:
            return form.selection(())
        return Selection(
            AnswerView(program=compiled.program, label=str(query.number), called=query.name)
        )

    def _form(self, goal: Relation, own: Sequence[Definition], called: str) -> _Form | None:
        ordered = sorted(own, key=lambda each: each.relation != goal)
        shared = share_constants(ordered, parameters_relation) if ordered else None
        if shared is None:
            return None
        program = assemble(shared.goal, shared.definitions, self._catalog)
        if shared.parameters is not None and untold(program, self._catalog.hierarchy):
            return None
        view = AnswerView(
            program=program,
            label=shared.label,
            called=f"{called} and others like it",
            parameters=shared.parameters,
            looked_up=shared.looked_up,
        )
        return _Form(view, shared.constants)


@dataclass(frozen=True, slots=True)
class _Form:
    view: AnswerView
    constants: tuple[Constant | Parameter, ...]

    def selection(self, values: Sequence[Any]) -> Selection:
        """The view with these values of its parameters."""
        return Selection(
            self.view,
            tuple(
                encoder(each.type)(each.value if isinstance(each, Constant) else values[each.index])
                for each in self.constants
            ),
        )


@dataclass(slots=True)
class Place:
    """A view of the network, and the queries whose changes it finds."""

    view: AnswerView
    parameters: Parameters | None
    members: set[int] = field(default_factory=set)


class AnswerPlaces:
    """The views of a session. Every method that changes them may be undone by a rollback: then
    `restore`, and make them what they should be again."""

    def __init__(self, engine: Engine, network: Network, consumer: Consumer) -> None:
        self._engine, self._network, self._consumer = engine, network, consumer
        self._places: dict[str, Place] = {}
        self._at: dict[int, str] = {}
        """The name of the view of each query."""

    def members(self) -> Collection[int]:
        return self._at.keys()

    def at(self, view: WatchedView) -> list[int]:
        """The queries whose changes a view finds."""
        place = self._places.get(view.name)
        return [] if place is None else sorted(place.members)

    def view_of(self, number: int) -> AnswerView | None:
        """The view that finds the changes of a query, if they are followed."""
        place = self._places.get(self._at.get(number, ""))
        return None if place is None else place.view

    def hold(self, wanted: dict[int, Selection]) -> None:
        """Follow exactly these queries."""
        for number in [each for each in self._at if each not in wanted]:
            self.leave(number)
        for number, selection in wanted.items():
            self.join(number, selection)

    def join(self, number: int, selection: Selection) -> None:
        """Follow a query, or follow it by another view."""
        view = selection.view
        before = self._at.get(number)
        if before is not None and before != view.name:
            self.leave(number)
            before = None
        place = self._opened(view)
        if before is not None:
            if place.parameters is None or place.parameters.rows[number] == selection.constants:
                return
            place.parameters.remove(number)
        place.members.add(number)
        self._at[number] = view.name
        if place.parameters is not None:
            place.parameters.add(number, selection.constants)
            self._revoke_kept(place)

    def _revoke_kept(self, place: Place) -> None:
        """Totals of the queries of a place miss the one whose constants have come."""
        node = self._network.graph.node(place.view.name)
        if node is not None:
            assert place.view.parameters is not None
            self._network.kept.revoke_reading(node, place.view.parameters)

    def _opened(self, view: AnswerView) -> Place:
        """The place of a view, which is in the network as it is now."""
        place = self._places.get(view.name)
        if place is None:
            parameters = None
            if view.parameters is not None:
                parameters = Parameters(self._engine, view.parameters, view.looked_up)
                parameters.create()
            place = self._places[view.name] = Place(view, parameters)
        node = self._network.graph.node(view.name)
        if node is None or not node.keeps_plans_for(view):
            place.view = view
            self._network.graph.insert(view, self._consumer)
            made = self._network.graph.node(view.name)
            if made is not None and made.counted is not None:
                self._network.kept.build_kept(made)
        return place

    def leave(self, number: int) -> None:
        """Do not follow a query any more; a view without queries leaves the network."""
        name = self._at.pop(number, None)
        if name is None:
            return
        place = self._places[name]
        place.members.discard(number)
        if place.parameters is not None and number in place.parameters.rows:
            place.parameters.remove(number)
            self._revoke_kept(place)
        if not place.members:
            del self._places[name]
            if name in self._network.graph:
                self._network.graph.remove(name)
            if place.parameters is not None:
                place.parameters.drop()

    def clear(self) -> None:
        """The network is empty."""
        places, self._places = self._places, {}
        self._at.clear()
        for place in places.values():
            if place.parameters is not None:
                place.parameters.drop()

    def restore(self) -> None:
        """After a rollback, which may have undone what was done to temporary tables."""
        for place in self._places.values():
            if place.parameters is not None:
                place.parameters.restore()

    def split(self, view: WatchedView, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
        """The rows of a view, each with the query whose answer it is in."""
        assert isinstance(view, AnswerView)
        if view.parameters is not None:
            yield from ((row[0], row[1:]) for row in rows if row[0] in self._at)
        else:
            yield from product(self.at(view), rows)


def summed(
    places: AnswerPlaces, view: WatchedView, plus: Iterable[Row], minus: Iterable[Row]
) -> dict[int, Counter[Row]]:
    """The change of a view as the changes of answers."""
    found: dict[int, Counter[Row]] = {}
    for rows, sign in ((plus, 1), (minus, -1)):
        for number, row in places.split(view, rows):
            found.setdefault(number, Counter())[row] += sign
    return found
