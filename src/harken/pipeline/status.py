"""Where each relation in the lake stands, and how full the outboxes of durable monitors are. Looks,
and changes nothing."""

from __future__ import annotations

import datetime

import harken
from harken.api.step import last_step
from harken.database.results import to_json
from harken.engines.protocol import LakeRelation
from harken.pipeline.reports import HEADINGS, InputStatus, moment


def show_status(database: harken.Database, *, as_json: bool) -> None:
    runtime = database._runtime
    inputs = [_status(far) for far in runtime.engine.far.values()]
    at = last_step(runtime.engine)
    if as_json:
        for each in inputs:
            print(to_json(each.as_json()))
        print(to_json({"kind": "step", "at": at.isoformat() if at is not None else None}))
        for outbox in database.outboxes():
            print(to_json(outbox.as_json()))
        return
    _show_inputs(inputs, at)
    for outbox in database.outboxes():
        print(outbox)


def _show_inputs(inputs: list[InputStatus], at: datetime.datetime | None) -> None:
    if not inputs:
        print("nothing of this database is in the lake")
        return
    rows = [HEADINGS, *(each.cells() for each in inputs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    for each in inputs:
        for file, reason in each.set_aside.items():
            print(f"{each.name}: {file} is set aside until it changes: {reason}")
    print(moment(at))


def _status(far: LakeRelation) -> InputStatus:
    place = far.place
    return InputStatus(
        name=far.relation.name,
        kind=place.kind,
        path=place.options.get("directory") or place.path,
        version=place.version if far.is_written else None,
        newest=far.table.version if far.is_written else None,
        rows=far.size() + (far.pending.balance() if place.is_own else 0),
        pending=far.pending.size() if place.is_own else 0,
        bytes=far.bytes(),
        set_aside=far.set_aside(place.version),
    )
