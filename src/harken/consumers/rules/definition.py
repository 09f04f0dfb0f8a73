"""The definition of a rule: a condition, which is a view to watch, and an action.

    create rule r(P) as when for each V where condition do action

becomes the relation of the tuples for which the rule is activated and its condition holds,

    cnd_r(P, V) ← activations of r(P, ...) ∧ condition(P, V)

and an action that runs once for each tuple that the relation gains (thesis, sections 4.1 and 4.3).
The activations are a stored relation like any other: activating a rule is a change that the
calculus propagates, so a rule activated late catches up by itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harken.database.actions import Action
from harken.database.schema_cache import Dependencies
from harken.database.system import activations_relation
from harken.ir.event_trees import Leaf, Length, OneOf, Tree, waits
from harken.ir.past_relations import STATEMENT, TRANSACTION
from harken.ir.relations import Column, Kind, Relation, Role
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.propagation.consumer import IMMEDIATE

NO_EVENTS = OneOf(())
BEFORE, DETACHED, DECOUPLED = "before", "detached", "decoupled"
AFTER_TRANSACTION = (DETACHED, DECOUPLED)
"""The couplings of rules that act after the transaction that triggers them, each activation in one
of its own: if that was committed, or in any case."""


@dataclass(frozen=True, slots=True)
class TimeEvent:
    """`every 10 minutes`, `at` a moment, `after 5 minutes`: since the rule was activated."""

    number: int
    kind: str
    length: Length | None = None
    moment: datetime.datetime | None = None
    time: datetime.time | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was created; `variables` are those its condition binds for its action."""

    name: str
    oid: int
    text: str
    parameters: tuple[Column, ...]
    variables: tuple[Column, ...]
    nervous: bool
    patient: bool
    """Whether it acts on what became true before an event, if it has not acted on it."""
    coupling: str
    has_condition: bool

    @property
    def semantics(self) -> str:
        if self.patient:
            return "patient"
        return "nervous" if self.nervous else "strict"

    @property
    def since(self) -> str:
        """When old values are from."""
        return STATEMENT if self.is_immediate else TRANSACTION

    @property
    def is_immediate(self) -> bool:
        """Whether it is checked with each statement."""
        return self.coupling in (IMMEDIATE, BEFORE)

    @property
    def activations(self) -> Relation:
        return activations_relation(self.name, self.parameters)

    @property
    def condition(self) -> Relation:
        names = (*self.parameters, *self.variables)
        inputs = len(self.parameters)
        return Relation(f"cnd_{self.name}", names, inputs, Kind.DERIVED, role=Role.CONDITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule(WatchedView):
    rule: Rule
    build_action: Callable[[], Action]
    """Builds the action, when it first runs: it may use things that only the session knows."""
    keep_histories: Callable[[], None] = lambda: None
    """Makes the plans of an action that asks for old values, so that these are known."""
    dependencies: Dependencies

    tree: Tree = NO_EVENTS
    """How its events are joined, by their numbers."""
    times: tuple[TimeEvent, ...] = ()
    """Its events of time."""

    @property
    def is_composed(self) -> bool:
        """Whether its events are more than changes of which any will do."""
        plain = isinstance(self.tree, Leaf) or (
            isinstance(self.tree, OneOf) and all(isinstance(e, Leaf) for e in self.tree.parts)
        )
        return bool(self.events) and (self.rule.patient or not plain)

    @property
    def waits(self) -> bool:
        """Whether an interval of its events ends with something that has not happened."""
        return bool(self.events) and waits(self.tree)

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def title(self) -> str:
        return f"the condition of rule {self.rule.name}"

    @property
    def strict(self) -> bool:
        return not self.rule.nervous

    @property
    def may_read_past(self) -> bool:
        return True

    @property
    def may_be_counted(self) -> bool:
        return self.strategy != Strategy.EXTERNAL

    @property
    def only_events(self) -> bool:
        return bool(self.events) and not self.rule.has_condition

    def has_same_definition(self, other: WatchedView) -> bool:
        return (
            isinstance(other, CompiledRule)
            and self.rule == other.rule
            and self.tree == other.tree
            and WatchedView.has_same_definition(self, other)
        )


class RuleCompiler(Protocol):
    """The front end that rules are written in."""

    def read(self, text: str, oid: int) -> Rule:
        """A rule from the text that the catalog keeps."""

    def compile(self, rule: Rule) -> CompiledRule: ...
