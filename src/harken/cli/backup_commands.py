"""`harken backup`, `harken restore` and `harken verify`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import harken
from harken.cli.options import Format, Output
from harken.cli.reporting import reported
from harken.cli.sessions import open_database
from harken.database.results import to_json
from harken.errors import counted


class Lake(StrEnum):
    COPY = "copy"
    REFERENCE = "reference"


File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]
Target = Annotated[Path, typer.Argument(metavar="DB", help="The database file.")]


def backup(
    db: Target,
    file: File,
    lake: Annotated[
        Lake, typer.Option("--lake", help="Copy Harken's tables in the lake, or refer to them.")
    ] = Lake.COPY,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Include the stored secrets, as encrypted.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older backup.")
    ] = False,
    format: Output = Format.TEXT,
) -> None:
    """Write a database to one file, while others use it."""
    with reported(format), open_database(str(db), read_only=True) as database:
        made = database.backup(file, lake=lake.value, secrets=with_secrets, overwrite=overwrite)
        copied = sum(each.rows is not None for each in made.tables)
        referred = len(made.tables) - copied
        about: dict[str, Any] = {
            "kind": "backup",
            "path": made.path,
            "bytes": made.bytes,
            "position": made.position,
            "tables": copied,
            "references": referred,
            "secrets": made.has_secrets,
        }
        tables = f", {counted(copied, 'table')} of the lake" if copied else ""
        tables += f", {counted(referred, 'reference')} to the lake" if referred else ""
        text = f"{db}: {made.bytes:,} bytes{tables}, at position {made.position} → {made.path}"
        print(to_json(about) if format is Format.JSON else text)


def restore(
    file: File,
    db: Target,
    hold_messages: Annotated[
        bool,
        typer.Option(
            "--hold-messages", help="Do not send what waited: the original may have sent it."
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="The original is gone: use what it installed in servers for its sources.",
        ),
    ] = False,
    format: Output = Format.TEXT,
) -> None:
    """Put a backup in a new place. Nothing that is there is overwritten."""
    with reported(format):
        done = harken.restore(file, db, hold_messages=hold_messages, take_over=take_over)
        about = {
            "kind": "restore",
            "path": done.path,
            "at": done.at.isoformat(),
            "tables": done.tables,
            "held_messages": done.held_messages,
            "restarted_sources": done.restarted_sources,
        }
        tables = f" with {counted(done.tables, 'table')} of the lake" if done.tables else ""
        held = f"; {counted(done.held_messages, 'message')} held" if done.held_messages else ""
        number = done.restarted_sources
        sources = f"; {counted(number, 'source')} begin again with all rows" if number else ""
        at = f"{done.at:%Y-%m-%d %H:%M:%S %Z}"
        text = f"{done.path}: restored as of {at}{tables}{held}{sources}"
        print(to_json(about) if format is Format.JSON else text)


def verify(db: Target, format: Output = Format.TEXT) -> None:
    """Check a database: the file, its tables in the lake, and that views are right."""
    with reported(format), open_database(str(db), read_only=True) as database:
        found = database.verify()
        for check in found.checks:
            about = {
                "kind": "check",
                "subject": check.subject,
                "ok": None if check.left_out else check.problem is None,
                "rows": check.rows,
                "problem": check.problem or check.left_out,
            }
            print(to_json(about) if format is Format.JSON else check)
        if not found.ok:
            raise typer.Exit(1)
