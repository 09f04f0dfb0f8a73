"""Writes a backup of a database that others may be using.

Law: a backup is one committed state: a transaction is in it as a whole or not at all, together with
the messages, timers and positions of sources that it wrote.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harken.backup.archive import pack
from harken.consumers.monitors.log import Logs
from harken.database.runtime import Runtime
from harken.database.secrets import SECRETS
from harken.engines.protocol import Connection, CopiedTable
from harken.errors import StorageError


@dataclass(frozen=True, slots=True)
class Backup:
    """What was written, and where."""

    path: str
    bytes: int
    tables: tuple[CopiedTable, ...]
    """The tables in the lake: copied ones have a number of rows."""
    has_secrets: bool
    position: int


def save(
    runtime: Runtime, path: str, *, with_tables: bool, with_secrets: bool, overwrite: bool
) -> Backup:
    target = Path(path).resolve()
    _check_target(target, overwrite)
    work = Path(tempfile.mkdtemp(prefix=".harken-backup-", dir=target.parent))
    try:
        copied: list[int] = []

        def edit(copy: Connection) -> None:
            copied.append(Logs(copy).position())
            if not with_secrets and copy.records.exist(SECRETS):
                copy.records.remove(SECRETS, {})

        tables = runtime.engine.copies.copy_to(work / "copy", with_tables=with_tables, edit=edit)
        about = {
            "at": runtime.engine.connection.now().isoformat(),
            "position": copied[-1],
            "secrets": with_secrets,
            "tables": [
                {
                    "relation": each.relation,
                    "kind": each.kind,
                    "version": each.version,
                    "rows": each.rows,
                    **({} if each.rows is not None else {"path": each.path}),
                }
                for each in tables
            ],
        }
        packed = work / "packed"
        pack(work / "copy", packed, about)
        size = packed.stat().st_size
        _put(packed, target, overwrite)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Backup(str(target), size, tables, with_secrets, copied[-1])


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise StorageError(
            f"there is no directory {target.parent}",
            code="cannot-open",
            hint="create it, or give another path",
        )
    if target.is_dir():
        raise StorageError(
            f"{target} is a directory", code="cannot-open", hint="give the path of a file"
        )
    if target.exists() and not overwrite:
        raise StorageError(
            f"{target} exists already", code="exists", hint="give another path, or overwrite it"
        )


def _put(packed: Path, target: Path, overwrite: bool) -> None:
    """Put the finished file in its place, so that nobody ever sees half of one."""
    if overwrite:
        os.replace(packed, target)
        return
    try:
        os.link(packed, target)
    except FileExistsError:
        raise StorageError(
            f"{target} exists already", code="exists", hint="give another path, or overwrite it"
        ) from None
    except OSError:  # a file system without links
        os.replace(packed, target)
