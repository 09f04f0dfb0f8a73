"""How the shell shows results: plain lines for a stream, tables and a pager for a person."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from rich.cells import cell_len

from harken.cli.result_tables import table_lines
from harken.database.language_names import SQL
from harken.database.results import Result
from harken.errors import counted
from harken.statements.language_registry import language_named

PAGER = "less -SRFX"
"""Lines are not folded but scrolled sideways, and what fits on the screen is just printed."""


class Plain:
    """Rows as `harken run` prints them, and nothing else."""

    def show(self, result: Result, language: str = SQL) -> None:
        lines = language_named(language).format(result)
        if lines:
            print("\n".join(lines), flush=True)

    def done(self, seconds: float, *, is_open: bool) -> None:
        """A statement has ended well."""

    def failed(self, message: str, *, is_open: bool) -> None:
        self.warn(message)

    def warn(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


class Tables(Plain):
    """Tables with the number of rows, the time, and whether a transaction is open."""

    def __init__(self) -> None:
        self.timing = True
        self.paging = True
        self._rows: int | None = None

    def show(self, result: Result, language: str = SQL) -> None:
        if result.kind != "rows" or not result.columns:
            super().show(result, language)
            return
        self.put(list(table_lines(result)))
        self._rows = len(result.rows)

    def done(self, seconds: float, *, is_open: bool) -> None:
        rows, self._rows = self._rows, None
        said = "ok" if rows is None else counted(rows, "row")
        said += f" ({took(seconds)})" if self.timing else ""
        print(f"{said}, transaction open" if is_open else said, flush=True)

    def failed(self, message: str, *, is_open: bool) -> None:
        self._rows = None
        self.warn(f"{message}\ntransaction open" if is_open else message)

    def put(self, lines: Sequence[str]) -> None:
        """Print lines, by a pager if they are more or wider than the screen."""
        width, height = shutil.get_terminal_size()
        fits = len(lines) < height - 2 and all(cell_len(line) <= width for line in lines)
        if fits or not self.paging or not sys.stdout.isatty() or not page("\n".join(lines) + "\n"):
            print("\n".join(lines), flush=True)


def page(text: str) -> bool:
    """Show a text by the person's pager; false if there is none."""
    command = shlex.split(os.environ.get("PAGER") or PAGER)
    if not command or shutil.which(command[0]) is None:
        return False
    sys.stdout.flush()
    try:
        subprocess.run(command, input=text.encode(errors="backslashreplace"), check=False)
    except (OSError, KeyboardInterrupt):
        return False
    return True


def took(seconds: float) -> str:
    """
    >>> took(0.0042), took(0.25), took(75)
    ('4.2 ms', '250 ms', '75.0 s')
    """
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
