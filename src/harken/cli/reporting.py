"""The output of a command: results on standard output, errors on standard error.

With `--format json` an error is a line on standard output as well, where a program looks for it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from harken.cli.options import Format
from harken.database.language_names import AMOSQL
from harken.database.results import Result, to_json
from harken.errors import HarkenError
from harken.packages import missing_package
from harken.statements.language_registry import language_named


class CommandError(HarkenError):
    """cannot-read, cannot-open, not-utf-8, unknown-suffix, unsupported; internal for a bug."""


def writer(format: Format, language: str = AMOSQL) -> Callable[[Result], None]:
    """Prints each result as the language shows it, and at once, so that a reader at the other end
    of a pipe need not wait."""
    spoken = language_named(language)

    def write(result: Result) -> None:
        lines = spoken.format(result, as_json=format is not Format.TEXT)
        if lines:
            print("\n".join(lines), flush=True)

    return write


@contextmanager
def reported(format: Format, source: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Report an error in the block and exit; `source` says what was being read."""
    try:
        yield
    except (BrokenPipeError, typer.Exit):
        raise
    except Exception as error:
        raise typer.Exit(report(to_harken_error(error), source(), format)) from None


def report(error: HarkenError, source: str | None, format: Format) -> int:
    if format is Format.JSON:
        print(_error_line(error, source), flush=True)
    return fail(error, source)


def _error_line(error: HarkenError, source: str | None) -> str:
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


def fail(error: HarkenError, source: str | None) -> int:
    print(error.report(source), file=sys.stderr, flush=True)
    return 1


def to_harken_error(error: Exception) -> HarkenError:
    """Any other exception is a bug in Harken; HARKEN_DEBUG shows its traceback."""
    if isinstance(error, HarkenError):
        return error
    missing = missing_package(error) if isinstance(error, ModuleNotFoundError) else None
    if missing is not None:
        return missing
    if os.environ.get("HARKEN_DEBUG"):
        traceback.print_exception(error)
    return CommandError(
        f"{type(error).__name__}: {error}",
        code="internal",
        hint="this is a bug in Harken: please report it, with the output of HARKEN_DEBUG=1",
    )
