"""Checks a database: the file, its tables in the lake, and that views have the rows of their
queries.

Law: it changes nothing, and a view is reported exactly if its rows differ from recomputed ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from harken.database.runtime import Runtime
from harken.errors import HarkenError, counted
from harken.statements.sql.materialized_views import KeptView, compile_kept, rows_of


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what was wrong with it; `problem` is None if nothing was."""

    subject: str
    rows: int | None = None
    problem: str | None = None
    left_out: str | None = None
    """Why it could not be checked."""

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.subject}: {self.problem}"
        if self.left_out is not None:
            return f"{self.subject}: not checked, {self.left_out}"
        size = "" if self.rows is None else f", {counted(self.rows, 'row')}"
        return f"{self.subject}: ok{size}"


@dataclass(frozen=True, slots=True)
class Verification:
    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.problem is not None)

    @property
    def ok(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


def verify(runtime: Runtime) -> Verification:
    """Check everything, in one state of the file."""
    with runtime.engine.connection.snapshot():
        problems = runtime.engine.copies.problems()
        found = [Check("file", problem=each) for each in problems] or [Check("file")]
        views = [f for f in runtime.catalog.functions() if f.materialized]
        return Verification((*found, *(_view(runtime, f) for f in views)))


def _view(runtime: Runtime, function: Any) -> Check:
    subject = f"materialized view {function.name}"
    try:
        kept = compile_kept(function, runtime.catalog)
        if kept.asks_time:
            return Check(subject, left_out="because its rows depend on the time of day")
        return _compare(runtime, subject, kept)
    except HarkenError as error:
        return Check(subject, problem=f"its query fails: {error.message}")


def _compare(runtime: Runtime, subject: str, kept: KeptView) -> Check:
    stored = Counter(runtime.engine.rows(kept.table))
    expected = Counter(rows_of(runtime, kept))
    missing, surplus = (expected - stored).total(), (stored - expected).total()
    if not missing and not surplus:
        return Check(subject, stored.total())
    parts = [
        f"{counted(number, 'row', verb)} {what}"
        for number, verb, what in ((missing, "is", "missing"), (surplus, "is", "too many"))
        if number
    ]
    return Check(
        subject,
        problem=f"{' and '.join(parts)}; REFRESH MATERIALIZED VIEW {function_name(kept)} mends it",
    )


def function_name(kept: KeptView) -> str:
    return kept.table.name
