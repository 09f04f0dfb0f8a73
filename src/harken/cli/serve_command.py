"""`harken serve`: one process for one database, or two that share the work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

import harken
from harken.cli.options import DatabaseFile, Engine, Format, Home, Overrides
from harken.cli.reporting import reported
from harken.cli.sessions import command_line_spark, given_settings, open_database

if TYPE_CHECKING:
    from harken.server.serve_options import ServeOptions
    from harken.server.server_process import Certificate

CONFIG = "HARKEN_CONFIG"


def serve(
    db: DatabaseFile,
    host: Annotated[str | None, typer.Option(help="The address; 127.0.0.1 by default.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8765 by default; 0 picks a free port.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The token that clients must send; HARKEN_TOKEN by default."),
    ] = None,
    keep_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, help="How long changes are kept for clients that are away."),
    ] = None,
    keep_bytes: Annotated[
        int | None, typer.Option(min=1, help="How many bytes of changes are kept for each view.")
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate, as PEM.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, as PEM.")
    ] = None,
    behind_proxy: Annotated[
        bool | None, typer.Option("--behind-proxy", help="A proxy in front encrypts.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="api|worker", help="Only answer requests, or only do what is due."),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(metavar="text|json", help="How the log is written.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A TOML file of these options, and of settings."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check all of it, say what is in force, and end.")
    ] = False,
    engine: Home = Engine.RESIDENT,
    set: Overrides = None,
) -> None:
    """Serve views, the API and the console over HTTP, and do what is due, until Ctrl-C."""
    from harken.server.serve_options import serve_options
    from harken.server.service_log import service_log

    flags = {
        "host": host,
        "port": port,
        "token": token,
        "keep_seconds": keep_seconds,
        "keep_bytes": keep_bytes,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "behind_proxy": behind_proxy or None,
        "only": only,
        "log_level": log_level,
        "log_format": log_format,
    }
    with reported(Format.TEXT):
        options = serve_options(flags, given_settings(set), config or os.environ.get(CONFIG))
        open_database(db).close()
        if check:
            _check(db, options)
            return
        with service_log(options["log_level"], options["log_format"]):
            _serve(db, options, engine)


def _serve(db: str, options: ServeOptions, engine: Engine) -> None:
    from harken.server.serve_options import API, WORKER
    from harken.server.server_process import serve as run_server
    from harken.server.server_process import work

    if options["only"] == WORKER:

        def connect() -> harken.Database:
            return harken.connect(
                db, spark=command_line_spark, engine=engine.value, settings=options.settings
            )

        work(connect, lambda: print(f"doing what is due in {db}", flush=True))
        return
    run_server(
        db,
        host=options["host"],
        port=options["port"],
        token=options.token,
        keep=options.keep,
        spark=command_line_spark,
        engine=engine.value,
        settings=options.settings,
        certificate=_certificate(options),
        behind_proxy=options["behind_proxy"],
        schedules=options["only"] != API,
        tell=lambda line: print(line, flush=True),
    )


def _check(db: str, options: ServeOptions) -> None:
    """Everything that would stop the service later stops the check."""
    from harken.server.serve_options import OPTIONS, WORKER
    from harken.server.server_process import check_service, listen

    if options["only"] != WORKER:
        certificate = _certificate(options)
        check_service(
            db,
            options["host"],
            options.token,
            certificate,
            behind_proxy=options["behind_proxy"],
        )
        listen(options["host"], options["port"]).close()
    harken.connect(db, read_only=True, settings=options.settings).close()
    for each in OPTIONS:
        value = "given" if each.name == "token" and each.name in options.given else None
        print(f"{each.name} = {options[each.name] if value is None else value}")
    print(f"{db} can be served")


def _certificate(options: ServeOptions) -> Certificate | None:
    from harken.server.server_process import Certificate

    if "tls_cert" in options.given or "tls_key" in options.given:
        return Certificate(options["tls_cert"], options["tls_key"])
    return None
