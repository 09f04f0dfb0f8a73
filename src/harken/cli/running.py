"""`harken run` and `harken watch`: the commands that run programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

import harken
from harken.cli.options import (
    DatabaseFile,
    Engine,
    FactDirectory,
    Format,
    Home,
    Language,
    Output,
    Overrides,
    Policy,
    Strategy,
)
from harken.cli.program_texts import STDIN, beside, decode, lines_of, read_program
from harken.cli.reporting import report, reported, writer
from harken.cli.sessions import command_line_spark, settings_of
from harken.database.language_names import SQL
from harken.database.results import to_json
from harken.errors import HarkenError
from harken.statements.language_registry import language_named

FATAL = ("closed", "disk-full", "disk-error", "storage", "no-memory")
"""Errors of the machine, which every other line would meet as well."""


def run(
    files: Annotated[list[str], typer.Argument(help="Programs; - is standard input.")],
    db: DatabaseFile = ":memory:",
    engine: Home = Engine.RESIDENT,
    format: Output = Format.TEXT,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print what each check phase does to standard error.")
    ] = False,
    facts: FactDirectory = ".",
    output: Annotated[
        str,
        typer.Option(
            "-D",
            "--output-dir",
            metavar="DIR",
            help="Where Datalog's .output writes files; - is standard output.",
        ),
    ] = ".",
    language: Language = None,
    materialise: Annotated[
        Policy, typer.Option(help="What rule programs store while they run.")
    ] = Policy.AUTO,
    set: Overrides = None,
) -> None:
    """Run programs one after the other, in one session.

    A program that ends without an error is committed. At the first error that program is rolled
    back to its last commit, and the rest do not run.
    """
    source: str | None = None
    with reported(format, lambda: source):
        programs = [read_program(name, language) for name in files]
        settings = settings_of(set)
        source = db
        with (
            harken.connect(
                db, engine=engine.value, spark=command_line_spark, settings=settings
            ) as database,
            database.listening(writer(format)),
        ):
            if trace:
                database.trace(lambda line: print(line, file=sys.stderr))
            if format is Format.JSON and any(each.language == SQL for each in programs):
                database.watch_views(lambda change: print(change.json_line(), flush=True), _warn)
            for program in programs:
                source = program.source
                database.find_modules_in(beside(source))
                with _language_named(source if language is None else ""):
                    database.run_program(
                        program.language,
                        program.text,
                        writer(format, program.language),
                        source,
                        facts=facts,
                        output=None if output == "-" else output,
                        warn=_warn,
                        materialise=materialise.value,
                    )
                database.commit()


@contextmanager
def _language_named(source: str) -> Iterator[None]:
    """A person who sends SQL to standard input is told which language was expected there."""
    try:
        yield
    except HarkenError as error:
        if source == STDIN and error.code in ("syntax", "missing-semicolon"):
            said = "standard input is read as AMOSQL; for SQL say --language sql"
            error.hint = f"{error.hint}; {said}" if error.hint else said
        raise


def watch(
    file: Annotated[str, typer.Argument(help="A program: its views are watched.")],
    changes: Annotated[
        str,
        typer.Option("--changes", metavar="FILE", help="One transaction per line, as JSON."),
    ],
    facts: FactDirectory = ".",
    strategy: Annotated[
        Strategy, typer.Option(help="How the changes of views are computed.")
    ] = Strategy.AUTO,
    engine: Home = Engine.RESIDENT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first line that fails.")
    ] = False,
) -> None:
    """Print how the views of a program change with each transaction, as lines of JSON.

    A line of the file is `{"insert": {"edge": [["h", "d"]]}, "delete": {"edge": [["b", "c"]]}}`. A
    line that fails is reported and skipped; the exit code is then 1.
    """
    from harken.api.watching import Watch

    source, number, skipped = file, 0, 0
    with reported(Format.JSON, lambda: source):
        program = read_program(file)
        with harken.connect(engine=engine.value, spark=command_line_spark) as database:
            database.find_modules_in(beside(file))
            language = language_named(program.language)
            watching = Watch(database, language, lambda line: print(line, flush=True), _warn)
            if not watching.begin(program.text, file, facts, strategy.value):
                print(f"{file} has no views to watch [warning]", file=sys.stderr)
            source = STDIN if changes == "-" else changes
            for line_number, line in enumerate(lines_of(changes), start=1):
                if not line.strip():
                    continue
                try:
                    watching.apply(decode(line, changes, line_number - 1), line_number)
                except HarkenError as error:
                    if strict or error.code in FATAL:
                        raise
                    report(error, source, Format.JSON)
                    skipped += 1
                    continue
                number += 1
                print(to_json({"kind": "commit", "transaction": number}), flush=True)
            if skipped:
                raise typer.Exit(1)


def _warn(message: str) -> None:
    print(f"{message} [warning]", file=sys.stderr, flush=True)
