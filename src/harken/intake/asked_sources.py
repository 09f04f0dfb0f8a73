"""Sources without a mirror: they are asked when a query reads them.

What a statement needs of such a source, its columns and conditions, is worked out from the
statement's text, and as much of that as the source can do is asked of it. The query tests each row
again, so what the source leaves to us is computed here.

Law: the rows of a query are those it would have over a mirror that was read at that moment.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from harken.database.runtime import Runtime
from harken.errors import SourceFault
from harken.intake.open_sources import OpenSources, in_our_words
from harken.intake.source_needs import Need
from harken.intake.source_records import SourceRecord, SourceRecords
from harken.sources.outside import Answering, Condition, Question
from harken.values.rows import Row

MOST_ROWS = 10_000_000


@dataclass(slots=True)
class Answer:
    """What is asked of a source, and what is left to do here."""

    source: str
    asked: str
    left: tuple[Condition, ...]
    columns: tuple[str, ...]
    question: Question | None
    rows: list[Row] | None = None

    def lines(self) -> list[str]:
        """For EXPLAIN: what is asked of a source, and what is computed here."""
        found = [f"{self.source} is asked for: {self.asked}"]
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
    _answers: dict[str, Answer] = field(default_factory=dict)
    _is_running: bool = False

    @contextmanager
    def statement(self, needs: Mapping[str, Need]) -> Iterator[list[Answer]]:
        """A statement that reads these sources. What it read is forgotten at its end."""
        self._answers = {
            name: self._answer(self.records.get(name), need) for name, need in needs.items()
        }
        self._is_running = True
        try:
            yield list(self._answers.values())
        finally:
            self._is_running = False
            self._answers = {}

    def rows(self, name: str) -> list[Row]:
        """All rows that the running statement can need."""
        record = self.records.get(name)
        answer = self._answers.get(name) or self._answer(record, Need())
        if self._is_running:
            self._answers[name] = answer
        if answer.rows is None:
            with in_our_words(self.sources.of(record).kind):
                answer.rows = list(self._read(record, answer))
        return answer.rows

    def _answer(self, record: SourceRecord, need: Need) -> Answer:
        layout = record.layout
        places = dict(zip(layout.names, layout.outside, strict=True))
        names = tuple(places[n] for n in need.columns or layout.names) or layout.outside[:1]
        wanted = tuple(_of_source(each, places) for each in need.conditions)
        source = self.sources.of(record)
        with in_our_words(source.kind):
            polled = source.opened().polled
            if polled is None:
                raise SourceFault(
                    f"{record.name} cannot be asked: its kind is only followed", code="bad-option"
                )
            if not isinstance(polled, Answering):
                return Answer(record.name, "all of its rows", need.conditions, names, None)
            question = polled.question(names, wanted)
        pushed = [wanted.index(each) for each in question.pushed if each in wanted]
        left = tuple(e for i, e in enumerate(need.conditions) if i not in pushed)
        return Answer(record.name, question.text, left, names, question)

    def _read(self, record: SourceRecord, answer: Answer) -> Iterator[Row]:
        layout = record.layout
        if answer.question is not None:
            batches = answer.question.batches()
        else:
            polled = self.sources.of(record).opened().polled
            assert polled is not None
            snapshot = polled.snapshot()
            assert snapshot is not None
            batches = snapshot.batches
        count = 0
        for batch in batches:
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
    return ", ".join(map(repr, values))
