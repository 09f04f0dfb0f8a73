"""Puts a backup in a new place, as a database that goes on from there.

Law: the new database appears whole or not at all, and nothing that is there is overwritten.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.backup.archive import unpack
from harken.consumers.monitors.log import Logs
from harken.consumers.monitors.outbox import Outbox
from harken.database.messages import DEAD, OPEN, Messages
from harken.database.runtime import Runtime
from harken.errors import StorageError
from harken.intake.copied_sources import separate

HELD = "held when the database was restored; it can be sent again"


def place(backup: Path, target: Path) -> dict[str, Any]:
    """Unpack a backup as the database `target`; returns the manifest."""
    lake = target.with_name(f"{target.stem}.lake")
    _check_free(target, lake)
    work = Path(tempfile.mkdtemp(prefix=".harken-restore-", dir=target.parent))
    try:
        manifest = unpack(backup, work)
        (work / "lake").mkdir(exist_ok=True)
        moved = _move(work / "lake", lake) if any((work / "lake").iterdir()) else False
        try:
            os.link(work / "database", target)
        except OSError as error:
            if moved:
                shutil.rmtree(lake)
            raise StorageError(
                f"{target} could not be written: {error.strerror}", code="cannot-open"
            ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


def _check_free(target: Path, lake: Path) -> None:
    if not target.parent.is_dir():
        raise StorageError(
            f"there is no directory {target.parent}",
            code="cannot-open",
            hint="create it, or give another path",
        )
    log, index = (target.with_name(f"{target.name}{end}") for end in ("-wal", "-shm"))
    for each in (target, lake, log, index):
        if each.exists():
            raise StorageError(
                f"{each} exists already, and restoring overwrites nothing",
                code="exists",
                hint="give another path, or move it away first",
            )


def _move(source: Path, target: Path) -> bool:
    os.rename(source, target)
    return True


@dataclass(frozen=True, slots=True)
class BegunAnew:
    """What a restored database does otherwise than the original."""

    held_messages: int
    restarted_sources: int


def begin_anew(runtime: Runtime, *, hold_messages: bool, take_over: bool) -> BegunAnew:
    """In a transaction, in a restored database: nobody may resume from a position that the original
    reached after the backup, since it means something else here. Unless it takes over what the
    original has installed in servers, it leaves that alone."""
    connection = runtime.engine.connection
    Logs(connection).begin_anew()
    Outbox(connection, runtime.settings).begin_anew()
    restarted = 0 if take_over else separate(runtime)
    if not hold_messages:
        return BegunAnew(0, restarted)
    messages = Messages(runtime)
    waiting = messages.listed(*OPEN)
    for each in waiting:
        messages.set_aside(each.number, DEAD, HELD)
    return BegunAnew(len(waiting), restarted)
