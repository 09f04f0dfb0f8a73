"""Materialized views: the rows of a query in a table, brought up to date at every commit.

The table is a stored function like any other; the network watches its query and applies the changes
of the query to the table. In the same wave that change goes on to whatever reads the table: views,
rules, other materialized views. Only the network writes the table.

When the query gets another meaning, because a view or function it reads was redefined, the next
propagation compares the table with all rows of the query.

Law: after a commit the table has the rows of its query, with the same multiplicities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harken.calculus.clock import reads_clock, with_clock
from harken.database.catalog import Catalog
from harken.database.runtime import Runtime
from harken.ir.assemble import assemble
from harken.ir.clauses import stored_relations
from harken.ir.relations import Relation
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.planner.change_methods import moving
from harken.planner.prepare import prepare
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.statements.sql.view_clauses import stored_query


def kept_name(function: str) -> str:
    """The name of a materialized view's condition in the network."""
    return f"materialized {function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptView(WatchedView):
    function: str
    table: Relation
    asks_time: bool = False

    @property
    def name(self) -> str:
        return kept_name(self.function)

    @property
    def title(self) -> str:
        return f"the materialized view {self.table.name}"

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def depends_on_time(self) -> bool:
        return self.asks_time

    @property
    def stored(self) -> Relation:
        return self.table


def compile_kept(function: Function, catalog: Catalog, before: KeptView | None = None) -> KeptView:
    """What the network stores for a materialized view. If that equals `before`, it is not planned
    again."""
    assert function.relation is not None
    query = stored_query(function, catalog)
    program = with_clock(assemble(query.rows.relation, query.definitions.values(), catalog))
    if before is not None and (before.program, before.table) == (program, function.relation):
        return before
    prepare(program, catalog.hierarchy)
    return KeptView(
        program=program,
        function=function.id,
        table=function.relation,
        asks_time=bool(moving(program)),
    )


INDEXED = 4
"""The number of columns that are indexed to find a row to delete."""


class KeptViews(Consumer):
    """Makes sure that the network stores every materialized view of the catalog."""

    def __init__(self, runtime: Runtime, network: Network) -> None:
        self._runtime = runtime
        self._network = network
        self._epoch = -1
        self._filled: set[str] = set()
        """The conditions of views that were filled before the network knew of them."""

    def synchronise(self) -> None:
        catalog = self._runtime.catalog
        if catalog.epoch == self._epoch:
            return
        self._epoch = catalog.epoch
        views = self._network.graph.views_of(None)
        before = {each.name: each for each in views if isinstance(each, KeptView)}
        kept = [
            compile_kept(f, catalog, before.get(kept_name(f.id)))
            for f in catalog.functions()
            if f.materialized
        ]
        wanted = {each.name: each for each in kept}
        for name in self._network.graph.hold(None, wanted.values()):
            # If another session did it, that session updated the tables.
            if catalog.changed and name in before:
                is_new = before[name].table != wanted[name].table
                if not is_new or self._network.captures.has_pending(
                    stored_relations(wanted[name].program)
                ):
                    self._network.graph.redefined.add(name)
        self._network.graph.redefined |= self._filled & wanted.keys()
        self._filled.clear()

    def fill(self, function: Function) -> None:
        """Fill the table of a new view with the present rows of its query. The time this takes is
        the first measurement of the view, and its kept state is built before any change."""
        node = self._network.graph.node(kept_name(function.id))
        if node is None:
            self._fill_early(function)
            return
        assert isinstance(node.view, KeptView)
        connection = self._runtime.engine.connection
        started, elsewhere = connection.working_time(), connection.answered_elsewhere
        rows = self._network.kept.rows_by_totals(node)
        if rows is None:
            rows = rows_of(self._runtime, node.view)
        took = connection.working_time() - started
        by_spark = connection.answered_elsewhere > elsewhere
        self._network.chooser.note_first(node, took, by_spark)
        put_rows(self._runtime, node.view, rows)
        self._network.captures.note_rows(node.view.table, [], rows)
        self._network.kept.build_kept(node)

    def _fill_early(self, function: Function) -> None:
        """While definitions change together the network is not there yet. Changes of this
        transaction that it captures are in these rows already: the commit compares."""
        kept = compile_kept(function, self._runtime.catalog)
        put_rows(self._runtime, kept, rows_of(self._runtime, kept))
        self._filled.add(kept.name)

    def compare_again(self, function: Function) -> None:
        """Compare the table with all rows of its query when the transaction ends, and do the same
        for every materialized view above it. Their kept state is dropped: nothing proves that it
        was computed from the present rows of the table."""
        graph = self._network.graph
        views = dict[str, WatchedView]()
        tables = [function.relation]
        while tables:
            above = [] if (table := tables.pop()) is None else graph.reading(table)
            tables += [each.stored for each in above if each.name not in views]
            views |= {each.name: each for each in above}
        own = graph.node(kept_name(function.id))
        assert own is not None
        views[own.view.name] = own.view
        graph.rebuild(views.values())
        graph.redefined |= {each.name for each in views.values() if each.stored is not None}


def rows_of(runtime: Runtime, kept: KeptView) -> list[tuple[Any, ...]]:
    """All present rows of a materialized view's query."""
    if reads_clock(kept.program):
        runtime.reactions.network.clock.open()
    runtime.engine.measure()
    plan = prepare(kept.program, runtime.catalog.hierarchy)
    return runtime.engine.compile(plan).rows(())


def put_rows(runtime: Runtime, kept: KeptView, rows: list[tuple[Any, ...]]) -> None:
    """Fill an empty table, and index it for finding rows to delete."""
    runtime.engine.insert_many(kept.table, rows)
    indexed = tuple(range(min(kept.table.arity, INDEXED)))
    runtime.engine.indexes.ensure_whole(kept.table, indexed)
