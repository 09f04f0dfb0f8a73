"""A session of SQL: runs texts, statement by statement.

Outside of BEGIN and COMMIT, and of a transaction that is already open, every statement is a
transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, IntegrityError, LanguageError, SyntaxFault
from harken.lang.sql import operator_runs
from harken.lang.sql.parameters import Values, check_values, is_batch, refuse_batch, with_values
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import unknown_table
from harken.stack import NESTED, room_for
from harken.statements.language_registry import NO_OPTIONS, RunOptions, StoredViews
from harken.statements.sql.altering import alter, is_alteration, reshape
from harken.statements.sql.change_statements import Changes
from harken.statements.sql.creation import create, make_room
from harken.statements.sql.dropping import drop, drop_named
from harken.statements.sql.reading import Found, Reading
from harken.statements.sql.set_statement import is_setting, set_value, show_settings
from harken.statements.sql.show import answer, check_index, is_index, refreshed_view
from harken.statements.sql.temporary import Temporary
from harken.statements.sql.view_clauses import is_view


class SqlSession:
    def __init__(
        self, runtime: Runtime, transactions: Transactions, materialized: StoredViews
    ) -> None:
        self._runtime = runtime
        self._transactions = transactions
        self._materialized = materialized
        self._watch = runtime.engine.connection.watch
        self._reading = Reading(runtime)
        self._changes = Changes(runtime, self._reading)
        self._created: list[str] = []
        self._dropped: list[str] = []
        self._temporary = Temporary(runtime)
        self.when_created: Callable[[str], None] = lambda name: None
        """Called with the name of each view that is created."""
        self.when_dropped: Callable[[str], None] = lambda name: None
        """Called with the name of each view that is dropped."""

    def views(self) -> list[str]:
        functions = self._runtime.catalog.functions()
        return [each.name for each in functions if is_view(each) and each.language == SQL]

    def run(self, text: str, options: RunOptions = NO_OPTIONS) -> None:
        """Run a whole text. If it fails, everything since its last commit is rolled back."""
        check_values(options.values)
        try:
            with room_for(NESTED), self._watch.text():
                if most := self._runtime.settings["operator_limit"]:
                    operator_runs.check(text, most)
                with self._watch.statement():
                    parsed = statements(text)
                if is_batch(parsed, options.values):
                    self._run_batch(parsed, options.values)
                    return
                with self._watch.statement():
                    parsed = with_values(parsed, options.values)
                with self._transactions.text():
                    self._run_all(parsed)
        except HarkenError as error:
            error.locate(text, options.source)
            raise
        except RecursionError:
            raise HarkenError("this text is nested too deeply", code="syntax") from None

    def _run_all(self, parsed: Sequence[Statement]) -> None:
        for statement in parsed:
            with self._watch.statement():
                self._execute(statement)

    def _run_batch(self, parsed: Sequence[Statement], rows: Sequence[Values]) -> None:
        """Run a text once for each row of values, in one transaction."""
        refuse_batch(parsed)
        joined = self._transactions.active
        with self._transactions.text() if joined else self._transactions.block():
            for row in rows:
                self._run_all(with_values(parsed, row))

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
        match node:
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
        node = statement.node
        known = self.views()
        if isinstance(node, exp.Drop | exp.Alter):
            if isinstance(node, exp.Drop):
                drop(self._runtime, statement)
            else:
                with self._temporary.staying(node):
                    alter(self._runtime, statement)
            self._runtime.reactions.synchronise()
            there = self.views()
            self._dropped += [name for name in known if name not in there]
            return
        assert isinstance(node, exp.Create)
        self._temporary.check(statement)
        if is_alteration(self._runtime, statement):
            reshape(self._runtime, statement)
            self._runtime.reactions.synchronise()
            return
        if make_room(self._runtime, statement):
            self._runtime.reactions.synchronise()
        kept = create(self._runtime, statement)
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
