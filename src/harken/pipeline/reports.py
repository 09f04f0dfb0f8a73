"""Reports of steps and inputs: a line for people, lines of JSON for tools."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Protocol

from harken.api.lake_tables import InputStatus
from harken.api.step import Step
from harken.database.changes import Change
from harken.database.json_values import NameObject
from harken.database.results import Result, to_json
from harken.sources.registry import kind_named


class Reading(Protocol):
    """What a reading of a source did."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def plus(self) -> int: ...
    @property
    def minus(self) -> int: ...
    @property
    def why(self) -> str: ...
    @property
    def recovered(self) -> bool: ...

    @property
    def rows(self) -> int | None: ...

    @property
    def lag(self) -> float | None: ...

    @property
    def next_try(self) -> datetime.datetime | None: ...


def step_line(step: Step, changes: Iterable[Change] = ()) -> str:
    """
    >>> print(step_line(Step({"sales": 3}, {"sales": 12}, {"sales": 0.8}, {"order": 2},
    ...                      {"order": 0.1}, 0.4)))
    sales: 3 rows, version 12, 0.80 s behind | order acted on 2 | 0.40 s, of it order 0.10 s
    """
    if not step.taken:
        return "nothing new"
    inputs = "; ".join(_input(step, name, rows) for name, rows in step.taken.items())
    rules = "; ".join(f"{name} acted on {times:,}" for name, times in step.fired.items())
    views = sorted(step.views.items(), key=lambda each: -each[1])
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in views)
    took = f"{step.seconds:.2f} s" + (f", of it {parts}" if parts else "")
    views_changed = "; ".join(
        f"{each.view} +{len(each.plus):,} −{len(each.minus):,}" for each in changes
    )
    return " | ".join(filter(None, [inputs, rules, views_changed, took]))


def due_lines(changes: Iterable[Change], name: NameObject, *, as_json: bool) -> list[str]:
    """The changes that no step made, but what was due."""
    if as_json:
        return [_change_json(each, name) for each in changes]
    return [
        f"{each.view} +{len(each.plus):,} −{len(each.minus):,} | as time passed" for each in changes
    ]


def _input(step: Step, name: str, rows: int) -> str:
    behind = f", {step.lag[name]:.2f} s behind" if name in step.lag else ""
    return f"{name}: {rows:,} {_rows(rows)}, version {step.versions[name]}{behind}"


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"


def step_json(step: Step, changes: Iterable[Change], name: NameObject) -> list[str]:
    """A line for each input and each changed view, then one for the step."""
    inputs = [
        to_json(
            {
                "kind": "input",
                "name": name,
                "rows": rows,
                "version": step.versions[name],
                "lag": _rounded(step.lag.get(name)),
                "left_out": step.left_out.get(name),
            }
        )
        for name, rows in step.taken.items()
    ]
    whole = {
        "kind": "step",
        "rows": sum(step.taken.values()),
        "fired": step.fired,
        "views": {name: _rounded(seconds) for name, seconds in step.views.items()},
        "seconds": _rounded(step.seconds),
    }
    unread = [
        to_json(
            {
                "kind": "error",
                "code": "bad-file",
                "message": reason,
                "file": file,
                "line": None,
                "column": None,
                "hint": "it is set aside until it changes",
            }
        )
        for file, reason in step_set_aside(step)
    ]
    changed = (_change_json(each, name) for each in changes)
    return [*unread, *inputs, *changed, to_json(whole)]


def step_set_aside(step: Step) -> list[tuple[str, str]]:
    """The files that a step could not read, each with the reason."""
    return [each for files in step.set_aside.values() for each in files.items()]


def source_lines(readings: Iterable[Reading], *, as_json: bool) -> list[str]:
    """A line for each reading that changed something, failed, or was the first good one again.

    >>> from harken.api.sources import Refreshed
    >>> source_lines([Refreshed("weather", "ok", 3, 1, "", True, 40, 0.5)], as_json=False)
    ['weather: ok, +3 −1, 40 rows, 0.5 s after the change, answers again']
    """
    told = [e for e in readings if e.plus or e.minus or e.why or e.recovered]
    if as_json:
        return [
            to_json(
                {
                    "kind": "source",
                    "name": each.name,
                    "state": str(each.state),
                    "plus": each.plus,
                    "minus": each.minus,
                    "why": each.why,
                    "recovered": each.recovered,
                    "rows": each.rows,
                    "lag": each.lag,
                    "next": each.next_try and each.next_try.isoformat(),
                }
            )
            for each in told
        ]
    return [
        f"{each.name}: {each.state}"
        + (f", +{each.plus:,} −{each.minus:,}" if each.plus or each.minus else "")
        + (f", {each.rows:,} rows" if each.rows is not None else "")
        + (f", {each.lag:.1f} s after the change" if each.lag is not None else "")
        + (f", next at {each.next_try:%H:%M:%S} UTC" if each.next_try else "")
        + (", answers again" if each.recovered else "")
        + (f": {each.why}" if each.why else "")
        for each in told
    ]


def _change_json(change: Change, name: NameObject) -> str:
    plus, minus = (Result("rows", (), rows, name) for rows in (change.plus, change.minus))
    return to_json(
        {
            "kind": "change",
            "view": change.view,
            "plus": plus.json_rows(),
            "minus": minus.json_rows(),
            "transaction": change.transaction,
        }
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def status_json(status: InputStatus) -> dict[str, Any]:
    values = asdict(status)
    return {"kind": "input", "name": status.name, "source": values.pop("kind"), **values}


def status_cells(status: InputStatus) -> tuple[str, ...]:
    newest = f" of {status.newest}" if status.is_behind else ""
    return (
        status.name,
        kind_named(status.kind).title,
        "not yet written" if status.version is None else f"{status.version}{newest}",
        f"{status.rows:,}",
        f"{status.pending:,}",
        f"{status.bytes:,}",
        status.path,
    )


HEADINGS = ("relation", "kind", "version", "rows", "pending", "bytes", "path")


def moment(at: datetime.datetime | None) -> str:
    return "no step has run yet" if at is None else f"last step: {at:%Y-%m-%d %H:%M:%S} UTC"
