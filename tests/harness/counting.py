"""What a piece of work costs, counted and not timed: a busy machine counts the same.

    statements   what SQLite was asked to run, triggers and pragmas included
    prepared     statements that were not in the cache and had to be compiled
    steps        instructions of SQLite's virtual machine
    rows         rows that statements returned
    lines        lines of Harken's Python, those of a loop once for each turn

Law: equal work counts the same, in every run and in every process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import apsw

import harken
from harken import Database

Work = Callable[[], object]

OURS = os.path.dirname(harken.__file__) + os.sep
WARMING = 5
"""Runs before the one that counts: plans are made, indexes built, statements prepared, and choices
between ways of finding changes settle."""
COUNTED = ("statements", "prepared", "steps", "rows", "lines")
SHOWN = 12
"""How many places a failure names for each work, the largest growth first."""


Place = tuple[str, int]
"""A line of Harken's Python: its file, from the package on, and its number."""


@dataclass(frozen=True, slots=True)
class Cost:
    statements: int
    prepared: int
    steps: int
    rows: int
    lines: int
    places: Counter[Place] = field(compare=False, repr=False)
    """How often each line ran."""
    texts: Counter[str] = field(compare=False, repr=False)
    """How many steps each statement took."""


def cost(db: Database, work: Work) -> Cost:
    """What the work costs when it is not the first of its kind."""
    for _ in range(WARMING):
        work()
    return counted(db, work)


def counted(db: Database, work: Work) -> Cost:
    """What the work costs this time."""
    raw = db.internals.connection.raw
    totals: Counter[str] = Counter()
    places: Counter[Place] = Counter()
    texts: Counter[str] = Counter()

    def traced(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_ROW:
            totals["rows"] += 1
        elif event["code"] == apsw.SQLITE_TRACE_PROFILE:
            totals["statements"] += 1
            texts[event["sql"]] += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def followed(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "call":
            return followed if frame.f_code.co_filename.startswith(OURS) else None
        if event == "line":
            places[frame.f_code.co_filename[len(OURS) :], frame.f_lineno] += 1
        return followed

    # SQLite counts the steps of a statement only while somebody traces its start.
    mask = apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE | apsw.SQLITE_TRACE_ROW
    raw.trace_v2(mask, traced)
    misses = raw.cache_stats()["misses"]
    before = sys.gettrace()
    _clear_interrupts()
    sys.settrace(followed)
    try:
        work()
    finally:
        sys.settrace(before)
        raw.trace_v2(0, None)
    return Cost(
        statements=totals["statements"],
        prepared=raw.cache_stats()["misses"] - misses,
        steps=texts.total(),
        rows=totals["rows"],
        lines=places.total(),
        places=places,
        texts=texts,
    )


class _Interrupt(Exception): ...


def _clear_interrupts() -> None:
    """A thread that was interrupted and never returns to Python, as after a foreign function that
    hangs, leaves a flag set, with which Python 3.11 repeats the first instruction of a traced
    function for ever. An interrupt that is caught here clears the flag."""
    try:
        here = ctypes.c_ulong(threading.get_ident())
        ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(_Interrupt))
        for _ in range(1_000):
            pass
    except _Interrupt:
        pass


def growth(few: Mapping[str, Cost], many: Mapping[str, Cost]) -> str:
    """Which work costs more of anything than before, and where; empty if none does."""
    told = []
    for name, before in few.items():
        after = many[name]
        if all(getattr(after, what) <= getattr(before, what) for what in COUNTED):
            continue
        told.append(f"{name}: {before} became {after}")
        told += _grown("line", before.places, after.places)
        told += _grown("steps", before.texts, after.texts)
    return "\n".join(told)


def _grown(what: str, before: Counter[Any], after: Counter[Any]) -> list[str]:
    largest = (after - before).most_common(SHOWN)
    return [f"    {what} {key}: {before[key]} became {after[key]}" for key, _ in largest]
