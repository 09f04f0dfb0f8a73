"""The database that a command works on, and the Spark session it may need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import harken
from harken.cli.reporting import CommandError
from harken.settings import Settings


def open_database(
    db: str, *, read_only: bool = False, settings: Settings | None = None
) -> harken.Database:
    """Open an existing database: a mistyped path does not create one."""
    if not Path(db).exists():
        raise CommandError(
            f"there is no database {db}",
            code="cannot-open",
            hint="`harken run FILE --db PATH` creates one",
        )
    return harken.connect(
        db, read_only=read_only, spark=command_line_spark, settings=settings or Settings({})
    )


def command_line_spark() -> Any:
    """The command line's own Spark session, started when something needs it; it ends with the
    process."""
    from harken.api.opening import spark_session

    return spark_session()


def settings_of(overrides: list[str] | None, *, serving: bool = False) -> Settings:
    """The settings after `--set NAME=VALUE`."""
    return Settings(given_settings(overrides), serving=serving)


def given_settings(overrides: list[str] | None) -> dict[str, str]:
    """What `--set NAME=VALUE` gives."""
    given: dict[str, str] = {}
    for each in overrides or []:
        name, equals, value = each.partition("=")
        if not equals:
            raise CommandError(
                f"--set {each} has no value", code="bad-value", hint="write --set NAME=VALUE"
            )
        given[name.strip()] = value.strip()
    return given
