"""A session on a database: what `harken.connect` returns.

Each method checks what it was given and hands it to the part that does the work: programs, views,
the lake. Law: while one thread is in a method, a call from another is refused (`exclusive`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from harken.api.explain import Explained, explain
from harken.api.handles import FunctionHandle
from harken.api.internals import Internals
from harken.api.lake_tables import LakeStatus, LakeTables, Progress
from harken.api.programs import Programs, run_options
from harken.api.python_functions import register_python
from harken.api.step import Step
from harken.api.stored_definitions import Definition, definitions, readers_of
from harken.api.views import Condition, ViewDescription, Views
from harken.consumers.monitors.audience import Listener
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.outbox import OutboxStatus
from harken.consumers.monitors.subscription import Subscription, Wishes
from harken.consumers.rules.detached import DetachedAction
from harken.database.arguments import (
    check_callable,
    check_flag,
    check_name,
    check_names,
    check_numbers,
    check_path,
    check_text,
    check_whole,
    wrong,
)
from harken.database.changes import Change
from harken.database.exclusive import SessionLock, exclusive
from harken.database.language_names import AMOSQL, DATALOG, SQL
from harken.database.objects import Object
from harken.database.results import Result, Results
from harken.errors import ClockWarning, LakeWarning, TypeFault
from harken.settings import Settings
from harken.statements.amosql.load import load_objects
from harken.statements.language_registry import RunOptions
from harken.statements.redefinition import together
from harken.statements.sql.load import load_rows, table_to_load
from harken.values.encoding import encode, literal_type

if TYPE_CHECKING:
    from harken.sources.stream import Feed


class Database:
    """A session on a database. One thread at a time can use it: open one for each thread. Only
    `cancel` may be called from another thread."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals
        """The parts of the session, for tests and benchmarks alone."""
        self._watch = internals.connection.watch
        self.turn = SessionLock(self._watch)
        """Which thread may use the session now."""
        self._views = Views(internals, self.turn)
        self._programs = Programs(internals, self.monitor)
        self._lake = LakeTables(internals)

    # --- programs --------------------------------------------------------------------------

    @exclusive
    def amosql(self, text: str) -> Results:
        """Run AMOSQL. If a statement fails, all of the text since its last `commit` is undone.

        Changes stay open, as in AMOS, until `commit` or `rollback`; `close` commits.
        """
        results = Results()
        self.run_program(AMOSQL, text, results.append)
        return results

    @exclusive
    def sql(self, text: str, values: Any = None) -> Results:
        """Run SQL. Outside of BEGIN and COMMIT every statement is a transaction of its own; if one
        fails, what is not committed of the text is undone.

        `values` are those of the parameters: a sequence for `?`, a mapping for `:name`. With a list
        of tuples or mappings the text is run once for each, in one transaction.
        """
        results = Results()
        self._programs.run(SQL, text, results.append, RunOptions(values=values))
        return results

    @exclusive
    def datalog(
        self,
        text: str,
        *,
        facts: str | os.PathLike[str] = ".",
        output: str | os.PathLike[str] | None = None,
    ) -> Results:
        """Run Datalog. What it declares and states holds before its first step; what it has begun
        is committed at its end, and if it fails, what is not committed of it is undone.

        Fact files are read from the directory `facts`. With `output` what the text puts out is
        written to files there; without it, it is among the results.
        """
        results = Results()
        self.run_program(DATALOG, text, results.append, facts=facts, output=output)
        return results

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
    ) -> None:
        """Run a program in a language, `amosql`, `sql` or `datalog`, and hand each result on as
        soon as it is there. `source` is what errors call the text, such as the name of its file.

        The rest is for Datalog: `facts` and `output` as in `datalog`; `warn` is called with each
        warning, instead of Python's warnings; what the text monitors is monitored by the
        `strategy`, see `monitor`.
        """
        options = run_options(source, facts, output, warn, strategy)
        self._programs.run(language, text, listener, options)

    def cancel(self, reason: str = "the statement was cancelled") -> bool:
        """Stop the statement that is running, from another thread: it is undone, and ends with a
        LimitFault. False if none is running, or it is being committed. This is the one method that
        other threads may call."""
        return self._watch.cancel(reason)

    @contextmanager
    def one_statement(self) -> Iterator[None]:
        """Let all that is done in the block share the limits of one statement."""
        with self._watch.statement():
            yield

    @property
    def settings(self) -> Settings:
        """The settings of this session, which can be assigned: `db.settings.row_limit = 10`."""
        return self.internals.runtime.settings

    @contextmanager
    def listening(self, listener: Callable[[Result], None]) -> Iterator[None]:
        """Who is told of results in the block, also of those that rules print at a commit.

        Outside of any, what a rule prints goes to standard output.
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
            internals.runtime, internals.transactions, internals.function(name), self.turn
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
        """Be told exactly how the rows of a function change: `sub.changes()` after a commit.

        A `listener` is called with each change right after its commit. A `durable` monitor has a
        name, is kept in the file and records changes also while nobody listens.

        `where` is a condition on the columns, in SQL or as `{column: value}`. With `keep` changes
        are kept in the file for a time, whoever makes them: a client that went away goes on with
        `since` the position of the last change that it had.

        With the `strategy` `counting` the rows of a view that is a set are kept with the number of
        their derivations, with `external` nothing of the view is stored, with `materialized` its
        recursive parts are, and `naive` evaluates it each time; `auto` goes by experience.

        `warn` is called with a sentence for each thing that the changes leave out, as what time
        alone does to a view over `now()`; without it, a `ClockWarning` is issued. They are also
        in `sub.warnings`.
        """
        wishes = Wishes(
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
        """All rows of a function as they are now, or those that meet a condition, as a change that
        is `fresh`. Its position is where `db.monitor(name, where=..., since=...)` goes on, if
        changes were kept from before it."""
        return self._views.snapshot(name, where)

    @exclusive
    def changes_after(
        self, name: str, position: int, *, where: Condition = None, net: bool = False
    ) -> tuple[list[Change], int]:
        """The changes of a view since a position, and the position they reach; with `net`, at most
        one change. If they were not kept, one change that is `fresh`, with all rows."""
        return self._views.changes_after(name, position, where, net)

    @property
    def position(self) -> int:
        """The number of the last transaction that changed anything monitored, in any session."""
        with self.turn:
            return self._views.position

    @exclusive
    def views(self) -> list[ViewDescription]:
        """Whatever has rows that can be followed, in the order of creation: tables, views,
        relations and functions, with their columns. Those that are `is_view` are derived from
        others."""
        return self._views.all()

    @exclusive
    def describe(self, name: str, *, where: Condition = None) -> ViewDescription:
        """What a monitor of this view would report: its columns, and a warning for each kind of
        change that it leaves out."""
        return self._views.describe(name, where)

    @exclusive
    def watch_views(self, listener: Listener, warn: Callable[[str], None] | None = None) -> None:
        """Be told of the changes of all views of SQL, also of those still to be created. `warn` is
        as for `monitor`."""
        check_callable(listener, "the listener")
        self._programs.watch_views(lambda name: self.monitor(name, listener, warn=warn))

    @exclusive
    def outboxes(self) -> list[OutboxStatus]:
        """How full the outbox of each durable monitor is; an `alarm` says if that needs care."""
        return self._views.outboxes()

    @exclusive
    def foreign(self, name: str, function: Callable[..., Any]) -> None:
        """Register a Python function as an AMOSQL function or procedure.

        It takes the place of one declared `as foreign`; else its annotations are its signature,
        and without annotations it is a procedure that takes any values.

        If it takes the place of other Python, what is stored of views that call it is computed
        again, and their monitors are told, in a transaction like any other.
        """
        register_python(self.internals, name, function)

    @exclusive
    def find_modules_in(self, *directories: str | os.PathLike[str]) -> None:
        """Look for the modules of `foreign "module:function"` in these directories first.

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
        data frame of pandas or Polars, in one transaction; the new objects, in the order of the
        rows.

        With the name of a table of SQL the rows are inserted there, and there are no objects;
        `properties` are then columns.
        """
        self.internals.check_open()
        check_text(name, "the name of a type or table")
        if properties is not None:
            properties = check_names(properties, "the properties")
        runtime = self.internals.runtime
        with self.one_statement(), self.internals.alone():
            table = table_to_load(runtime, name)
            if table is not None:
                load_rows(runtime, table, rows, properties)
                return ()
            return load_objects(runtime, name, rows, properties)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The interface variables: `db.variables["toys"]` is the object that `:toys` holds."""
        return MappingProxyType(self.internals.runtime.interface)

    @exclusive
    def assign(self, name: str, value: Any) -> None:
        """Give the interface variable `:name` a value."""
        check_text(name, "the name of a variable")
        name = name.removeprefix(":")
        check_name(name, "the name of a variable")
        runtime = self.internals.runtime
        if isinstance(value, Object):
            runtime.objects.own(value)
        else:
            encode(value, literal_type(value))
        runtime.assign(name, value)

    @exclusive
    def name_of(self, value: Object) -> str:
        """How an object is printed: by the interface variable that holds it, if one does."""
        if not isinstance(value, Object):
            raise wrong(value, "what is named", "an object", None)
        runtime = self.internals.runtime
        check_whole(value.oid, "the number of an object")
        return runtime.name_object(runtime.objects.own(value))

    @exclusive
    def explain(self, name: str, *, verbose: bool = False, format: str = "text") -> Explained | str:
        """What a view, rule, relation or function reads, how its changes are found and why, what
        is stored for it, and what its last changes cost. With `verbose`: its clauses,
        differentials and SQL.

        Print it, or take its parts with `as_json()`. With the format `json` or `svg` it is the
        text of such a document; the drawing is of the network that finds the changes.
        """
        self.internals.look()
        check_text(name, "the name of a rule or function")
        check_flag(verbose, "verbose")
        check_text(format, "the format")
        return explain(self.internals, name, verbose, format)

    @exclusive
    def trace(self, listener: Callable[[str], None] | None) -> None:
        """Be told what happens in each check phase, a line at a time; None ends it."""
        if listener is not None:
            check_callable(listener, "the listener")
        self.internals.reactions.trace.listener = listener

    @exclusive
    def round_limit(self, rounds: int) -> None:
        """How many actions a check phase may run before it is taken for an endless one."""
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
        """Try detached actions again, all of them unless told which; how many were tried. Each has
        a transaction of its own; when all have been tried, the first failure is raised."""
        self.internals.check_open()
        wanted = None if numbers is None else check_numbers(numbers)
        rules = self.internals.rules
        return self.internals.transactions.run_later(lambda: rules.queue(wanted))

    @exclusive
    def discard_actions(self, numbers: Iterable[int]) -> None:
        """Give detached actions up: they are not carried out any more."""
        self.internals.check_open()
        wanted = check_numbers(numbers)
        with self.internals.alone():
            self.internals.rules.detached.discard(wanted)

    @exclusive
    def action_limit(self, tuples: int) -> None:
        """On how many tuples a rule may act at once. More are refused, and the transaction is
        undone: for so many, an action is one update over the whole set."""
        check_whole(tuples, "the limit", least=1)
        self.internals.rules.acting.limit = tuples

    @exclusive
    def monitoring(self, strategy: str) -> None:
        """How conditions are monitored: `adaptive`, or always `incremental` or `naive`."""
        if strategy not in ("adaptive", "incremental", "naive"):
            raise TypeFault(
                f"there is no strategy {strategy}",
                code="bad-value",
                hint="it is adaptive, incremental or naive",
            )
        self.internals.network.chooser.forced = None if strategy == "adaptive" else strategy

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
        """Make a table that exists the function `name`, from its key columns to the others.

        `source` is the path of a Delta table, a directory of Parquet, CSV or JSON files that may
        grow, or a DataFrame of Spark: Harken reads it, and `step` takes its changes in. The rows of
        an Arrow table or a data frame of pandas or Polars become Harken's own. Where several rows
        may have a key, say `unique=False`. Of a Delta table, `version` is the one to begin with:
        the first `step` takes in all since.

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
        """Let a stream of Spark feed a function that is `stored in lake`; `step` takes it in.

        The columns of the stream are matched by name. An append adds rows; an upsert replaces the
        row of a key, and with `latest_by` only by one that is greater in that column. `checkpoint`
        is a directory of this feed alone: started again with it, a feed goes on where it stopped,
        and each row counts once. `every` is how often it looks, in seconds or as Spark writes it;
        with `available_now` it ends when it has all that is there.
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
    def step(self, *, strict: bool = True, warn: Callable[[str], None] | None = None) -> Step:
        """Take in what has changed in the inputs since the last step, as one transaction with all
        that rules do about it.

        A file of a directory that cannot be read is an error. With `strict=False` it is set aside
        until it changes, and the step's `set_aside` names it.

        New rows with a NULL in a column of the function are left out, and the step's `left_out`
        says how many. `warn` is called with a sentence for each input that has such rows; without
        it, a `LakeWarning` is issued."""
        if warn is not None:
            check_callable(warn, "warn")
        step = self._lake.step(strict=strict)
        for name, sentence in step.left_out.items():
            _issue(f"{name}: {sentence}", warn, LakeWarning)
        return step

    @exclusive
    def flush(self) -> None:
        """Write what is committed, and not yet in the lake, to the tables there."""
        self._lake.flush()

    @exclusive
    def lake_status(self) -> LakeStatus:
        """Where each relation in the lake stands: versions, rows, bytes, files set aside."""
        return self._lake.status()

    @contextmanager
    def progress(self, listener: Progress) -> Iterator[None]:
        """While the block runs, call `listener(name, done, of)` as inputs are taken in."""
        check_callable(listener, "the listener")
        with self._lake.progress(listener):
            yield

    # --- transactions ----------------------------------------------------------------------

    @contextmanager
    def transaction(
        self, *, write: bool = True, verify: Callable[[], None] | None = None
    ) -> Iterator[Database]:
        """A block that commits when it ends and is undone when it raises.

        It takes the write lock at its start, so nothing that it reads can change before it ends.
        With `write=False` it takes no lock: everything it reads is of one state, and others may
        commit meanwhile. Should it change something after all, it takes the lock then, and fails
        with `stale-snapshot` if others have committed since its first read.

        `verify` is called just before the commit, when rules have acted and materialized views have
        followed: it sees what everyone will see, and an error that it raises undoes the block.
        """
        check_flag(write, "write")
        if verify is not None:
            check_callable(verify, "verify")
        with self.turn:
            self.internals.check_open()
            with self.internals.transactions.block(write=write, verify=verify):
                yield self

    @contextmanager
    def redefining(self) -> Iterator[None]:
        """Inside of a transaction: let definitions change together in the block. What one of them
        breaks in others may be mended by the next; at the end of the block everything must compile.
        Materialized views can be created in it."""
        with self.turn:
            self.internals.check_open()
            with together(self.internals.runtime):
                yield

    @exclusive
    def definitions(self) -> list[Definition]:
        """All tables, views, relations, functions, types and rules that were made here, each with
        the text that the catalog keeps of it."""
        self.internals.look()
        return definitions(self.internals.catalog)

    @exclusive
    def readers_of(self, name: str) -> list[str]:
        """What reads a table, view or function, directly or not: others, rules and monitors, by
        their names. Materialized views are said to be such."""
        self.internals.look()
        return readers_of(self.internals, name)

    @property
    def in_transaction(self) -> bool:
        return self.internals.transactions.active

    @exclusive
    def begin(self) -> None:
        """Begin a transaction that changes something, unless one is open; `commit` or `rollback`
        ends it."""
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
        """Commit what is open and close the file."""
        internals = self.internals
        if internals.closed:
            return
        internals.transactions.commit()
        self._programs.close()
        internals.closed = True
        internals.monitors.close()
        try:
            internals.engine.flush(give_way=True)
        finally:
            internals.engine.close()
            internals.connection.close()

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
    """Call `warn`, or warn the caller of the method that calls this."""
    if warn is not None:
        warn(message)
    else:
        warnings.warn(message, kind, stacklevel=4)
