"""The `harken` command.

Law: standard output holds results and nothing else; what went wrong goes to standard error, and
the exit code is 0, 1 after an error, 2 for a wrong command line, or 130 after Ctrl-C. A person
never sees a traceback unless they set HARKEN_DEBUG.
"""

from __future__ import annotations

import enum
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import harken
from harken.database.results import Result, to_json
from harken.database.rules.drawing import draw
from harken.database.rules.explain import RuleExplanation
from harken.errors import HarkenError


@contextmanager
def options_listed(command: TyperCommand | TyperGroup, context: typer.Context) -> Iterator[None]:
    """An option that resembles none of the command's is answered with all of them."""
    try:
        yield
    except Exception as error:
        if getattr(error, "option_name", None) and not getattr(error, "possibilities", True):
            known = [name for each in command.get_params(context) for name in each.opts]
            error.possibilities = [name for name in known if name.startswith("-")]  # type: ignore[attr-defined]
        raise


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with options_listed(self, ctx):
            return super().parse_args(ctx, args)


class Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with options_listed(self, ctx):
            return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Group,
    help="Harken watches data and acts on change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

LANGUAGES = {".amosql": "AMOSQL", ".sql": "SQL", ".dl": "Datalog"}
STDIN = "<stdin>"


class Format(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class ExplainFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


class Engine(enum.StrEnum):
    RESIDENT = "resident"
    LAKE = "lake"


class Strategy(enum.StrEnum):
    AUTO = "auto"
    COUNTING = "counting"
    EXTERNAL = "external"
    MATERIALIZED = "materialized"
    NAIVE = "naive"


class Story(enum.StrEnum):
    LAKE = "lake"
    LANGUAGE = "language"


class CommandError(HarkenError):
    """cannot-read, not-utf-8, unknown-suffix, unsupported; internal for a bug."""


Database = Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")]
Home = Annotated[Engine, typer.Option(help="Where relations that are created live.")]
Output = Annotated[Format, typer.Option("--format", help="How results are printed.")]


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:
        sys.exit(fail(as_ours(error), None))


def fail(error: HarkenError, source: str | None) -> int:
    print(error.report(source), file=sys.stderr, flush=True)
    return 1


def as_ours(error: Exception) -> HarkenError:
    """What is not a Harken error is a bug of ours; HARKEN_DEBUG shows where."""
    if isinstance(error, HarkenError):
        return error
    if os.environ.get("HARKEN_DEBUG"):
        traceback.print_exception(error)
    return CommandError(
        f"{type(error).__name__}: {error}",
        code="internal",
        hint="this is a bug in Harken: please report it, with what HARKEN_DEBUG=1 shows",
    )


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"harken {harken.__version__}")
        raise typer.Exit


@app.callback()
def harken_command(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Harken watches data and acts on change."""


# --- run -----------------------------------------------------------------------------------


@app.command(cls=Command)
def run(
    files: Annotated[list[str], typer.Argument(help="Programs; - is standard input.")],
    db: Database = ":memory:",
    engine: Home = Engine.RESIDENT,
    format: Output = Format.TEXT,
    trace: Annotated[
        bool, typer.Option("--trace", help="Tell on standard error what each check phase does.")
    ] = False,
    facts: Annotated[
        str, typer.Option("-F", "--fact-dir", metavar="DIR", help="Where Datalog's .input reads.")
    ] = ".",
    output: Annotated[
        str,
        typer.Option(
            "-D",
            "--output-dir",
            metavar="DIR",
            help="Where Datalog's .output writes; - is standard output.",
        ),
    ] = ".",
) -> None:
    """Run programs one after the other, in one session.

    Each that ends well is committed. At the first error that program is undone from its last
    commit on, and the rest do not run.
    """
    source = None
    try:
        programs = [
            (STDIN if name == "-" else name, read_program(name), Path(name).suffix)
            for name in files
        ]
        source = db
        with (
            harken.connect(db, engine=engine.value, spark=own_session) as database,
            database.listening(writer(format)),
        ):
            if trace:
                database.trace(lambda line: print(line, file=sys.stderr))
            if format is Format.JSON and any(suffix == ".sql" for _, _, suffix in programs):
                database.watch_views(lambda change: print(change.json_line(), flush=True))
            for source, text, suffix in programs:
                if suffix == ".dl":
                    run_datalog(database, text, source, facts, output, format)
                else:
                    run_text = database.run_sql if suffix == ".sql" else database.run
                    run_text(text, writer(format), source)
                database.commit()
    except BrokenPipeError:
        raise
    except Exception as error:
        raise typer.Exit(report(as_ours(error), source, format)) from None


@app.command(cls=Command)
def watch(
    file: Annotated[str, typer.Argument(help="A program: its views are watched.")],
    changes: Annotated[
        str,
        typer.Option("--changes", metavar="FILE", help="A transaction on each line, as JSON."),
    ],
    facts: Annotated[
        str, typer.Option("-F", "--fact-dir", metavar="DIR", help="Where Datalog's .input reads.")
    ] = ".",
    strategy: Annotated[
        Strategy, typer.Option(help="How the changes of views are found.")
    ] = Strategy.AUTO,
    engine: Home = Engine.RESIDENT,
) -> None:
    """Tell how the views of a program change with each transaction, as lines of JSON.

    A line of the file is `{"insert": {"edge": [["h", "d"]]}, "delete": {"edge": [["b", "c"]]}}`.
    """
    from harken.database.watching import Watch

    source, number = file, 0
    try:
        text = read_program(file)
        with harken.connect(engine=engine.value, spark=own_session) as database:
            watching = Watch(database, Path(file).suffix, lambda line: print(line, flush=True))
            if not watching.begin(text, file, facts, strategy.value):
                print(f"{file} has no views: nothing of it is watched [warning]", file=sys.stderr)
            source = STDIN if changes == "-" else changes
            for line_number, line in enumerate(lines_of(changes), start=1):
                if line.strip():
                    watching.apply(line, line_number)
                    number += 1
                    print(to_json({"kind": "commit", "transaction": number}), flush=True)
    except BrokenPipeError:
        raise
    except Exception as error:
        raise typer.Exit(report(as_ours(error), source, Format.JSON)) from None


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file, as they come."""
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as lines:
            for number, line in enumerate(lines):
                yield decode(line, name, number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise located(name, f"the file cannot be read: {reason}", "cannot-read") from None


def run_datalog(
    database: harken.Database, text: str, source: str, facts: str, output: str, format: Format
) -> None:
    database.run_datalog(
        text,
        writer(format),
        source,
        facts=facts,
        output=None if output == "-" else output,
        warn=lambda message: print(f"{message} [warning]", file=sys.stderr, flush=True),
    )


def own_session() -> Any:
    """The command line's own Spark, started when something needs it; it ends with the process."""
    from harken.engines.spark.session import local_session

    return local_session()


def writer(format: Format) -> Callable[[Result], None]:
    """Prints each result at once, so that a reader at the other end of a pipe need not wait."""

    def write(result: Result) -> None:
        lines = result.lines() if format is Format.TEXT else result.json_lines()
        if lines:
            print("\n".join(lines), flush=True)

    return write


def report(error: HarkenError, source: str | None, format: Format) -> int:
    if format is Format.JSON:
        print(error_line(error, source), flush=True)
    return fail(error, source)


def error_line(error: HarkenError, source: str | None) -> str:
    return to_json(
        {
            "kind": "error",
            "code": error.code,
            "message": error.message,
            "file": source or error.source,
            "line": error.line,
            "column": error.column,
            "hint": error.hint,
        }
    )


def read_program(name: str) -> str:
    if name == "-":
        return decode(sys.stdin.buffer.read(), STDIN)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise located(name, f"the file cannot be read: {reason}", "cannot-read") from None
    suffix = Path(name).suffix
    if suffix not in LANGUAGES:
        known = ", ".join(f"{suffix} ({language})" for suffix, language in LANGUAGES.items())
        raise located(name, "the suffix is of no language", "unknown-suffix", f"known: {known}")
    return decode(data, name)


def decode(data: bytes, name: str, lines_before: int = 0) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + data.count(b"\n", 0, error.start) + 1
        raise located(
            name,
            f"the text is not UTF-8: byte 0x{data[error.start]:02x} in line {line}",
            "not-utf-8",
            f"convert it: iconv -f latin1 -t utf-8 {name}",
        ) from None


def located(source: str, message: str, code: str, hint: str | None = None) -> CommandError:
    error = CommandError(message, code=code, hint=hint)
    error.source = source
    return error


# --- the other commands; each imports what it needs, so that `run` starts quickly ----------


@app.command(cls=Command)
def shell(db: Database = ":memory:") -> None:
    """Type statements and see their results."""
    from harken.shell import start

    with harken.connect(db, spark=own_session) as database:
        raise typer.Exit(start(database))


@app.command(cls=Command)
def explain(
    name: Annotated[str, typer.Argument(help="A rule, view, relation or function.")],
    db: Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")],
    format: Annotated[
        ExplainFormat, typer.Option("--format", help="How it is printed.")
    ] = ExplainFormat.TEXT,
) -> None:
    """Show how a view is evaluated and its changes are found, or how a rule is monitored."""
    with harken.connect(db, read_only=True, spark=own_session) as database:
        explanation = database.explain(name)
    if format is ExplainFormat.JSON:
        print(to_json(explanation.as_json()))
    elif format is ExplainFormat.TEXT:
        print(explanation)
    elif isinstance(explanation, RuleExplanation):
        print(draw(explanation))
    else:
        raise CommandError(
            f"{name} is no rule, and only the network of a rule is drawn",
            code="unsupported",
            hint="use --format text or --format json",
        )


pipeline = typer.Typer(
    cls=Group, help="Take in what has changed in the lake.", no_args_is_help=True
)
app.add_typer(pipeline, name="pipeline")


@pipeline.command("run", cls=Command)
def pipeline_run(
    db: Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")],
    watch: Annotated[bool, typer.Option("--watch", help="Keep going until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between two steps of --watch.")
    ] = 1.0,
    format: Output = Format.TEXT,
) -> None:
    """Take in what has changed in the inputs, as one transaction with all that rules do about it.

    Standard output has what rules print, and a line for each step that found something new.
    """
    from harken.pipeline.run import keep_running, run_once

    as_json = format is Format.JSON
    with reported(format), opened(db) as database, database.listening(writer(format)):
        if watch:
            keep_running(database, every, as_json=as_json)
        else:
            run_once(database, as_json=as_json)


@pipeline.command("status", cls=Command)
def pipeline_status(
    db: Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")],
    format: Output = Format.TEXT,
) -> None:
    """Show where each relation in the lake stands."""
    from harken.pipeline.status import show_status

    with reported(format), opened(db, read_only=True) as database:
        show_status(database, as_json=format is Format.JSON)


@contextmanager
def reported(format: Format) -> Iterator[None]:
    """Errors of a command that reads no text of the user's."""
    try:
        yield
    except (BrokenPipeError, typer.Exit):
        raise
    except Exception as error:
        raise typer.Exit(report(as_ours(error), None, format)) from None


def opened(db: str, *, read_only: bool = False) -> harken.Database:
    """A database that exists: one that was mistyped is not made."""
    if not Path(db).exists():
        raise CommandError(
            f"there is no database {db}",
            code="cannot-open",
            hint="`harken run FILE --db PATH` makes one",
        )
    return harken.connect(db, read_only=read_only, spark=own_session)


# --- serve ---------------------------------------------------------------------------------


@app.command(cls=Command)
def serve(
    db: Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")],
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8765,
    token: Annotated[
        str | None, typer.Option(help="What clients must show; also taken from HARKEN_TOKEN.")
    ] = None,
    keep_seconds: Annotated[
        float, typer.Option(min=0.001, help="How long changes are kept for clients that left.")
    ] = harken.Keep().seconds,
    keep_bytes: Annotated[
        int, typer.Option(min=1, help="How much of them is kept, for each view.")
    ] = harken.Keep().bytes,
    engine: Home = Engine.RESIDENT,
) -> None:
    """Serve views and their changes over HTTP, until Ctrl-C."""
    from harken.server.run import serve as run_server

    with reported(Format.TEXT):
        opened(db).close()
        run_server(
            db,
            host=host,
            port=port,
            token=token,
            keep=harken.Keep(keep_seconds, keep_bytes),
            spark=own_session,
            engine=engine.value,
            tell=lambda line: print(line, flush=True),
        )


@app.command(cls=Command)
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="point, load, query, inventory, many-rules, subscribers, lake, sql, closure, "
            "counting; all unless told."
        ),
    ] = None,
    items: Annotated[
        list[int] | None, typer.Option(min=1, help="How many items or rules; may be repeated.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often each is timed.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw the benchmarks inventory, lake and sql."),
    ] = None,
    scale: Annotated[
        list[float] | None, typer.Option(min=0.001, help="Of TPC-H, for sql; may be repeated.")
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option(metavar="q01", help="For sql; may be repeated.")
    ] = None,
    change: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="The share of the rows, for sql; may be repeated."),
    ] = None,
    format: Output = Format.TEXT,
) -> None:
    """Measure what Harken costs against the same work done by hand."""
    from harken.bench.report import run_benchmarks

    as_json = format is Format.JSON
    tpch: dict[str, list[Any]] = {
        "scales": scale or [],
        "queries": query or [],
        "changes": change or [],
    }
    run_benchmarks(names or [], items or [], rounds, tpch, as_json=as_json, picture=plot)


@app.command(cls=Command)
def doctor() -> None:
    """See whether this machine has what Harken needs, and what to do if not."""
    from harken.doctor import examine, is_well, show

    findings = list(examine())
    show(findings)
    raise typer.Exit(0 if is_well(findings) else 1)


@app.command(cls=Command)
def demo(
    story: Annotated[Story, typer.Argument(help="What to show.")] = Story.LAKE,
) -> None:
    """Watch Harken at work: on a million items in the lake, or on a small inventory in memory."""
    from harken.demo import STORIES

    STORIES[story.value]()
