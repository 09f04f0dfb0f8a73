"""`harken user ...`: the accounts of a service."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

import typer

from harken.cli.options import DatabaseFile, Format, Output
from harken.cli.reporting import CommandError, reported
from harken.cli.sessions import open_database
from harken.database.accounts import Account
from harken.database.results import to_json

Name = Annotated[str, typer.Argument(help="The name of the user.")]
BY = "command line"


def add(
    name: Name,
    db: DatabaseFile,
    role: Annotated[str, typer.Option(help="guest, reader, author or operator.")] = "operator",
    email: Annotated[str, typer.Option(help="The mail address.")] = "",
    days: Annotated[int | None, typer.Option(help="How long the subscription lasts.")] = None,
    invite: Annotated[
        bool, typer.Option("--invite", help="Print a key to set the password with.")
    ] = False,
) -> None:
    """Create an account. The password is asked for, or read from standard input."""
    with reported(Format.TEXT), open_database(db) as database:
        password = None if invite else read_password()
        account = database.users.add(
            name, role=role, email=email, password=password, days=days, by=BY
        )
        if not invite:
            print(f"{account.name} can sign in as {account.role}.")
            return
        key = database.users.invite(name, by=BY)
        print(f"{account.name} sets a password at /redeem?kind=invitation&key={key}")


def list_users(db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """List the accounts."""
    with reported(format), open_database(db, read_only=True) as database:
        for each in database.users.list():
            print(to_json(_as_json(each)) if format is Format.JSON else _line(each))


def password(name: Name, db: DatabaseFile) -> None:
    """Set somebody's password; open sessions end."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.find(name)
        database.users.set_password(name, read_password(), by=BY)


def role(
    name: Name, role: Annotated[str, typer.Argument(help="The new role.")], db: DatabaseFile
) -> None:
    """Give somebody another role."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.set_role(name, role, by=BY)


def renew(
    name: Name,
    db: DatabaseFile,
    days: Annotated[int | None, typer.Option(help="From now on; for ever if left out.")] = None,
) -> None:
    """Renew somebody's subscription."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.renew(name, days, by=BY)


def disable(name: Name, db: DatabaseFile) -> None:
    """Let somebody not sign in any more; open sessions and tokens end."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.set_active(name, False, by=BY)


def enable(name: Name, db: DatabaseFile) -> None:
    """Let somebody sign in again."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.set_active(name, True, by=BY)


def remove(name: Name, db: DatabaseFile) -> None:
    """Remove an account; what it owned is the operator's."""
    with reported(Format.TEXT), open_database(db) as database:
        database.users.remove(name, by=BY)


def token(
    name: Name,
    label: Annotated[str, typer.Argument(help="What the token is for.")],
    db: DatabaseFile,
    scope: Annotated[
        list[str] | None, typer.Option(help="read, write or admin; may be repeated.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="How long it is good.")] = None,
) -> None:
    """Make an API token for a program, and print it once."""
    with reported(Format.TEXT), open_database(db) as database:
        scopes = tuple(scope or ())
        print(database.users.make_token(name, label, scopes=scopes, days=days, by=BY))


def read_password() -> str:
    """From the terminal, twice; or the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first, second = getpass("Password: "), getpass("The same again: ")
    if first != second:
        raise CommandError(
            "the two passwords differ", code="bad-password", hint="type the same twice"
        )
    return first


def _line(account: Account) -> str:
    until = f", until {account.until:%Y-%m-%d}" if account.until else ""
    email = f" <{account.email}>" if account.email else ""
    return f"{account.name}{email}: {account.role}, {account.state}{until}"


def _as_json(account: Account) -> dict[str, object]:
    return {
        "kind": "user",
        "name": account.name,
        "email": account.email,
        "role": account.role.value,
        "state": account.state.value,
        "created": account.created.isoformat(),
        "until": account.until and account.until.isoformat(),
    }
