"""`harken domain`: groups of relations on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harken.cli.options import DatabaseFile, Format, Output, Overrides
from harken.cli.reporting import CommandError, reported
from harken.cli.result_tables import one_line, plain_values, print_table
from harken.cli.sessions import open_database, settings_of
from harken.database.results import to_json

Name = Annotated[str, typer.Argument(help="The name of the domain.")]
Members = Annotated[
    list[str],
    typer.Argument(
        metavar="MEMBER[:COLUMN=NAME,...]...",
        help="Its members, and how the domain calls their columns.",
    ),
]


def create(
    name: Name,
    members: Members,
    db: DatabaseFile,
    skip_unavailable: Annotated[
        bool,
        typer.Option(
            "--skip-unavailable", help="A member that cannot be read has no rows in a query."
        ),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace one of that name.")] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Group relations under names of their own for the columns."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        database.domains.create(
            name, _members(members), skip_unavailable=skip_unavailable, replace=replace
        )


def list_domains(db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """List the domains with their members and columns."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.domains.list()
        if format is Format.JSON:
            for each in found:
                shown = {"name": each.name, "columns": each.columns, "members": each.members}
                print(to_json({"kind": "domain", **plain_values(shown)}))
        elif found:
            rows = [(e.name, ", ".join(e.members), ", ".join(e.columns)) for e in found]
            print_table(("domain", "members", "columns"), rows)


def show(name: Name, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Show what each member has of a domain's columns."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.domains.describe(name)
        if format is Format.JSON:
            print(to_json({"kind": "domain", **found}))
            return
        width = max(map(len, found))
        for title, value in found.items():
            print(f"{one_line(title).ljust(width)}  {one_line(value)}")


def add(name: Name, members: Members, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Add members to a domain."""
    with reported(format), open_database(db) as database, database.transaction():
        for member, columns in _members(members).items():
            database.domains.add(name, member, columns)


def remove(
    name: Name,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Which members.")],
    db: DatabaseFile,
    format: Output = Format.TEXT,
) -> None:
    """Take members out of a domain."""
    with reported(format), open_database(db) as database, database.transaction():
        for member in members:
            database.domains.remove(name, member)


def drop(
    name: Name,
    db: DatabaseFile,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop the views over it as well.")
    ] = False,
    format: Output = Format.TEXT,
) -> None:
    """Drop a domain; its members stay."""
    with reported(format), open_database(db) as database:
        database.domains.drop(name, cascade=cascade)


def _members(given: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given:
        name, colon, columns = each.partition(":")
        found[name.strip()] = _columns(columns) if colon else None
    return found


def _columns(given: str) -> dict[str, list[str]]:
    """
    >>> _columns("title=keyword,abstract=keyword,year")
    {'keyword': ['title', 'abstract'], 'year': ['year']}
    """
    found: dict[str, list[str]] = {}
    for each in given.split(","):
        column, _, called = (part.strip() for part in each.partition("="))
        if not column:
            raise CommandError(
                f"a column is missing in {given!r}",
                code="bad-option",
                hint="write MEMBER:COLUMN=NAME,COLUMN, for example paper:title=keyword,year",
            )
        found.setdefault(called or column, []).append(column)
    return found
