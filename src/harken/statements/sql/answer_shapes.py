"""The queries of continual queries, compiled once for all that differ in constants only.

Law: a lifted query with its values is the query compiled by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harken.continual.compiled_queries import LiftedQuery
from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.lang.sql.lifting import Conversion, NotConverted, NotLifted, values_with
from harken.lang.sql.parser import statements
from harken.statements.sql.compiled_continual import named_sources
from harken.statements.sql.known_statements import Job, Known, KnownStatements
from harken.statements.sql.view_clauses import translate_lifted

MOST_SHAPES = 2_000
"""How many different queries a session keeps compiled without their constants."""
MOST_PINNED = 8
"""How many constants of a shape may turn out to decide what it is compiled to."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    query: LiftedQuery
    made: tuple[Conversion, ...]


class AnswerShapes:
    """`compiled` counts how often a query was parsed and compiled."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._statements = KnownStatements()
        self._statements.most = MOST_SHAPES
        self._known: dict[Known, _Compiled | None] = {}
        self._epoch = -1
        self.compiled = 0

    def __call__(self, text: str) -> tuple[LiftedQuery, tuple[Any, ...]] | None:
        """None if it must be compiled by itself (`LiftedCompiler`)."""
        if self._epoch != self._runtime.catalog.epoch or len(self._known) > MOST_SHAPES:
            self._known.clear()
            self._statements.clear()
            self._epoch = self._runtime.catalog.epoch
        try:
            text = named_sources(self._runtime, text, 0)
            for _ in range(MOST_PINNED):
                job = self._job(text)
                if job is None or not job.known.is_query:
                    return None
                try:
                    found = self._found(job.known)
                except NotLifted as refused:
                    self._statements.pin(text, None, job.known, refused.slot)
                    continue
                return None if found is None else (found.query, values_with(found.made, job.values))
        except (HarkenError, NotConverted, RecursionError):
            pass  # compiling it by itself says what is wrong
        return None

    def _job(self, text: str) -> Job | None:
        jobs = self._statements.find(text, None)
        if jobs is None:
            self.compiled += 1
            jobs = [each for each in self._statements.learn(text, statements(text), None) if each]
        return jobs[0] if len(jobs) == 1 else None

    def _found(self, known: Known) -> _Compiled | None:
        if known not in self._known:
            self._known[known] = None
            self._known[known] = self._compile(known)
        return self._known[known]

    def _compile(self, known: Known) -> _Compiled:
        statement, catalog = known.statement, self._runtime.catalog
        found, _ = translate_lifted(statement, statement.node, catalog)
        own = tuple(found.definitions.values())
        return _Compiled(LiftedQuery(found.rows.relation, own, found.mentioned), found.made)
