"""A source without versions of its own, whose rows are kept in a table of ours.

Law: the versions of the source are the versions of the table.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from harken.engines.delta.snapshot import LakeFile
from harken.engines.delta.tables import LakeTable
from harken.sources.place import Place
from harken.sources.registry import ChangeParts


class KeptTable:
    plain_files = True

    def __init__(self, table: LakeTable) -> None:
        self.kept = table
        self.path = table.path
        self.schema = table.schema
        self.key = table.key

    @property
    def version(self) -> int:
        return self.kept.version

    def set_aside(self, version: int) -> dict[str, str]:
        return {}

    def written(self, version: int) -> float | None:
        return None

    def note(self, version: int) -> dict[str, Any]:
        return {}

    def stand_on(self, place: Place) -> None:
        """Nobody else writes the table, so its versions need no check."""

    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table:
        return self.kept.rows(version, keys)

    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]:
        return self.kept.files(version, keys)

    @property
    def groups_read(self) -> int:
        return self.kept.groups_read

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        return self.kept.bounds(version, column)

    def may_be_null(self, version: int, column: str) -> bool:
        return self.kept.may_be_null(version, column)

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        return self.kept.changes(from_version, to_version)

    def change_size(self, from_version: int, to_version: int) -> int:
        return sum(rows for _, _, rows in self.kept.change_parts(from_version, to_version))

    def change_parts(self, from_version: int, to_version: int) -> ChangeParts | None:
        return self.kept.change_parts(from_version, to_version)
