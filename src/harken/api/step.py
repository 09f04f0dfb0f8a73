"""A step: processes what has changed in the inputs, in one transaction with everything it causes.

Each input moves to its newest version, the changes between the two go to all watchers, and the new
version is committed together with their effects.

Law: a step that dies leaves no trace; the next one processes the same changes, once.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harken.consumers.rules.rules import Rules
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.engines.protocol import Engine
from harken.intake.session_sources import SessionSources
from harken.propagation.network import Network

if TYPE_CHECKING:
    from harken.intake.taking_in import Taken

LAST_STEP = "last_step"


@dataclass(frozen=True, slots=True)
class Step:
    """What a step processed, and how long that took, including everything it caused."""

    taken: dict[str, int] = field(default_factory=dict)
    """For each input that changed, the number of rows inserted and deleted."""
    versions: dict[str, int] = field(default_factory=dict)
    """The versions that the inputs moved to."""
    lag: dict[str, float] = field(default_factory=dict)
    """For each input whose source provides it: seconds from its newest change to the end of the
    step."""
    fired: dict[str, int] = field(default_factory=dict)
    """For each rule that acted, the number of tuples."""
    views: dict[str, float] = field(default_factory=dict)
    """The seconds that each rule, each materialised view and each monitor took. What several share
    counts for one of them."""
    seconds: float = 0.0
    set_aside: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each input, files that could not be read for the first time, and why."""
    sources: dict[str, Taken] = field(default_factory=dict)
    """For each outside source that was read, what that did."""
    left_out: dict[str, str] = field(default_factory=dict)
    """For each input with new rows that the function does not have: how many, and why."""


def take_step(
    runtime: Runtime,
    transactions: Transactions,
    network: Network,
    rules: Rules,
    sources: SessionSources,
    *,
    strict: bool = True,
    outside: bool = True,
) -> Step:
    """Process all changes of the inputs, in a transaction of its own. If a file in a directory
    cannot be read, a `strict` step fails; otherwise the file is set aside. Outside sources are
    read, too, unless `outside` is false."""
    started = time.monotonic()
    fired = rules.firings()
    views: dict[str, float] = {}
    rounds = sources.work.rounds if outside and sources.records.all() else None
    gathered = None if rounds is None else rounds.gather_all()
    network.timing = views
    try:
        with transactions.block():
            step, written = process_inputs(runtime, network, strict=strict)
            taken = [] if rounds is None else rounds.take_gathered(gathered)
            taken += [] if rounds is None else rounds.take_logs()
    finally:
        network.timing = None
        network.captures.forget_large()
    if rounds is not None:
        rounds.release()
        sources.work.zones.collect()
    now = runtime.engine.connection.now().timestamp()
    return replace(
        step,
        sources={each.name: each for each in taken},
        lag={name: max(0.0, now - when) for name, when in written.items()},
        fired=_more(rules.firings(), fired),
        views={_plain(name): took for name, took in views.items()},
        seconds=time.monotonic() - started,
    )


def _plain(name: str) -> str:
    """
    >>> _plain("materialized stock()")
    'stock'
    """
    return name.removeprefix("materialized ").partition("(")[0]


def _more(counts: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """The increases of counts; unchanged ones are left out."""
    changes = {name: count - before.get(name, 0) for name, count in counts.items()}
    return {name: change for name, change in changes.items() if change}


def process_inputs(
    runtime: Runtime, network: Network, *, strict: bool = True
) -> tuple[Step, dict[str, float]]:
    """Move every input to its newest version in the open transaction, and tell the network what
    changed; also returns when each version was written. A large change is not copied: Spark reads
    it where it is."""
    engine = runtime.engine
    taken, versions, written, set_aside, left_out = {}, {}, {}, {}, {}
    for lake_relation, version in engine.news(set_aside=not strict):
        known = lake_relation.set_aside(lake_relation.place.version).items()
        unread = {
            file: why
            for file, why in lake_relation.set_aside(version).items()
            if (file, why) not in known
        }
        if unread:
            set_aside[lake_relation.relation.name] = unread
        change, missing = engine.take_in(lake_relation, version)
        if missing is not None:
            left_out[lake_relation.relation.name] = str(missing)
        if isinstance(change, int):
            network.captures.note_large(lake_relation.relation.id, change)
        else:
            network.captures.note_changes(lake_relation.relation.id, change)
        taken[lake_relation.relation.name] = change if isinstance(change, int) else _size(change)
        versions[lake_relation.relation.name] = version
        when = lake_relation.table.written(version)
        if when is not None:
            written[lake_relation.relation.name] = when
    if taken:
        _remember(engine)
    return Step(taken, versions, set_aside=set_aside, left_out=left_out), written


def _size(change: list[tuple[Any, ...]]) -> int:
    return sum(abs(weight) for *_, weight in change)


def _remember(engine: Engine) -> None:
    engine.numbers.set(LAST_STEP, int(engine.connection.now().timestamp() * 1_000_000))


def last_step(engine: Engine) -> datetime.datetime | None:
    """When a step last found changes."""
    found = engine.numbers.get(LAST_STEP)
    if found is None:
        return None
    return datetime.datetime.fromtimestamp(found / 1_000_000, datetime.UTC)
