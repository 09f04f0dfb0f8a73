"""A small model of an intake: what Harken's mirror of an outside table must be, kept by the letter
of `harken.sources.outside`. Kinds are tested with it.

    mirror = the rows of a snapshot + every transaction after its position, each once
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from harken.sources.kinds import outside_kind
from harken.sources.outside import (
    Context,
    Opened,
)

Row = tuple[Any, ...]
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def context(name: str = "s", **more: Any) -> Context:
    given = {"database": "tests", "allow_private_addresses": True, **more}
    return Context(now=lambda: NOW, name=name, **given)


def opened(
    kind: str, options: Mapping[str, Any], capture: str | None = None, **more: Any
) -> Opened:
    found = outside_kind(kind)
    defaults = {each.name: each.default for each in found.options}
    return found.open({**defaults, **options}, context(**more), capture)


def batch_rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    return [
        tuple(row)
        for batch in batches
        for row in zip(*(each.to_pylist() for each in batch), strict=True)
    ]


def polled_rows(given: Opened) -> list[Row]:
    assert given.polled is not None
    snapshot = given.polled.snapshot()
    assert snapshot is not None
    return batch_rows(snapshot.batches)
