"""The log of a service, on standard error: lines for people, or JSON for programs.

    {"at": "2026-03-02T07:00:00.123+00:00", "level": "info", "logger": "harken.requests",
     "message": "POST /api/v1/transactions 200", "request": "8f0c2b7d11aa44e0", "user": "ann",
     "status": 200, "seconds": 0.0021, "transaction": 18}

A line has the id of the request that it is about; that of a change has its `transaction`, the
position after it, and that of an execution its `query`.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from harken.server.request_ids import request_id

ROOT = "harken"


@contextmanager
def service_log(level: str, format: str, stream: TextIO | None = None) -> Iterator[None]:
    """In the block, log what is of this level or above."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else PlainLines())
    root = logging.getLogger(ROOT)
    before = root.level, root.propagate
    root.setLevel(level.upper())
    root.addHandler(handler)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.level, root.propagate = before


def members_of(record: logging.LogRecord) -> dict[str, Any]:
    members: dict[str, Any] = dict(getattr(record, "members", {}))
    if "request" not in members and request_id.get():
        members["request"] = request_id.get()
    return members


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **members_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        members = members_of(record)
        shown = {"request": members.get("request"), "seconds": members.get("seconds")}
        rest = " ".join(f"{name}={value}" for name, value in shown.items() if value is not None)
        # One record is one line: a name with a line break in it must not look like another record.
        first, *trace = super().format(record).split("\n") if record.exc_info else [""]
        if record.exc_info:
            return "\n".join([f"{first} {rest}".rstrip(), *trace])
        return f"{super().format(record)} {rest}".rstrip().replace("\n", "\\n").replace("\r", "\\r")
