"""Copying a whole database: its file, and the version of each table of its own in the lake.

The file is copied first. The tables are copied as of the versions that the copy stands on, which
others do not change; if one was cleaned up meanwhile, the copy is made again.

Law: the copy is one committed state of the database. It can be moved together with its lake.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from harken.engines.placement.lake_catalog import Places
from harken.engines.placement.lake_relations import LakeRelations
from harken.engines.protocol import Connection as AnyConnection
from harken.engines.protocol import CopiedTable
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.file_copies import copy_file, make_single, problems_of
from harken.errors import HarkenError, StorageError
from harken.sources.place import Place
from harken.sources.registry import kinds_that_keep_files

ATTEMPTS = 5
"""How often a copy is begun again because a table was cleaned up meanwhile."""


class Copies:
    def __init__(self, connection: Connection, lake: LakeRelations) -> None:
        self._connection = connection
        self._lake = lake

    def copy_to(
        self, target: Path, *, with_tables: bool, edit: Callable[[AnyConnection], None]
    ) -> tuple[CopiedTable, ...]:
        for _ in range(ATTEMPTS):
            target.mkdir(parents=True)
            try:
                return self._copy(target, with_tables, edit)
            except FileNotFoundError:
                shutil.rmtree(target)
        raise StorageError(
            "tables in the lake are cleaned up faster than they can be copied",
            code="locked",
            hint="try again, or copy only references to them",
        )

    def _copy(
        self, target: Path, with_tables: bool, edit: Callable[[AnyConnection], None]
    ) -> tuple[CopiedTable, ...]:
        path = str(target / "database")
        copy_file(self._connection, path)
        copy = Connection(path)
        try:
            places = Places(copy, lambda: self._lake.directory)
            copy.begin()
            edit(copy)
            places.forget_all_gone()
            if not with_tables:
                places.make_absolute()
            copy.commit()
            tables = tuple(self._copy_table(place, target, with_tables) for place in places)
            make_single(copy)
        finally:
            copy.close()
        return tables

    def _copy_table(self, place: Place, target: Path, with_tables: bool) -> CopiedTable:
        path, rows = Path(place.path), None
        is_ours = path.parent == self._lake.directory and place.kind in kinds_that_keep_files()
        if is_ours and with_tables and place.version >= 0:
            from harken.engines.delta.version_copies import copy_version

            rows = copy_version(place.path, place.version, target / "lake" / path.name)
        return CopiedTable(place.name, place.kind, place.path, place.version, rows)

    def problems(self) -> list[str]:
        found = problems_of(self._connection)
        for each in self._lake.lake_relations.values():
            try:
                if each.is_written:
                    each.table.bounds(each.place.version, each.table.schema.names[0])
                    missing = [file.path for file in each.table.files(each.place.version)]
                    missing = [path for path in missing if not _is_there(each.place.path, path)]
                    if missing:
                        found.append(f"files of {each.place.path} are missing: {missing[0]}")
            except HarkenError as error:
                found.append(error.message)
        return found


def _is_there(table: str, path: str) -> bool:
    """Files of an object store are not looked for one by one."""
    return "://" in table or (Path(table) / path).exists()
