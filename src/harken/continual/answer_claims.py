"""The claims of continual queries on changes of what they read: those since their last execution.

A query that is executed by itself moves on and keeps only what has not cancelled out. One that is
paused may never go on: when it has claimed changes for too long it loses them, and its next
execution delivers the complete answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from harken.continual.answer_records import KEPT, LOST
from harken.continual.answers import Answers
from harken.continual.installed_queries import State
from harken.database.delta_claims import DeltaClaim
from harken.engines.protocol import Records


def answer_claims(
    answers: Answers, records: Records, views: Collection[str]
) -> Iterator[DeltaClaim]:
    if not records.exist(KEPT):
        return
    for query in answers.readers_of(views):
        if query.follows == "naive":
            continue  # it keeps an answer, not changes
        changes, bytes = records.size(KEPT, "row", {"query": query.number})
        if changes:
            since = query.evaluated or query.installed
            yield DeltaClaim(
                query.title,
                changes,
                bytes,
                since.timestamp(),
                partial(_give_up, answers, query.number),
                is_active=query.state is State.ACTIVE,
            )


def _give_up(answers: Answers, number: int, before: float) -> None:
    answers.records.forget(number)
    answers.records.note_trouble(number, LOST, "its changes were kept for too long")
