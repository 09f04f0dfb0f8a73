"""Plans that SQLite runs for a script, kept as cases for Spark: the same plan, the same data.

Law: whatever a script asks, and whatever is evaluated to find its changes, has the same rows on
both engines. Plans that call Python or read the clock are left out: other tests have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harken.calculus.states import COPIES
from harken.engines.sqlite.engine import Query, SQLiteEngine
from harken.ir.clauses import atoms
from harken.ir.relations import Kind
from harken.planner.prepare import Plan
from tests.harness.both import Cases
from tests.harness.case_scripts import Runner, language_of, run_case


class Recorder:
    """Makes a case of every plan that is run, as the data is at that moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int = 2) -> None:
        self.cases = Cases()
        self.script = ""
        self.times = times
        """How often the same plan is recorded."""
        self._plans: dict[int, tuple[Query, Plan, SQLiteEngine]] = {}
        self._seen: Counter[str] = Counter()
        self._busy = False
        compile_, rows, run_from = SQLiteEngine.compile, Query.rows, Query.run_from

        def compiled(engine: SQLiteEngine, plan: Plan, most: int | None = None) -> Query:
            query = compile_(engine, plan, most)
            self._plans[id(query)] = query, plan, engine
            return query

        def asked(query: Query, values: Any) -> Any:
            self.record(query, values)
            return rows(query, values)

        def run(query: Query, *texts: str, **more: str) -> Any:
            self.record(query, ())
            return run_from(query, *texts, **more)

        monkeypatch.setattr(SQLiteEngine, "compile", compiled)
        monkeypatch.setattr(Query, "rows", asked)
        monkeypatch.setattr(Query, "run_from", run)

    def record(self, query: Query, values: Any) -> None:
        if self._busy or id(query) not in self._plans:
            return
        _, plan, engine = self._plans[id(query)]
        self._seen[query.sql] += 1
        if self._seen[query.sql] > self.times or not can_run_on_spark(plan):
            return
        if "harken_now" in query.sql or "harken_today" in query.sql:
            return
        self._busy = True
        try:
            self.cases.add_plan(f"{self.script}: {query.sql}", plan, engine, list(values))
        finally:
            self._busy = False


def can_run_on_spark(plan: Plan) -> bool:
    """A plan in layers is rewritten for SQLite; Python functions have tests of their own."""
    return not plan.layers and not any(
        atom.relation.kind is Kind.FOREIGN and atom.relation != COPIES
        for definition in plan.program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
    )


def recorded(monkeypatch: pytest.MonkeyPatch, scripts: Iterable[Path], times: int = 2) -> Cases:
    with monkeypatch.context() as patch:
        recorder = Recorder(patch, times)
        for path in scripts:
            recorder.script = path.name
            run_case(path, Runner(":memory:", language_of(path)))
    return recorder.cases
