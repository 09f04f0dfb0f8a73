"""A session: runs program texts, statement by statement, and keeps their interface variables.

Statements of the same shape (equal except for constants and interface variables) are parsed and
compiled once; after that, running one costs a dictionary lookup and the work itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from harken.calculus.rule_findings import Finding
from harken.consumers.rules.rules import Rules
from harken.database.actions import RollbackRequest
from harken.database.evaluation import Frame
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError, LanguageError, Span, StorageError, ValueFault
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import Argument
from harken.lang.amosql.scope import Scope
from harken.lang.amosql.sql_habits import COMMENTS, follows_minus_minus
from harken.lang.amosql.statement_shapes import Parsed, reparse, statements
from harken.statements.amosql import steps
from harken.statements.amosql.before_statements import act_before
from harken.statements.amosql.build import Builder
from harken.statements.amosql.interface import argument_of
from harken.statements.amosql.rule_definitions import create_rule, delete_rule
from harken.statements.amosql.rule_influences import findings_of
from harken.statements.amosql.schema_changes import change_schema
from harken.statements.language_registry import NO_OPTIONS, RunOptions
from harken.values.types import Type

READS = (steps.ShowRows, steps.PrintValues)
DEFINING = (syntax.CreateType, syntax.CreateFunction, syntax.CreateRule)
CACHED_STEPS = 2048


class Session:
    def __init__(self, runtime: Runtime, transactions: Transactions, rules: Rules) -> None:
        self._runtime = runtime
        self._transactions = transactions
        self._rules = rules
        self._watch = runtime.engine.connection.watch
        self._builder: Builder | None = None
        self._steps: dict[tuple[Any, ...], steps.CompiledStep] = {}
        self._epoch = -1

    def run(self, text: str, options: RunOptions = NO_OPTIONS) -> None:
        """Run a whole text. If it fails, everything since its last commit is rolled back."""
        try:
            with self._watch.text():
                with self._watch.statement():
                    parsed = statements(text)
                with self._transactions.text():
                    for statement in parsed:
                        with self._watch.statement():
                            self.execute(statement)
        except HarkenError as error:
            if error.code == "unknown-variable" and error.span is not None and error.text is None:
                error.hint = COMMENTS if follows_minus_minus(text, error.span.start) else error.hint
            error.locate(text, options.source)
            raise

    def findings(self, text: str, source: str | None = None) -> list[Finding]:
        """What the rules of a text may do to each other. Only what it creates takes effect, and
        the caller rolls that back."""
        try:
            for each in statements(text):
                if isinstance(each.statement, DEFINING):
                    self.execute(each)
            catalog = self._runtime.catalog
            programs = {name: self._rules.compiled(name).program for name in catalog.rules}
            return findings_of(catalog.rules, catalog, programs)
        except HarkenError as error:
            error.locate(text, source)
            raise

    def close(self) -> None:
        """Nothing here is temporary."""

    def execute(self, parsed: Parsed) -> None:
        """Run one statement, all or nothing."""
        try:
            self._execute(parsed)
        except HarkenError as error:
            if error.span is None and error.text is None:
                error.span = Span(parsed.offset, parsed.offset + len(parsed.text))
            raise
        except RecursionError:
            raise HarkenError(
                "this statement is nested too deeply",
                code="syntax",
                span=Span(parsed.offset, parsed.offset + len(parsed.text)),
            ) from None

    def _execute(self, parsed: Parsed) -> None:
        node = parsed.statement
        match node:
            case syntax.Commit():
                self._transactions.commit()
            case syntax.Rollback():
                self._transactions.rollback()
            case (
                syntax.CreateType()
                | syntax.DeleteType()
                | syntax.CreateFunction()
                | syntax.DeleteFunction()
            ):
                located = node if parsed.shape is None else reparse(parsed)
                with self._transactions.statement():
                    change_schema(self._runtime, located, parsed.text.strip())
                    self._runtime.reactions.synchronise()
            case syntax.CreateRule():
                with self._transactions.statement():
                    create_rule(self._runtime, self._rules, node, parsed.text.strip())
            case syntax.DeleteRule():
                with self._transactions.statement():
                    delete_rule(self._runtime, self._rules, node)
            case _:
                self._run_step(parsed)

    def _run_step(self, parsed: Parsed) -> None:
        self._transactions.look()
        step = self._step(parsed)
        frame = Frame(self._runtime.interface, parsed.literals, parsed.variables)
        if isinstance(step, READS):
            self._read(step, parsed, frame)
            return
        self._transactions.begin()
        step = self._step_again(step, parsed)
        try:
            with self._transactions.statement():
                if self._runtime.before_rules:
                    tried = Frame(self._runtime.interface, parsed.literals, parsed.variables)
                    work = partial(step.run, self._runtime, tried)
                    act_before(self._runtime, self._transactions, self._rules, work)
                step.run(self._runtime, frame)
        except RollbackRequest:
            self._transactions.rollback()
        finally:
            self._rules.acted_before.clear()

    def _step_again(self, step: steps.CompiledStep, parsed: Parsed) -> steps.CompiledStep:
        """The schema may have changed while the transaction waited for another writer."""
        return step if self._epoch == self._runtime.catalog.epoch else self._step(parsed)

    def _read(self, step: steps.CompiledStep, parsed: Parsed, frame: Frame) -> None:
        """Run a query. If another process changes the schema after it was planned, plan it again,
        once."""
        epoch = self._runtime.catalog.epoch
        try:
            step.run(self._runtime, frame)
        except StorageError:
            if self._transactions.active:
                raise
            self._transactions.refresh()
            if self._runtime.catalog.epoch == epoch:
                raise
            self._step(parsed).run(self._runtime, frame)

    def _step(self, parsed: Parsed) -> steps.CompiledStep:
        catalog = self._runtime.catalog
        if self._epoch != catalog.epoch or self._builder is None:
            self._steps.clear()
            self._builder = Builder(self._runtime.engine, catalog, self._argument)
            self._epoch = catalog.epoch
        if parsed.shape is None:
            return self._build(parsed, parsed.statement)
        key = (parsed.shape, *(self._types(name) for name in parsed.variables))
        known = self._steps.get(key)
        if known is None:
            known = self._build_located(parsed)
            if len(self._steps) >= CACHED_STEPS:
                self._steps.clear()
            self._steps[key] = known
        return known

    def _argument(self, variable: syntax.InterfaceVariable) -> Argument:
        return argument_of(self._runtime, variable.name, variable)

    def _types(self, name: str) -> tuple[Type, ...]:
        """None for a variable without a value: the statement may be the one that assigns it."""
        return self._runtime.types_of_variable(name)

    def _build_located(self, parsed: Parsed) -> steps.CompiledStep:
        """A cached syntax tree has the positions of the first text of its shape, but an error needs
        those of the present text."""
        try:
            return self._build(parsed, parsed.statement)
        except (LanguageError, ValueFault):
            self._build(parsed, reparse(parsed))
            raise  # too large for SQLite only because its constants were taken out

    def _build(self, parsed: Parsed, node: syntax.Statement) -> steps.CompiledStep:
        def interface(variable: syntax.InterfaceVariable) -> Argument:
            slot = variable.slot
            name = variable.name if slot is None else parsed.variables[slot]
            return argument_of(self._runtime, name, variable)

        builder = Builder(self._runtime.engine, self._runtime.catalog, interface)
        if self._builder is not None:
            builder.share(self._builder)
        return builder.statement(node, Scope())
