"""Reads several sources at the same time, for one statement.

Law: each job is run once, in its own time; one that fails stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait

from harken.errors import HarkenError
from harken.limits import check
from harken.values.rows import Row

LOOK_EVERY = 0.05
"""Seconds between two looks at the limits of the statement."""
Outcome = tuple[list[Row] | None, HarkenError | None]


def read_together(jobs: Mapping[str, Callable[[], list[Row]]], most: int) -> Mapping[str, Outcome]:
    """The rows of each job, or why it has none; at most so many run at the same time."""
    workers = min(len(jobs), most)
    if workers < 2:
        return {name: attempted(job) for name, job in jobs.items()}
    with ThreadPoolExecutor(workers, "harken-asked") as pool:
        running = {name: pool.submit(attempted, job) for name, job in jobs.items()}
        try:
            while wait(running.values(), LOOK_EVERY).not_done:
                check()
        finally:
            for each in running.values():
                each.cancel()
        return {name: each.result() for name, each in running.items()}


def attempted(job: Callable[[], list[Row]]) -> Outcome:
    try:
        return job(), None
    except HarkenError as error:
        return None, error
