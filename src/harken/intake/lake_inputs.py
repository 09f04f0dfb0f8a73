"""The inputs of the lake as sources: tables, directories and DataFrames that steps read, and
streams that feed tables of ours.

They keep versions of their own, so they have no mirror and no clock; otherwise people see them as
they see other sources: what kind they are, how they go, since when, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.database.runtime import Runtime
from harken.engines.protocol import Connection, Field, LakeRelation, RecordKind
from harken.errors import HarkenError, SourceFault
from harken.intake.source_records import State
from harken.sources.registry import kind_named

STREAM = "stream"
FEEDS = RecordKind(
    "harken_feeds",
    (Field("relation", "text"), Field("mode", "text"), Field("checkpoint", "text")),
    key=("relation",),
)
"""The streams that were started, by the relation that each feeds."""


@dataclass(frozen=True, slots=True)
class LakeInput:
    name: str
    kind: str
    title: str
    state: str
    why: str = ""
    what_to_do: str = ""
    rows: int = 0
    version: int = 0
    newest: int | None = None
    place: str = ""
    changed: float | None = None
    """When its latest rows were written, in seconds of the Unix epoch, if known."""
    key: tuple[str, ...] = ()
    set_aside: Mapping[str, str] = field(default_factory=dict)


def note_feed(connection: Connection, relation: str, mode: str, checkpoint: str) -> None:
    """In a transaction."""
    connection.records.make_room(FEEDS)
    connection.records.add(FEEDS, (relation, mode, checkpoint), replace=True)


def lake_inputs(runtime: Runtime) -> list[LakeInput]:
    """In the order of their names."""
    records = runtime.engine.connection.records
    feeds = {row[0]: row for row in records.find(FEEDS)} if records.exist(FEEDS) else {}
    found = []
    for each in runtime.engine.lake_relations.values():
        if not each.is_own and each.is_written:
            found.append(_input(each))
        elif each.is_own and each.relation.id in feeds:
            found.append(_stream(runtime, each, feeds[each.relation.id]))
    return sorted(found, key=lambda each: each.name)


def lake_input(runtime: Runtime, name: str) -> LakeInput | None:
    return next((each for each in lake_inputs(runtime) if each.name.lower() == name), None)


def refuse_input(runtime: Runtime, name: str) -> None:
    """Called for a source of which there is no record."""
    found = lake_input(runtime, name)
    if found is not None:
        raise SourceFault(
            f"{name} is a {found.title} in the lake, whose changes steps read",
            code="bad-option",
            hint="db.step() or `harken pipeline run` reads it now; DROP TABLE, or in AMOSQL "
            "`delete function`, ends it",
        )


def _input(relation: LakeRelation) -> LakeInput:
    place = relation.place
    title = _title(place.kind)
    where = str(place.options.get("directory") or place.path)
    shared: dict[str, Any] = {
        "name": relation.relation.name,
        "kind": place.kind,
        "title": title,
        "version": place.version,
        "place": where,
        "key": tuple(place.options.get("key") or ()),
    }
    try:
        newest = relation.table.version
        set_aside = relation.set_aside(place.version)
        state = State.OK if newest == place.version else State.STALE
        why, what = "", ""
        if set_aside:
            why = f"set aside: {', '.join(sorted(set_aside))}"
            what = "mend these files, or move them away; their rows of last time stay"
        elif state is State.STALE:
            why = f"version {newest} is there, and version {place.version} was read"
            what = "db.step()"
        return LakeInput(
            state=state,
            why=why,
            what_to_do=what,
            rows=relation.size(),
            newest=newest,
            changed=relation.table.written(place.version),
            set_aside=set_aside,
            **shared,
        )
    except HarkenError as error:
        return LakeInput(
            state=State.FAILING, why=error.message, what_to_do=error.hint or "", **shared
        )


def _title(kind: str) -> str:
    try:
        return kind_named(kind).title
    except HarkenError:  # what reading it takes is not installed
        return kind


def _stream(runtime: Runtime, relation: LakeRelation, feed: tuple[Any, ...]) -> LakeInput:
    _, mode, checkpoint = feed
    state, why, what = _of_feed(runtime.feeds.get(relation.relation.id))
    try:
        rows = relation.size()
        changed = relation.table.written(relation.place.version) if relation.is_written else None
    except HarkenError as error:
        rows, changed, state, why = 0, None, State.FAILING, error.message
    return LakeInput(
        name=relation.relation.name,
        kind=STREAM,
        title="stream of Spark",
        state=state,
        why=why or f"{mode}, checkpoint {checkpoint}",
        what_to_do=what,
        rows=rows,
        version=relation.place.version,
        place=relation.place.path,
        changed=changed,
    )


def _of_feed(feed: Any) -> tuple[str, str, str]:
    if feed is None:
        return "stopped", "", "db.feed(...) starts it here, unless another process runs it"
    failure = feed.failure
    if failure is not None:
        return State.FAILING, failure.message, failure.hint or ""
    return (State.OK, "", "") if feed.is_active else ("stopped", "", "db.feed(...) starts it")


def described(found: LakeInput, columns: str) -> Iterator[tuple[str, str]]:
    """What DESCRIBE SOURCE shows."""
    yield "name", found.name
    yield "kind", f"{found.kind}: {found.title}"
    yield "columns", columns
    if found.key:
        yield "key", ", ".join(found.key)
    yield "place", found.place
    yield "capture", "versions: each step reads what came since the version that was read"
    yield "version", str(found.version)
    if found.newest is not None:
        yield "newest version", str(found.newest)
    yield "state", str(found.state)
    yield "rows", f"{found.rows:,}"
    yield from ((title, text) for title, text in _told(found) if text)
    for part, why in found.set_aside.items():
        yield f"set aside: {part}", why


def _told(found: LakeInput) -> tuple[tuple[str, str], ...]:
    return ("why", found.why), ("what to do", found.what_to_do)
