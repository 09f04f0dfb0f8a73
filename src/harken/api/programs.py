"""Programs: a text in any language, run by the session of that language."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harken.api.internals import Internals
from harken.api.rule_programs import RuleProgram
from harken.calculus.rule_findings import Finding
from harken.consumers.monitors.subscription import Subscription
from harken.database.arguments import check_callable, check_path, check_text
from harken.database.exclusive import SessionLock
from harken.database.language_names import DATALOG, SQL
from harken.database.permissions import Role
from harken.database.results import Result
from harken.errors import TypeFault
from harken.statements.amosql.session import Session as AmosqlSession
from harken.statements.datalog.session import DatalogSession
from harken.statements.language_registry import (
    Monitor,
    RunOptions,
    SessionParts,
    language_named,
    languages,
)
from harken.statements.sql.session import SqlSession


def run_options(
    source: str | None,
    facts: str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    warn: Callable[[str], None] | None,
    strategy: str,
    materialise: str = "auto",
) -> RunOptions:
    """The checked options of `db.run_program`."""
    check_path(facts, "the directory of fact files")
    if output is not None:
        check_path(output, "the directory of output files")
    if warn is not None:
        check_callable(warn, "warn")
    check_text(materialise, "the policy")
    directory = None if output is None else Path(output)
    return RunOptions(source, Path(facts), directory, warn, strategy, materialise)


class _Undone(Exception):
    """Rolls back what a check has defined."""


class Programs:
    def __init__(self, internals: Internals, monitor: Monitor) -> None:
        self._internals = internals
        parts = SessionParts(
            internals.runtime,
            internals.transactions,
            internals.rules,
            internals.materialized,
            internals.sources,
            monitor,
            internals.programs,
            internals.continual,
        )
        self._sessions = {each.name: each.session(parts) for each in languages()}
        sql, datalog = self._sessions[SQL], self._sessions[DATALOG]
        assert isinstance(sql, SqlSession)
        assert isinstance(datalog, DatalogSession)
        self._sql, self._datalog = sql, datalog
        internals.continual.run_statement = lambda text: sql.execute(text, None, None)

    def run(
        self, language: str, text: str, listener: Callable[[Result], None], options: RunOptions
    ) -> None:
        self._internals.check_open()
        check_text(language, "the name of a language")
        check_text(text, "a program")
        name = language_named(language).name
        if name != SQL:
            self._internals.runtime.permissions.check_role(Role.OPERATOR, f"running {name}")
        with self.listening(listener):
            self._sessions[name].run(text, options)

    def run_sql(self, text: str, values: Any, listener: Callable[[Result], None]) -> None:
        """The same for SQL, without what it does not need: this is the hot path."""
        internals = self._internals
        internals.check_open()
        check_text(text, "a program")
        runtime = internals.runtime
        before, runtime.listener = runtime.listener, listener
        try:
            self._sql.execute(text, values, None)
        finally:
            runtime.listener = before

    def answers_of(self, text: str) -> dict[str, str]:
        """The rows of a statement that describes something."""
        found: list[Result] = []
        self.run_sql(text, None, found.append)
        return {title: value for each in found for title, value in each.rows}

    def define(
        self, text: str, listener: Callable[[Result], None], session_lock: SessionLock
    ) -> RuleProgram:
        """A program of production rules, ready to run."""
        self._internals.check_open()
        check_text(text, "a program")
        with self.listening(listener):
            source = self._datalog.define(text)
        return RuleProgram(self._internals, self._datalog, source, session_lock)

    def check(self, text: str, language: str, source: str | None) -> list[Finding]:
        """What the rules of a text may do to each other; nothing of the text stays."""
        self._internals.check_open()
        check_text(text, "a program")
        check_text(language, "the name of a language")
        if source is not None:
            check_text(source, "the name of the text")
        session = self._sessions[language_named(language).name]
        if not isinstance(session, DatalogSession | AmosqlSession):
            raise TypeFault(
                f"{language} has no rules",
                code="unsupported",
                hint="rules are written in AMOSQL and in Datalog",
            )
        found: list[Finding] = []
        with self.listening(lambda _: None), suppress(_Undone), self._internals.alone():
            found += session.findings(text, source)
            raise _Undone
        return found

    @contextmanager
    def listening(self, listener: Callable[[Result], None]) -> Iterator[None]:
        check_callable(listener, "the listener")
        runtime = self._internals.runtime
        before, runtime.listener = runtime.listener, listener
        try:
            yield
        finally:
            runtime.listener = before

    def watch_views(self, monitor: Callable[[str], Subscription]) -> None:
        """Call `monitor` for every SQL view, including those created later. A view that is dropped
        is no longer monitored."""
        watching: dict[str, Subscription] = {}

        def watch(name: str) -> None:
            if name not in watching:
                watching[name] = monitor(name)
                watching[name].allow_drop()

        def forget(name: str) -> None:
            if name in watching:
                watching.pop(name).close()

        sql = self._sql
        for name in sql.views():
            watch(name)
        sql.when_created = watch
        sql.when_dropped = forget

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
