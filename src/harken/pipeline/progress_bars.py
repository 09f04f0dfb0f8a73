"""Progress bars on a terminal, for first loads that take long; silent everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

import harken

SHOW_AFTER = 0.5
"""Seconds after which a load shows a progress bar."""


@contextmanager
def progress_bars(database: harken.Database, console: Console | None = None) -> Iterator[None]:
    """A bar for each load that takes long. Of some it is not known how much there is: their bar
    moves without an end."""
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, console=console, transient=True)
    try:
        with database.progress(_shown_in(bars)):
            yield
    finally:
        bars.stop()


def _shown_in(bars: Progress) -> Callable[[str, int, int], None]:
    tasks: dict[str, TaskID] = {}
    started = time.monotonic()

    def show(name: str, done: int, of: int) -> None:
        if time.monotonic() - started < SHOW_AFTER:
            return
        if name not in tasks:
            bars.start()
            tasks[name] = bars.add_task(f"loading {name}", total=of or None)
        bars.update(tasks[name], completed=done, total=max(of, done) if of else None)

    return show
