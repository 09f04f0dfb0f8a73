"""Shows the state of each relation in the lake and of the outboxes of durable monitors. Changes
nothing."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import harken
from harken.api.lake_tables import InputStatus
from harken.database.results import to_json
from harken.pipeline.reports import HEADINGS, moment, status_cells, status_json


def show_status(database: harken.Database, *, as_json: bool) -> None:
    status = database.lake_status()
    show_sources(database, as_json=as_json)
    inputs, at = status.relations, status.last_step
    if as_json:
        for each in inputs:
            print(to_json(status_json(each)))
        print(to_json({"kind": "step", "at": at.isoformat() if at is not None else None}))
        for outbox in database.outboxes():
            print(to_json(outbox.as_json()))
        return
    _show_inputs(inputs, at)
    for outbox in database.outboxes():
        print(outbox)


def show_sources(database: harken.Database, *, as_json: bool) -> None:
    for each in database.sources.list():
        if as_json:
            print(
                to_json(
                    {
                        "kind": "source",
                        "name": each.name,
                        "state": each.state,
                        "rows": each.rows,
                        "read_at": _iso(each.read_at),
                        "changed_at": _iso(each.changed_at),
                        "next_try": _iso(each.next_try),
                        "why": each.why,
                    }
                )
            )
            continue
        following = "followed" if each.next_try is None else f"next {each.next_try:%H:%M:%S}"
        changed = "" if each.changed_at is None else f", changed {each.changed_at:%H:%M:%S}"
        why = f": {each.why}" if each.why else ""
        print(f"{each.name}: {each.state}, {each.rows:,} rows{changed}, {following}{why}")


def _iso(at: datetime.datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _show_inputs(inputs: Sequence[InputStatus], at: datetime.datetime | None) -> None:
    if not inputs:
        print("this database has no relations in the lake")
        return
    rows = [HEADINGS, *map(status_cells, inputs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    for each in inputs:
        for file, reason in each.set_aside.items():
            print(f"{each.name}: {file} is set aside until it changes: {reason}")
    print(moment(at))
