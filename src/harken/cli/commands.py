"""The commands that run no programs. Each imports what it needs when called, so that `run` starts
quickly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import harken
from harken.cli.options import (
    LANGUAGES,
    DatabaseFile,
    Engine,
    ExplainFormat,
    Format,
    Home,
    Output,
    Overrides,
    Story,
    language_name,
)
from harken.cli.program_texts import read_program
from harken.cli.reporting import reported, writer
from harken.cli.sessions import command_line_spark, open_database, settings_of


def shell(
    db: DatabaseFile = ":memory:",
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            parser=language_name,
            metavar=LANGUAGES,
            help="SQL, unless you spoke another in the last session.",
        ),
    ] = None,
    engine: Home = Engine.RESIDENT,
    set: Overrides = None,
) -> None:
    """Type statements and see their results."""
    from harken.shell import start

    settings = settings_of(set)
    with harken.connect(
        db, engine=engine.value, spark=command_line_spark, settings=settings
    ) as database:
        database.find_modules_in(Path.cwd())
        raise typer.Exit(start(database, language, db))


def explain(
    name: Annotated[
        str, typer.Argument(help="A rule, view, relation or function; or a program, FILE.dl.")
    ],
    db: DatabaseFile = ":memory:",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show its clauses, differentials and SQL.")
    ] = False,
    format: Annotated[
        ExplainFormat, typer.Option("--format", help="The output format.")
    ] = ExplainFormat.TEXT,
    materialise: Annotated[
        str | None,
        typer.Option(
            "--materialise",
            help="Of a program: its network under rete, treat, atreat or cosma.",
        ),
    ] = None,
) -> None:
    """Show what a view or rule reads, how its changes are found, and what is stored for it; of a
    program of production rules, what its rules do to each other and what is worth storing."""
    if Path(name).suffix == ".dl" and db == ":memory:":
        with reported(Format.TEXT, lambda: name), harken.connect() as database:
            program = database.program(read_program(name).text)
            if materialise is None and format is not ExplainFormat.SVG:
                print(program.explain())
            else:
                print(program.network(materialise or "cosma", format.value))
        return
    with harken.connect(db, read_only=True, spark=command_line_spark) as database:
        print(database.explain(name, verbose=verbose, format=format.value))


def pipeline_run(
    db: DatabaseFile,
    watch: Annotated[bool, typer.Option("--watch", help="Keep going until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between two steps of --watch.")
    ] = 1.0,
    strict: Annotated[
        bool, typer.Option("--strict", help="With --watch: stop at a file that cannot be read.")
    ] = False,
    format: Output = Format.TEXT,
) -> None:
    """Process what has changed in the inputs, and what rules do about it, in one transaction.

    Standard output has what rules print, and a line for each step that found changes.
    """
    from harken.pipeline.step_runs import keep_running, run_once

    as_json = format is Format.JSON
    with reported(format), open_database(db) as database, database.listening(writer(format)):
        if watch:
            keep_running(database, every, as_json=as_json, strict=strict)
        else:
            run_once(database, as_json=as_json)


def pipeline_status(
    db: DatabaseFile,
    format: Output = Format.TEXT,
) -> None:
    """Show the state of each relation in the lake."""
    from harken.pipeline.status import show_status

    with reported(format), open_database(db, read_only=True) as database:
        show_status(database, as_json=format is Format.JSON)


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="point, load, query, inventory, many-rules, subscribers, lake, sql, closure, "
            "counting, programs, cq; all by default."
        ),
    ] = None,
    items: Annotated[
        list[int] | None,
        typer.Option(min=1, help="The number of items or rules; may be repeated."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often to time each.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Plot the benchmarks inventory, lake and sql."),
    ] = None,
    scale: Annotated[
        list[float] | None,
        typer.Option(min=0.001, help="The scale factor of TPC-H, for sql; may be repeated."),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="q01", help="The query to run, for sql; may be repeated."),
    ] = None,
    change: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="The share of rows that change, for sql; may be repeated."),
    ] = None,
    all: Annotated[
        bool,
        typer.Option("--all", help="Every benchmark as the documents quote it: takes hours."),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Record the figures in this file, with the commit measured."
        ),
    ] = None,
    note: Annotated[
        str,
        typer.Option(help="A note to record with them, such as what else the machine was doing."),
    ] = "",
    format: Output = Format.TEXT,
) -> None:
    """Measure what Harken costs against the same work done by hand."""
    from harken.bench.record import Record
    from harken.bench.report import run_benchmarks, run_published

    kept = None if record is None else Record(record, note)
    as_json = format is Format.JSON
    tpch: dict[str, list[Any]] = {
        "scales": scale or [],
        "queries": query or [],
        "changes": change or [],
    }
    if all:
        if names or items or rounds or plot or any(tpch.values()):
            raise harken.HarkenError(
                "--all runs each benchmark as the documents quote it",
                code="bad-value",
                hint="leave the other options out, or name benchmarks instead of --all",
            )
        run_published(kept, as_json=as_json)
        return
    run_benchmarks(
        names or [], items or [], rounds, tpch, as_json=as_json, picture=plot, record=kept
    )


def doctor() -> None:
    """Check whether this machine has what Harken needs, and say what to do if not."""
    from harken.doctor import examine, is_well, show

    findings = list(examine())
    show(findings)
    raise typer.Exit(0 if is_well(findings) else 1)


def demo(
    story: Annotated[Story, typer.Argument(help="What to show.")] = Story.LAKE,
) -> None:
    """Watch Harken at work: on a million items in the lake, on a small inventory in memory, or on a
    continual query over a database and a page."""
    from harken.demo import STORIES

    STORIES[story.value]()
