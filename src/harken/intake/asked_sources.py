"""Sources without a mirror: they are asked when a query reads them.

What a statement needs of such a source, its columns and conditions, is worked out from the
statement's text, and as much of that as the source can do is asked of it. The query tests each row
again, so what the source leaves to us is computed here.

Law: the rows of a query are those it would have over a mirror that was read at that moment.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from harken.database.runtime import Runtime
from harken.errors import HarkenError, SourceFault
from harken.intake.open_sources import OpenSource, OpenSources, in_our_words
from harken.intake.parallel_reading import read_together
from harken.intake.source_needs import Need
from harken.intake.source_records import SourceRecord, SourceRecords
from harken.limits import check
from harken.sources.outside import Answering, Condition, Question
from harken.values.rows import Row

MOST_ROWS = 10_000_000
LONGEST = 2_000
"""Characters of a question that EXPLAIN shows."""
MOST_SHOWN = 10
"""Values of a condition that EXPLAIN shows."""


@dataclass(slots=True)
class Answer:
    """What is asked of a source, and what is left to do here."""

    source: str
    asked: str
    left: tuple[Condition, ...]
    columns: tuple[str, ...]
    question: Question | None
    rows: list[Row] | None = None
    may_fail: bool = False
    error: HarkenError | None = None
    why_not: str = ""
    """Why it is not asked at all."""

    @property
    def is_open(self) -> bool:
        return self.rows is None and self.error is None

    def lines(self) -> list[str]:
        """For EXPLAIN: what is asked of a source, and what is computed here."""
        if self.why_not:
            return [f"{self.source} is not asked: {self.why_not}"]
        asked = self.asked if len(self.asked) <= LONGEST else f"{self.asked[:LONGEST]} ..."
        found = [f"{self.source} is asked for: {asked}"]
        if self.left:
            shown = ", ".join(
                f"{c.column} {c.operator} {_shown(c.values)}".strip() for c in self.left
            )
            found.append(f"computed here, of {self.source}: {shown}")
        return found


@dataclass(slots=True)
class AskedSources:
    runtime: Runtime
    records: SourceRecords
    sources: OpenSources
    failures: dict[str, str] = field(default_factory=dict)
    """By source: when and why it could not be asked last, until it can."""
    _answers: dict[str, Answer] = field(default_factory=dict)
    _is_running: bool = False

    @contextmanager
    def statement(self, needs: Mapping[str, Need]) -> Iterator[list[Answer]]:
        """A statement that reads these sources. What it read is forgotten at its end."""
        self._answers = {name: self._prepared(name, need) for name, need in needs.items()}
        self._is_running = True
        try:
            yield list(self._answers.values())
        finally:
            self._is_running = False
            self._answers = {}

    def _prepared(self, name: str, need: Need) -> Answer:
        if need.why_not:
            return Answer(name, "", (), (), None, [], why_not=need.why_not)
        try:
            return self._answer(self.records.get(name), need)
        except SourceFault as error:
            self._note(name, error)
            if not need.may_fail:
                raise
            return Answer(name, "", (), (), None, [], why_not=error.message)

    def rows(self, name: str) -> list[Row]:
        """All rows that the running statement can need."""
        answer = self._answers.get(name)
        if answer is None:
            answer = self._answer(self.records.get(name), Need())
            if self._is_running:
                self._answers[name] = answer
        if answer.is_open:
            others = [each for each in self._answers.values() if each.is_open]
            self._read_together(others if answer in others else [answer])
        if answer.rows is None:
            assert answer.error is not None
            raise answer.error
        return answer.rows

    def _read_together(self, answers: Sequence[Answer]) -> None:
        """All that the statement asks is asked at the same time."""
        jobs = {each.source: self._reader(each) for each in answers}
        done = read_together(jobs, self.runtime.settings["source_workers"])
        for each in answers:
            each.rows, each.error = done[each.source]
            self._note(each.source, each.error)
            if each.error is not None and each.may_fail:
                each.rows = []

    def _note(self, name: str, error: HarkenError | None) -> None:
        if error is None:
            self.failures.pop(name, None)
        else:
            redacted = self.runtime.secrets.redacted
            error.message, error.hint = redacted(error.message), redacted(error.hint or "") or None
            at = f"{self.runtime.engine.connection.now():%Y-%m-%d %H:%M:%S} UTC"
            self.failures[name] = f"{at}: {error.message}"

    def _reader(self, answer: Answer) -> Callable[[], list[Row]]:
        """What reads it, in any thread."""
        record = self.records.get(answer.source)
        source = self.sources.of(record)

        def read() -> list[Row]:
            with source.alone(), in_our_words(source.kind):
                return list(_rows(record, source, answer))

        return read

    def _answer(self, record: SourceRecord, need: Need) -> Answer:
        if record.is_paused:
            raise SourceFault(
                f"{record.name} is paused, so it is not asked",
                code="source-down",
                hint=f"ALTER SOURCE {record.name} RESUME",
            )
        layout = record.layout
        places = dict(zip(layout.names, layout.outside, strict=True))
        names = tuple(places[n] for n in need.columns or layout.names) or layout.outside[:1]
        wanted = tuple(_of_source(each, places) for each in need.conditions)
        order = tuple(replace(each, column=places[each.column]) for each in need.order)
        source = self.sources.of(record)
        with in_our_words(source.kind):
            polled = source.opened().polled
            if polled is None:
                raise SourceFault(
                    f"{record.name} cannot be asked: its kind is only followed", code="bad-option"
                )
            if not isinstance(polled, Answering):
                asked, left = "all of its rows", need.conditions
                return Answer(record.name, asked, left, names, None, may_fail=need.may_fail)
            question = (
                polled.question(names, wanted)
                if need.limit is None
                else polled.question(names, wanted, need.limit, order)
            )
        pushed = [wanted.index(each) for each in question.pushed if each in wanted]
        left = tuple(e for i, e in enumerate(need.conditions) if i not in pushed)
        return Answer(record.name, question.text, left, names, question, may_fail=need.may_fail)


def _rows(record: SourceRecord, source: OpenSource, answer: Answer) -> Iterator[Row]:
    layout = record.layout
    if answer.question is not None:
        batches = answer.question.batches()
    else:
        polled = source.opened().polled
        assert polled is not None
        snapshot = polled.snapshot()
        assert snapshot is not None
        batches = snapshot.batches
    count = 0
    for batch in batches:
        check()
        count += batch.num_rows
        if count > MOST_ROWS:
            raise SourceFault(
                f"{record.name} answered with more than {MOST_ROWS:,} rows",
                code="source-suspect",
                hint="ask for less, or keep a mirror",
            )
        there = set(batch.schema.names)
        columns = [
            _values(batch.column(batch.schema.get_field_index(name)))
            if name in there
            else [None] * batch.num_rows
            for name in layout.outside
        ]
        yield from zip(*columns, strict=True)


def _of_source(condition: Condition, places: Mapping[str, str]) -> Condition:
    return Condition(places[condition.column], condition.operator, condition.values)


def _values(column: pa.Array) -> Sequence[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type):
        return [_in_utc(value) for value in values]
    if pa.types.is_floating(column.type):
        return [None if v is None or not math.isfinite(v) else v + 0.0 for v in values]
    return values


def _in_utc(value: Any) -> Any:
    is_naive = isinstance(value, datetime.datetime) and value.tzinfo is None
    return value.replace(tzinfo=datetime.UTC) if is_naive else value


def _shown(values: Sequence[Any]) -> str:
    more = ", ..." if len(values) > MOST_SHOWN else ""
    return ", ".join(map(_literal, values[:MOST_SHOWN])) + more


def _literal(value: Any) -> str:
    """As it is written in SQL, for reading.

    >>> _literal(datetime.date(2024, 1, 31)), _literal("it's"), _literal(True)
    ("DATE '2024-01-31'", "'it''s'", 'TRUE')
    """
    match value:
        case datetime.datetime():
            return f"TIMESTAMP '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bool():
            return str(value).upper()
    return str(value)
