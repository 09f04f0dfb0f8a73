"""The continual queries of a session: installing, changing and executing them.

Whatever changes a query is done in the open transaction, which also sets its timer: the moment at
which there is something to do for it next. A trigger that has fired queues the firing with the
commit; `run` executes what is due, each query in a transaction of its own.

Law: a query is executed as often as its trigger fires until its stop, once for firings that wait
together; the stop wins over the trigger.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from harken.continual import execution_log, installed_queries, schedules
from harken.continual.answers import Answers
from harken.continual.compiled_queries import Compiler
from harken.continual.coupled_executions import CoupledExecutions
from harken.continual.executing import Executor
from harken.continual.execution_log import ERROR, MISSED, Execution, ExecutionLog
from harken.continual.firings import Firings, merged
from harken.continual.installed_queries import (
    InstalledQueries,
    InstalledQuery,
    State,
)
from harken.continual.local_times import zone_named
from harken.continual.query_clauses import Clauses, Delivery, schedule_of
from harken.continual.query_permissions import QueryPermissions, user_of_process
from harken.continual.relative_triggers import (
    AfterChanges,
    AfterQuery,
    Delayed,
    RelativeTriggers,
    event_of,
)
from harken.continual.time_triggers import TimeTriggers
from harken.continual.trigger_kinds import INSTALLED, REQUEST, RETRY, SCHEDULE, Cause, Kinds
from harken.database.due_work import CONTINUAL_QUERIES, Timers
from harken.database.messages import Messages, Recipient, StoredMessage
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, IntegrityError, NameFault, TypeFault
from harken.propagation.network import Network

FIRST_RETRY = 60.0
"""Seconds until a query that failed is tried again; each later time twice as long as before."""
LONGEST_RETRY = 6 * 3600.0
"""The most seconds between two attempts."""
LONGEST_ERROR = 2_000
"""Characters of an error that are kept."""


class ContinualQueries:
    name = CONTINUAL_QUERIES

    def __init__(self, runtime: Runtime, network: Network, compile: Compiler) -> None:
        self._runtime = runtime
        self._connection = runtime.engine.connection
        self.kinds = Kinds()
        self.records = self._connection.records
        self.relative = RelativeTriggers(self)
        self.kinds.register(TimeTriggers())
        self.kinds.register(self.relative)
        self.queries = InstalledQueries(runtime, self.kinds)
        self.permissions = QueryPermissions(runtime)
        self.log = ExecutionLog(runtime)
        self.compile = compile
        self.answers = Answers(runtime, network, self.queries, compile)
        self._executor = Executor(runtime, self.answers, self.log, self.kinds)
        self.firings = Firings(self._connection)
        self._timers = Timers(self._connection, CONTINUAL_QUERIES)
        runtime.standing.register(installed_queries.NAME, self.queries.declare)
        runtime.standing.register(execution_log.NAME, self.log.declare)
        self.answers.when_changed = self.relative.note_changes
        self.coupled = CoupledExecutions(self)
        self.transactions: Transactions
        self.run_statement: Callable[[str], None]
        """Runs a statement of SQL, in the open transaction."""
        self.check_recipient: Callable[[Recipient], None] = lambda recipient: None
        """Raises if nothing can ever be delivered there."""
        self.raise_signal: Callable[[str], None]
        """Raises a signal for the triggers that wait for it, in the open transaction."""
        self.trigger_problem: Callable[[int], HarkenError | None] = lambda number: None
        """Why this session cannot watch the trigger of a query."""
        self.stop_holds: Callable[[InstalledQuery], bool] = lambda query: False
        """Whether the condition of its STOP clause is true."""

    @property
    def now(self) -> datetime.datetime:
        return self._connection.now()

    # --- installing, in the open transaction ---------------------------------------------------

    def install(self, name: str | None, clauses: Clauses, base: int = 0) -> InstalledQuery:
        """Install a query and execute it for the first time."""
        if name is not None and self.queries.named(name) is not None:
            raise NameFault(
                f"there is already a continual query {name}",
                code="exists",
                hint=f"DROP CONTINUAL QUERY {name} first, or CREATE OR REPLACE",
            )
        if self.queries.declare() | self.log.declare():
            self._runtime.reactions.synchronise()
        number = self.queries.number()
        now = self.now
        zone = clauses.zone or str(self._runtime.settings["time_zone"])
        zone_named(zone)
        owner = clauses.owner or self.permissions.user_name or user_of_process()
        query = InstalledQuery(
            number=number,
            id=f"cq{number}",
            name=name or f"cq{number}",
            owner=owner,
            clauses=replace(clauses, zone=zone, owner=owner),
            zone_name=zone,
            installed=now,
            resumed=now,
        )
        query = self.checked(query, base)
        self.queries.write(query)
        return self.begin(query, Cause(INSTALLED, "installed", now))

    def checked(self, query: InstalledQuery, base: int = 0) -> InstalledQuery:
        """Compile it, and choose how its difference is found."""
        compiled = self.answers.compiled(query, base)
        self._check_permitted(query, compiled.mentions)
        strategy = query.clauses.strategy
        if strategy == "differential" and compiled.untold:
            raise TypeFault(
                f"the changes of this query cannot be followed: {compiled.untold}",
                code="unsupported",
                hint="leave out STRATEGY, or write STRATEGY naive",
            )
        naive = strategy == "naive" or bool(compiled.untold)
        if strategy == "auto" and not isinstance(event_of(query.clauses.trigger), AfterChanges):
            naive |= query.follows == "naive"
        if query.clauses.deliver is not None:
            for name in query.clauses.deliver.key:
                if name not in compiled.names:
                    raise TypeFault(
                        f"the query has no column {name}",
                        code="unknown-column",
                        hint=f"its columns are {', '.join(compiled.names)}",
                    )
        for recipient in query.clauses.notify:
            self.check_recipient(recipient)
        if query.clauses.stop.condition is not None:
            self.stop_holds(query)  # raises if it cannot be evaluated
        stops_at = query.stops_at
        if stops_at is not None and stops_at <= self.now:
            raise TypeFault(
                f"the query would stop at once: {stops_at.isoformat(sep=' ')} has passed",
                code="bad-value",
                hint="give STOP a moment in the future",
            )
        follows = "naive" if naive else "differential"
        return replace(query, follows=follows, sources=compiled.sources)

    def _check_permitted(self, query: InstalledQuery, mentions: Iterable[str]) -> None:
        if self.permissions.user_name is None:
            return
        trigger = query.clauses.trigger
        self.permissions.check_own(self.queries.find(query.number))
        event = event_of(trigger)
        if isinstance(event, AfterQuery):
            self.permissions.check_own(self.queries.named(event.query))
        names = {*mentions, *self.kinds.of(trigger).relations(trigger)}
        self.permissions.check_installs(query, names)

    def begin(self, query: InstalledQuery, cause: Cause) -> InstalledQuery:
        """Execute a query whose clauses are new, and follow it from now on."""
        done = self._executor.first(query, cause)
        self.queries.write(done.query)
        self._changed(done.query)
        self.answers.start(query.number)
        kind = self.kinds.of(query.clauses.trigger)
        kind.installed(done.query)
        kind.executed(done.query, done.execution.at)
        self.relative.note_execution(done.query, done.execution.at)
        return self._after(done.query)

    def _after(self, query: InstalledQuery) -> InstalledQuery:
        """After an execution: the query stops if it was the last, and its timer is set."""
        most = query.clauses.stop.executions
        if most is not None and query.executions >= most:
            return self._stop(query, f"it was executed {_times(query.executions)}")
        self._wake(query)
        return query

    def _changed(self, query: InstalledQuery) -> None:
        """Tell this session and others that a query has changed."""
        self.answers.note_change(query, self.queries.count_change(query.number))

    def changed(self, query: InstalledQuery) -> InstalledQuery:
        """In a transaction: a query has other values now."""
        for each in (self.queries.find(query.number), query):
            self.permissions.check_own(each)
        self.queries.write(query)
        self._changed(query)
        self._wake(query)
        return query

    def _wake(self, query: InstalledQuery) -> None:
        """Set the timer of a query."""
        at = query.wakes_at()
        if query.state is State.ACTIVE and query.snoozed is None and query.retry is None:
            waiting = self.firings.next_due(query.number)
            at = min((each for each in (at, waiting) if each is not None), default=None)
        if at is None:
            self._timers.clear(str(query.number))
        else:
            self._timers.set(str(query.number), at)

    # --- changing, in the open transaction -----------------------------------------------------

    def drop(self, query: InstalledQuery) -> None:
        self.permissions.check_own(query)
        if query.is_live:
            self.kinds.of(query.clauses.trigger).dropped(query)
        self._forget(query)
        self.queries.remove(query)
        self.log.forget(query.number)
        self._changed(query)

    def end(self, query: InstalledQuery, reason: str) -> InstalledQuery:
        """Stop a query before its time; its owner is told."""
        self.permissions.check_own(query)
        return self._stop(query, reason) if query.is_live else query

    def delivery_of(self, query: InstalledQuery) -> Delivery:
        return self._executor.delivery_of(query)

    def messages_of(self, query: InstalledQuery) -> list[StoredMessage]:
        """The messages about a query, in the order in which they were written."""
        found = Messages(self._runtime).listed()
        return [each for each in found if each.message.query == query.name]

    def explained(self, query: InstalledQuery) -> list[str]:
        """What triggers a query and how its difference is found, in sentences."""
        kind = self.kinds.of(query.clauses.trigger)
        lines = self.answers.explained(query)
        return [*kind.explained(query), *lines, f"stops {query.clauses.stop}"]

    def _forget(self, query: InstalledQuery) -> None:
        self._timers.clear(str(query.number))
        self.firings.clear(query.number)
        self.answers.forget_query(query.number)

    def _stop(self, query: InstalledQuery, reason: str) -> InstalledQuery:
        """The end of a query; its owner is told."""
        self.kinds.of(query.clauses.trigger).dropped(query)
        self._forget(query)
        stopped = replace(
            query, state=State.STOPPED, snoozed=None, retry=None, problem=f"stopped: {reason}"
        )
        self.queries.write(stopped)
        self._changed(stopped)
        text = f"The continual query {query.name} has stopped: {reason}."
        self._executor.tell(stopped, "stopped", self.now, {"text": text})
        self.relative.note_stop(stopped, self.now)
        return stopped

    # --- firing --------------------------------------------------------------------------------

    def fire(self, number: int, cause: Cause) -> None:
        """In the transaction of an event: queue an execution."""
        query = self.queries.find(number)
        if query is None or query.state is not State.ACTIVE:
            return
        trigger, due = query.clauses.trigger, self.now
        if isinstance(trigger, Delayed):
            due = trigger.delay.after(cause.at, query.zone) or due
        self.firings.add(number, cause, due)
        coupling = query.clauses.coupling.between(3, 4)
        if query.snoozed is None and query.retry is None and due <= self.now:
            self.coupled.note(number, coupling)
            self._runtime.reactions.check_phase.has_received = True
        self._wake(query)

    def step_here(self, number: int) -> None:
        """In the open transaction: do what there is to do for a query."""
        self._step(number, self.now, None)

    def fail_here(self, number: int, error: HarkenError) -> None:
        """In the open transaction: record that a query has failed."""
        self._failed(number, self.now, None, error)

    def flush(self) -> None:
        """In a transaction that is about to commit: bring what is kept of the answers up to
        date."""
        self.answers.flush()

    def execute(self, query: InstalledQuery) -> Execution | None:
        """Outside of transactions: execute a query because someone asks for it."""
        self.permissions.check_own(query)
        if not query.is_live:
            raise IntegrityError(
                f"{query.title} has stopped", code="in-use", hint="install it again"
            )
        if self.transactions.active or self.transactions.in_block:
            raise IntegrityError(
                "a continual query is executed in a transaction of its own",
                code="transaction",
                hint="COMMIT first",
            )
        cause = Cause(REQUEST, "requested", self.now)
        return self._advance(query.number, self.now, cause)

    # --- due work ------------------------------------------------------------------------------

    def next_due(self) -> datetime.datetime | None:
        return self._timers.next()

    def run(self, now: datetime.datetime) -> list[Execution]:
        """Do what is due; of queries that are due together, those of the highest priority first."""
        found = []
        due = [(int(name), at) for name, at in self._timers.due(now)]
        priorities = {}
        for number, _ in due if len(due) > 1 else ():
            query = self.queries.find(number)
            priorities[number] = 0 if query is None else query.clauses.priority
        for number, _ in sorted(due, key=lambda each: (-priorities.get(each[0], 0), each[1])):
            done = self._advance(number, now)
            found += [] if done is None else [done]
        return found

    def _advance(
        self, number: int, now: datetime.datetime, request: Cause | None = None
    ) -> Execution | None:
        """Do what there is to do for a query at a moment."""
        try:
            with self.transactions.block():
                return self._step(number, now, request)
        except HarkenError as error:
            with self.transactions.block():
                return self._failed(number, now, request, error)

    def _step(self, number: int, now: datetime.datetime, request: Cause | None) -> Execution | None:
        query = self.queries.find(number)
        if query is None or not query.is_live:
            self._timers.clear(str(number))
            self.firings.clear(number)
            return None
        stops_at = query.stops_at
        if stops_at is not None and stops_at <= now:
            self._stop(query, f"its time was over at {stops_at.isoformat(sep=' ')}")
            return None
        if query.snoozed is not None and query.snoozed <= now:
            query = replace(query, snoozed=None)
            self.queries.write(query)
        causes = [] if request is None else [request]
        if query.state is State.ACTIVE and query.snoozed is None:
            causes += self._causes(query, now)
        if not causes:
            self._wake(query)
            return None
        problem = self.trigger_problem(number) if request is None else None
        if problem is not None:  # who can watch it has to execute it
            raise problem
        condition = query.clauses.stop.condition
        if condition is not None and self.stop_holds(query):
            self._stop(query, f"{condition} is true")
            return None
        cause = merged(causes)
        if request is None and self._is_late(query, cause, now):
            return self._miss(query, cause, now)
        with self.permissions.of_owner(query) as is_user:
            if is_user:  # rights may have been revoked since
                self._check_permitted(query, self.answers.compiled(query).mentions)
        return self._execute(query, cause)

    def _is_late(self, query: InstalledQuery, cause: Cause, now: datetime.datetime) -> bool:
        deadline = query.clauses.deadline
        if deadline is None or cause.kind == RETRY:
            return False
        last = deadline.after.after(cause.at, query.zone)
        return last is not None and last < now

    def _miss(self, query: InstalledQuery, cause: Cause, now: datetime.datetime) -> Execution:
        """It is too late for an execution: its contingency statement is run instead."""
        deadline = query.clauses.deadline
        assert deadline is not None
        if deadline.contingency is not None:
            self.run_statement(deadline.contingency)
        self.firings.clear(query.number, now)
        late = replace(query, resumed=now)
        self.queries.write(late)
        done = Execution(
            query=query.name,
            number=query.number,
            execution=query.executions + 1,
            at=now,
            cause=cause,
            outcome=MISSED,
            strategy=query.follows,
            rows=query.rows,
        )
        self.log.add(done, {}, int(self._runtime.settings["continual_executions"]))
        if deadline.contingency is None:
            text = f"An execution of {query.name} has missed its deadline of {deadline.after}."
            self._executor.tell(late, "error", now, {"text": text})
        self._wake(late)
        return done

    def _causes(self, query: InstalledQuery, now: datetime.datetime) -> list[Cause]:
        if query.retry is not None and query.retry > now:
            return []
        found = self.firings.of_query(query.number, now)
        schedule = schedule_of(query.clauses.trigger)
        if schedule is not None:
            due = schedules.due(schedule, query.looked, now, query.installed, query.zone)
            if due is not None:
                found.append(Cause(SCHEDULE, str(schedule), due.at, missed=due.missed))
        if query.retry is not None and not found:
            found.append(Cause(RETRY, "tried again after an error", query.retry))
        return found

    def _execute(self, query: InstalledQuery, cause: Cause) -> Execution:
        had_failed = query.failures
        done = self._executor.next(query, cause)
        self.firings.clear(query.number, self.now)
        self.queries.write(done.query)
        now = self._choose_way(done.query)
        self.kinds.of(query.clauses.trigger).executed(now, done.execution.at)
        if had_failed:
            text = (
                f"The continual query {query.name} works again after {_times(had_failed)} failing."
            )
            self._executor.tell(now, "recovered", done.execution.at, {"text": text})
        self.relative.note_execution(now, done.execution.at)
        self._after(now)
        return done.execution

    def _choose_way(self, query: InstalledQuery) -> InstalledQuery:
        """After an execution: find the next difference in the way that costs less."""
        counts = isinstance(event_of(query.clauses.trigger), AfterChanges)
        if query.clauses.strategy != "auto" or counts or self.answers.compiled(query).untold:
            return query
        follows = self.answers.choose(query)
        if follows == query.follows:
            return query
        self.answers.switch(query)
        made = replace(query, follows=follows)
        self.queries.write(made)
        self._changed(made)
        self.answers.start(made.number)
        return made

    def _failed(
        self, number: int, now: datetime.datetime, request: Cause | None, error: HarkenError
    ) -> Execution | None:
        """Record that a query failed, and when it is tried again. Its owner is told once."""
        query = self.queries.find(number)
        if query is None:
            return None
        wait = min(FIRST_RETRY * 2 ** min(query.failures, 20), LONGEST_RETRY)
        told = f"[{error.code}] {error.message}"[:LONGEST_ERROR]
        failing = replace(
            query,
            failures=query.failures + 1,
            retry=now + datetime.timedelta(seconds=wait),
            problem=told,
        )
        causes = [*([] if request is None else [request]), *self._causes(query, now)]
        cause = merged(causes) if causes else Cause(RETRY, "tried again", now)
        done = Execution(
            query=query.name,
            number=number,
            execution=query.executions + 1,
            at=now,
            cause=cause,
            outcome=ERROR,
            strategy=query.follows,
            error=told,
        )
        keep = int(self._runtime.settings["continual_executions"])
        self.log.add(done, {}, keep, failing.failures)
        self.queries.write(failing)
        if not query.failures:
            text = f"The continual query {query.name} fails: {told}"
            self._executor.tell(failing, "error", now, {"text": text, "error": told})
        self._wake(failing)
        return done

    # --- what deletions must know --------------------------------------------------------------

    def users_of(self, function: Any) -> list[InstalledQuery]:
        return self.answers.users_of(function)

    def check(self) -> None:
        self.answers.check()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
