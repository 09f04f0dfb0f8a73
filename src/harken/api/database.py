"""The public face of a database: `harken.connect` and what it returns."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from harken.api.explain import Explanation, explain_function
from harken.api.feeds import prepare_table, start_feed
from harken.api.handles import FunctionHandle
from harken.api.opening import open_database, open_file
from harken.api.step import Step, take_step
from harken.consumers.monitors.audience import Listener
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.outbox import OutboxStatus
from harken.consumers.monitors.subscription import (
    Subscription,
    Wishes,
    read_view,
    subscribe,
    watched_view,
)
from harken.consumers.monitors.view import Watched
from harken.consumers.rules.detached import DetachedAction
from harken.consumers.rules.explain import RuleExplanation, explain_rule, followed
from harken.database.arguments import (
    LONGEST_TIME,
    check_callable,
    check_flag,
    check_name,
    check_names,
    check_number,
    check_numbers,
    check_path,
    check_text,
    check_whole,
)
from harken.database.changes import Change
from harken.database.exclusive import Turn, exclusive
from harken.database.lake import register
from harken.database.language import AMOSQL, DATALOG, SQL
from harken.database.objects import Object
from harken.database.results import Result, Results
from harken.errors import ClockWarning, IntegrityError, LakeWarning, StorageError, TypeFault
from harken.ir.schema import Function, example
from harken.limits import Watch
from harken.settings import Settings
from harken.statements.amosql import foreign
from harken.statements.amosql.load import load_objects
from harken.statements.declaring import declare_stored
from harken.statements.language import RunOptions, SessionParts, language_named, languages
from harken.statements.names import unknown_name
from harken.statements.sql.load import load_rows, table_to_load
from harken.statements.sql.schema import is_view
from harken.statements.sql.session import SqlSession
from harken.values.encoding import encode, literal_type

if TYPE_CHECKING:
    from harken.sources.stream import Feed


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    read_only: bool = False,
    timeout: float = 5.0,
    clock: Callable[[], datetime.datetime] | None = None,
    spark: Any = None,
    engine: str = "resident",
    settings: Mapping[str, Any] | None = None,
) -> Database:
    """Open a database in a file, or one in memory that is gone when it is closed.

    `spark` is the SparkSession for what is in the lake, or a function that makes one, called when
    Spark is first needed. Harken neither configures nor stops it. With `engine="lake"` every stored
    function that is created goes to the lake.

    `timeout` is how many seconds to wait for another process that is writing. `clock` stands in
    for the time of day in tests. `settings` overrides what `harken.settings` lists.
    """
    check_path(path, "the path of a database", "cannot-open")
    check_flag(read_only, "read_only")
    check_number(timeout, "the timeout", most=LONGEST_TIME)
    if clock is not None:
        check_callable(clock, "the clock")
    place = os.fspath(path)
    if engine not in ("resident", "lake"):
        raise TypeFault(
            f"there is no engine {engine}", code="bad-value", hint="it is resident or lake"
        )
    chosen = settings if isinstance(settings, Settings) else Settings(settings)
    database = Database(
        place, read_only=read_only, timeout=timeout, clock=clock, spark=spark, settings=chosen
    )
    database._runtime.all_in_lake = engine == "lake"
    return database


class Database:
    """A session on a database. One thread at a time can use it: open one for each thread. Only
    `cancel` may be called from another thread."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool,
        timeout: float,
        clock: Callable[[], datetime.datetime] | None,
        spark: Any = None,
        settings: Settings,
    ) -> None:
        self._watch = Watch(settings)
        self.turn = Turn(self._watch)
        connection = open_file(
            path, read_only=read_only, timeout=timeout, clock=clock, watch=self._watch
        )
        settings.use(connection.use)
        self._connection = connection
        try:
            opened = open_database(connection, spark, settings)
            runtime, transactions = opened.runtime, opened.transactions
            self._runtime, self._transactions = runtime, transactions
            self._reactions, self._network = opened.reactions, opened.reactions.network
            self._rules, self._monitors = opened.rules, opened.monitors
            parts = SessionParts(
                runtime, transactions, opened.rules, opened.materialized, self.monitor
            )
            self._sessions = {each.name: each.session(parts) for each in languages()}
        except BaseException:
            connection.close()
            raise
        self._closed = False

    # --- programs --------------------------------------------------------------------------

    @exclusive
    def amosql(self, text: str) -> Results:
        """Run AMOSQL. If a statement fails, all of the text since its last `commit` is undone.

        Changes stay open, as in AMOS, until `commit` or `rollback`; `close` commits.
        """
        results = Results()
        self.run(text, results.append)
        return results

    @exclusive
    def run(self, text: str, listener: Callable[[Result], None], source: str | None = None) -> None:
        """Run AMOSQL and hand each result on as soon as it is there."""
        with self._running(text, listener):
            self._sessions[AMOSQL].run(text, RunOptions(source))

    @exclusive
    def sql(self, text: str) -> Results:
        """Run SQL. Outside of BEGIN and COMMIT every statement is a transaction of its own; if one
        fails, what is not committed of the text is undone."""
        results = Results()
        self.run_sql(text, results.append)
        return results

    @exclusive
    def run_sql(
        self, text: str, listener: Callable[[Result], None], source: str | None = None
    ) -> None:
        """Run SQL and hand each result on as soon as it is there."""
        with self._running(text, listener):
            self._sessions[SQL].run(text, RunOptions(source))

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
        self.run_datalog(text, results.append, facts=facts, output=output)
        return results

    @exclusive
    def run_datalog(
        self,
        text: str,
        listener: Callable[[Result], None],
        source: str | None = None,
        *,
        facts: str | os.PathLike[str] = ".",
        output: str | os.PathLike[str] | None = None,
        warn: Callable[[str], None] | None = None,
        strategy: str = "auto",
    ) -> None:
        """Run Datalog and hand each result on as soon as it is there. `warn` is told of what is
        read and has no effect; without it, Python's warnings are. What the text monitors is
        monitored by the `strategy`, see `monitor`."""
        self.run_program(
            DATALOG,
            text,
            listener,
            source,
            facts=facts,
            output=output,
            warn=warn,
            strategy=strategy,
        )

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
        soon as it is there. The keyword arguments are those of `run_datalog`; other languages
        ignore them."""
        check_text(language, "the name of a language")
        with self._running(text, listener):
            check_path(facts, "the directory of fact files")
            if output is not None:
                check_path(output, "the directory of output files")
            if warn is not None:
                check_callable(warn, "warn")
            directory = None if output is None else Path(output)
            options = RunOptions(source, Path(facts), directory, warn, strategy)
            self._sessions[language_named(language).name].run(text, options)

    @contextmanager
    def _running(self, text: str, listener: Callable[[Result], None]) -> Iterator[None]:
        self._check_open()
        check_text(text, "a program")
        check_callable(listener, "the listener")
        with self.listening(listener):
            yield

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
        return self._runtime.settings

    @exclusive
    def view_names(self) -> list[str]:
        """The views of SQL, those that are materialized as well, and the derived functions of
        AMOSQL."""
        self._look_at_others()
        return [each.name for each in self._runtime.catalog.functions() if is_view(each)]

    @exclusive
    def watch_views(self, listener: Listener, warn: Callable[[str], None] | None = None) -> None:
        """Be told of the changes of all views of SQL, also of those still to be created. `warn` is
        as for `monitor`."""

        check_callable(listener, "the listener")
        watching: dict[str, Subscription] = {}

        def watch(name: str) -> None:
            if name not in watching:
                watching[name] = self.monitor(name, listener, warn=warn)
                watching[name].give_way()

        def forget(name: str) -> None:
            if name in watching:
                watching.pop(name).close()

        sql = self._sessions[SQL]
        assert isinstance(sql, SqlSession)
        for name in sql.views():
            watch(name)
        sql.when_created = watch
        sql.when_dropped = forget

    @contextmanager
    def listening(self, listener: Callable[[Result], None]) -> Iterator[None]:
        """Who is told of results in the block, also of those that rules print at a commit.

        Outside of any, what a rule prints goes to standard output.
        """
        check_callable(listener, "the listener")
        before = self._runtime.listener
        self._runtime.listener = listener
        try:
            yield
        finally:
            self._runtime.listener = before

    # --- Python ----------------------------------------------------------------------------

    @exclusive
    def function(self, name: str) -> FunctionHandle:
        """A function as a mapping: `db.function("quantity")[item] = 130`.

        An overloaded name needs its first type: `db.function("employee.grossincome")`.
        """
        self._look_at_others()
        check_text(name, "the name of a function")
        return FunctionHandle(self._runtime, self._transactions, self._find(name), self.turn)

    @exclusive
    def monitor(
        self,
        name: str,
        listener: Listener | None = None,
        durable: str | None = None,
        *,
        strategy: str = "auto",
        where: str | Mapping[str, Any] | None = None,
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
        self._look_at_others()
        check_text(name, "the name of a function")
        if durable is not None:
            check_text(durable, "the name of a durable monitor")
        function = self._find(name)
        wishes = Wishes(
            listener=listener,
            durable=durable,
            strategy=strategy,
            where=where,
            keep=keep,
            since=since,
        )
        with self.one_statement():
            subscription = subscribe(
                self._runtime,
                self._transactions,
                self._monitors,
                function,
                name,
                wishes,
                self.turn,
            )
        for message in subscription.warnings:
            if warn is not None:
                warn(f"{name}: {message}")
            else:
                warnings.warn(f"{name}: {message}", ClockWarning, stacklevel=3)
        return subscription

    @exclusive
    def snapshot(self, name: str, *, where: str | Mapping[str, Any] | None = None) -> Change:
        """All rows of a function as they are now, or those that meet a condition, as a change that
        is `fresh`. Its position is where `db.monitor(name, where=..., since=...)` goes on, if
        changes were kept from before it."""
        return self._snapshot(name, where)[1]

    def _snapshot(self, name: str, where: str | Mapping[str, Any] | None) -> tuple[Watched, Change]:
        watched = self._watched(name, where)
        return watched, read_view(self._transactions, self._monitors, watched, name)

    def _watched(self, name: str, where: str | Mapping[str, Any] | None) -> Watched:
        """What a monitor of this function with this condition watches."""
        self._look_at_others()
        check_text(name, "the name of a function")
        return watched_view(self._monitors, self._find(name), where)

    @exclusive
    def outboxes(self) -> list[OutboxStatus]:
        """How full the outbox of each durable monitor is; an `alarm` says if that needs care."""
        self._look_at_others()
        return self._monitors.outbox.status()

    def _find(self, name: str, rules: Collection[str] = ()) -> Function:
        overloads = self._runtime.catalog.named(name)
        if not overloads:
            raise unknown_name(self._runtime.catalog, name, rules)
        if len(overloads) > 1:
            raise TypeFault(
                f"{name} means {', '.join(sorted(f.id for f in overloads))}",
                code="ambiguous",
                hint=f'name the type: "{example(overloads)}"',
            )
        return overloads[0]

    @exclusive
    def foreign(self, name: str, function: Callable[..., Any]) -> None:
        """Register a Python function as an AMOSQL function or procedure.

        It takes the place of one declared `as foreign`; else its annotations are its signature,
        and without annotations it is a procedure that takes any values.

        If it takes the place of other Python, what is stored of views that call it is computed
        again, and their monitors are told, in a transaction like any other.
        """
        self._look_at_others()
        check_name(name, "the name of a function")
        replaced = foreign.replaced_by(self._runtime, name, function)
        if self._connection.read_only or not any(map(self._reactions.reads, replaced)):
            foreign.register_in_session(self._runtime, name, function)
            return
        self._check_committed(f"something depends on {name}: other Python is not put behind it now")
        with foreign.put_back(self._runtime, replaced), self.transaction():
            self._reactions.before_schema_change({name})
            foreign.register_in_session(self._runtime, name, function)
            for each in replaced:
                self._reactions.foreign_changed(each)

    @exclusive
    def find_modules_in(self, *directories: str | os.PathLike[str]) -> None:
        """Look for the modules of `foreign "module:function"` in these directories first.

        `harken run` does this with the directory of each script, the shell with the current one.
        """
        for each in directories:
            check_path(each, "the directory of modules")
        self._runtime.module_directories = tuple(str(Path(each).resolve()) for each in directories)

    @exclusive
    def load(
        self, name: str, rows: Any, properties: Sequence[str] | None = None
    ) -> Sequence[Object]:
        """Create an object of a type for each row of an iterable of tuples or an Arrow table, in
        one transaction; the new objects, in the order of the rows.

        With the name of a table of SQL the rows are inserted there, and there are no objects;
        `properties` are then columns.
        """
        self._check_open()
        check_text(name, "the name of a type or table")
        if properties is not None:
            properties = check_names(properties, "the properties")
        with self.one_statement(), self._alone():
            table = table_to_load(self._runtime, name)
            if table is not None:
                load_rows(self._runtime, table, rows, properties)
                return ()
            return load_objects(self._runtime, name, rows, properties)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The interface variables: `db.variables["toys"]` is the object that `:toys` holds."""
        return MappingProxyType(self._runtime.interface)

    @exclusive
    def assign(self, name: str, value: Any) -> None:
        """Give the interface variable `:name` a value."""
        check_text(name, "the name of a variable")
        name = name.removeprefix(":")
        check_name(name, "the name of a variable")
        if isinstance(value, Object):
            self._runtime.objects.own(value)
        else:
            encode(value, literal_type(value))
        self._runtime.assign(name, value)

    @exclusive
    def explain(self, name: str) -> Explanation | RuleExplanation:
        """How a rule is monitored, or how a function is evaluated: clauses and SQL.

        Print it, or take its parts with `as_json()`.
        """
        self._look_at_others()
        check_text(name, "the name of a rule or function")
        if name in self._runtime.catalog.rules:
            compiled = self._rules.compiled(name)
            return explain_rule(self._runtime, self._network, compiled)
        function = self._find(name, self._runtime.catalog.rules)
        told = followed(self._network, function.id)
        found = explain_function(self._runtime, function, self._network, told)
        return replace(found, outboxes=tuple(self._monitors.outboxes_of(function)))

    @exclusive
    def trace(self, listener: Callable[[str], None] | None) -> None:
        """Be told what happens in each check phase, a line at a time; None ends it."""
        if listener is not None:
            check_callable(listener, "the listener")
        self._reactions.trace.listener = listener

    @exclusive
    def round_limit(self, rounds: int) -> None:
        """How many actions a check phase may run before it is taken for an endless one."""
        check_whole(rounds, "the limit", least=1)
        self._reactions.check_phase.limit = rounds

    @exclusive
    def detached_actions(self) -> list[DetachedAction]:
        """The actions of detached rules that have not been carried out, oldest first: they failed,
        or their process died before. SQL and AMOSQL have them as `detached_actions`."""
        self._look_at_others()
        return self._rules.detached.listed()

    @exclusive
    def retry_actions(self, numbers: Iterable[int] | None = None) -> int:
        """Try detached actions again, all of them unless told which; how many were tried. Each has
        a transaction of its own; when all have been tried, the first failure is raised."""
        self._check_open()
        wanted = None if numbers is None else check_numbers(numbers)
        return self._transactions.run_later(lambda: self._rules.queue(wanted))

    @exclusive
    def discard_actions(self, numbers: Iterable[int]) -> None:
        """Give detached actions up: they are not carried out any more."""
        self._check_open()
        wanted = check_numbers(numbers)
        with self._alone():
            self._rules.detached.discard(wanted)

    @exclusive
    def action_limit(self, tuples: int) -> None:
        """On how many tuples a rule may act at once. More are refused, and the transaction is
        undone: for so many, an action is one update over the whole set."""
        check_whole(tuples, "the limit", least=1)
        self._rules.acting.limit = tuples

    @exclusive
    def monitoring(self, strategy: str) -> None:
        """How conditions are monitored: `adaptive`, or always `incremental` or `naive`."""
        if strategy not in ("adaptive", "incremental", "naive"):
            raise TypeFault(
                f"there is no strategy {strategy}",
                code="bad-value",
                hint="it is adaptive, incremental or naive",
            )
        self._network.choices.forced = None if strategy == "adaptive" else strategy

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
        an Arrow table become Harken's own. Where several rows may have a key, say `unique=False`.
        Of a Delta table, `version` is the one to begin with: the first `step` takes in all since.

        Rows with a NULL in a column of the function are left out. `warn` is called with a sentence
        that says how many there are; without it, a `LakeWarning` is issued.
        """
        self._check_open()
        check_flag(unique, "unique")
        if not isinstance(key, str):
            key = check_names(key, "the key")
        if format is not None:
            check_text(format, "the format")
        if columns is not None:
            columns = check_names(columns, "the columns")
        if version is not None:
            check_whole(version, "the version")
        with self._alone():
            missing = register(
                self._runtime,
                name,
                source,
                key,
                unique=unique,
                columns=columns,
                format=format,
                schema=schema,
                version=version,
                declare=declare_stored,
            )
            self._reactions.synchronise()
        if missing is not None:
            if warn is not None:
                warn(missing)
            else:
                warnings.warn(missing, LakeWarning, stacklevel=3)

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
        self._look_at_others()
        check_text(name, "the name of a function")
        check_path(checkpoint, "the checkpoint")
        check_flag(available_now, "available_now")
        if latest_by is not None:
            check_text(latest_by, "latest_by")
        function = self._find(name)
        self._check_committed("a stream feeds what is committed")
        with self.transaction():
            prepare_table(self._runtime, function)
        return start_feed(
            self._runtime,
            function,
            stream,
            Path(checkpoint) if isinstance(checkpoint, os.PathLike) else checkpoint,
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
        check_flag(strict, "strict")
        if warn is not None:
            check_callable(warn, "warn")
        self._check_open()
        self._check_committed("a step is a transaction of its own")
        step = take_step(
            self._runtime, self._transactions, self._network, self._rules, strict=strict
        )
        for name, sentence in step.left_out.items():
            if warn is not None:
                warn(f"{name}: {sentence}")
            else:
                warnings.warn(f"{name}: {sentence}", LakeWarning, stacklevel=3)
        return step

    @exclusive
    def flush(self) -> None:
        """Write what is committed, and not yet in the lake, to the tables there."""
        self._check_open()
        self._check_committed("only what is committed can be written to the lake")
        self._runtime.engine.flush()

    # --- transactions ----------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Database]:
        """A block that commits when it ends and is undone when it raises.

        It takes the write lock at its start, so nothing that it reads can change before it ends.
        With `write=False` it takes no lock: everything it reads is of one state, and others may
        commit meanwhile. Should it change something after all, it takes the lock then, and fails
        with `stale-snapshot` if others have committed since its first read.
        """
        check_flag(write, "write")
        with self.turn:
            self._check_open()
            with self._transactions.block(write=write):
                yield self

    @property
    def in_transaction(self) -> bool:
        return self._transactions.active

    @exclusive
    def commit(self) -> None:
        self._check_open()
        with self.one_statement():
            self._transactions.commit()

    @exclusive
    def rollback(self) -> None:
        self._check_open()
        self._transactions.rollback()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A statement of the open transaction, or a transaction of its own."""
        if self._transactions.active:
            with self._transactions.statement():
                yield
        else:
            with self.transaction():
                yield

    @exclusive
    def close(self) -> None:
        """Commit what is open and close the file."""
        if self._closed:
            return
        self._transactions.commit()
        for session in self._sessions.values():
            session.close()
        self._closed = True
        self._monitors.close()
        try:
            self._runtime.engine.flush(give_way=True)
        finally:
            self._runtime.engine.close()
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not self._closed:
            self._transactions.rollback()
        self.close()

    def _look_at_others(self) -> None:
        """See what others have created and dropped."""
        self._check_open()
        self._transactions.look()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("the database is closed", code="closed")

    def _check_committed(self, message: str) -> None:
        if self._transactions.active:
            raise IntegrityError(message, code="transaction", hint="commit first")
