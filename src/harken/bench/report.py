"""Runs benchmarks and prints their figures: lines of JSON for tools, a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from harken.bench import BENCHMARKS, run
from harken.bench.figures import Figure, rounded
from harken.errors import HarkenError


def run_benchmarks(
    names: Sequence[str], items: int | None, rounds: int | None, *, as_json: bool
) -> None:
    """All of them if none is named. Progress goes to standard error."""
    for name in names:
        if name not in BENCHMARKS:
            raise HarkenError(
                f"there is no benchmark {name}",
                code="unknown-benchmark",
                hint=f"there are {', '.join(BENCHMARKS)}",
            )
    output, progress = Console(highlight=False), Console(stderr=True)
    for name in names or BENCHMARKS:
        figures = run(name, items, rounds)
        if as_json:
            for figure in figures:
                print(figure.json_line(), flush=True)
        else:
            with progress.status(f"bench {name} …"):
                shown = table(figures)
            output.print(shown)
            output.print()


def table(figures: Iterable[Figure]) -> Table:
    """The figures of the same work stand together under its name."""
    shown = Table.grid(padding=(0, 2))
    shown.add_column()
    shown.add_column(justify="right")
    heading = ""
    for figure in figures:
        heading_before, heading = heading, title(figure)
        if heading != heading_before:
            shown.add_row(f"[bold]{heading}[/]")
        verdict = {None: "", True: "[green]holds[/]", False: "[red]misses[/]"}[figure.holds]
        shown.add_row(
            f"  {figure.measure}",
            show(rounded(figure.value)),
            f"needs {figure.needs}" if figure.needs else "",
            verdict,
        )
    return shown


def title(figure: Figure) -> str:
    params = [
        value if isinstance(value, str) else f"{show(value)} {key}"
        for key, value in figure.params.items()
    ]
    return f"{figure.name} ({', '.join(params)})"


def show(value: object) -> str:
    """
    >>> show(1000000), show(1.5), show("file")
    ('1,000,000', '1.5', 'file')
    """
    return f"{value:,}" if isinstance(value, int | float) else str(value)
