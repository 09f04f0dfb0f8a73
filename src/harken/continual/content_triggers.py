"""Content triggers: which queries wait for which conditions, and firing them.

The conditions are views of the network, and this is their consumer. In each transaction it sums up
what the leaves of every query gained and lost, looks at the trees of the queries that this concerns
(`event_looks`), and fires those whose conditions happen. Previous values are recorded before that
(`reference_values`), in the same transaction.

An execution is a look: whatever is true when a query is executed, installed or resumed does not
fire it.

Law: a query is fired in a transaction exactly if its condition happens between the last look and
the end of the transaction.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from harken.continual.event_looks import Fired, Look, News, clear_progress, news_of
from harken.continual.event_states import EventState, EventStates
from harken.continual.fired_rows import FiredRows
from harken.continual.reference_values import ReferenceValues
from harken.continual.relative_triggers import event_of
from harken.continual.signal_numbers import count_signal
from harken.continual.trigger_conditions import (
    SIGNALS,
    CompiledTrigger,
    Reference,
    TriggerFrontEnd,
    WatchedCondition,
    columns_of,
    subscription,
)
from harken.continual.trigger_kinds import CONTENT, MOST_ROWS, Cause
from harken.continual.triggered_rows import triggered_relation
from harken.continual.unwatched_triggers import CAUSE, UnwatchedTriggers
from harken.continual.waiting_queries import (
    ContentTrigger,
    ContinualQueriesOf,
    LeafRows,
    SharedCondition,
    WaitingQuery,
    cached,
)
from harken.database.runtime import Runtime, Watcher
from harken.database.subscription_parameters import Parameters
from harken.errors import HarkenError, IntegrityError, Span
from harken.ir.relations import Relation
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange

if TYPE_CHECKING:
    from harken.continual.installed_queries import InstalledQuery

NAME = "content triggers"
MOST_DUE = 1_000
"""How many states one run looks at."""


class ContentTriggers(Consumer):
    name = NAME

    def __init__(self, runtime: Runtime, network: Network, front_end: TriggerFrontEnd) -> None:
        self._runtime = runtime
        self._network = network
        self._front_end = front_end
        self._touched = False
        """Whether the open transaction has changed what is watched."""
        self._connection = runtime.engine.connection
        self._references = ReferenceValues(runtime)
        self._states = EventStates(self._connection)
        self._rows = FiredRows(runtime)
        self._waiting: dict[int, WaitingQuery] = {}
        self._shapes: dict[str, SharedCondition] = {}
        self._unwatched = UnwatchedTriggers(self._connection, network, self)
        self._broken: dict[int, HarkenError] = {}
        """What this session could compile before the schema was changed."""
        self._received: list[ViewChange] = []
        self._executed: set[int] = set()
        """The queries that were executed or installed in the open transaction."""
        self._epoch = self._version = -1
        self.queries: ContinualQueriesOf
        self.block: Callable[[], AbstractContextManager[object]]

    # --- the kind of trigger ---------------------------------------------------------------

    def reads(self, text: str, base: int, layout: str) -> ContentTrigger | None:
        text = text.strip().removesuffix(";").rstrip()
        try:
            return ContentTrigger(text) if self._front_end.reads(text) else None
        except HarkenError as error:
            if error.span is not None:
                error.span = Span(error.span.start + base, error.span.end + base)
            raise

    def reads_again(self, text: str) -> ContentTrigger | None:
        """A stored trigger that differs from one that was read in constants only."""
        return ContentTrigger(text) if self._front_end.knows(text) else None

    def owns(self, trigger: object) -> bool:
        return isinstance(trigger, ContentTrigger)

    def relations(self, trigger: object) -> frozenset[str]:
        return self._front_end.named(str(trigger))

    def mentioned(self, query: InstalledQuery) -> frozenset[str]:
        """The tables and views that the trigger of a query reads."""
        trigger = event_of(query.clauses.trigger)
        if not isinstance(trigger, ContentTrigger):
            return frozenset()
        waiting = self._waiting.get(query.number)
        if waiting is not None and waiting.text == trigger.text:
            return waiting.trigger.mentions
        return self._front_end.compile(trigger.text, query.clauses.query).mentions

    def explained(self, query: InstalledQuery) -> list[str]:
        """The events that it waits for, and how many queries share each of its conditions."""
        lines = [f"triggered {query.clauses.trigger}", "events:"]
        lines += [f"  {each}" for each in self._front_end.events(str(query.clauses.trigger))]
        waiting = self._waiting.get(query.number)
        problem = self.problem_of(query.number)
        if problem is not None:
            lines.append(f"it cannot be watched here: {problem.message}")
        for leaf in waiting.trigger.leaves if waiting is not None else ():
            shape = self._shapes[leaf.view.name]
            others = len(shape.subscriptions) - 1
            shared = f"shared with {others} others" if others else "its own"
            lines.append(f"condition {leaf.view.label}, {shared}: {leaf.view.said}")
        return lines

    def _compiled(self, query: InstalledQuery) -> CompiledTrigger:
        return self._front_end.compile(str(query.clauses.trigger), query.clauses.query)

    def triggered(self, query: InstalledQuery) -> Relation | None:
        """The relation `triggered` of a query."""
        trigger = event_of(query.clauses.trigger)
        if not isinstance(trigger, ContentTrigger):
            return None
        compiled = self._front_end.compile(trigger.text, query.clauses.query)
        return triggered_relation(query.number, list(columns_of(compiled).values()))

    def installed(self, query: InstalledQuery) -> None:
        trigger = self._compiled(query)
        self._touched = True
        self._follow(query, trigger)
        self._prepare(query, trigger)

    def _prepare(self, query: InstalledQuery, trigger: CompiledTrigger) -> None:
        """In a transaction: the first look of a query."""
        self._executed.add(query.number)
        self._move(query.number, trigger)
        self._look(self._waiting[query.number], {}).begin()

    def dropped(self, query: InstalledQuery) -> None:
        self._touched = True
        self._states.clear(query.number)
        waiting = self._waiting.get(query.number)
        if waiting is not None:
            numbers, references = cached(query.number, waiting.trigger)
            if numbers:
                self._references.remove(numbers, references)
            self._leave(query.number)
        self._unwatched.clear(query.number)
        self._unwatched.leave(query.number)
        self._broken.pop(query.number, None)

    def executed(self, query: InstalledQuery, at: datetime.datetime) -> None:
        waiting = self._waiting.get(query.number)
        if waiting is None:
            if query.number in self._unwatched.problems:
                self._unwatched.note(query.number)  # its previous values have not moved
            return
        self._executed.add(query.number)
        self._unwatched.clear(query.number)
        self._move(query.number, waiting.trigger)
        self._forget_progress(waiting)

    def _forget_progress(self, waiting: WaitingQuery) -> None:
        """What became true because a query was installed or executed begins no sequence."""
        number = waiting.query.number
        clear_progress(
            number,
            waiting.trigger,
            self._states,
            lambda node: self._states.clear(number, node),
        )

    def _move(self, number: int, trigger: CompiledTrigger) -> None:
        numbers, references = cached(number, trigger)
        if numbers:
            self._references.make_room(references)
            self._references.move(numbers, references)

    def signal(self, name: str) -> None:
        """In a transaction: an application raises a signal."""
        count_signal(self._runtime.engine, name)

    # --- what is watched -------------------------------------------------------------------

    def _follow(self, query: InstalledQuery, trigger: CompiledTrigger) -> None:
        """Make the network watch the leaves of a trigger."""
        if query.number in self._waiting:
            self._leave(query.number)
        references = {e.rows.name: e for leaf in trigger.leaves for e in leaf.references}
        self._make_room(trigger, references.values())
        self._waiting[query.number] = WaitingQuery(query, trigger)
        with self._connection.watch.shielded():
            for reference in references.values():
                if self._references.join(reference):
                    self._network.graph.insert(reference.rows, self)
            for number, leaf in enumerate(trigger.leaves):
                shape = self._shape(leaf.view)
                mine = subscription(query.number, number)
                shape.subscriptions.add(mine)
                shape.parameters.add(mine, leaf.constants)

    def _make_room(self, trigger: CompiledTrigger, references: Iterable[Reference]) -> None:
        if not self._connection.in_transaction:
            return  # the session that installed the query has made it
        self._states.make_room()
        self._references.make_room(references)
        engine = self._runtime.engine
        hears = any(leaf.kind == "signal" for leaf in trigger.leaves)
        if hears and not engine.exists(SIGNALS):
            engine.create(SIGNALS)

    def _shape(self, view: WatchedCondition) -> SharedCondition:
        known = self._shapes.get(view.name)
        if known is None:
            parameters = Parameters(self._runtime.engine, view.parameters, view.looked_up)
            parameters.create()
            known = self._shapes[view.name] = SharedCondition(view, parameters)
            self._network.graph.insert(view, self)
        return known

    def _leave(self, number: int) -> None:
        waiting = self._waiting.pop(number)
        references = {e.rows.name: e for leaf in waiting.trigger.leaves for e in leaf.references}
        with self._connection.watch.shielded():
            for place, leaf in enumerate(waiting.trigger.leaves):
                shape = self._shapes[leaf.view.name]
                mine = subscription(number, place)
                shape.subscriptions.discard(mine)
                shape.parameters.remove(mine)
                if not shape.subscriptions:
                    self._network.graph.remove(leaf.view.name)
                    shape.parameters.drop()
                    del self._shapes[leaf.view.name]
            for reference in references.values():
                if self._references.leave(reference):
                    self._network.graph.remove(reference.rows.name)

    def synchronise(self) -> None:
        """Watch what the file says, compiled with the present catalog. Queries that this session
        installs and drops are told to `installed` and `dropped`."""
        epoch = self._runtime.catalog.epoch
        if epoch == self._epoch and self._version >= 0:
            return
        self._watch_all(self.queries.version(), epoch)

    def refresh(self) -> None:
        version = self.queries.version()
        if version == self._version:
            return
        changed = None
        if self._epoch == self._runtime.catalog.epoch:
            changed = self.queries.changed_since(self._version)
        if changed is None:
            self._watch_all(version, self._runtime.catalog.epoch)
            return
        self._version = version
        for number in changed:
            self._watch(number, self.queries.find(number))

    def _watch_all(self, version: int, epoch: int) -> None:
        was, self._version, self._epoch = self._epoch, version, epoch
        live = {each.number: each for each in self.queries.live()}
        known = self._waiting.keys() | self._broken.keys() | self._unwatched.problems.keys()
        for number in known - live.keys():
            self._watch(number, None)
        for number, query in live.items():
            self._watch(number, query, was != epoch)

    def _watch(self, number: int, query: InstalledQuery | None, is_redefined: bool = False) -> None:
        """Watch for a query as the file has it, or for nothing."""
        known = self._waiting.get(number)
        if query is None:
            self._broken.pop(number, None)
            self._unwatched.leave(number)
            if known is not None:
                self._leave(number)
        elif known is None or known.query.clauses != query.clauses or is_redefined:
            self._refresh(query)

    def _refresh(self, query: InstalledQuery) -> None:
        known = self._waiting.get(query.number)
        try:
            trigger = self._compiled(query)
        except HarkenError as error:
            if known is None:
                text, own = str(query.clauses.trigger), query.clauses.query
                self._unwatched.watch(query.number, error, self._front_end.rows_read(text, own))
            else:
                self._broken[query.number] = error
                self._leave(query.number)
            return
        self._unwatched.leave(query.number)
        self._broken.pop(query.number, None)
        if known is not None and known.trigger == trigger:
            known.query = query
            return
        self._follow(query, trigger)
        if known is not None and self._connection.in_transaction:
            self._prepare(query, trigger)  # what it reads was redefined

    def problem_of(self, number: int) -> HarkenError | None:
        """Why this session cannot watch the trigger of a query, if it cannot."""
        return self._unwatched.problems.get(number)

    def after_clearing(self) -> None:
        for shape in self._shapes.values():
            shape.parameters.drop()
        self._shapes.clear()
        self._waiting.clear()
        self._unwatched.reset()
        self._references.clear()
        self._epoch = self._version = -1

    def after_undo(self) -> None:
        if self._touched:
            self._version = -1
        for shape in self._shapes.values():
            shape.parameters.restore()

    # --- the open transaction --------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        if self._references.follows(change.view.name):
            self._references.note(change)
        elif self._unwatched.follows(change.view.name):
            self._unwatched.receive(change.view.name)
        elif change.plus or change.minus or change.fresh:
            self._received.append(change)

    def record(self) -> bool:
        """Record previous values first: conditions may read them. When there are no more, look at
        the conditions. A query that is executed in this transaction is fired before that."""
        if self._references.write():
            return True
        if self._unwatched.changed:
            self._unwatched.write()
        if self._received:
            self._look_at_all()
        return False

    def snapshot(self) -> object:
        changed = set(self._unwatched.changed)
        return len(self._received), set(self._executed), self._references.snapshot(), changed

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple)
        count, executed, references, self._unwatched.changed = state
        del self._received[count:]
        self._executed = set(executed)
        self._references.restore(references)

    def forget(self) -> None:
        if self._received or self._references.has_any:
            self._received.clear()
            self._references.forget()
        self._unwatched.changed.clear()

    def after_transaction(self) -> None:
        self._executed.clear()
        if self._touched:
            self._touched = False
            if self._version >= 0:
                self._version = self.queries.version()

    def _look_at_all(self) -> None:
        news = news_of(self._received)
        self._received.clear()
        for number, leaves in sorted(news.items()):
            waiting = self._waiting.get(number)
            if waiting is None:
                continue
            fired = self._look(waiting, leaves).happened()
            if number in self._executed:
                self._forget_progress(waiting)
            elif fired is not None:
                self._fire(waiting, fired)

    def _look(
        self, waiting: WaitingQuery, news: Mapping[int, News], due: Iterable[EventState] = ()
    ) -> Look:
        rows = LeafRows(waiting, self._rows)
        zone = waiting.query.zone
        now = self._connection.now()
        number = waiting.query.number
        return Look(number, waiting.trigger, news, rows, self._states, now, zone, due)

    def _fire(self, waiting: WaitingQuery, fired: Fired) -> None:
        number = waiting.query.number
        rows = self._rows.values(number, waiting.trigger, fired[:MOST_ROWS])
        cause = Cause(CONTENT, waiting.text, self._connection.now(), tuple(rows))
        self.queries.fire(number, cause)

    # --- due work --------------------------------------------------------------------------

    def next_due(self) -> datetime.datetime | None:
        self._try_again()
        if self._unwatched.is_due:
            return self._connection.now()
        moments = [each for each in (self._states.next_due(),) if each is not None]
        noted = self._unwatched.noted()
        moments += [at for number, at in noted.items() if self._has_to_act(number)]
        return min(moments, default=None)

    def _try_again(self) -> None:
        """A function that was missing may have been registered since."""
        if self._unwatched.problems and self._epoch != self._runtime.catalog.epoch:
            self._runtime.reactions.synchronise()

    def _has_to_act(self, number: int) -> bool:
        """Whether there is something to do for a query that may have missed something."""
        if number not in self._unwatched.problems:
            return True
        query = self.queries.find(number)
        return query is not None and not query.failures

    def _catch_up(self) -> list[str]:
        """In a transaction: see to the queries that may have missed something."""
        self._unwatched.note_blind()
        found = []
        for number, at in self._unwatched.noted().items():
            problem, waiting = self.problem_of(number), self._waiting.get(number)
            if problem is not None:
                if self._has_to_act(number):
                    self.queries.fail(number, problem)
                continue
            self._unwatched.clear(number)
            if waiting is not None:
                self.queries.catch_up(number, Cause(CONTENT, CAUSE, at, self._present(waiting)))
                found.append(waiting.query.name)
        return found

    def _present(self, waiting: WaitingQuery) -> tuple[Mapping[str, Any], ...]:
        """The rows for which a condition holds; of several conditions nobody knows."""
        trigger = waiting.trigger
        if len(trigger.leaves) != 1:
            return ()
        rows = LeafRows(waiting, self._rows).rows(0)[:MOST_ROWS]
        return tuple(self._rows.values(waiting.query.number, trigger, ((0, row) for row in rows)))

    def run(self, now: datetime.datetime) -> list[str]:
        """Look at the conditions whose time has come; returns the names of the fired queries."""
        self._try_again()
        with self.block():
            found = self._catch_up()
            for number, states in self._states.due(now, MOST_DUE).items():
                waiting = self._waiting.get(number)
                if waiting is None:
                    self._states.clear(number)
                    continue
                fired = self._look(waiting, {}, states).happened()
                if fired is not None:
                    self._fire(waiting, fired)
                    found.append(waiting.query.name)
        return found

    # --- changes of the schema -------------------------------------------------------------

    def check(self) -> None:
        """After a change of the schema: every trigger must still mean something."""
        for number, error in self._broken.items():
            raise IntegrityError(
                f"this would break the trigger of the continual query cq{number}: {error.message}",
                code="in-use",
                hint="ALTER or DROP the continual query first",
            ) from error

    def users_of(self, function: Function) -> list[Watcher]:
        return [
            each.query for each in self._waiting.values() if function.name in each.trigger.mentions
        ]

    def note_redefined(self, view: WatchedView) -> None:
        """The rows of the view are compared again by whoever inserts it."""
