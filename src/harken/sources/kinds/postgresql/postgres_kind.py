"""PostgreSQL as a kind of source, and the choice of the way its changes are captured.

The best way that the server and the table permit: its log (`logical`), else triggers, which must
have been asked for because they change the table, else reading again (`poll`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.polled_table import PolledTable
from harken.sources.kinds.postgresql.postgres_connection import Place
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
    captures: tuple[str, ...] = ("poll",)
    is_whole = True

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
        polled = PolledTable(
            place,
            options["table"],
            options.get("changed_when"),
            refuse_odd=options.get("odd_values") == "refuse",
        )
        return Opened(
            polled=polled,
            server=place.name,
            table=options["table"],
            why="",
        )


KIND = PostgresKind()
