"""Opens a file as a database that statements can run on.

A new file gets the system's types and functions. For an existing one the catalog is read, its
relations are located, and foreign functions get their Python implementations. The latter two are
repeated whenever the catalog is read again.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import harken.api.languages  # noqa: F401
from harken.api import authorisation
from harken.api.internals import Internals
from harken.consumers.constraints.constraints import Constraints
from harken.consumers.monitors.monitors import Monitors
from harken.consumers.programs.active_programs import ActivePrograms
from harken.consumers.programs.program_runs import Programs
from harken.consumers.rules.due_actions import DueActions
from harken.consumers.rules.due_times import DueTimes
from harken.consumers.rules.rules import Rules
from harken.continual.answer_claims import answer_claims
from harken.continual.content_queries import ContentQueries
from harken.continual.content_triggers import ContentTriggers
from harken.continual.continual_queries import ContinualQueries
from harken.database import messages
from harken.database.catalog import Catalog
from harken.database.due_clock import DueClock
from harken.database.function_tables import is_asked
from harken.database.kept_settings import KeptSettings
from harken.database.language_names import PYTHON
from harken.database.messages import Messages
from harken.database.objects import Objects
from harken.database.reactions import Reactions
from harken.database.runtime import AllWatchers, Runtime
from harken.database.transactions import Transactions
from harken.engines.placement.file_opening import Connection
from harken.engines.placement.file_opening import open_file as open_file
from harken.engines.placement.file_opening import spark_session as spark_session
from harken.engines.placement.placement import Placement
from harken.errors import HarkenError, StorageError
from harken.intake import update_board
from harken.intake.due_sources import DueSources
from harken.intake.session_sources import SessionSources
from harken.intake.update_board import UpdateBoard
from harken.ir.clauses import Definition
from harken.ir.schema import Function, FunctionKind
from harken.limits import Watch
from harken.notify import template_records
from harken.notify.channels import register_all as register_channels
from harken.notify.due_messages import DueMessages
from harken.notify.recipients import check_recipient
from harken.notify.template_records import TemplateRecords
from harken.settings import Settings
from harken.statements.amosql import foreign
from harken.statements.amosql.function_syntax import syntax_of
from harken.statements.amosql.rule_definitions import AmosqlRules, function_of_rule
from harken.statements.datalog.production_programs import compile_text
from harken.statements.language_registry import language_named
from harken.statements.sql.answer_shapes import AnswerShapes
from harken.statements.sql.asked_needs import ask
from harken.statements.sql.compiled_continual import query_compiler, stop_tester
from harken.statements.sql.constraint_queries import compile_constraints
from harken.statements.sql.content_conditions import SqlTriggers
from harken.statements.sql.materialized_views import KeptViews
from harken.statements.sql.restricted import SqlConditions


def open_session(
    path: str,
    read_only: bool,
    timeout: float,
    clock: Callable[[], datetime.datetime] | None,
    spark: Any,
    settings: Settings,
) -> Internals:
    watch = Watch(settings)
    connection = open_file(path, read_only=read_only, timeout=timeout, clock=clock, watch=watch)
    settings.use(connection.use)
    try:
        runtime = _open_runtime(connection, spark, settings)
        if path not in ("", ":memory:"):
            runtime.secrets.key_file = Path(f"{path}.key").absolute()
        return _assemble(runtime)
    except BaseException:
        connection.close()
        raise


def _assemble(runtime: Runtime) -> Internals:
    reactions = runtime.reactions = Reactions(runtime)
    network, check_phase = reactions.network, reactions.check_phase
    monitors = Monitors(runtime, network, check_phase, SqlConditions())
    materialized = KeptViews(runtime, network)
    constraints = Constraints(runtime, network, compile_constraints)
    rules = Rules(runtime, network, check_phase, AmosqlRules(runtime))
    runtime.catalog.rule_function = partial(function_of_rule, catalog=runtime.catalog)
    authorisation.offer(runtime)
    continual = ContinualQueries(runtime, network, query_compiler(runtime))
    continual.answers.lifted = AnswerShapes(runtime)
    continual.check_recipient = lambda to: check_recipient(runtime, to)
    continual.stop_holds = stop_tester(runtime, continual.compile)
    runtime.rules = rules
    content = ContentTriggers(
        runtime, network, SqlTriggers(runtime.catalog, runtime.engine.connection.records)
    )
    content.queries = ContentQueries(continual)
    continual.kinds.register(content)
    continual.kinds.read_again = content.reads_again
    continual.kinds.content_mentions = content.mentioned
    continual.raise_signal = content.signal
    continual.trigger_problem = content.problem_of
    continual.answers.triggered = content.triggered
    runtime.monitors = AllWatchers((monitors, continual, content))
    active = ActivePrograms(runtime, network, check_phase, lambda text: compile_text(text, runtime))
    programs = Programs(runtime, network, check_phase, active)
    for consumer in (monitors, materialized, constraints, rules, programs, active):
        reactions.register(consumer)
    reactions.register(continual.answers)
    reactions.register(content)
    reactions.register(continual.coupled)
    reactions.synchronise()
    transactions = continual.transactions = Transactions(runtime, reactions)
    content.block = transactions.block
    runtime.due_work.register(content)
    sources = SessionSources(runtime, transactions)
    own = runtime.engine.connection.records
    runtime.delta_claims += (
        monitors.outbox.claims,
        monitors.logs.claims,
        partial(answer_claims, continual.answers, own),
    )
    runtime.asked_rows = lambda name: sources.work.asked.rows(name)
    _register_due_work(runtime, transactions, continual, sources, rules)
    return Internals(
        runtime,
        transactions,
        reactions,
        rules,
        monitors,
        materialized,
        programs,
        continual,
        sources,
    )


def _register_due_work(
    runtime: Runtime,
    transactions: Transactions,
    continual: ContinualQueries,
    sources: SessionSources,
    rules: Rules,
) -> None:
    """In the order in which it runs: what changes views, what looks at them, what tells people."""
    register_channels()
    runtime.standing.register(messages.NAME, Messages(runtime).declare)
    runtime.standing.register(template_records.NAME, TemplateRecords(runtime).declare)
    for board in (update_board.UPDATES, update_board.STATES):
        runtime.standing.register(board, UpdateBoard(runtime).declare)
    runtime.due_work.register(DueSources(runtime, sources))
    runtime.due_work.register(DueClock(runtime.reactions.network, transactions))
    runtime.due_work.register(continual)
    runtime.due_work.register(DueTimes(transactions, rules))
    runtime.due_work.register(DueActions(runtime, transactions, rules))
    runtime.due_work.register(DueMessages(runtime, transactions))


def _open_runtime(connection: Connection, spark: Any, settings: Settings) -> Runtime:
    engine = Placement(connection, spark)
    catalog = Catalog(engine, lambda function: _clauses_of(function, catalog))
    runtime = Runtime(engine, catalog, Objects(engine, catalog), settings)
    if connection.is_new:
        _initialise(connection, catalog)
    catalog.when_reloaded = lambda: _after_reload(runtime)
    settings.take_kept(KeptSettings(connection.records).all())
    catalog.reload()
    return runtime


def _clauses_of(function: Function, catalog: Catalog) -> tuple[Definition, ...]:
    try:
        return language_named(function.language).clauses(function, catalog)
    except HarkenError as error:
        raise error.locate(function.text, function.id) from error.__cause__


def _initialise(connection: Connection, catalog: Catalog) -> None:
    """Another process may be doing the same: look again once we hold the lock."""
    if connection.read_only:
        raise StorageError(
            "the database is empty",
            code="not-a-database",
            hint="open it without read_only once, to create it",
        )
    connection.begin()
    try:
        if connection.is_empty():
            catalog.initialise()
            connection.mark_as_ours()
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _after_reload(runtime: Runtime) -> None:
    """Locate the relations, and find the Python code of foreign functions."""
    runtime.engine.attach(runtime.catalog.stored_relations())
    for function in runtime.catalog.functions():
        # A missing one raises an error when it is used.
        if is_asked(function):
            ask(runtime, function)
        elif function.kind is FunctionKind.FOREIGN and function.language != PYTHON:
            foreign.register_declared(runtime, function, syntax_of(function))
