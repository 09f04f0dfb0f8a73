"""The query page: a text in any language, run once, and its rows.

A text runs in a session that can only read. If it needs to write, nothing has been done yet, and it
runs again, as a whole, in the session that writes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from harken.api.database import Database
from harken.console.bar_charts import MOST_BARS, bars
from harken.console.rendering import NUMBERS, Problem
from harken.database.language_names import SQL
from harken.database.objects import Object
from harken.database.results import Result
from harken.errors import HarkenError, IntegrityError, ValueFault
from harken.server.service import Service
from harken.shell.completion import SessionNames
from harken.statements.completing import Place
from harken.statements.language_registry import language_named, languages

MOST_ROWS = 1_000
"""Rows of a result that the page shows; an export has all."""
MOST_COMPLETIONS = 50
FORMATS = ("csv", "json", "arrow", "parquet")


@dataclass(frozen=True, slots=True)
class Shown:
    """One result on the page."""

    kind: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    numbers: Sequence[bool] = ()
    count: int = 0
    lines: Sequence[str] = ()
    chart: Markup | str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    results: Sequence[Shown] = ()
    problem: Problem | None = None
    changed: int = 0
    position: int = 0
    took: str = ""


def language_titles() -> list[tuple[str, str]]:
    return [(each.name, each.title) for each in languages()]


def check_language(name: str) -> str:
    if name not in {known for known, _ in language_titles()}:
        raise ValueFault(f"there is no language {name}", code="bad-value", hint="use sql")
    return name


async def run(service: Service, language: str, text: str) -> Answer:
    """Run a text; an error is part of the answer, with what came before it undone."""

    def work(db: Database) -> Answer:
        began = time.perf_counter()
        results, changed = _results(db, language, text)
        if db.in_transaction:
            raise IntegrityError(
                "the text leaves a transaction open, so all of it was rolled back",
                code="transaction",
                hint="end it with COMMIT",
            )
        took = _took(time.perf_counter() - began)
        return Answer([_shown(each) for each in results], None, changed, db.position, took)

    try:
        try:
            return await service.query(work)
        except HarkenError as error:
            if error.code != "read-only":
                raise
        answer, _ = await service.write(work)
        await service.publish()
        return answer  # type: ignore[no-any-return]
    except HarkenError as error:
        return Answer(problem=Problem.of(error, text))


async def rows_of(service: Service, language: str, text: str) -> Result:
    """All rows of the last query of a text that only reads."""

    def work(db: Database) -> Result:
        results: list[Result] = []
        db.run_program(language, text, results.append)
        found = [each for each in results if each.kind == "rows"]
        if not found:
            raise ValueFault("the text has no rows to export", code="bad-value", hint="use SELECT")
        return found[-1]

    return await service.query(work)


async def completions(service: Service, language: str, text: str, at: int) -> dict[str, Any]:
    """The names that can stand where somebody is typing."""
    spoken = language_named(language)
    before = text[:at]
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] in "_.:"):
        start -= 1
    word = before[start:].rpartition(".")[2] if "." in before[start:] else before[start:]
    place = Place(before[len(before) - len(word) :], before[: len(before) - len(word)], text)

    def work(db: Database) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for kind, names in spoken.complete(place, SessionNames(db)):
            for name in sorted(set(names)):
                if name.casefold().startswith(word.casefold()) and name != word:
                    shown = name.lower() if kind == "keyword" and word.islower() else name
                    found.setdefault(shown, kind)
        return list(found.items())[:MOST_COMPLETIONS]

    return {"found": await service.query(work), "length": len(word)}


def _results(db: Database, language: str, text: str) -> tuple[Sequence[Result], int]:
    """The results of a text, and how many rows it changed as far as the language counts them."""
    if language == SQL:
        found = db.sql(text)
        return found, found.changed
    results: list[Result] = []
    db.run_program(language, text, results.append)
    return results, 0


def _shown(result: Result) -> Shown:
    if result.kind != "rows":
        return Shown(result.kind, lines=result.lines())
    rows = result.rows[:MOST_ROWS]
    numbers = [each.name.partition("(")[0] in NUMBERS for each in result.types]
    named = [[result.named(v) if isinstance(v, Object) else v for v in row] for row in rows]
    return Shown(
        "rows", result.columns, named, numbers, len(result.rows), chart=_chart(result, numbers)
    )


def _chart(result: Result, numbers: Sequence[bool]) -> Markup | str:
    """A chart where it answers a question: one label and a number for each row."""
    if not 2 <= len(result.rows) <= MOST_BARS or True not in numbers:
        return ""
    at = len(numbers) - 1 - list(reversed(numbers)).index(True)
    label = next((index for index in range(len(numbers)) if index != at), None)
    values = [row[at] for row in result.rows]
    if label is None or any(value is None for value in values):
        return ""
    labels = ["null" if row[label] is None else str(row[label]) for row in result.rows]
    title = f"{result.columns[at]} by {result.columns[label]}"
    return bars(title, [float(value) for value in values], labels)


def _took(seconds: float) -> str:
    """
    >>> _took(0.00042), _took(1.5)
    ('0.4 ms', '1.50 s')
    """
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
