"""Kinds of outside sources, opened as a database opens them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from harken.errors import SourceFault
from harken.sources.kinds import outside_kind
from harken.sources.outside import Context, OutsideSchema, Polled, Snapshot

NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


def context(**given: Any) -> Context:
    return Context(**{"now": lambda: NOW, "name": "s", "allow_private_addresses": True, **given})


def opened(kind: str, known: pa.Schema | None = None, given: Any = None, **options: Any) -> Polled:
    """An open source; `known` are the columns of its mirror, `given` more of its context."""
    found = outside_kind(kind)
    every = {each.name: each.default for each in found.options}
    assert every.keys() >= options.keys(), options.keys() - every.keys()
    schema = None if known is None else OutsideSchema(known)
    polled = found.open({**every, **options}, context(known=schema, **(given or {}))).polled
    assert polled is not None
    return polled


def table_of(snapshot: Snapshot | None) -> pa.Table:
    assert snapshot is not None
    return pa.Table.from_batches(list(snapshot.batches), snapshot.schema.columns)


def rows_of(snapshot: Snapshot | None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table_of(snapshot).to_pylist()]


def types_of(snapshot: Snapshot | None) -> dict[str, str]:
    assert snapshot is not None
    return {each.name: str(each.type) for each in snapshot.schema.columns}


@contextmanager
def refused(code: str, *words: str) -> Iterator[None]:
    """The block raises an error with this code, whose report has these words."""
    with pytest.raises(SourceFault) as found:
        yield
    assert found.value.code == code, found.value.report()
    missing = [word for word in words if word not in found.value.report()]
    assert not missing, found.value.report()
