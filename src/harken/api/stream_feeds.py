"""Streams that feed functions in the lake.

A stream of Spark commits its batches to the Delta table of a function; `db.step` takes them in from
there, like the changes of any input. So each row of the stream counts once: the table has each
batch once, and a step takes each version of the table in once.
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
    """Have a table that a stream can write to, be it an empty one."""
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
    """Java may be in another directory than Python."""
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
            f"{function.name} is an input: others write it, and Harken reads it",
            code="read-only",
            hint="feed a function that was created with `stored in lake`",
        )
    _refuse_objects(relation)
    return lake_relation


def _refuse_objects(relation: Relation) -> None:
    """Which objects there are is known here alone, and a stream would name others."""
    for column in relation.columns:
        if column.type.surrogate:
            raise TypeFault(
                f"the column {column.name} of {relation.name} holds objects of type {column.type}, "
                "and a stream has only values",
                code="type-mismatch",
                hint="let the function take what names the object, a number or a text, and join "
                "the two in a derived function",
            )


def _check_options(stream: Any, mode: str, latest_by: str | None) -> None:
    if not getattr(stream, "isStreaming", False):
        raise TypeFault(
            "this is no stream of Spark",
            code="bad-value",
            hint="spark.readStream makes one; a DataFrame that is none is for db.lake",
        )
    if mode not in MODES:
        raise TypeFault(
            f"there is no mode {mode}", code="bad-value", hint=f"it is {' or '.join(MODES)}"
        )
    if latest_by is not None and mode != "upsert":
        raise TypeFault(
            "latest_by says which row of a key wins, and an append keeps all",
            code="bad-value",
            hint='mode="upsert"',
        )
