"""Copying a database to another place while it is used, and checking it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harken.engines.protocol.file_transactions import Connection


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table in the lake, as a copy of the database stands on it."""

    relation: str
    kind: str
    path: str
    version: int
    rows: int | None
    """The number of copied rows; None if the copy refers to the table where it is."""


class DatabaseCopies(Protocol):
    """Law: a copy is one committed state, whatever others commit meanwhile."""

    def copy_to(
        self,
        target: Path,
        *,
        with_tables: bool,
        edit: Callable[[Connection], None],
    ) -> tuple[CopiedTable, ...]:
        """Copy the database into a new directory: the file `database`, and beside it, under
        `lake`, Harken's own tables, or references to them. `edit` may change the copied records."""

    def problems(self) -> list[str]:
        """What is wrong with the file and with tables in the lake, one sentence each."""
