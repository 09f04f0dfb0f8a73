"""Tables in the lake: registering, feeding and stepping them, and their state."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.api.internals import Internals
from harken.api.step import Step, last_step, take_step
from harken.api.stream_feeds import prepare_table, start_feed
from harken.database.arguments import check_flag, check_names, check_path, check_text, check_whole
from harken.database.lake_functions import register
from harken.engines.protocol import LakeRelation
from harken.intake.lake_inputs import note_feed
from harken.packages import needs
from harken.statements.declaring import declare_stored

if TYPE_CHECKING:
    from harken.sources.stream import Feed

Progress = Callable[[str, int, int], None]
"""Called with the name of an input, how many of its rows are loaded, and how many there are."""


@dataclass(frozen=True, slots=True)
class InputStatus:
    """The state of a relation in the lake: the version in use, and the newest version."""

    name: str
    kind: str
    path: str
    version: int | None
    newest: int | None
    rows: int
    pending: int
    bytes: int
    set_aside: dict[str, str] = field(default_factory=dict)
    """The files that cannot be read, and why."""

    @property
    def is_behind(self) -> bool:
        return self.newest is not None and self.newest != self.version


@dataclass(frozen=True, slots=True)
class LakeStatus:
    """The state of the relations in the lake, and when a step last found changes."""

    relations: tuple[InputStatus, ...]
    last_step: datetime.datetime | None


class LakeTables:
    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    def register(
        self,
        name: str,
        source: Any,
        key: Sequence[str],
        *,
        unique: bool,
        columns: Sequence[str] | None,
        format: str | None,
        schema: Any,
        version: int | None,
    ) -> str | None:
        """Returns a sentence that says how many rows are left out, if any."""
        internals = self._internals
        internals.check_open()
        check_flag(unique, "unique")
        if not isinstance(key, str):
            key = check_names(key, "the key")
        if format is not None:
            check_text(format, "the format")
        if columns is not None:
            columns = check_names(columns, "the columns")
        if version is not None:
            check_whole(version, "the version")
        with needs("lake"), internals.alone():
            missing = register(
                internals.runtime,
                name,
                source,
                key,
                unique=unique,
                columns=columns,
                format=format,
                schema=schema,
                version=version,
                declare=declare_stored,
            )
            internals.reactions.synchronise()
        return missing

    def feed(
        self,
        name: str,
        stream: Any,
        checkpoint: str | os.PathLike[str],
        *,
        mode: str,
        latest_by: str | None,
        every: str | float | None,
        available_now: bool,
    ) -> Feed:
        internals = self._internals
        internals.look()
        check_text(name, "the name of a function")
        check_path(checkpoint, "the checkpoint")
        check_flag(available_now, "available_now")
        if latest_by is not None:
            check_text(latest_by, "latest_by")
        function = internals.function(name)
        internals.check_committed("a stream feeds committed data")
        assert function.relation is not None
        with internals.transactions.block():
            prepare_table(internals.runtime, function)
            note_feed(internals.connection, function.relation.id, mode, str(checkpoint))
        started = start_feed(
            internals.runtime,
            function,
            stream,
            Path(checkpoint) if isinstance(checkpoint, os.PathLike) else checkpoint,
            mode=mode,
            latest_by=latest_by,
            every=every,
            available_now=available_now,
        )
        internals.runtime.feeds[function.relation.id] = started
        return started

    def step(self, *, strict: bool, sources: bool) -> Step:
        internals = self._internals
        check_flag(strict, "strict")
        check_flag(sources, "sources")
        internals.check_open()
        internals.check_committed("a step is a transaction of its own")
        return take_step(
            internals.runtime,
            internals.transactions,
            internals.network,
            internals.rules,
            internals.sources,
            strict=strict,
            outside=sources,
        )

    def flush(self) -> None:
        self._internals.check_open()
        self._internals.check_committed("only what is committed can be written to the lake")
        self._internals.engine.flush()

    def status(self) -> LakeStatus:
        internals = self._internals
        internals.look()
        relations = tuple(map(_status, internals.engine.lake_relations.values()))
        return LakeStatus(relations, last_step(internals.engine))

    @contextmanager
    def progress(self, listener: Progress) -> Iterator[None]:
        engine = self._internals.engine
        before, engine.progress = engine.progress, listener
        try:
            yield
        finally:
            engine.progress = before


def _status(lake_relation: LakeRelation) -> InputStatus:
    place = lake_relation.place
    return InputStatus(
        name=lake_relation.relation.name,
        kind=place.kind,
        path=place.options.get("directory") or place.path,
        version=place.version if lake_relation.is_written else None,
        newest=lake_relation.table.version if lake_relation.is_written else None,
        rows=lake_relation.size() + (lake_relation.pending.balance() if place.is_own else 0),
        pending=lake_relation.pending.size() if place.is_own else 0,
        bytes=lake_relation.bytes(),
        set_aside=lake_relation.set_aside(place.version),
    )
