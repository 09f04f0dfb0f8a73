"""What a piece of work costs, counted and not timed: a busy machine counts the same.

    statements   what SQLite was asked to run, triggers and pragmas included
    prepared     statements that were not in the cache and had to be compiled
    steps        instructions of SQLite's virtual machine
    rows         rows that statements returned
    lines        lines of Harken's Python, those of a loop once for each turn

Law: equal work counts the same, in every run and in every process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Cost:
    statements: int
    prepared: int
    steps: int
    rows: int
    lines: int


def cost(db: Database, work: Work) -> Cost:
    """What the work costs when it is not the first of its kind."""
    for _ in range(WARMING):
        work()
    return counted(db, work)


def counted(db: Database, work: Work) -> Cost:
    """What the work costs this time."""
    connection = db._connection
    totals = {"statements": 0, "steps": 0, "rows": 0, "lines": 0}

    def traced(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_ROW:
            totals["rows"] += 1
        elif event["code"] == apsw.SQLITE_TRACE_PROFILE:
            totals["statements"] += 1
            totals["steps"] += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def followed(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "call":
            return followed if frame.f_code.co_filename.startswith(OURS) else None
        totals["lines"] += event == "line"
        return followed

    # SQLite counts the steps of a statement only while somebody traces its start.
    mask = apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE | apsw.SQLITE_TRACE_ROW
    connection.raw.trace_v2(mask, traced)
    misses = connection.raw.cache_stats()["misses"]
    before = sys.gettrace()
    sys.settrace(followed)
    try:
        work()
    finally:
        sys.settrace(before)
        connection.raw.trace_v2(0, None)
    prepared = connection.raw.cache_stats()["misses"] - misses
    return Cost(prepared=prepared, **totals)
