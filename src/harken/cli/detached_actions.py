"""`harken actions`: list, retry or discard the actions of detached rules that failed."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.options import DatabaseFile, Format, Output
from harken.cli.reporting import reported, writer
from harken.cli.sessions import open_database

Numbers = Annotated[list[int], typer.Argument(help="Their numbers, as shown by `list`.")]
SomeNumbers = Annotated[
    list[int] | None, typer.Argument(help="Their numbers, as shown by `list`; all by default.")
]
QUERY = (
    "SELECT number, rule, about, attempts, error, recorded, tried FROM detached_actions "
    "ORDER BY number"
)


def list_actions(db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """List the actions of detached rules that have not been carried out."""
    with reported(format), open_database(db, read_only=True) as database:
        if database.detached_actions():
            database.run_program("sql", QUERY, writer(format))


def retry(db: DatabaseFile, numbers: SomeNumbers = None, format: Output = Format.TEXT) -> None:
    """Retry them, each in a transaction of its own."""
    with reported(format), open_database(db) as database, database.listening(writer(format)):
        database.retry_actions(numbers or None)


def discard(db: DatabaseFile, numbers: Numbers, format: Output = Format.TEXT) -> None:
    """Discard them for good."""
    with reported(format), open_database(db) as database:
        database.discard_actions(numbers)
