"""What a monitor watches: the rows of a function, as a condition of the propagation network.

    monitored f(A, R) ← f(A, R) [∧ condition(A, R)]

It is a condition like that of a rule, without an action: it shares nodes, Δ-sets and choices with
all others. But its client wants both signs, each time.

Law: the rows before the transaction, with what was gained and lost, are the rows after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harken.database.catalog import Catalog
from harken.database.complaints import cannot_be_watched
from harken.database.rules.conditions import Condition
from harken.database.sql.restricted import restricted
from harken.errors import SafetyFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Kind
from harken.ir.schema import Function
from harken.ir.terms import Variable
from harken.ir.types import Type
from harken.planner.maintenance import moving, untold
from harken.planner.prepare import prepare


@dataclass(frozen=True, slots=True)
class Watched:
    """The rows of a function, or those of them that meet a condition in SQL."""

    function: str
    where: str | None = None

    def __str__(self) -> str:
        return self.function if self.where is None else f"{self.function} where {self.where}"

    @property
    def node(self) -> str:
        """What its condition is called in the network."""
        return f"monitor {self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredView(Condition):
    watched: Watched
    mentions: frozenset[str] = frozenset()
    """The names that the condition mentions."""
    is_moving: bool = False
    warnings: tuple[str, ...] = ()
    """What its clients are not told of."""

    @property
    def name(self) -> str:
        return self.watched.node

    @property
    def title(self) -> str:
        return f"the monitored view {self.watched}"

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def is_asked_at_end(self) -> bool:
        return True

    @property
    def moves(self) -> bool:
        return self.is_moving

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(column.type for column in self.program.goal.columns)


def compile_view(function: Function, catalog: Catalog, where: str | None = None) -> MonitoredView:
    relation = function.relation
    if relation is None:
        raise TypeFault(
            f"{function.id} is a procedure, and has no rows that could change",
            code="side-effect",
            hint="name the function that it changes",
        )
    if relation.kind is Kind.FOREIGN:
        raise cannot_be_watched(function, None)
    source, mentions = relation, frozenset[str]()
    own: Iterable[Definition] = ()
    name = f"monitored {relation.name}"
    if where is not None:
        source, own, mentions = restricted(function, where, catalog)
        name = f"{name} where {where}"
    goal = replace(relation, name=name, kind=Kind.DERIVED)
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
    definition = Definition(goal, (Clause(Atom(goal, row), (Atom(source, row),)),))
    program = assemble(goal, (definition, *own), catalog)
    try:
        prepare(program, catalog.hierarchy)
    except SafetyFault as error:
        if error.code != "unsafe":
            raise
        raise cannot_be_watched(function, None) from error
    watched = Watched(function.id, where)
    return MonitoredView(
        program=program,
        watched=watched,
        mentions=mentions,
        is_moving=bool(moving(program)),
        warnings=untold(program),
    )
