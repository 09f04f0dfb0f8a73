"""Which view of the network finds the changes of which answers.

Queries that differ in constants alone are one view and a table of constants:

    answers(Q, X, Y) ← parameters(Q, C) ∧ stock(X, Z, Y) ∧ Z = C

so the cost of a change does not depend on how many such queries it does not concern. A query is
shared if it is one clause without aggregates, and compares something with a constant; any other has
a view of its own.

Law: the rows of a shared view that begin with the number of a query, without that number, are the
answer of the query.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harken.continual.compiled_queries import CompiledQuery
from harken.continual.installed_queries import InstalledQuery
from harken.database.catalog import Catalog
from harken.database.shared_conditions import shared_condition
from harken.database.subscription_parameters import Parameters
from harken.engines.protocol import Engine
from harken.ir.assemble import assemble
from harken.ir.clauses import Aggregation, Clause, Comparison
from harken.ir.terms import Constant, Variable
from harken.maintenance.watched import SharedView, WatchedView
from harken.planner.lift import lift_constants
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.values.encoding import encoder
from harken.values.rows import Row
from harken.values.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView(SharedView):
    called: str
    number: int | None = None
    """The query whose own it is; None if it is shared."""

    @property
    def name(self) -> str:
        return f"answer {self.label}"

    @property
    def title(self) -> str:
        return f"the continual query {self.called}"

    @property
    def may_fail(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Selection:
    """The view of a query, and its constants as they are stored."""

    view: AnswerView
    constants: tuple[Any, ...] = ()


def selection_of(query: InstalledQuery, compiled: CompiledQuery, catalog: Catalog) -> Selection:
    """Compile the view in which a query is watched."""
    if len(compiled.own) == 1 and len(compiled.own[0].clauses) == 1:
        (clause,) = compiled.own[0].clauses
        lifted, constants = _lifted(clause)
        if constants and not any(isinstance(each, Aggregation) for each in clause.body):
            stored = tuple(encoder(each.type)(each.value) for each in constants)
            return Selection(_shared(lifted, constants, query, catalog), stored)
    return Selection(
        AnswerView(
            program=compiled.program,
            label=str(query.number),
            called=query.name,
            number=query.number,
        )
    )


def _lifted(clause: Clause) -> tuple[Clause, tuple[Constant, ...]]:
    """The constants of comparisons, lifted; others stay, because plans may depend on them."""
    compared = [each for each in clause.body if isinstance(each, Comparison)]
    found, constants = lift_constants(Clause(clause.head, tuple(compared)), _variable)
    given = iter(found.body)
    body = tuple(next(given) if isinstance(e, Comparison) else e for e in clause.body)
    return Clause(clause.head, body), constants


def _variable(number: int, type_: Type) -> Variable:
    return Variable(f"CONSTANT#{number}", type_)


def _shared(
    clause: Clause, constants: tuple[Constant, ...], query: InstalledQuery, catalog: Catalog
) -> AnswerView:
    relation = clause.head.relation
    said = repr((relation.columns, relation.semantics, clause.head.terms, clause.body))
    label = f"of shape {hashlib.sha256(said.encode()).hexdigest()[:24]}"
    variables = [_variable(i, each.type.or_null(False)) for i, each in enumerate(constants)]
    shared = shared_condition(relation, clause, variables, f"answers {label}", f"answers {label}")
    return AnswerView(
        program=assemble(shared.goal, (shared.definition,), catalog),
        label=label,
        called=f"{query.name} and others like it",
        parameters=shared.parameters,
        looked_up=shared.looked_up,
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
        if view.number is not None:
            yield from ((view.number, row) for row in rows)
        else:
            yield from ((row[0], row[1:]) for row in rows if row[0] in self._at)


def summed(
    places: AnswerPlaces, view: WatchedView, plus: Iterable[Row], minus: Iterable[Row]
) -> dict[int, Counter[Row]]:
    """The change of a view as the changes of answers."""
    found: dict[int, Counter[Row]] = {}
    for rows, sign in ((plus, 1), (minus, -1)):
        for number, row in places.split(view, rows):
            found.setdefault(number, Counter())[row] += sign
    return found
