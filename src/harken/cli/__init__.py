"""The `harken` command.

Law: standard output holds results and nothing else; errors go to standard error, and the exit code
is 0, 1 after an error, 2 for a wrong command line, or 130 after Ctrl-C. A user never sees a
traceback unless HARKEN_DEBUG is set.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

import harken
from harken.cli import (
    apply,
    backup_commands,
    checking,
    commands,
    continual_commands,
    detached_actions,
    domain_commands,
    querying,
    running,
    serve_command,
    source_commands,
    user_commands,
)
from harken.cli.options import Command, Group
from harken.cli.reporting import fail, to_harken_error

COMMANDS = (
    running.run,
    querying.query,
    running.watch,
    checking.check,
    apply.apply,
    commands.shell,
    commands.explain,
    continual_commands.signal,
    serve_command.serve,
    backup_commands.backup,
    backup_commands.restore,
    backup_commands.verify,
    commands.bench,
    commands.doctor,
    commands.demo,
)
"""In the order in which help lists them."""

app = typer.Typer(
    cls=Group,
    help="Harken watches data and acts on change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _command in COMMANDS:
    app.command(cls=Command)(_command)

_pipeline = typer.Typer(
    cls=Group, help="Process what has changed in the lake.", no_args_is_help=True
)
_pipeline.command("run", cls=Command)(commands.pipeline_run)
_pipeline.command("status", cls=Command)(commands.pipeline_status)
app.add_typer(_pipeline, name="pipeline")

_actions = typer.Typer(
    cls=Group,
    help="Actions of detached rules that have not been carried out.",
    no_args_is_help=True,
)
_actions.command("list", cls=Command)(detached_actions.list_actions)
_actions.command("retry", cls=Command)(detached_actions.retry)
_actions.command("discard", cls=Command)(detached_actions.discard)
app.add_typer(_actions, name="actions")

_continual = typer.Typer(
    cls=Group,
    help="Continual queries: a query, what triggers it, and who is told.",
    no_args_is_help=True,
)
_continual.command("install", cls=Command)(continual_commands.install)
_continual.command("list", cls=Command)(continual_commands.list_queries)
_continual.command("show", cls=Command)(continual_commands.show)
_continual.command("history", cls=Command)(continual_commands.history)
_continual.command("run", cls=Command)(continual_commands.run)
_continual.command("pause", cls=Command)(continual_commands.pause)
_continual.command("resume", cls=Command)(continual_commands.resume)
_continual.command("mute", cls=Command)(continual_commands.mute)
_continual.command("snooze", cls=Command)(continual_commands.snooze)
_continual.command("drop", cls=Command)(continual_commands.drop)
_continual.command("test", cls=Command)(continual_commands.show_samples)
_continual.command("export", cls=Command)(continual_commands.export)
_continual.command("import", cls=Command)(continual_commands.import_queries)
app.add_typer(_continual, name="cq")

_sources = typer.Typer(
    cls=Group,
    help="Outside data as relations: databases, pages, feeds, files.",
    no_args_is_help=True,
)
_sources.command("add", cls=Command)(source_commands.add)
_sources.command("list", cls=Command)(source_commands.list_sources)
_sources.command("show", cls=Command)(source_commands.show)
_sources.command("check", cls=Command)(source_commands.check)
_sources.command("refresh", cls=Command)(source_commands.refresh)
_sources.command("alter", cls=Command)(source_commands.alter)
_sources.command("drop", cls=Command)(source_commands.drop)
app.add_typer(_sources, name="source")

_domains = typer.Typer(
    cls=Group,
    help="Groups of relations, with names of their own for the columns.",
    no_args_is_help=True,
)
_domains.command("create", cls=Command)(domain_commands.create)
_domains.command("list", cls=Command)(domain_commands.list_domains)
_domains.command("show", cls=Command)(domain_commands.show)
_domains.command("add", cls=Command)(domain_commands.add)
_domains.command("remove", cls=Command)(domain_commands.remove)
_domains.command("drop", cls=Command)(domain_commands.drop)
app.add_typer(_domains, name="domain")

_users = typer.Typer(cls=Group, help="The users of a service.", no_args_is_help=True)
_users.command("add", cls=Command)(user_commands.add)
_users.command("list", cls=Command)(user_commands.list_users)
_users.command("password", cls=Command)(user_commands.password)
_users.command("role", cls=Command)(user_commands.role)
_users.command("renew", cls=Command)(user_commands.renew)
_users.command("disable", cls=Command)(user_commands.disable)
_users.command("enable", cls=Command)(user_commands.enable)
_users.command("remove", cls=Command)(user_commands.remove)
_users.command("token", cls=Command)(user_commands.token)
app.add_typer(_users, name="user")


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:
        sys.exit(fail(to_harken_error(error), None))


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"harken {harken.__version__}")
        raise typer.Exit


@app.callback()
def harken_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Harken watches data and acts on change."""
