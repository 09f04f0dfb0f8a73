"""`db.backup`, `db.verify` and `harken.restore`: a database as one file, and back."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harken.api.internals import Internals
from harken.api.opening import open_session
from harken.backup.restoring import begin_anew, place
from harken.backup.saving import Backup, save
from harken.backup.verification import Verification, verify
from harken.database.arguments import check_flag, check_path, checked_call
from harken.errors import TypeFault
from harken.settings import Settings

LAKES = ("copy", "reference")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, and where."""

    path: str
    at: datetime.datetime
    """When the backup was made."""
    tables: int
    """The number of tables in the lake that were restored with it."""
    held_messages: int
    restarted_sources: int = 0
    """The number of followed sources that begin again with all of their rows."""


def write_backup(
    internals: Internals,
    path: str | os.PathLike[str],
    lake: str,
    secrets: bool,
    overwrite: bool,
) -> Backup:
    internals.look()
    internals.check_committed("a backup has what is committed")
    check_path(path, "the path of a backup", "cannot-open")
    check_flag(secrets, "secrets")
    check_flag(overwrite, "overwrite")
    if lake not in LAKES:
        raise TypeFault(
            f"the lake is copied or referred to, not {lake!r}",
            code="bad-value",
            hint="use copy or reference",
        )
    return save(
        internals.runtime,
        os.fspath(path),
        with_tables=lake == "copy",
        with_secrets=secrets,
        overwrite=overwrite,
    )


def check_database(internals: Internals) -> Verification:
    internals.look()
    internals.check_committed("what is committed is verified")
    return verify(internals.runtime)


@checked_call
def restore(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    hold_messages: bool = False,
    take_over: bool = False,
    clock: Callable[[], datetime.datetime] | None = None,
) -> Restored:
    """Put a backup in a new place, as a database that goes on from there. Nothing that is there is
    overwritten.

    Messages that waited when the backup was made are sent by the restored database, under their old
    ids. With `hold_messages` they are set aside instead, in case the original has sent them.

    Followed sources begin again with all of their rows, and with a slot or triggers of their own in
    their servers, because the original may still use its own. With `take_over` the original is
    gone, and its slots and triggers are used from the position of the backup on.
    """
    check_path(backup, "the path of a backup", "cannot-open")
    check_path(path, "the path of a database", "cannot-open")
    check_flag(hold_messages, "hold_messages")
    check_flag(take_over, "take_over")
    target = Path(path).resolve()
    manifest = place(Path(backup), target)
    internals = open_session(str(target), False, 5.0, clock, None, Settings())
    try:
        with internals.transactions.block():
            anew = begin_anew(internals.runtime, hold_messages=hold_messages, take_over=take_over)
    finally:
        internals.close(lambda: None)
    tables = sum(each["rows"] is not None for each in manifest["tables"])
    made = datetime.datetime.fromisoformat(manifest["at"])
    return Restored(str(target), made, tables, anew.held_messages, anew.restarted_sources)
