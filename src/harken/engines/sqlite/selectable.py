"""A query whose rows SQLite can go on with: insert them, group them, weigh them.

Everything that `Placement` and `SQLiteEngine` compile is one; above the engines nobody needs to
know, so that no statement crosses the seam.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from harken.engines import protocol
from harken.engines.weighing import Weighing


class Selectable(protocol.Query, Protocol):
    @property
    def connection(self) -> protocol.Connection: ...

    def run_into(self, insert: str, beside: str = "") -> None:
        """Insert the rows, with what stands `beside` them."""

    def run_from(
        self, before: str, after: str, insert: str = "", conflict: str = ""
    ) -> list[tuple[Any, ...]]:
        """Run a statement around this one and give its rows, or insert them."""

    def weighed(self, weighing: Weighing, insert: str, conflict: str) -> None:
        """Insert what the rows of a change come to."""


def selectable(query: protocol.Query) -> Selectable:
    return cast(Selectable, query)
