"""A session on a database: what `harken.connect` returns.

Each method checks its arguments and calls the part that does the work: programs, views, the lake.
Law: while one thread is in a method, a call from another is refused (`exclusive`).
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from harken.api import interface_variables
from harken.api.backups import check_database, write_backup
from harken.api.continual_handles import ContinualQuery, ContinualQueryList
from harken.api.domains import Domains
from harken.api.due_runs import run_due
from harken.api.explain import Explained, explain
from harken.api.handles import FunctionHandle
from harken.api.internals import Internals
from harken.api.keyed_requests import KeyedRequests
from harken.api.lake_tables import LakeStatus, LakeTables, Progress
from harken.api.loading import load
from harken.api.notifications import Notifications
from harken.api.prepared_statements import PreparedStatement
from harken.api.programs import Programs, run_options
from harken.api.python_functions import register_foreign
from harken.api.rule_programs import RuleProgram
from harken.api.sensors import Sensor
from harken.api.service_configuration import Configuration
from harken.api.signals import raise_signal
from harken.api.sources import Sources, SourceStatus
from harken.api.step import Step
from harken.api.stored_definitions import Definition, definitions, readers_of
from harken.api.user_accounts import UserAccounts
from harken.api.user_methods import methods_for
from harken.api.view_history import ViewHistory
from harken.api.views import Condition, ViewDescription, Views
from harken.backup.saving import Backup
from harken.backup.verification import Verification
from harken.calculus.rule_findings import Finding
from harken.consumers.monitors.audience import Listener
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.outbox import OutboxStatus
from harken.consumers.monitors.subscription import MonitorOptions, Subscription
from harken.consumers.rules.detached import DetachedAction
from harken.database.arguments import (
    check_callable,
    check_flag,
    check_numbers,
    check_path,
    check_text,
    check_whole,
)
from harken.database.changes import Change
from harken.database.exclusive import SessionLock, exclusive
from harken.database.language_names import AMOSQL, DATALOG
from harken.database.objects import Object
from harken.database.permissions import User
from harken.database.results import Result, Results
from harken.database.runtime import Runtime
from harken.errors import ClockWarning, LakeWarning
from harken.lang.sql.program_draft import Table
from harken.limits import Watch
from harken.maintenance.kept_budget import KeptReport
from harken.settings import Settings
from harken.statements.language_registry import NO_OPTIONS
from harken.statements.redefinition import together
from harken.statements.sql import table_rows
from harken.statements.sql.table_descriptions import TableDescription, describe_table

if TYPE_CHECKING:
    from harken.sources.stream import Feed


class Database:
    """A session on a database. It must not be used by two threads at once: open one for each
    thread. Only `cancel` may be called from another thread."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals
        """The parts of the session, for tests and benchmarks only."""
        self._watch: Watch = internals.engine.connection.watch
        self.session_lock = SessionLock(self._watch)
        """Held by the thread that is using the session."""
        self._views = Views(internals, self.session_lock)
        self._programs = Programs(internals, self.monitor)
        self._lake = LakeTables(internals)
        self.notifications = Notifications(internals, self.session_lock)
        self.sources = Sources(internals, self.session_lock)
        self.domains = Domains(internals, self.session_lock, self._programs.answers_of)
        self.continual_queries = ContinualQueryList(internals, self.session_lock)
        self.users = UserAccounts(internals, self.session_lock)
        self.keyed_requests = KeyedRequests(internals, self.session_lock)
        self.configuration = Configuration(internals, self.session_lock)

    # --- programs --------------------------------------------------------------------------

    @exclusive
    def amosql(self, text: str) -> Results:
        """Run AMOSQL. If a statement fails, everything in the text since its last `commit` is
        rolled back.

        Changes stay uncommitted, as in AMOS, until `commit` or `rollback`; `close` commits.
        """
        results = Results()
        self._programs.run(AMOSQL, text, results.append, NO_OPTIONS)
        return results

    @exclusive
    def sql(self, text: str, values: Any = None) -> Results:
        """Run SQL. Outside of BEGIN and COMMIT every statement is a transaction of its own; if one
        fails, the uncommitted part of the text is rolled back.

        `values` are the parameters: a sequence for `?`, a mapping for `:name`. With a list of
        tuples or mappings the text runs once for each, in one transaction.
        """
        results, counts = Results(), self.internals.runtime.statement_counts
        before = counts.changed
        self._programs.run_sql(text, values, results.append)
        results.changed = counts.changed - before
        return results

    @exclusive
    def datalog(
        self,
        text: str,
        *,
        facts: str | os.PathLike[str] = ".",
        output: str | os.PathLike[str] | None = None,
    ) -> Results:
        """Run Datalog. All declarations and facts of the text take effect before its first
        statement runs. A transaction that the text begins is committed at its end; if it fails,
        what is not committed is rolled back.

        Fact files are read from the directory `facts`. With `output`, output relations are written
        to files there; without it, they are among the results.
        """
        results = Results()
        self.run_program(DATALOG, text, results.append, facts=facts, output=output)
        return results

    @exclusive
    def program(self, text: str) -> RuleProgram:
        """A program of production rules: `db.program(text).run()`. What the text declares and
        states takes effect at once; its rules fire when it is run."""
        return self._programs.define(text, lambda _: None, self.session_lock)

    @exclusive
    def check(self, text: str, language: str = DATALOG, source: str | None = None) -> list[Finding]:
        """What the rules of a text, in `datalog` or `amosql`, may do to each other: cycles without
        end, rules that can never fire, and pairs whose order matters and has no priority. Nothing
        in the text runs, and nothing of it stays."""
        return self._programs.check(text, language, source)

    @exclusive
    def run_program(
        self,
        language: str,
        text: str,
        listener: Callable[[Result], None],
        source: str | None = None,
        *,
        facts: str | os.PathLike[str] = ".",
        output: str | os.PathLike[str] | None = None,
        warn: Callable[[str], None] | None = None,
        strategy: str = "auto",
        materialise: str = "auto",
    ) -> None:
        """Run a program in a language, `amosql`, `sql` or `datalog`, and pass on each result as
        soon as it exists. `source` is the name of the text in errors, such as a file name.

        The rest is for Datalog: `facts` and `output` as in `datalog`; `warn` is called with each
        warning, instead of Python's warnings; what the text monitors uses the `strategy`, see
        `monitor`; its production rules store what `materialise` says, see `program`.
        """
        options = run_options(source, facts, output, warn, strategy, materialise)
        self._programs.run(language, text, listener, options)

    def cancel(self, reason: str = "the statement was cancelled") -> bool:
        """Stop the running statement, from another thread: it is rolled back, and raises a
        LimitFault. False if none is running, or it is already committing. This is the only method
        that other threads may call."""
        return self._watch.cancel(reason)

    @contextmanager
    def acting_as(self, user: User | None) -> Iterator[Database]:
        """In the block, work for this user: what is not granted to the user is refused, and so is
        every method that is for operators."""
        lock, allowed = self.session_lock, methods_for(user)
        with lock, self.internals.runtime.permissions.acting_as(user):
            before, lock.allowed = lock.allowed, allowed
            try:
                yield self
            finally:
                lock.allowed = before

    @contextmanager
    def one_statement(self) -> Iterator[None]:
        """Everything in the block shares the limits of one statement."""
        with self._watch.statement():
            yield

    @property
    def settings(self) -> Settings:
        """The settings of this session, which can be assigned: `db.settings.row_limit = 10`."""
        return self.internals.runtime.settings

    @contextmanager
    def listening(self, listener: Callable[[Result], None]) -> Iterator[None]:
        """In the block, call `listener` with each result, including what rules print at a commit.

        Without a listener, what a rule prints goes to standard output.
        """
        with self._programs.listening(listener):
            yield

    # --- Python ----------------------------------------------------------------------------

    @exclusive
    def function(self, name: str) -> FunctionHandle:
        """A function as a mapping: `db.function("quantity")[item] = 130`.

        An overloaded name needs its first type: `db.function("employee.grossincome")`.
        """
        internals = self.internals
        internals.look()
        check_text(name, "the name of a function")
        return FunctionHandle(
            internals.runtime, internals.transactions, internals.function(name), self.session_lock
        )

    @exclusive
    def monitor(
        self,
        name: str,
        listener: Listener | None = None,
        durable: str | None = None,
        *,
        strategy: str = "auto",
        where: Condition = None,
        keep: Keep | bool | None = None,
        since: int | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Subscription:
        """Subscribe to the exact changes of a function: call `sub.changes()` after a commit.

        A `listener` is called with each change right after its commit. A `durable` monitor has a
        name, is stored in the file, and records changes even while nobody listens.

        `where` is a condition on the columns, in SQL or as `{column: value}`. With `keep`, changes
        by any session are kept in the file for a time: a client that was away resumes with `since`
        the position of the last change it has.

        The `strategy` `counting` stores the rows of a set view with the number of their
        derivations, `external` stores nothing of the view, `materialized` stores its recursive
        parts, `naive` recomputes it each time, and `auto` lets measurements decide.

        `warn` is called with a sentence for each kind of change that is not reported, such as what
        time alone does to a view over `now()`; without it, a `ClockWarning` is issued. The warnings
        are also in `sub.warnings`.
        """
        wishes = MonitorOptions(
            listener=listener,
            durable=durable,
            strategy=strategy,
            where=where,
            keep=keep,
            since=since,
        )
        subscription = self._views.monitor(name, wishes)
        for message in subscription.warnings:
            _issue(f"{name}: {message}", warn, ClockWarning)
        return subscription

    @exclusive
    def snapshot(self, name: str, *, where: Condition = None) -> Change:
        """All present rows of a function, or those that meet a condition, as a `fresh` change.
        `db.monitor(name, where=..., since=...)` resumes from its position, if changes were being
        kept."""
        return self._views.snapshot(name, where)

    @exclusive
    def changes_after(
        self, name: str, position: int, *, where: Condition = None, net: bool = False
    ) -> tuple[list[Change], int]:
        """The changes of a view after a position, and the position they lead to; with `net`, merged
        into at most one change. If they were not kept, one `fresh` change with all rows."""
        return self._views.changes_after(name, position, where, net)

    @exclusive
    def history(self, name: str) -> ViewHistory:
        """What is kept of the past of a view: its changes, and its rows at each position. Changes
        are kept while somebody follows it: `db.monitor(name, keep=True)`."""
        return self._views.history(name)

    @property
    def position(self) -> int:
        """The number of the last transaction that changed anything monitored, in any session."""
        with self.session_lock:
            return self._views.position

    @exclusive
    def views(self) -> list[ViewDescription]:
        """Everything with rows that can be followed, in the order of creation: tables, views,
        relations and functions, with their columns. `is_view` marks derived ones."""
        return self._views.all()

    @exclusive
    def describe_table(self, name: str) -> TableDescription:
        """A table or view as SQL sees it: columns, keys, constraints, and the text that made it."""
        self.internals.look()
        check_text(name, "the name of a table")
        return describe_table(name, self.internals.catalog)

    @exclusive
    def describe(self, name: str, *, where: Condition = None) -> ViewDescription:
        """What a monitor of this view would report: its columns, and a warning for each kind of
        change that it does not report."""
        return self._views.describe(name, where)

    @exclusive
    def watch_views(self, listener: Listener, warn: Callable[[str], None] | None = None) -> None:
        """Subscribe to the changes of all SQL views, including those created later. `warn` is as
        for `monitor`."""
        check_callable(listener, "the listener")
        self._programs.watch_views(lambda name: self.monitor(name, listener, warn=warn))

    @exclusive
    def kept(self) -> KeptReport:
        """What this session keeps of views so that their changes cost less, and how large it is."""
        self.internals.look()
        return self.internals.network.kept.report()

    @exclusive
    def outboxes(self) -> list[OutboxStatus]:
        """The fill level of each durable monitor's outbox; `alarm` says if one needs attention."""
        return self._views.outboxes()

    @exclusive
    def foreign(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        active: bool = False,
        every: datetime.timedelta | None = None,
    ) -> Sensor | None:
        """Register a Python function as an AMOSQL function or procedure.

        It implements a function declared `as foreign`; otherwise its annotations are its signature,
        and without annotations it is a procedure that accepts any values.

        If it replaces another implementation, stored results of views that call it are recomputed,
        and their monitors are notified, in a transaction like any other.

        An `active` one is a sensor: the database stores what it last saw. Its changes are reported
        by `changed(arguments, value)` of the sensor that is returned, or it is polled `every` so
        often by `run_due`, and trigger what depends on it.
        """
        return register_foreign(self, name, function, active, every)

    @exclusive
    def find_modules_in(self, *directories: str | os.PathLike[str]) -> None:
        """Search these directories first for the modules of `foreign "module:function"`.

        `harken run` does this with the directory of each script, the shell with the current one.
        """
        for each in directories:
            check_path(each, "the directory of modules")
        found = tuple(str(Path(each).resolve()) for each in directories)
        self.internals.runtime.module_directories = found

    @exclusive
    def load(
        self, name: str, rows: Any, properties: Sequence[str] | None = None
    ) -> Sequence[Object]:
        """Create an object of a type for each row of an iterable of tuples, an Arrow table, or a
        pandas or Polars data frame, in one transaction; returns the new objects in the order of
        the rows.

        With the name of an SQL table the rows are inserted there, without objects; `properties` are
        then columns.
        """
        self.internals.check_open()
        with self.one_statement():
            return load(self.internals, name, rows, properties)

    @exclusive
    def prepare(self, text: str) -> PreparedStatement:
        """SQL that is run many times: `statement = db.prepare("... WHERE id = ?")`, then
        `statement(5)` or `statement.execute(values)`, which takes the values as `sql` does. A text
        that cannot be read is an error here."""
        self.internals.check_open()
        check_text(text, "a statement")
        return PreparedStatement(text, self.sql)

    @exclusive
    def insert(self, table: str, rows: Any) -> int:
        """Insert rows into an SQL table, as one statement, and return how many.

        `rows` are tuples with all columns as declared, mappings from columns to values, an Arrow
        table, or a pandas or Polars data frame. A column that is not given has its default. If the
        key of one is there already, nothing is inserted.
        """
        return _change_rows(self, table_rows.insert, table, rows)

    @exclusive
    def upsert(self, table: str, rows: Any) -> int:
        """Insert rows; where one has the key of a row that is there, its columns replace those.
        `rows` are as for `insert`."""
        return _change_rows(self, table_rows.upsert, table, rows)

    @exclusive
    def delete(self, table: str, rows: Any) -> int:
        """Delete rows of an SQL table, as one statement, and return how many.

        `rows` are keys, tuples of keys, or whole rows; or mappings, a data frame or an Arrow table:
        each deletes the rows that have its values in its columns.
        """
        return _change_rows(self, table_rows.delete, table, rows)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The interface variables: `db.variables["toys"]` is the object in `:toys`."""
        return MappingProxyType(self.internals.runtime.interface)

    @exclusive
    def assign(self, name: str, value: Any) -> None:
        """Set the interface variable `:name`."""
        interface_variables.assign(self.internals.runtime, name, value)

    @exclusive
    def name_of(self, value: Object) -> str:
        """How an object prints: as the interface variable that holds it, if one does."""
        return interface_variables.name_of(self.internals.runtime, value)

    @exclusive
    def explain(self, name: str, *, verbose: bool = False, format: str = "text") -> Explained | str:
        """What a view, rule, relation or function reads, how its changes are found and why, what is
        stored for it, and what its last changes cost. With `verbose`: its clauses, differentials
        and SQL.

        Print the result, or get its parts with `as_json()`. With the format `json` or `svg` it is
        the text of such a document; the drawing shows the network that finds the changes.
        """
        self.internals.look()
        check_text(name, "the name of a rule or function")
        check_flag(verbose, "verbose")
        check_text(format, "the format")
        return explain(self.internals, name, verbose, format)

    @exclusive
    def trace(self, listener: Callable[[str], None] | None) -> None:
        """Call `listener` with a line of text for each event of a check phase; None ends it."""
        if listener is not None:
            check_callable(listener, "the listener")
        self.internals.reactions.trace.listener = listener

    @exclusive
    def round_limit(self, rounds: int) -> None:
        """How many actions a check phase may run before it counts as endless."""
        check_whole(rounds, "the limit", least=1)
        self.internals.reactions.check_phase.limit = rounds

    @exclusive
    def detached_actions(self) -> list[DetachedAction]:
        """The actions of detached rules that have not been carried out, oldest first: they failed,
        or their process died before. SQL and AMOSQL have them as `detached_actions`."""
        self.internals.look()
        return self.internals.rules.detached.listed()

    @exclusive
    def retry_actions(self, numbers: Iterable[int] | None = None) -> int:
        """Retry detached actions, all by default, each in a transaction of its own; returns how
        many. After all were tried, the first error is raised."""
        self.internals.check_open()
        wanted = None if numbers is None else check_numbers(numbers)
        rules = self.internals.rules
        return self.internals.transactions.run_later(lambda: rules.queue(wanted))

    @exclusive
    def discard_actions(self, numbers: Iterable[int]) -> None:
        """Discard detached actions: they will not be carried out."""
        self.internals.check_open()
        wanted = check_numbers(numbers)
        with self.internals.alone():
            self.internals.rules.detached.discard(wanted)

    @exclusive
    def action_limit(self, tuples: int) -> None:
        """The most tuples that a rule may act on at once. Beyond it the transaction is rolled back:
        for so many tuples, write the action as one update over the whole set."""
        check_whole(tuples, "the limit", least=1)
        self.internals.rules.acting.limit = tuples

    @exclusive
    def monitoring(self, strategy: str) -> None:
        """How conditions are monitored: `adaptive`, or always `incremental` or `naive`."""
        self.internals.force_strategy(strategy)

    # --- what is due -----------------------------------------------------------------------

    @exclusive
    def next_due(self) -> datetime.datetime | None:
        """When `run_due` has something to do next, by the clock of the session; a moment in the
        past if it is overdue, None if nothing waits for a time."""
        self.internals.look()
        return self.internals.runtime.due_work.next_due()

    @exclusive
    def run_due(self) -> list[Any]:
        """Do once what is due now, by the clock of the session: views over the clock change,
        continual queries are executed, messages are delivered. Returns the executions.

        A service does this by itself; programs that embed Harken call it when `next_due` says so.
        """
        return run_due(self.internals)

    # --- continual queries -------------------------------------------------------------------

    def continual(
        self, name: str | None = None, query: str | None = None, **clauses: Any
    ) -> ContinualQuery:
        """A handle on a continual query. With a `query` it is installed, under the clauses
        `trigger`, `stop`, `deliver`, `notify`, `zone`, `owner`, `strategy`, `priority`, `deadline`
        and `coupling`, written as in SQL; without one it is the installed query of that name.
        """
        if query is not None:
            check_text(query, "the query")
            return self.continual_queries.install(name, query, clauses)
        check_text(name, "the name of a continual query")
        found = self.continual_queries.get(str(name))
        if clauses:
            found.alter(**clauses)
        return found

    @exclusive
    def signal(self, name: str) -> None:
        """Raise a signal, in the open transaction or in one of its own: continual queries with
        `TRIGGER SIGNAL name` and rules `on signal(name)` hear it."""
        raise_signal(self.internals, name)

    # --- the lake --------------------------------------------------------------------------

    @exclusive
    def lake(
        self,
        name: str,
        source: Any,
        key: Sequence[str],
        *,
        unique: bool = True,
        columns: Sequence[str] | None = None,
        format: str | None = None,
        schema: Any = None,
        version: int | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """Register an existing table as the function `name`, from its key columns to the others.

        `source` is the path of a Delta table, a directory of Parquet, CSV or JSON files that may
        grow, or a Spark DataFrame: Harken reads it, and `step` processes its changes. The rows of
        an Arrow table or a pandas or Polars data frame are copied into Harken. If several rows may
        have the same key, pass `unique=False`. For a Delta table, `version` is the version to start
        with: the first `step` processes all changes since.

        Rows with a NULL in a column of the function are left out. `warn` is called with a sentence
        that says how many there are; without it, a `LakeWarning` is issued.
        """
        missing = self._lake.register(
            name,
            source,
            key,
            unique=unique,
            columns=columns,
            format=format,
            schema=schema,
            version=version,
        )
        if missing is not None:
            _issue(missing, warn, LakeWarning)

    @exclusive
    def feed(
        self,
        name: str,
        stream: Any,
        *,
        checkpoint: str | os.PathLike[str],
        mode: str = "append",
        latest_by: str | None = None,
        every: str | float | None = None,
        available_now: bool = False,
    ) -> Feed:
        """Start a Spark stream that feeds a function that is `stored in lake`; `step` processes
        what arrives.

        The columns of the stream are matched by name. An append adds rows; an upsert replaces the
        row with the same key, and with `latest_by` only if the new row is greater in that column.
        `checkpoint` is a directory for this feed alone: when it is restarted with it, a feed
        resumes where it stopped, and each row counts once. `every` is the interval between batches,
        in seconds or in Spark's notation; with `available_now` the feed ends when it has processed
        everything there is.
        """
        return self._lake.feed(
            name,
            stream,
            checkpoint,
            mode=mode,
            latest_by=latest_by,
            every=every,
            available_now=available_now,
        )

    @exclusive
    def step(
        self,
        *,
        strict: bool = True,
        sources: bool = True,
        warn: Callable[[str], None] | None = None,
    ) -> Step:
        """Process what has changed in the inputs since the last step, in one transaction with
        everything that rules do in response.

        All outside sources are read and taken in, too, unless `sources` is false; the step's
        `sources` says what each did. One that fails keeps its rows, and the others go on.

        A file in a directory that cannot be read is an error. With `strict=False` it is set aside
        until it changes, and the step's `set_aside` names it.

        New rows with a NULL in a column of the function are left out, and the step's `left_out`
        says how many. `warn` is called with a sentence for each input with such rows; without it, a
        `LakeWarning` is issued.
        """
        if warn is not None:
            check_callable(warn, "warn")
        step = self._lake.step(strict=strict, sources=sources)
        for name, sentence in step.left_out.items():
            _issue(f"{name}: {sentence}", warn, LakeWarning)
        return step

    @exclusive
    def flush(self) -> None:
        """Write committed changes that are not yet in the lake to the tables there."""
        self._lake.flush()

    @exclusive
    def lake_status(self) -> LakeStatus:
        """The state of each relation in the lake: versions, rows, bytes, files set aside."""
        return self._lake.status()

    @contextmanager
    def progress(self, listener: Progress) -> Iterator[None]:
        """In the block, call `listener(name, done, of)` as inputs are loaded."""
        check_callable(listener, "the listener")
        with self._lake.progress(listener):
            yield

    # --- backups ---------------------------------------------------------------------------

    @exclusive
    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        lake: str = "copy",
        secrets: bool = False,
        overwrite: bool = False,
    ) -> Backup:
        """Write the database to one file, while others may be changing it; `harken.restore` makes a
        database of it again.

        With `lake="reference"`, Harken's tables in the lake are not copied: the backup says where
        they are, and which versions. Stored secrets are left out, unless `secrets` is true.
        """
        return write_backup(self.internals, path, lake, secrets, overwrite)

    @exclusive
    def verify(self) -> Verification:
        """Check the file, its tables in the lake, and that materialized views have the rows of
        their queries."""
        return check_database(self.internals)

    @property
    def source(self) -> Callable[..., SourceStatus]:
        """`db.source(name, kind, ...)` makes outside data a read-only relation, as CREATE SOURCE
        does: see `Sources.create`."""
        return self.sources.create

    @property
    def domain(self) -> Callable[..., None]:
        """`db.domain(name, members, ...)` groups relations under names of their own for the
        columns, as CREATE DOMAIN does: see `Domains.create`."""
        return self.domains.create

    # --- transactions ----------------------------------------------------------------------

    @contextmanager
    def transaction(
        self, *, write: bool = True, verify: Callable[[], None] | None = None
    ) -> Iterator[Database]:
        """A block that commits when it ends, and rolls back when it raises.

        It takes the write lock at its start, so nothing that it reads can change before it ends.
        With `write=False` it takes no lock: all its reads see one snapshot, and others may commit
        meanwhile. If it changes something after all, it takes the lock then, and fails with
        `stale-snapshot` if others have committed since its first read.

        `verify` is called just before the commit, after rules have acted and materialized views
        have been updated: it sees what everyone will see. If it raises, the block rolls back.
        """
        check_flag(write, "write")
        if verify is not None:
            check_callable(verify, "verify")
        with self.session_lock:
            self.internals.check_open()
            with self.internals.transactions.block(write=write, verify=verify):
                yield self

    @contextmanager
    def redefining(self) -> Iterator[None]:
        """Within a transaction: change several definitions together in the block. What one of them
        breaks the next may repair; at the end of the block everything must compile.
        Materialized views can be created in it."""
        with self.session_lock:
            self.internals.check_open()
            with together(self.internals.runtime):
                yield

    @exclusive
    def definitions(self) -> list[Definition]:
        """All user-defined tables, views, relations, functions, types and rules, each with the text
        that the catalog keeps."""
        self.internals.look()
        return definitions(self.internals.catalog, self.internals.runtime.permissions)

    @exclusive
    def readers_of(self, name: str) -> list[str]:
        """The names of everything that reads a table, view or function, directly or not: views,
        functions, rules and monitors. Materialized views are marked as such."""
        self.internals.look()
        check_text(name, "the name of a table, view or function")
        return readers_of(self.internals, name)

    @property
    def in_transaction(self) -> bool:
        return self.internals.transactions.active

    @exclusive
    def begin(self) -> None:
        """Begin a transaction that changes data, unless one is open; end it with `commit` or
        `rollback`."""
        self.internals.check_open()
        self.internals.transactions.begin()

    @exclusive
    def commit(self) -> None:
        self.internals.check_open()
        with self.one_statement():
            self.internals.transactions.commit()

    @exclusive
    def rollback(self) -> None:
        self.internals.check_open()
        self.internals.transactions.rollback()

    @exclusive
    def close(self) -> None:
        """Commit an open transaction and close the file."""
        if not self.internals.closed:
            self.internals.close(self._programs.close)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not self.internals.closed:
            self.internals.transactions.rollback()
        self.close()


def _issue(message: str, warn: Callable[[str], None] | None, kind: type[UserWarning]) -> None:
    """Call `warn`, or issue a Python warning at the caller of the calling method."""
    if warn is not None:
        warn(message)
    else:
        warnings.warn(message, kind, stacklevel=4)


def _change_rows(
    db: Database, change: Callable[[Runtime, Table, Any], int], name: str, rows: Any
) -> int:
    db.internals.check_open()
    check_text(name, "the name of a table")
    runtime = db.internals.runtime
    with db.one_statement(), db.internals.alone():
        return change(runtime, table_rows.table_named(runtime, name), rows)
