"""Fetches rows of the lake for statements that run once for each of many tuples, such as the action
of a rule or the body of a loop: one fetch for many tuples.

Law: it only fetches rows that may be needed. What it leaves out is fetched later, and what it
fetches in vain changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from harken.database.evaluation import Evaluation, Frame
from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.values.rows import Row

BATCH = 5_000
"""Tuples that are looked at together."""


def prefetched(
    runtime: Runtime, step: Any, rows: Sequence[Row], frame_of: Callable[[Row], Frame]
) -> Iterable[Row]:
    """The rows in their order; the lake rows that the step will read for each have been fetched."""
    if not runtime.engine.has_lake or len(rows) < 2:
        return rows
    return _batches(runtime, step, rows, frame_of)


def _batches(
    runtime: Runtime, step: Any, rows: Sequence[Row], frame_of: Callable[[Row], Frame]
) -> Iterator[Row]:
    parts = list(_parts(step))
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        frames = [frame_of(row) for row in batch] if parts else []
        for part in parts:
            _prefetch(runtime, part, frames)
        yield from batch


def _prefetch(runtime: Runtime, part: Any, frames: Sequence[Frame]) -> None:
    try:
        if isinstance(part, Evaluation):
            sources = part.sources
            if part.query is not None:
                runtime.engine.foresee(
                    part.query,
                    lambda: [[frame.value(each) for each in sources] for frame in frames],
                )
        else:
            part.foresee(runtime, frames)
    except HarkenError:
        # Too early: a variable has no value yet, or computing one fails. If the step itself fails,
        # it reports the error.
        return


def _parts(node: Any) -> Iterator[Any]:
    """The evaluations in a step, and inner steps that prefetch for themselves."""
    if isinstance(node, Evaluation):
        yield node
    elif isinstance(node, tuple):
        for each in node:
            yield from _parts(each)
    elif is_dataclass(node) and (hasattr(node, "run") or hasattr(node, "rows")):
        for field in fields(node):
            yield from _parts(getattr(node, field.name))
        if hasattr(node, "foresee"):
            yield node
