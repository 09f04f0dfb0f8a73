"""The figures of a benchmark as a table for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from harken.bench.figures import Figure, rounded


def table(figures: Iterable[Figure]) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("benchmark")
    shown.add_column("with")
    shown.add_column("measure")
    shown.add_column("value", justify="right")
    shown.add_column("needs", justify="right")
    shown.add_column("")
    for figure in figures:
        params = ", ".join(f"{key} {show(value)}" for key, value in figure.params.items())
        shown.add_row(
            figure.name,
            params,
            figure.measure,
            show(rounded(figure.value)),
            figure.needs or "",
            {None: "", True: "[green]holds[/]", False: "[red]misses[/]"}[figure.holds],
            style="" if figure.needs else "dim",
        )
    return shown


def show(value: object) -> str:
    """
    >>> show(1000000), show(1.5), show("file")
    ('1,000,000', '1.5', 'file')
    """
    return f"{value:,}" if isinstance(value, int | float) else str(value)
