"""One execution of a continual query, in one transaction: its difference, its record, its messages.

Law: an execution is recorded, its difference taken and its messages written together, or none of
it. A query that fails is recorded too, and takes nothing.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from harken.continual.answer_changes import Difference, in_order
from harken.continual.answers import Answers
from harken.continual.compiled_queries import CompiledQuery
from harken.continual.execution_log import (
    CHANGED,
    NO_DATA,
    UNCHANGED,
    Execution,
    ExecutionLog,
)
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_clauses import Deliver, Delivery
from harken.continual.result_payloads import Outcome, payload_of, result_of
from harken.continual.trigger_kinds import Cause, Kinds
from harken.database.evaluation import decode_rows
from harken.database.messages import PAGE, Message, Messages
from harken.database.runtime import Runtime
from harken.values.rows import Row

INSERTED, COMPLETE = Delivery(Deliver.INSERTED), Delivery(Deliver.COMPLETE)


@dataclass(frozen=True, slots=True)
class Done:
    """An execution, and the query after it."""

    execution: Execution
    query: InstalledQuery


class Executor:
    def __init__(self, runtime: Runtime, answers: Answers, log: ExecutionLog, kinds: Kinds) -> None:
        self._runtime, self._answers, self._log, self._kinds = runtime, answers, log, kinds
        self._messages = Messages(runtime)

    def first(self, query: InstalledQuery, cause: Cause) -> Done:
        """In a transaction: the whole answer, which later ones are compared with."""
        started = time.perf_counter()
        answer = self._answers.rows(query)
        self._answers.begin(query, answer)
        found = Difference(in_order(answer), [], answer.total())
        return self._finish(query, cause, found, started, whole=answer, is_first=True)

    def next(self, query: InstalledQuery, cause: Cause) -> Done:
        """In a transaction: the difference since the last execution."""
        started = time.perf_counter()
        if self._answers.compiled(query).triggered is not None:
            answer = self._answers.rows(query, cause.rows)
            found = Difference(in_order(answer), [], answer.total())
            return self._finish(query, cause, found, started, whole=answer)
        found = self._answers.take(query)
        whole = None
        if self.delivery_of(query).part is Deliver.COMPLETE:
            whole = self._answers.rows(query)
        return self._finish(query, cause, found, started, whole=whole)

    def delivery_of(self, query: InstalledQuery) -> Delivery:
        """What its statement says; if it says nothing, the whole answer where only other relations
        trigger it, since its own changes are not what it waits for."""
        given = query.clauses.deliver
        if given is not None:
            return given
        read = self._kinds.mentioned(query)
        compiled = self._answers.compiled(query)
        own = compiled.mentions | set(compiled.sources)
        return COMPLETE if read and read.isdisjoint(own) else INSERTED

    def _finish(
        self,
        query: InstalledQuery,
        cause: Cause,
        found: Difference,
        started: float,
        *,
        whole: Counter[Row] | None,
        is_first: bool = False,
    ) -> Done:
        now = self._runtime.engine.connection.now()
        size = found.size
        if size is None:
            size = max(0, query.rows + len(found.plus) - len(found.minus))
        query = replace(
            query,
            evaluated=now,
            executions=query.executions + 1,
            failures=0,
            retry=None,
            problem="",
            rows=size,
        )
        compiled = self._answers.compiled(query)
        outcome = Outcome(
            compiled.columns,
            compiled.key,
            self._values(compiled, found.plus),
            self._values(compiled, found.minus),
            size,
            None if whole is None else self._values(compiled, in_order(whole)),
            is_first,
        )
        changed = bool(found.plus or found.minus)
        done = Execution(
            query=query.name,
            number=query.number,
            execution=query.executions,
            at=now,
            cause=cause,
            outcome=CHANGED if changed else UNCHANGED if size else NO_DATA,
            strategy="complete" if is_first else query.follows,
            columns=outcome.names,
            inserted=outcome.inserted,
            deleted=outcome.deleted,
            rows=size,
            seconds=time.perf_counter() - started,
        )
        most = int(self._runtime.settings["continual_rows"])
        keep = int(self._runtime.settings["continual_executions"])
        shows = changed or outcome.answer is not None
        self._log.add(done, result_of(outcome, most) if shows else {}, keep)
        if is_first or not query.muted:
            self._tell(query, now, payload_of(outcome, self.delivery_of(query), most))
        return Done(done, query)

    def _values(self, compiled: CompiledQuery, rows: list[Row]) -> list[Row]:
        types = tuple(column.type for column in compiled.columns)
        return decode_rows(rows, types, self._runtime.catalog.home)

    def _tell(
        self, query: InstalledQuery, now: datetime.datetime, payload: dict[str, Any] | None
    ) -> None:
        if payload is not None:
            page = f"{query.id}/{query.executions}"
            self.tell(query, "results", now, {**payload, PAGE: page})

    def tell(
        self, query: InstalledQuery, kind: str, now: datetime.datetime, payload: dict[str, Any]
    ) -> None:
        """In a transaction: write a message to each of those that NOTIFY names."""
        for recipient in query.clauses.notify:
            self._messages.write(
                Message(
                    query=query.name,
                    execution=query.executions,
                    kind=kind,
                    at=now,
                    owner=query.owner,
                    recipient=recipient,
                    payload=payload,
                )
            )
