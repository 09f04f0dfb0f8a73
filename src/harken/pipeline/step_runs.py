"""Runs steps, one or one after another, and reports each.

Law: a step is a transaction. Whatever ends the loop (a signal, an error, a kill) ends it between
two steps or rolls back the running one, which the next run then repeats.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue

import harken
from harken.api.scheduling import Scheduler
from harken.api.step import Step
from harken.consumers.monitors.subscription import Subscription
from harken.database.changes import Change
from harken.errors import HarkenError
from harken.pipeline.progress_bars import progress_bars
from harken.pipeline.reports import due_lines, source_lines, step_json, step_line, step_set_aside

LOCKED_SECONDS = 1.0
"""Until what is due is tried again, while another process is writing."""
Signals = (signal.SIGINT, signal.SIGTERM)


def run_once(database: harken.Database, *, as_json: bool) -> None:
    views = Views(database)
    views.refresh()
    _report(database, _step(database), views.changes(), as_json)


class Views:
    """Watches the views of durable monitors separately, because their recorded changes are for
    their subscribers."""

    def __init__(self, database: harken.Database) -> None:
        self._database = database
        self._watched: dict[str, Subscription] = {}

    def refresh(self) -> None:
        """Other processes may have created or dropped a monitor."""
        wanted = {outbox.view for outbox in self._database.outboxes()}
        for view in self._watched.keys() - wanted:
            self._watched.pop(view).close()
        for view in sorted(wanted - self._watched.keys()):
            self._watched[view] = self._database.monitor(view, warn=_warn)

    def changes(self) -> list[Change]:
        return [change for each in self._watched.values() for change in each.changes()]


def _warn(message: str) -> None:
    print(f"{message} [warning]", file=sys.stderr, flush=True)


def keep_running(
    database: harken.Database, every: float, *, as_json: bool, strict: bool = False
) -> None:
    """Until Ctrl-C or SIGTERM: the first signal lets the running step finish, the second rolls it
    back. A file that cannot be read is set aside, unless the run is `strict`."""
    stop, views, scheduler = Stop(), Views(database), Scheduler(database)
    before = {each: signal.getsignal(each) for each in Signals}
    try:
        while not stop.requested:
            # Spark installs its own handler when it starts.
            for each in Signals:
                signal.signal(each, stop.handle)
            views.refresh()
            step = _step_unless_locked(database, strict)  # sources have schedules of their own
            changes = views.changes()
            if step is not None and step.taken:
                _report(database, step, changes, as_json)
            due_in = _do_due(scheduler)
            for line in source_lines(database.sources.news(), as_json=as_json):
                print(line, flush=True)
            lines = due_lines(views.changes(), database.name_of, as_json=as_json)
            if lines:
                print("\n".join(lines), flush=True)
            stop.wait(min(every, due_in))
    except KeyboardInterrupt:
        pass
    finally:
        with suppress(HarkenError):
            scheduler.release()
        for each, handler in before.items():
            signal.signal(each, handler)


def _do_due(scheduler: Scheduler) -> float:
    """What is due, if no other process does it; the seconds until there is more."""
    try:
        return scheduler.turn()
    except HarkenError as error:
        if error.code != "locked":
            raise
        return LOCKED_SECONDS


class Stop:
    """A request to stop, made by a signal.

    A handler runs in the main thread between any two of its instructions, so it must not take a
    lock that the main thread may hold: setting a `threading.Event` while the thread waits for it
    can block for ever. A `SimpleQueue` may be filled from a handler.
    """

    def __init__(self) -> None:
        self.requested = False
        self._queue: SimpleQueue[None] = SimpleQueue()

    def handle(self, *_: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._queue.put(None)

    def wait(self, seconds: float) -> None:
        """Wait that long, or until the request."""
        with suppress(Empty):
            self._queue.get(timeout=seconds)


def _step_unless_locked(database: harken.Database, strict: bool) -> Step | None:
    """None if another process is writing: the next round tries again."""
    try:
        return _step(database, strict, sources=False)
    except HarkenError as error:
        if error.code != "locked":
            raise
        return None


def _step(database: harken.Database, strict: bool = True, *, sources: bool = True) -> Step:
    with progress_bars(database):
        return database.step(strict=strict, sources=sources, warn=_warn)


def _report(database: harken.Database, step: Step, changes: list[Change], as_json: bool) -> None:
    for file, reason in step_set_aside(step):
        print(f"[bad-file] {reason}\nhint: {file} is set aside until it changes", file=sys.stderr)
    lines = [step_line(step, changes)]
    if step.sources:
        print("\n".join(source_lines(step.sources.values(), as_json=as_json)), flush=True)
    if as_json:
        lines = step_json(step, changes, database.name_of)
    print("\n".join(lines), flush=True)
