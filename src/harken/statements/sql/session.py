"""A session of SQL: runs texts, statement by statement.

Outside of BEGIN and COMMIT, and of a transaction that is already open, every statement is a
transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp

from harken.continual.continual_queries import ContinualQueries
from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import (
    HarkenError,
    IntegrityError,
    LanguageError,
    LimitFault,
    Span,
    StorageError,
    SyntaxFault,
)
from harken.intake.session_sources import SessionSources
from harken.lang.sql import operator_runs
from harken.lang.sql.continual_statements import Continual
from harken.lang.sql.domain_statements import DomainWords, domain_words
from harken.lang.sql.grant_statements import Granting
from harken.lang.sql.lifting import NotConverted, NotLifted
from harken.lang.sql.parameters import Values, check_values, is_batch, refuse_batch, with_values
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import unknown_table
from harken.lang.sql.source_statements import source_words
from harken.lang.sql.template_statements import MessageStatement
from harken.stack import NESTED, room_for
from harken.statements.language_registry import NO_OPTIONS, RunOptions, StoredViews
from harken.statements.sql.altering import alter, is_alteration, reshape
from harken.statements.sql.change_statements import Changes
from harken.statements.sql.continual_changes import ContinualStatements
from harken.statements.sql.creation import create, make_room
from harken.statements.sql.domain_definitions import (
    defining,
    describe_domain,
    drop_domain,
    is_there,
    listed_domains,
)
from harken.statements.sql.dropping import drop, drop_named
from harken.statements.sql.forms import Form, Misfit, plan, shown
from harken.statements.sql.granting import carry_out, show_grants
from harken.statements.sql.known_statements import (
    FAILURES,
    Job,
    Known,
    KnownStatements,
)
from harken.statements.sql.lifted_queries import Found, NotKept
from harken.statements.sql.message_statements import change_messages, show_templates
from harken.statements.sql.permitted import check_permitted, note_defined, object_of
from harken.statements.sql.reading import Reading
from harken.statements.sql.set_statement import is_setting, set_value, show_settings
from harken.statements.sql.show import answer, check_index, is_index, refreshed_view
from harken.statements.sql.source_definitions import SourceDefinitions
from harken.statements.sql.standing_names import declare_named
from harken.statements.sql.temporary import Temporary
from harken.statements.sql.view_clauses import is_view


class SqlSession:
    def __init__(
        self,
        runtime: Runtime,
        transactions: Transactions,
        materialized: StoredViews,
        continual: ContinualQueries,
        sources: SessionSources,
    ) -> None:
        self._sources = SourceDefinitions(runtime, transactions, sources)
        self._runtime = runtime
        self._transactions = transactions
        self._materialized = materialized
        self._watch = runtime.engine.connection.watch
        self._reading = Reading(runtime)
        self._changes = Changes(runtime, self._reading)
        self._created: list[str] = []
        self._dropped: list[str] = []
        self._temporary = Temporary(runtime)
        self._continual = ContinualStatements(runtime, continual, self._changing)
        self._known = KnownStatements()
        self._counts = runtime.statement_counts
        self._permissions = runtime.permissions
        self._settings_version = -1
        self.when_created: Callable[[str], None] = lambda name: None
        """Called with the name of each view that is created."""
        self.when_dropped: Callable[[str], None] = lambda name: None
        """Called with the name of each view that is dropped."""

    def views(self) -> list[str]:
        functions = self._runtime.catalog.functions()
        return [each.name for each in functions if is_view(each) and each.language == SQL]

    def run(self, text: str, options: RunOptions = NO_OPTIONS) -> None:
        self.execute(text, options.values, options.source)

    def execute(self, text: str, values: Any, source: str | None) -> None:
        """Run a whole text. If it fails, everything since its last commit is rolled back."""
        if values is not None:
            check_values(values)
        try:
            self._follow_settings()
            jobs = None if _may_be_batch(values) else self._known.find(text, values)
            self._counts.texts += 1
            self._counts.known += jobs is not None
            if jobs is None:
                with room_for(NESTED), self._watch.text():
                    self._run_unknown(text, values)
            elif len(jobs) == 1:
                with self._watch.statement():
                    self._run_job(jobs[0], text, values, 0)
            else:
                with self._watch.text(), self._transactions.text():
                    for number, job in enumerate(jobs):
                        with self._watch.statement():
                            self._run_job(job, text, values, number)
        except HarkenError as error:
            error.locate(text, source)
            raise
        except RecursionError:
            raise HarkenError("this text is nested too deeply", code="syntax") from None

    def _follow_settings(self) -> None:
        settings = self._runtime.settings
        if settings.version != self._settings_version:
            self._settings_version = settings.version
            self._known.clear()
            self._known.most = settings["statement_cache"]

    def _run_unknown(self, text: str, values: Any) -> None:
        """A text that must be parsed, or is run for several rows of values."""
        if most := self._runtime.settings["operator_limit"]:
            operator_runs.check(text, most)
        with self._watch.statement():
            parsed = statements(text)
        if is_batch(parsed, values):
            self._run_batch(text, parsed, values)
            return
        with self._watch.statement():
            bound = with_values(parsed, values)
            jobs = self._known.learn(text, parsed, values)
        with self._transactions.text():
            self._run_all(text, values, bound, jobs)

    def _run_all(
        self, text: str, values: Any, bound: Sequence[Statement], jobs: Sequence[Job | None]
    ) -> None:
        for number, (statement, job) in enumerate(zip(bound, jobs, strict=True)):
            with self._watch.statement():
                if job is None:
                    self._execute(statement)
                else:
                    self._run_job(job, text, values, number, statement)

    def _run_batch(self, text: str, parsed: Sequence[Statement], rows: Sequence[Values]) -> None:
        """Run a text once for each row of values, in one transaction."""
        refuse_batch(parsed)
        joined = self._transactions.active
        with self._transactions.text() if joined else self._transactions.block():
            for row in rows:
                jobs: Sequence[Job | None] | None = self._known.find(text, row)
                if jobs is not None:
                    for number, job in enumerate(jobs):
                        assert job is not None
                        with self._watch.statement():
                            self._run_job(job, text, row, number)
                    continue
                bound = with_values(parsed, row)
                self._run_all(text, row, bound, self._known.learn(text, parsed, row))

    # --- statements that were seen before ----------------------------------------------------

    def _run_job(
        self, job: Job, text: str, values: Any, number: int, parsed: Statement | None = None
    ) -> None:
        """A known statement; the long way, if it turns out that its plan does not do."""
        known = job.known
        if self._permissions.user is not None:
            check_permitted(self._runtime, replace(known.statement, offset=job.start))
        try:
            if known.is_word:
                self._execute(replace(known.statement, offset=job.start))
            elif known.is_query:
                self._transactions.look()
                found = self._run_form(job)
                if found is not None:
                    shown(found, self._runtime)
            else:
                self._change_known(job)
            return
        except Misfit as misfit:
            self._note_misfit(misfit, text, values, known)
        except HarkenError as error:
            if error.span is None and error.text is None:
                error.span = Span(job.start, job.end)
            raise
        with room_for(NESTED), self._transactions.text():
            self._execute(parsed or with_values(statements(text), values)[number])
            known.failures += 1
            if known.failures >= FAILURES:
                self._known.forget(known)

    def _change_known(self, job: Job) -> None:
        transactions = self._transactions
        if transactions.active:
            with transactions.statement():
                found = self._run_form(job)
        else:
            found = transactions.alone(lambda: self._run_form(job))
        if found is not None:
            shown(found, self._runtime)

    def _run_form(self, job: Job) -> Found | None:
        """Any error is a reason to go the long way, which says what is wrong in the right words."""
        known, catalog = job.known, self._runtime.catalog
        try:
            form = known.form
            if form is None or known.epoch != catalog.epoch:
                form = self._planned(known)
            return form.run(job.values)
        except (LimitFault, StorageError):
            raise
        except (HarkenError, NotLifted, NotKept, NotConverted, RecursionError) as error:
            raise Misfit from error

    def _planned(self, known: Known) -> Form:
        catalog = self._runtime.catalog
        form = known.form
        if form is None or not form.holds(catalog):
            statement = known.statement
            assert statement.queries is not None
            statement.queries.clear()
            self._counts.planned += 1
            form = plan(statement, self._runtime, self._reading, self._changes)
        known.form, known.epoch = form, catalog.epoch
        return form

    def _note_misfit(self, misfit: Misfit, text: str, values: Any, known: Known) -> None:
        self._counts.unfit += 1
        match misfit.__cause__:
            case NotLifted(slot=slot):
                self._known.pin(text, values, known, slot)
            case NotKept():
                self._known.forget(known)

    def close(self) -> None:
        """Drop temporary tables and views, unless something permanent reads them.

        The newest goes first, for it may read the others.
        """
        names = self._temporary.names()
        for name in reversed(names):
            with suppress(HarkenError):
                self._changing(partial(drop_named, self._runtime, name))
        if names:
            self._transactions.commit()
        self._temporary.clear()

    def _execute(self, statement: Statement) -> None:
        try:
            self._run(statement)
        except HarkenError as error:
            if error.span is None and error.text is None:
                error.span = statement.span
            raise
        except RecursionError:
            raise HarkenError(
                "this statement is nested too deeply", code="syntax", span=statement.span
            ) from None

    def _run(self, statement: Statement) -> None:
        node = statement.node
        declare_named(self._runtime, statement, self._changing)
        check_permitted(self._runtime, statement)
        words = source_words(node)
        if words is not None:
            self._sources.run(words)
            return
        domain = domain_words(node)
        if domain is not None:
            self._run_domain(domain, statement)
            return
        with self._sources.asking(statement):
            self._carry_out(statement)

    def _run_domain(self, words: DomainWords, statement: Statement) -> None:
        """Defining one is defining a view."""
        runtime = self._runtime
        self._transactions.look()
        match words.verb:
            case "show":
                runtime.emit("rows", *listed_domains(runtime))
            case "describe":
                describe_domain(runtime, words.name, self._sources.failures)
            case "drop":
                self._changing(lambda: self._drop_domain(words, statement))
            case _:
                if words.if_exists and is_there(runtime, words.name):
                    return
                full = defining(runtime, words, statement)
                check_permitted(runtime, full)
                self._changing(lambda: self._define(full))

    def _drop_domain(self, words: DomainWords, statement: Statement) -> None:
        known = self.views()
        drop_domain(self._runtime, words, statement)
        self._runtime.reactions.synchronise()
        there = self.views()
        self._dropped += [name for name in known if name not in there]

    def _carry_out(self, statement: Statement) -> None:
        node = statement.node
        match node:
            case Granting(verb="SHOW"):
                self._transactions.look()
                show_grants(self._runtime, statement)
            case Granting():
                self._changing(lambda: carry_out(self._runtime, statement))
            case MessageStatement() if node.words.verb == "show":
                self._transactions.look()
                show_templates(self._runtime)
            case MessageStatement():
                self._changing(lambda: change_messages(self._runtime, node.words))
            case exp.Transaction():
                if self._transactions.active:
                    raise IntegrityError(
                        "a transaction is open already",
                        code="transaction",
                        span=statement.span,
                        hint="COMMIT or ROLLBACK it first",
                    )
                self._transactions.begin(write=False)
            case exp.Commit():
                self._commit()
            case exp.Rollback():
                self._created.clear()
                self._dropped.clear()
                self._transactions.rollback()
            case exp.Query() | exp.Values():
                self._transactions.look()
                if statement.explained:
                    self._reading.explain(statement)
                else:
                    self._reading.show(statement)
            case Continual():
                self._transactions.look()
                self._continual.run(statement)
            case exp.Set():
                set_value(self._runtime, statement)
            case exp.Show() if is_setting(node):
                show_settings(self._runtime, node)
            case exp.Show() | exp.Describe():
                self._transactions.look()
                answer(self._runtime, self._reading, statement)
            case exp.Refresh() if not statement.explained:
                self._changing(
                    lambda: self._materialized.compare_again(
                        refreshed_view(self._runtime, statement)
                    )
                )
            case exp.Create() | exp.Drop() if is_index(node) and not statement.explained:
                check_index(self._runtime, statement)
            case exp.Create() | exp.Drop() | exp.Alter() if statement.explained:
                raise self._not_explained(statement)
            case exp.Create() if self._is_kept(node) and self._is_inside_transaction():
                raise IntegrityError(
                    "a materialized view cannot be created inside a transaction",
                    code="transaction",
                    span=statement.span,
                    hint="COMMIT first",
                )
            case exp.Create() | exp.Drop() | exp.Alter():
                self._changing(lambda: self._define(statement))
            case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge() | exp.TruncateTable() if (
                not statement.explained
            ):
                self._change(statement)
            case _ if statement.explained:
                raise self._not_explained(statement)
            case _:
                raise SyntaxFault(
                    "this is no statement of Harken's SQL", code="syntax", span=statement.span
                )

    def _not_explained(self, statement: Statement) -> HarkenError:
        node, hint = statement.node, "write EXPLAIN SELECT ..."
        if isinstance(node, exp.Column) and not node.table:
            tables, name = SqlTables(self._runtime.catalog), node.name
            if tables.function(name) is None:
                return unknown_table(tables, name, statement.span)
            hint = f'write EXPLAIN SELECT * FROM {name}, or in Python db.explain("{name.lower()}")'
        return LanguageError(
            "only queries can be explained", code="unsupported", span=statement.span, hint=hint
        )

    def _is_inside_transaction(self) -> bool:
        return self._transactions.active and self._runtime.redefined is None

    def _is_kept(self, node: exp.Create) -> bool:
        return node.find(exp.MaterializedProperty) is not None

    def _define(self, statement: Statement) -> None:
        node, before = statement.node, object_of(self._runtime, statement)
        known = self.views()
        if isinstance(node, exp.Drop | exp.Alter):
            if isinstance(node, exp.Drop):
                drop(self._runtime, statement)
            else:
                with self._temporary.staying(node):
                    alter(self._runtime, statement)
                    note_defined(self._runtime, statement, before)
            self._runtime.reactions.synchronise()
            there = self.views()
            self._dropped += [name for name in known if name not in there]
            return
        assert isinstance(node, exp.Create)
        self._temporary.check(statement)
        if is_alteration(self._runtime, statement):
            reshape(self._runtime, statement)
            note_defined(self._runtime, statement, before)
            self._runtime.reactions.synchronise()
            return
        if make_room(self._runtime, statement):
            self._runtime.reactions.synchronise()
        kept = create(self._runtime, statement)
        note_defined(self._runtime, statement, before)
        self._temporary.note(node)
        self._runtime.reactions.synchronise()
        if kept is not None:
            self._materialized.fill(kept)
        for name in self.views():
            if name not in known:
                self._created.append(name)

    def _change(self, statement: Statement) -> None:
        """The rows of RETURNING are shown once nothing in the statement can fail any more."""
        found: list[Found | None] = []
        self._changing(lambda: found.append(self._changes.run(statement)))
        for each in found:
            if each is not None:
                self._reading.emit(each)

    def _changing(self, work: Callable[[], None]) -> None:
        """Run a changing statement, in the open transaction or in one of its own."""
        own = not self._transactions.active
        with self._transactions.statement():
            work()
        if own and not self._transactions.in_block:
            self._commit()

    def _commit(self) -> None:
        self._transactions.commit()
        if not self._created and not self._dropped:
            return
        known = self.views()
        created, self._created = self._created, []
        dropped, self._dropped = self._dropped, []
        for name in dropped:
            if name not in known:
                self.when_dropped(name)
        for name in created:
            if name in known:
                self.when_created(name)


def _may_be_batch(values: Any) -> bool:
    """A list of rows is not the values of one statement."""
    return isinstance(values, list) and (not values or isinstance(values[0], tuple | Mapping))
