"""`harken cq`: continual queries on the command line."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import harken
from harken.api.continual_handles import CLAUSES, PastExecution
from harken.cli.options import DatabaseFile, Format, Output, Overrides
from harken.cli.reporting import CommandError, reported
from harken.cli.result_tables import plain_values, print_table
from harken.cli.sessions import open_database, settings_of
from harken.continual import time_texts
from harken.continual.execution_log import Execution
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_documents import KEYS, SECTION
from harken.continual.words import Reader
from harken.database.results import to_json

Name = Annotated[str, typer.Argument(help="The name of the query, or its id.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Which queries.")]
SomeNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME...]", help="Which queries; all by default.")
]
Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Files .sql or .yml; - is standard input.")
]
YAML = (".yml", ".yaml")


def install(
    files: Files, db: DatabaseFile, set: Overrides = None, format: Output = Format.TEXT
) -> None:
    """Install the continual queries of files, and execute each for the first time."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        before = {each.id for each in database.continual_queries.list()}
        for name in files:
            text = _text(name)
            if Path(name).suffix in YAML:
                database.continual_queries.install_all(_queries_of(text, name))
            else:
                database.run_program("sql", text, lambda result: None, name)
        _deliver(database, format)
        for each in database.continual_queries.list():
            if each.id not in before:
                _say(format, {"kind": "installed", **_as_json(each)}, f"{each.name} ({each.id})")


def signal(
    name: Annotated[str, typer.Argument(help="The name of the signal.")], db: DatabaseFile
) -> None:
    """Raise a signal, for which continual queries can wait: TRIGGER SIGNAL name."""
    with reported(Format.TEXT), open_database(db) as database:
        database.signal(name)


def list_queries(db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """List the continual queries and how they go."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.continual_queries.list()
        if format is Format.JSON:
            for each in found:
                print(to_json({"kind": "query", **_as_json(each)}))
        elif found:
            print_table(
                ("name", "id", "owner", "state", "trigger", "executions", "last", "next"),
                [_cells(each) for each in found],
            )


def show(name: Name, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Show the clauses and the state of a query."""
    with reported(format), open_database(db, read_only=True) as database:
        query = database.continual(name).status
        if format is Format.JSON:
            print(to_json({"kind": "query", **_as_json(query)}))
            return
        print_table(("", ""), database.sql(f"SHOW CONTINUAL QUERY `{query.name}`").rows)


def history(
    name: Name,
    db: DatabaseFile,
    last: Annotated[int, typer.Option(min=1, help="How many executions.")] = 20,
    format: Output = Format.TEXT,
) -> None:
    """Show the last executions of a query: cause, outcome, rows, time."""
    with reported(format), open_database(db, read_only=True) as database:
        found = database.continual(name).history()[-last:]
        if format is Format.JSON:
            for each in found:
                print(to_json({"kind": "execution", **plain_values(asdict(each))}))
        elif found:
            heading = ("execution", "at", "cause", "outcome", "+", "-", "rows", "seconds", "error")
            print_table(heading, [_execution_cells(each) for each in found])


def run(
    db: DatabaseFile,
    names: SomeNames = None,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Execute queries now, or without names whatever is due, and deliver their messages."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        done = [database.continual(name).run() for name in names or []]
        for each in [*(each for each in done if each is not None), *database.run_due()]:
            said = f"{each.query}: {each.outcome}, +{len(each.inserted):,} -{len(each.deleted):,}"
            _say(format, _execution(each), f"{said} {each.error}".rstrip())


def pause(names: Names, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Do not execute queries until they are resumed."""
    with reported(format), open_database(db) as database:
        for name in names:
            database.continual(name).pause()


def resume(names: Names, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """End a pause or a snooze."""
    with reported(format), open_database(db) as database:
        for name in names:
            database.continual(name).resume()


def mute(
    names: Names,
    db: DatabaseFile,
    off: Annotated[bool, typer.Option("--off", help="Send messages again.")] = False,
    format: Output = Format.TEXT,
) -> None:
    """Execute queries, and send nothing."""
    with reported(format), open_database(db) as database:
        for name in names:
            handle = database.continual(name)
            handle.unmute() if off else handle.mute()


def snooze(
    names: Names,
    db: DatabaseFile,
    until: Annotated[str, typer.Option(help="Such as '2027-01-31 08:00', or '2 hours'.")],
    format: Output = Format.TEXT,
) -> None:
    """Execute queries once, at a moment, for all that happens until then."""
    with reported(format), open_database(db) as database:
        for name in names:
            handle = database.continual(name)
            handle.snooze(_moment(until, handle.status))


def drop(names: Names, db: DatabaseFile, format: Output = Format.TEXT) -> None:
    """Delete queries, with their recorded executions."""
    with reported(format), open_database(db) as database, database.transaction():
        for name in names:
            database.continual(name).drop()


def show_samples(
    file: Annotated[str, typer.Argument(help="A file .yml with queries; - is standard input.")],
    db: DatabaseFile,
    send: Annotated[bool, typer.Option("--send", help="Send them, as samples.")] = False,
    set: Overrides = None,
    format: Output = Format.TEXT,
) -> None:
    """Show the first messages of queries before they are installed."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        for name, document in _queries_of(_text(file), file).items():
            clauses = {key: document[key] for key in CLAUSES if key in document}
            query = str(document.get("query", ""))
            queries = database.continual_queries
            for each in queries.test(query, clauses, name=name, send=send):
                values = {"channel": each.channel, "address": each.address}
                if format is Format.JSON:
                    line = {"kind": "sample", "query": name, **values, "payload": each.payload}
                    print(to_json(line))
                    continue
                print(f"To: {each.channel} {each.address}\n\n{each.text.text}")


def export(
    db: DatabaseFile,
    names: SomeNames = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="The file to write; else it is printed.")
    ] = None,
) -> None:
    """Print queries as YAML, which `import` reads."""
    with reported(Format.TEXT), open_database(db, read_only=True) as database:
        documents = database.continual_queries.export(names or None)
        text = _yaml().safe_dump(
            {SECTION: documents}, sort_keys=False, allow_unicode=True, width=100
        )
        if output is None:
            print(text, end="")
            return
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"{output} cannot be written: {error.strerror}", code="cannot-open"
            ) from None


def import_queries(
    files: Files, db: DatabaseFile, set: Overrides = None, format: Output = Format.TEXT
) -> None:
    """Install the queries of YAML files, or alter those that are there to what the files say."""
    with reported(format), open_database(db, settings=settings_of(set)) as database:
        for name in files:
            done = database.continual_queries.install_all(_queries_of(_text(name), name))
            for query, what in done.items():
                _say(format, {"kind": "imported", "query": query, "done": what}, f"{query}: {what}")
        _deliver(database, format)


# --- files ------------------------------------------------------------------------------------


def _text(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}", code="cannot-read") from None
    except UnicodeDecodeError:
        raise CommandError(f"{name} is not UTF-8", code="not-utf-8") from None


def _queries_of(text: str, name: str) -> dict[str, Any]:
    yaml = _yaml()
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"{name} is not YAML: {error}", code="syntax") from None
    queries = found.get(SECTION) if isinstance(found, dict) else None
    if not isinstance(queries, dict) or not all(isinstance(e, dict) for e in queries.values()):
        raise CommandError(
            f"{name} has no queries",
            code="bad-value",
            hint=f"{SECTION}: a mapping of names to clauses: {', '.join(KEYS)}",
        )
    return queries


def _yaml() -> Any:
    import yaml  # of the extra `projects`

    return yaml


# --- what is shown ------------------------------------------------------------------------------


def _deliver(database: harken.Database, format: Format) -> None:
    """The first messages leave at once; one that fails is tried again by whoever serves."""
    database.notifications.run()


def _say(format: Format, line: Mapping[str, Any], text: str) -> None:
    print(to_json(line) if format is Format.JSON else text, flush=True)


def _cells(query: InstalledQuery) -> tuple[Any, ...]:
    state = str(query.state)
    if query.failures:
        state = "failing"
    if query.snoozed is not None:
        state = f"snoozed until {_time(query.snoozed)}"
    return (
        query.name,
        query.id,
        query.owner,
        f"{state}, muted" if query.muted else state,
        str(query.clauses.trigger),
        query.executions,
        _time(query.evaluated),
        _time(query.wakes_at()),
    )


def _execution_cells(done: PastExecution) -> tuple[Any, ...]:
    rows = (done.inserted, done.deleted, done.rows, f"{done.seconds:.3f}")
    cause = str(done.cause.get("text", done.event))
    return (done.execution, _time(done.at), cause, done.outcome, *rows, done.error)


def _as_json(query: InstalledQuery) -> dict[str, Any]:
    found: dict[str, Any] = plain_values(
        {
            "name": query.name,
            "id": query.id,
            "owner": query.owner,
            "state": str(query.state),
            "muted": query.muted,
            "snoozed": query.snoozed,
            "query": query.clauses.query,
            **{name.lower(): text for name, text in query.clauses.texts().items()},
            "zone": query.zone_name,
            "sources": query.sources,
            "installed": query.installed,
            "evaluated": query.evaluated,
            "next": query.wakes_at(),
            "executions": query.executions,
            "failures": query.failures,
            "problem": query.problem,
        }
    )
    return found


def _execution(done: Execution) -> dict[str, Any]:
    values = plain_values(asdict(done))
    return {"kind": "execution", **values, "cause": values["cause"]["text"]}


def _time(at: datetime.datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _moment(text: str, query: InstalledQuery) -> datetime.datetime:
    reader = Reader(text)
    found = time_texts.take_moment(reader)
    if found is None:
        length = time_texts.take_duration(reader)
        now = datetime.datetime.now(datetime.UTC)
        found = None if length is None else length.after(now, query.zone)
    if found is None or not reader.is_done:
        raise CommandError(
            f"{text} is no moment", code="bad-value", hint="--until '2027-01-31 08:00' or '2 hours'"
        )
    return found
