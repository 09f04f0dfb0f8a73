"""PostgreSQL as a kind of source, and the choice of the way its changes are captured.

The best way that the server and the table permit: its log (`logical`), else triggers, which must
have been asked for because they change the table, else reading again (`poll`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.capture_choice import (
    LOGICAL,
    POLL,
    TRIGGERS,
    Choice,
    chosen,
    log_scripts,
    trigger_scripts,
)
from harken.sources.kinds.postgresql.delta_catalog import DeltaCatalog
from harken.sources.kinds.postgresql.log_catalog import LogCatalog
from harken.sources.kinds.postgresql.logical_server import LogicalServer
from harken.sources.kinds.postgresql.polled_table import PolledTable
from harken.sources.kinds.postgresql.postgres_connection import Place, short_id
from harken.sources.kinds.postgresql.trigger_server import TriggerServer
from harken.sources.outside import Context, Opened, Option

OPTIONS = (
    Option("url", "postgresql://user@host:5432/database", required=True),
    Option("password", "The password, if the url has none.", secret=True),
    Option("table", "The table or view, as in a statement: schema.table.", required=True),
    Option(
        "changed_when",
        "For poll: a query whose one row stays the same while nothing has changed.",
    ),
    Option(
        "odd_values",
        "What becomes of NaN, infinities and dates outside of the years 1 to 9999.",
        "choice",
        "null",
        choices=("null", "refuse"),
    ),
    Option("timeout", "How long connecting may take.", "duration", 10.0, least=1, most=600),
)


class PostgresKind:
    name = "postgresql"
    title = "PostgreSQL"
    options = OPTIONS
    captures: tuple[str, ...] = (LOGICAL, TRIGGERS, POLL)
    is_whole = True

    def __init__(self) -> None:
        self._sources: dict[str, dict[str, str]] = {}
        """The sources that were opened here, by their tables, by the catalog of delta tables. The
        names of delta tables begin with theirs."""

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        place = Place(
            options["url"], options.get("password"), options.get("timeout") or 10.0, context
        )
        if capture not in (None, *self.captures):
            raise SourceFault(
                f"PostgreSQL has no capture {capture}",
                code="bad-option",
                hint=f"there are: {', '.join(self.captures)}",
            )
        name, refuse_odd = options["table"], options["odd_values"] == "refuse"
        server = f"{place.name} (odd values refused)" if refuse_odd else place.name
        log = LogCatalog(f"harken_{short_id(f'{context.database}|{server}')}")
        choice = Choice(capture, "") if capture else chosen(place, name, log)
        polled = PolledTable(place, name, options.get("changed_when"), refuse_odd=refuse_odd)
        if choice.capture == LOGICAL:
            return Opened(
                polled=polled,
                followed=LogicalServer(place, log, refuse_odd=refuse_odd),
                server=server,
                table=name,
                capture=LOGICAL,
                why=choice.why,
                scripts=lambda: log_scripts(place, name, log),
            )
        if choice.capture == TRIGGERS:
            catalog = DeltaCatalog(log.name)
            names = self._sources.setdefault(catalog.name, {})
            names[name] = context.name
            return Opened(
                polled=polled,
                followed=TriggerServer(
                    place,
                    catalog,
                    lambda table: names.get(table, "harken"),
                    refuse_odd=refuse_odd,
                ),
                server=f"{server} by triggers",
                table=name,
                capture=TRIGGERS,
                why=choice.why,
                scripts=lambda: trigger_scripts(place, name, catalog, context.name),
            )
        return Opened(polled=polled, server=place.name, table=name, why=choice.why)


KIND = PostgresKind()
