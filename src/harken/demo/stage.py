"""Prints a demonstration on a terminal: titles, narration, statements and their results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import harken
from harken.database.results import Result
from harken.errors import HarkenError
from harken.lang.amosql.statement_shapes import split
from harken.shell.highlight import coloured


class Stage:
    def __init__(self, console: Console, db: harken.Database) -> None:
        self._console = console
        self._db = db

    def _run(self, program: str) -> None:
        """Show each statement, then what it says."""
        for statement in split(program):
            self._show_indented(coloured(f"{statement.text};"))
            try:
                self._db.run_program("amosql", f"{statement.text};", self._show)
            except HarkenError as error:
                self._show_indented(Text(f"\n{error.report()}", style="red"))

    def _show(self, result: Result) -> None:
        table = Table(box=box.ROUNDED, border_style="bright_black")
        shown = json.loads(result.json_lines()[0])
        for index, name in enumerate(shown["columns"]):
            numeric = all(isinstance(row[index], int) for row in shown["rows"])
            table.add_column(name, justify="right" if numeric else "left")
        for row in shown["rows"]:
            table.add_row(*(f"{value:,}" if isinstance(value, int) else value for value in row))
        self._show_indented(table)

    def _show_indented(self, content: RenderableType) -> None:
        self._console.print(Padding(content, (0, 0, 0, 2), expand=False))

    def _title(self, text: str) -> None:
        self._console.print()
        self._console.rule(f"[bold]{text}[/]", align="left", style="bright_black")

    def _say(self, text: str) -> None:
        self._console.print(Text(f"\n{text}\n", style="italic"))

    def _code(self, text: str) -> None:
        self._show_indented(Text(text, style="cyan"))

    def _fact(self, text: str, seconds: float) -> None:
        self._console.print(Text.assemble(("  ▸ ", "green"), f"{text}: {seconds:.2f} s"))


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
