"""What a monitor watches: the rows of a function, as a condition of the propagation network.

    monitored f(A, R) ← f(A, R)
    monitored f(S, A, R) ← parameters(S, C) ∧ f(A, R) ∧ condition(A, R, C)

It is a condition like that of a rule, but without an action: it shares nodes, Δ-sets and strategies
with all others. Its client, however, always wants both signs.

Views restricted by conditions of one shape share one condition. The constants of each subscription
S are a row of its parameters, like the arguments of each activation of a rule. So one differential
finds the subscriptions that a changed row concerns, however many there are.

Law: the rows before the transaction, with its gains and losses, are the rows after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harken.calculus.clock import with_clock
from harken.consumers.monitors.restriction import Conditions, Restriction, constant_variable
from harken.database.catalog import Catalog
from harken.database.function_tables import asked_below
from harken.database.shared_conditions import shared_condition
from harken.database.shared_errors import cannot_be_watched
from harken.errors import NameFault, SafetyFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition, Program, with_terms
from harken.ir.relations import Kind, Relation, Role
from harken.ir.schema import Function
from harken.ir.terms import Constant, Parameter, Term, Value, Variable
from harken.maintenance.watched import SharedView
from harken.planner.change_methods import moving
from harken.planner.clock_views import untold
from harken.planner.prepare import prepare
from harken.values.encoding import encoder
from harken.values.types import Type


@dataclass(frozen=True, slots=True)
class Watched:
    """The rows of a function, or those that meet a condition in SQL."""

    function: str
    where: str | None = None

    def __str__(self) -> str:
        return self.function if self.where is None else f"{self.function} where {self.where}"

    @property
    def node(self) -> str:
        """The name of its condition in the network, if it does not share one."""
        return f"monitor {self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredView(SharedView):
    types: tuple[Type, ...]
    """The types of the rows that clients receive."""
    mentions: frozenset[str] = frozenset()
    """The names that the condition mentions."""
    warnings: tuple[str, ...] = ()
    """The changes that its clients do not see."""

    @property
    def name(self) -> str:
        return f"monitor {self.label}"

    @property
    def title(self) -> str:
        return f"the monitored view {self.label}"


@dataclass(frozen=True, slots=True)
class Selection:
    """A compiled subscription: its condition in the network, the program that reads all its rows,
    and the constants, which are the parameters of both."""

    view: MonitoredView
    reading: Program
    constants: tuple[Constant, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(each.value for each in self.constants)

    @property
    def stored_values(self) -> tuple[Any, ...]:
        return tuple(encoder(each.type)(each.value) for each in self.constants)


@dataclass(slots=True)
class Views:
    """The watched views, compiled with the present catalog; conditions of one shape are compiled
    once.

    A condition without constants or with the time in it, or with a strategy of its own, is shared
    only by subscriptions that say exactly the same. (Rows that depend on the time are those of the
    last evaluation, and a subscription added later was evaluated at another time.)
    """

    catalog: Catalog
    conditions: Conditions
    _epoch: int = -1
    _selections: dict[tuple[Watched, str], Selection] = field(default_factory=dict)
    _shapes: dict[tuple[str, str], tuple[MonitoredView, Program]] = field(default_factory=dict)

    def select(self, watched: Watched, strategy: str = "auto") -> Selection:
        if self._epoch != self.catalog.epoch or len(self._selections) >= MOST_SELECTIONS:
            self._selections.clear()
            self._shapes.clear()
            self._epoch = self.catalog.epoch
        found = self._selections.get((watched, strategy))
        if found is None:
            found = self._compile(watched)
            if strategy != "auto":
                found = self._alone(watched, found, strategy)
            self._selections[watched, strategy] = found
        return found

    def _compile(self, watched: Watched) -> Selection:
        if not self.catalog.has_function(watched.function):
            raise NameFault(f"{watched.function} was deleted", code="unknown-function")
        function = self.catalog.function(watched.function)
        if watched.where is None:
            view = _whole_view(function, self.catalog)
            return Selection(view, view.program)
        restriction = self.conditions.restrict(function, watched.where, self.catalog)
        shape = (function.id, restriction.shape)
        if shape not in self._shapes:
            self._shapes[shape] = _restricted_view(function, restriction, self.catalog)
        found = Selection(*self._shapes[shape], restriction.constants)
        if found.view.depends_on_time or not found.constants:
            return self._alone(watched, found)
        return found

    def _alone(self, watched: Watched, found: Selection, strategy: str = "auto") -> Selection:
        """With the constants in the condition."""
        if found.view.parameters is None:
            return replace(found, view=replace(found.view, strategy=strategy))
        goal = replace(found.reading.goal, name=f"monitored {watched}", role=Role.CONDITION)
        (clause,) = found.reading.definitions[found.reading.goal.id].clauses
        given: dict[Term, Term] = {
            Parameter(i, each.type.or_null(False)): each for i, each in enumerate(found.constants)
        }
        definition = Definition(goal, (_with_terms(goal, clause, given),))
        others = {**found.reading.definitions, goal.id: definition}
        del others[found.reading.goal.id]
        view = replace(
            found.view,
            program=Program(goal, others),
            label=str(watched),
            parameters=None,
            looked_up=(),
            strategy=strategy,
        )
        return replace(found, view=view)


MOST_SELECTIONS = 10_000
"""How many compiled conditions a session caches; more than a service follows at a time."""


def _whole_view(function: Function, catalog: Catalog) -> MonitoredView:
    relation = _rows_of(function)
    goal = relation.variant(Role.CONDITION, f"monitored {relation.name}", kind=Kind.DERIVED)
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
    definition = Definition(goal, (Clause(Atom(goal, row), (Atom(relation, row),)),))
    program = with_clock(assemble(goal, [definition], catalog))
    _check(program, function, catalog)
    return MonitoredView(
        program=program,
        label=function.id,
        types=_types(relation),
        is_moving=bool(moving(program)),
        warnings=untold(program, catalog.hierarchy),
    )


def _restricted_view(
    function: Function, restriction: Restriction, catalog: Catalog
) -> tuple[MonitoredView, Program]:
    """The condition shared by all subscriptions of one shape, and the program that reads the rows
    of one."""
    relation, clause = _rows_of(function), restriction.clause
    label = f"{function.id} where {restriction}"
    constants = [
        constant_variable(i, each.type.or_null(False))
        for i, each in enumerate(restriction.constants)
    ]
    goal = relation.variant(Role.AUXILIARY, f"rows of {label}", kind=Kind.DERIVED)
    given: dict[Term, Term] = {each: Parameter(i, each.type) for i, each in enumerate(constants)}
    read = Definition(goal, (_with_terms(goal, clause, given),))
    reading = with_clock(assemble(goal, (read, *restriction.own), catalog))
    _check(reading, function, catalog)
    shared = shared_condition(relation, clause, constants, f"monitored {label}", label)
    view = MonitoredView(
        program=assemble(shared.goal, (shared.definition, *restriction.own), catalog),
        label=label,
        types=_types(relation),
        mentions=restriction.mentions,
        is_moving=bool(moving(reading)),
        warnings=untold(reading, catalog.hierarchy),
        parameters=shared.parameters,
        looked_up=shared.looked_up,
    )
    return view, reading


def _with_terms(goal: Relation, clause: Clause, given: Mapping[Term, Term]) -> Clause:
    """The clause for another goal, with some terms replaced."""

    def term(each: Term) -> Term:
        return given.get(each, each)

    body = tuple(with_terms(each, term) for each in clause.body)
    return Clause(Atom(goal, clause.head.terms), body)


def _rows_of(function: Function) -> Relation:
    relation = function.relation
    if relation is None:
        raise TypeFault(
            f"{function.id} is a procedure, so it has no rows that could change",
            code="side-effect",
            hint="name the function that it changes",
        )
    if relation.kind is Kind.FOREIGN:
        raise cannot_be_watched(function, None)
    return relation


def _types(relation: Relation) -> tuple[Type, ...]:
    return tuple(column.type for column in relation.columns)


def _check(program: Program, function: Function, catalog: Catalog) -> None:
    asked = asked_below(catalog, [function.name])
    if asked is not None:
        raise SafetyFault(
            f"{asked} has no mirror, so nobody learns when it changes",
            code="unsafe",
            hint="create the source without MIRROR none to watch it",
        )
    try:
        prepare(program, catalog.hierarchy)
    except SafetyFault as error:
        if error.code != "unsafe":
            raise
        raise cannot_be_watched(function, None) from error
