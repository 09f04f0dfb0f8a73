"""Is the service alive, is it ready, and how does it go? `/health/live`, `/health/ready` and
`/metrics`.

Metrics are in the text format of Prometheus. They are read when they are asked for; only errors and
requests are counted as they happen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from harken.api.database import Database
from harken.errors import HarkenError
from harken.server.identities import current
from harken.server.service import Service

TEXT = "text/plain; version=0.0.4; charset=utf-8"
NO_STORE = {"cache-control": "no-store"}


@dataclass(slots=True)
class Happenings:
    """What has happened since the service started."""

    started: float = field(default_factory=time.time)
    errors: Counter[str] = field(default_factory=Counter)
    """Answers that were errors, by code."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A name, what it is, and its values by their labels."""

    name: str
    about: str
    values: Iterable[tuple[Mapping[str, str], float]]
    kind: str = "gauge"

    def lines(self) -> Iterator[str]:
        """
        >>> m = Metric("harken_rows", "Rows.", [({"source": 'a "b"'}, 2.0)])
        >>> print(*m.lines(), sep="\\n")
        # HELP harken_rows Rows.
        # TYPE harken_rows gauge
        harken_rows{source="a \\\\"b\\\\""} 2
        """
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.values:
            listed = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{'{' + listed + '}' if listed else ''} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def health_routes(service: Service, counts: Happenings) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/health/live")
    async def live() -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"}, headers=NO_STORE)

    @routes.get("/health/ready")
    async def ready() -> Response:
        """The file can be read."""
        try:
            await service.read_unchecked(lambda db: db.position)
        except HarkenError as error:
            answer = {"status": "failing", "code": error.code, "message": error.message}
            return JSONResponse(answer, 503, NO_STORE)
        return JSONResponse({"status": "ok"}, headers=NO_STORE)

    @routes.get("/metrics")
    async def metrics() -> Response:
        current.get().check_operator()
        found = await service.read_unchecked(_of_database)
        lines = [line for each in [*_of_process(service, counts), *found] for line in each.lines()]
        return PlainTextResponse("\n".join(lines) + "\n", media_type=TEXT, headers=NO_STORE)

    return routes


def _of_process(service: Service, counts: Happenings) -> Iterator[Metric]:
    yield Metric("harken_started_seconds", "When the service started.", [({}, counts.started)])
    yield Metric("harken_streams", "Open streams of events.", [({}, float(service.clients))])
    yield Metric("harken_feeds", "Followed views.", [({}, float(len(service.open_feeds)))])
    yield Metric(
        "harken_waiting_writes", "Changes queued or running.", [({}, float(service.waiting_writes))]
    )
    yield Metric(
        "harken_errors_total",
        "Answers that were errors, by code.",
        [({"code": code}, float(number)) for code, number in sorted(counts.errors.items())],
        "counter",
    )


def _of_database(db: Database) -> list[Metric]:
    now = time.time()
    sources = db.sources.list()
    messages = Counter(each.state for each in db.notifications.list(limit=100_000))
    queries = db.continual_queries.list()
    due = db.next_due()
    return [
        Metric("harken_position", "The position of the newest commit.", [({}, float(db.position))]),
        Metric("harken_kept_bytes", "Bytes kept for views.", [({}, float(db.kept().bytes))]),
        Metric(
            "harken_source_rows",
            "Rows of a source.",
            [({"source": each.name}, float(each.rows)) for each in sources],
        ),
        Metric(
            "harken_source_state",
            "1 for the state that a source is in.",
            [({"source": each.name, "state": str(each.state)}, 1.0) for each in sources],
        ),
        Metric(
            "harken_source_age_seconds",
            "Seconds since a source was last read.",
            [
                ({"source": each.name}, now - each.read_at.timestamp())
                for each in sources
                if each.read_at is not None
            ],
        ),
        Metric(
            "harken_continual_queries",
            "Continual queries by state.",
            [
                ({"state": state}, float(number))
                for state, number in sorted(Counter(str(each.state) for each in queries).items())
            ],
        ),
        Metric(
            "harken_messages",
            "Messages to people by state.",
            [({"state": state}, float(number)) for state, number in sorted(messages.items())],
        ),
        Metric(
            "harken_outbox_changes",
            "Changes that subscribers of durable monitors have not acknowledged.",
            [({"monitor": each.name}, float(each.changes)) for each in db.outboxes()],
        ),
        Metric(
            "harken_overdue_seconds",
            "How long the earliest work that is due has been waiting.",
            [({}, 0.0 if due is None else max(0.0, now - due.timestamp()))],
        ),
    ]
