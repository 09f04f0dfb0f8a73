"""`harken source`: outside sources on the command line."""

from __future__ import annotations

import datetime
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import harken
from harken.api.sources import SourceStatus
from harken.cli.options import DatabaseFile, Format, Output, Overrides
from harken.cli.reporting import CommandError, reported
from harken.cli.result_tables import one_line, plain_values, print_table
from harken.cli.sessions import command_line_spark, open_database, settings_of
from harken.database.results import to_json
from harken.lang.sql.source_statements import seconds_of
from harken.pipeline.progress_bars import progress_bars

Name = Annotated[str, typer.Argument(help="The name of the source.")]
Kind = Annotated[str, typer.Argument(help="Its kind, such as postgresql, html or json.")]
Options = Annotated[
    list[str] | None, typer.Argument(metavar="OPTION=VALUE...", help="The options of the kind.")
]
Key = Annotated[
    str | None, typer.Option(metavar="COLUMN,...", help="The columns that identify a row.")
]
Capture = Annotated[
    str | None, typer.Option(help="How changes are captured: logical, triggers or poll.")
]


def add(
    name: Name,
    kind: Kind,
    options: Options = None,
    db: DatabaseFile = ":memory:",
    key: Key = None,
    capture: Capture = None,
    every: Annotated[
        str | None, typer.Option(metavar="'5 MINUTES'", help="How often it is read.")
    ] = None,
    mirror: Annotated[
        bool, typer.Option(help="Keep its rows; otherwise it is asked by each query.")
    ] = True,
    in_lake: Annotated[bool, typer.Option("--in-lake", help="Keep its rows in the lake.")] = False,
    sql: Annotated[
        bool,
        typer.Option(
            "--sql", help="Only print the scripts that prepare the server, and undo that."
        ),
    ] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Make outside data a relation of the database."""
    with reported(format):
        given = _given(options)
        with _connected(db, set) as database:
            if sql:
                create, drop = database.sources.scripts(name, kind, given, capture=capture)
                print(f"-- create\n{create.strip()}\n\n-- drop\n{drop.strip()}")
                return
            with progress_bars(database):
                made = database.sources.create(
                    name,
                    kind,
                    given,
                    key=_names(key),
                    capture=capture,
                    every=_seconds(every),
                    mirror=mirror,
                    in_lake=in_lake,
                )
        if format is Format.JSON:
            print(to_json({"kind": "source", **_as_json(made)}))
        else:
            print(f"{made.name}: {made.rows:,} rows, {made.capture}")


def check(
    kind: Kind,
    options: Options = None,
    db: DatabaseFile = ":memory:",
    key: Key = None,
    capture: Capture = None,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Read a source once without installing anything: columns, keys, first rows."""
    with reported(format), _connected(db, set) as database:
        found = database.sources.check(kind, _given(options), capture=capture, key=_names(key))
        if format is Format.JSON:
            print(to_json({"kind": "check", **plain_values(asdict(found))}))
            return
        print_table(("column", "type"), [(each.name, each.type) for each in found.columns])
        keys = [", ".join(each) for each in found.key_candidates]
        print(f"\nkey of the source: {', '.join(found.key) or 'none'}")
        print(f"may be a key: {'; '.join(keys) or 'none was found'}")
        print(f"capture: {found.capture}{': ' if found.why else ''}{found.why}")
        for part, why in found.set_aside.items():
            print(f"set aside: {one_line(part)}: {one_line(why)}")
        print(f"rows: {found.count:,}\n")
        print_table([each.name for each in found.columns], found.rows)


def list_sources(db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """List the sources and how they go."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.sources.list()
        if format is Format.JSON:
            for each in found:
                print(to_json({"kind": "source", **_as_json(each)}))
        elif found:
            heading = ("source", "kind", "state", "rows", "read", "changed", "next", "why")
            print_table(heading, [_cells(each) for each in found])


def show(name: Name, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Show what is known of a source."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.sources.describe(name)
        if format is Format.JSON:
            print(to_json({"kind": "source", **plain_values(dict(found))}))
            return
        width = max(map(len, found))
        for title, value in found.items():
            print(f"{one_line(title).ljust(width)}  {one_line(str(value))}")


def refresh(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Which sources.")],
    db: DatabaseFile,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Rows that seem to be missing are really gone.")
    ] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Read sources now, and take in what has changed."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        for name in names:
            done = database.sources.refresh(name, confirm=confirm)
            if format is Format.JSON:
                print(to_json({"kind": "refresh", **asdict(done)}), flush=True)
            else:
                print(f"{done.name}: +{done.plus:,} −{done.minus:,}, {done.state}", flush=True)


def alter(
    name: Name,
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="OPTION=VALUE...", help="Options to set; OPTION= for its default."),
    ] = None,
    db: DatabaseFile = ":memory:",
    every: Annotated[
        str | None, typer.Option(metavar="'5 MINUTES'", help="How often it is read.")
    ] = None,
    add_column: Annotated[
        list[str] | None, typer.Option("--add-column", help="Take in a column that it has got.")
    ] = None,
    drop_column: Annotated[
        list[str] | None, typer.Option("--drop-column", help="Leave a column out.")
    ] = None,
    renew_columns: Annotated[
        bool, typer.Option("--renew-columns", help="Take the columns as they are there now.")
    ] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Read it no more; its rows stay.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Read it again.")] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Change the options of a source, its columns or its schedule."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        sources = database.sources
        if options or every is not None:
            given = {option: value or None for option, value in _given(options).items()}
            sources.alter(name, given, every=_seconds(every))
        if renew_columns:
            sources.renew_columns(name)
        if add_column:
            sources.add_columns(name, *add_column)
        if drop_column:
            sources.drop_columns(name, *drop_column)
        if pause or resume:
            sources.pause(name) if pause else sources.resume(name)


def drop(
    name: Name,
    db: DatabaseFile,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop the views over it as well.")
    ] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Drop a source with its rows, and what was installed for it in the server."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        database.sources.drop(name, cascade=cascade)


# --- what was given --------------------------------------------------------------------------


def _connected(db: str, overrides: list[str] | None) -> harken.Database:
    return harken.connect(db, spark=command_line_spark, settings=settings_of(overrides))


def _given(options: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in options or []:
        name, equals, value = each.partition("=")
        if not equals:
            raise CommandError(
                f"{each} is not an option with a value",
                code="bad-option",
                hint="write NAME=VALUE, for example url=https://example.org/prices.json",
            )
        is_file = name.strip() in ("path", "directory") and "://" not in value
        found[name.strip()] = str(Path(value).absolute()) if is_file else value
    return found


def _names(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [each.strip() for each in given.split(",") if each.strip()]


def _seconds(given: str | None) -> float | None:
    if given is None:
        return None
    found = seconds_of(given)
    if found is None:
        raise CommandError(
            f"{given} is no length of time", code="bad-value", hint="write --every '5 MINUTES'"
        )
    return found


# --- what is shown ---------------------------------------------------------------------------


def _cells(each: SourceStatus) -> tuple[Any, ...]:
    times = (_time(at) for at in (each.read_at, each.changed_at, each.next_try))
    return (each.name, each.kind, each.state, f"{each.rows:,}", *times, one_line(each.why))


def _time(at: datetime.datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _as_json(status: SourceStatus) -> dict[str, Any]:
    values = asdict(status)
    found: dict[str, Any] = {"name": values.pop("name"), "source": values.pop("kind"), **values}
    return {name: plain_values(value) for name, value in found.items()}
