"""Streams that feed functions in the lake.

A Spark stream commits its batches to the Delta table of a function, and `db.step` processes them
from there like the changes of any input. Law: each row of the stream counts once. The table gets
each batch once, and a step processes each version of the table once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.database.runtime import Runtime
from harken.errors import EngineError, NameFault, TypeFault
from harken.ir.relations import Relation
from harken.ir.schema import Function

if TYPE_CHECKING:
    from harken.engines.protocol import LakeRelation
    from harken.sources.stream import Feed

MODES = ("append", "upsert")


def prepare_table(runtime: Runtime, function: Function) -> None:
    """Create the table that a stream writes to, if it does not exist."""
    runtime.engine.establish(_own(runtime, function))


def start_feed(
    runtime: Runtime,
    function: Function,
    stream: Any,
    checkpoint: str | Path,
    *,
    mode: str,
    latest_by: str | None,
    every: str | float | None,
    available_now: bool,
) -> Feed:
    from harken.sources import stream as streams
    from harken.sources.own_table import open_table

    _check_options(stream, mode, latest_by)
    lake_relation = _own(runtime, function)
    return streams.feed(
        stream,
        open_table(lake_relation.place.path),
        checkpoint=_absolute(checkpoint),
        mode=mode,
        latest_by=latest_by,
        every=f"{every} seconds" if isinstance(every, int | float) else every,
        available_now=available_now,
        facts=True,
        unique=lake_relation.relation.key is not None,
    )


def _absolute(checkpoint: str | Path) -> str:
    """Java may run in another directory than Python."""
    return str(checkpoint) if "://" in str(checkpoint) else str(Path(checkpoint).resolve())


def _own(runtime: Runtime, function: Function) -> LakeRelation:
    relation = function.relation
    lake_relation = runtime.engine.lake_relations.get(relation.id) if relation is not None else None
    if lake_relation is None or relation is None:
        raise NameFault(
            f"{function.id} is not in the lake, so no stream can feed it",
            code="not-in-lake",
            hint=f"create it there: create function {function.name}(...) -> ... stored in lake",
        )
    if not lake_relation.is_own:
        raise EngineError(
            f"{function.name} is an input: others write it, and Harken only reads it",
            code="read-only",
            hint="feed a function that was created with `stored in lake`",
        )
    _refuse_objects(relation)
    return lake_relation


def _refuse_objects(relation: Relation) -> None:
    """Only this database knows its objects; a stream cannot name them."""
    for column in relation.columns:
        if column.type.surrogate:
            raise TypeFault(
                f"the column {column.name} of {relation.name} holds objects of type "
                f"{column.type}, but a stream has only values",
                code="type-mismatch",
                hint="give the function a number or a text that identifies the object, "
                "and join the two in a derived function",
            )


def _check_options(stream: Any, mode: str, latest_by: str | None) -> None:
    if not getattr(stream, "isStreaming", False):
        raise TypeFault(
            "this is not a Spark stream",
            code="bad-value",
            hint="spark.readStream makes one; pass an ordinary DataFrame to db.lake",
        )
    if mode not in MODES:
        raise TypeFault(
            f"there is no mode {mode}", code="bad-value", hint=f"use {' or '.join(MODES)}"
        )
    if latest_by is not None and mode != "upsert":
        raise TypeFault(
            "latest_by chooses among rows with the same key, but an append keeps all",
            code="bad-value",
            hint='mode="upsert"',
        )
