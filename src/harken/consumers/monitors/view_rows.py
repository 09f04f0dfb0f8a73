"""The rows of a monitored view: as they are, as its clients know them, and as they were.

Law: the rows at the start of a transaction, with the changes that were received since, are the rows
that the last propagation saw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext

from harken.calculus.clock import reads_clock
from harken.calculus.states import in_old_state
from harken.consumers.monitors.view import MonitoredView, Selection
from harken.database.changes import stored_rows
from harken.database.runtime import Runtime
from harken.engines.protocol import Query
from harken.errors import HarkenError, is_of_data
from harken.ir.clauses import Program
from harken.maintenance.nodes import Planning
from harken.planner.prepare import prepare
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row

MOST_PLANS = 200
"""The number of views and shapes of conditions for which a session keeps the plan that reads all
rows. SQLite itself caches 1,024 statements."""


class ViewRows:
    def __init__(self, runtime: Runtime, network: Network) -> None:
        self._runtime = runtime
        self._network = network
        self._moments = network.moments
        self._planning = Planning(runtime.engine, runtime.catalog)
        self._reading: dict[str, Query] = {}
        """The queries that read all rows, valid for one epoch of the catalog."""
        self._reading_epoch = -1

    def shown(self, selection: Selection) -> list[Row]:
        """All present rows, in order. If they depend on the time, as of the last evaluation, which
        the next change starts from."""
        with self._at_last_evaluation(selection.view):
            found = stored_rows(selection.view.types, self.read(selection))
        return found.values(self._runtime.catalog.home)

    def read(self, selection: Selection) -> list[Row]:
        """All rows for these constants, by a plan that all conditions of the shape share."""
        catalog, program = self._runtime.catalog, selection.reading
        if self._reading_epoch != catalog.epoch or len(self._reading) >= MOST_PLANS:
            for query in self._reading.values():
                query.release()
            self._reading.clear()
            self._reading_epoch = catalog.epoch
        found = self._reading.get(program.goal.id)
        if found is None:
            found = self._runtime.engine.compile(prepare(program, catalog.hierarchy))
            self._reading[program.goal.id] = found
        return found.rows(selection.values)

    def at_start(
        self, view: MonitoredView, received: Iterable[ViewChange], failing: Collection[str]
    ) -> Counter[Row] | None:
        """The rows before the last propagation, without what earlier propagations found."""
        log = [each for each in received if each.view.name == view.name]
        if any(change.fresh for change in log):
            return None
        if view.name in failing:
            rows = Counter[Row]()
        else:
            try:
                rows = self._last_told(view)
            except HarkenError as error:
                if not is_of_data(error):
                    raise
                return None
        for change in log:
            rows.subtract(change.plus)
            rows.update(change.minus)
        return +rows

    def _last_told(self, view: MonitoredView) -> Counter[Row]:
        """The rows before the changes since the last propagation."""
        node = self._network.graph.node(view.name)
        assert node is not None
        part = node.part
        marked = self._runtime.engine.capture.pending() if part.stored else {}
        changed = marked.keys() & part.stored.keys()
        with self._at_last_evaluation(view):
            return self._count(in_old_state(part.program, changed) if changed else part.program)

    def _at_last_evaluation(self, view: MonitoredView) -> AbstractContextManager[None]:
        """Set `now()` to the time of the last evaluation: the copies of the clients are from
        then."""
        is_watched = self._network.graph.node(view.name) is not None
        if reads_clock(view.program) and not is_watched:
            return self._network.clock.at_present()
        if not view.depends_on_time:
            return nullcontext()
        return self._runtime.engine.connection.at(self._moments.last(view.name))

    def _count(self, program: Program) -> Counter[Row]:
        return Counter(self._planning.compile(program).rows(()))
