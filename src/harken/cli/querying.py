"""`harken query`: the rows of one query, formatted for people or programs."""

from __future__ import annotations

import enum
import sys
from typing import Annotated

import typer

import harken
from harken.cli.options import DatabaseFile, Format, Overrides
from harken.cli.program_texts import STDIN, decode
from harken.cli.reporting import CommandError, reported
from harken.cli.sessions import command_line_spark, open_database, settings_of
from harken.database.results import Result


class QueryFormat(enum.StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    MARKDOWN = "markdown"


def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="The SQL query; - reads standard input.")
    ],
    db: DatabaseFile = ":memory:",
    format: Annotated[
        QueryFormat, typer.Option("--format", help="The output format.")
    ] = QueryFormat.TABLE,
    set: Overrides = None,
) -> None:
    """Print the rows of a query. The database is opened read-only.

    Arrow is a stream in its IPC format, for other programs.
    """
    shown = Format.JSON if format is QueryFormat.JSON else Format.TEXT
    with reported(shown, lambda: STDIN if sql == "-" else None):
        if format is QueryFormat.ARROW and sys.stdout.isatty():
            raise CommandError(
                "Arrow is a binary format, not meant for a terminal",
                code="unsupported",
                hint="redirect it to a file: > rows.arrow",
            )
        text = decode(sys.stdin.buffer.read(), STDIN) if sql == "-" else sql
        for result in rows_of(text, db, set):
            put(result, format)


def rows_of(text: str, path: str, overrides: list[str] | None) -> list[Result]:
    if path == ":memory:":
        database = harken.connect(spark=command_line_spark, settings=settings_of(overrides))
    else:
        database = open_database(path, read_only=True, settings=settings_of(overrides))
    with database:
        found: list[Result] = []
        database.run_program("sql", text, found.append)
        return found


def put(result: Result, format: QueryFormat) -> None:
    from harken.cli import result_tables as tables

    match format:
        case QueryFormat.TABLE:
            print("\n".join([*tables.table_lines(result), tables.count_line(result)]))
        case QueryFormat.MARKDOWN:
            print("\n".join(tables.markdown_lines(result)))
        case QueryFormat.CSV:
            print(tables.csv_text(result), end="")
        case QueryFormat.JSON:
            print("\n".join(result.json_lines()))
        case QueryFormat.ARROW:
            sys.stdout.buffer.write(tables.arrow_bytes(result))
            sys.stdout.buffer.flush()
