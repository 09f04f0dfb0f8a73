"""Follows the answers of continual queries: a consumer of the network.

Every session on the file watches the queries whose changes are followed, so whoever changes the
data adds the change of each answer to what is kept in the file, in the same transaction. An
execution takes it. A query that cannot be computed at present fails no transaction: its answer
counts as empty until it can be computed again.

Law: what `take` returns is the difference of the answers of two executions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from harken.continual.answer_records import FAILING, LOST, AnswerRecords
from harken.continual.compiled_queries import CompiledQuery, Compiler
from harken.continual.installed_queries import InstalledQueries, InstalledQuery
from harken.database.runtime import Runtime
from harken.errors import HarkenError, IntegrityError
from harken.ir.relations import Column
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.planner.prepare import prepare
from harken.propagation.consumer import IMMEDIATE, Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView(WatchedView):
    number: int
    called: str

    @property
    def name(self) -> str:
        return name_of(self.number)

    @property
    def title(self) -> str:
        return f"the continual query {self.called}"

    @property
    def needs_losses(self) -> bool:
        return True

    @property
    def is_asked_at_end(self) -> bool:
        return True

    @property
    def may_fail(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of an answer between two executions, as stored rows."""

    plus: list[Row]
    minus: list[Row]
    size: int | None = None
    """The rows of the whole answer, if they were counted."""


class Answers(Consumer):
    def __init__(
        self,
        runtime: Runtime,
        network: Network,
        queries: InstalledQueries,
        compile: Compiler,
    ) -> None:
        self._runtime, self._network = runtime, network
        self._queries, self._compile = queries, compile
        self.records = AnswerRecords(runtime.engine.connection)
        self.when_changed: Callable[[set[int]], None] = lambda numbers: None
        """Called in the transaction, with the queries whose answers have changed."""
        self._received: list[ViewChange] = []
        self._broken: dict[int, str] = {}
        """Queries that cannot be compiled here, and why."""
        self._state: tuple[int, int] = (-1, -1)
        """The schema and the version of the queries that the network follows."""
        self._redefined: dict[int, tuple[tuple[Column, ...], Counter[Row]] | None] = {}
        """The columns and answers of queries before the open transaction redefined what they read;
        None if they could not be computed."""
        self._kept_so_far: dict[int, Counter[Row]] = {}
        """The changes of those answers before that."""
        self._compiled: dict[tuple[int, str], tuple[int, CompiledQuery]] = {}

    # --- compiling -----------------------------------------------------------------------------

    def compiled(self, query: InstalledQuery) -> CompiledQuery:
        epoch = self._runtime.catalog.epoch
        key = query.number, query.clauses.query
        known = self._compiled.get(key)
        if known is not None and known[0] == epoch:
            return known[1]
        found = self._compile(query.clauses.query, f"continual query {query.number}")
        self._compiled[key] = epoch, found
        return found

    def rows(self, query: InstalledQuery) -> Counter[Row]:
        """The whole present answer."""
        program = self.compiled(query).program
        plan = prepare(program, self._runtime.catalog.hierarchy)
        self._runtime.engine.measure()
        return Counter(self._runtime.engine.compile(plan).rows(()))

    # --- watching ------------------------------------------------------------------------------

    def synchronise(self) -> None:
        version = self._queries.version()
        state = self._runtime.catalog.epoch, version
        if state == self._state:
            return
        self._state = state
        self._broken.clear()
        views = []
        queries = self._queries.all() if version else []
        for query in queries:
            if query.is_live and query.follows == "differential":
                view = self._view(query)
                views += [] if view is None else [view]
        known = {each.number for each in queries}
        for key in [key for key in self._compiled if key[0] not in known]:
            del self._compiled[key]
        with self._runtime.engine.connection.watch.shielded():
            for name in self._network.graph.hold(self, views):
                self._build(name)

    def _build(self, name: str) -> None:
        node = self._network.graph.node(name)
        if node is not None and node.counted is not None:
            self._network.kept.build_kept(node)

    def note_change(self, query: InstalledQuery, version: int) -> None:
        """In a transaction: a query has changed, which made this version. Only that one is looked
        at, if the network follows all others already."""
        if self._state != (self._runtime.catalog.epoch, version - 1):
            self._runtime.reactions.synchronise()
            return
        self._state = (self._runtime.catalog.epoch, version)
        known, graph = self._queries.find(query.number), self._network.graph
        follows = known is not None and known.is_live and known.follows == "differential"
        view = self._view(known) if known is not None and follows else None
        name = name_of(query.number)
        with self._runtime.engine.connection.watch.shielded():
            node = graph.node(name)
            if view is None:
                if node is not None:
                    graph.remove(name)
                self._compiled.pop((query.number, query.clauses.query), None)
            elif node is None or not node.keeps_plans_for(view):
                graph.insert(view, self)
                self._build(name)

    def _view(self, query: InstalledQuery) -> AnswerView | None:
        """A query that does not compile here, perhaps because a Python function is missing, must
        not prevent the database from being opened."""
        try:
            program = self.compiled(query).program
            prepare(program, self._runtime.catalog.hierarchy)
        except HarkenError as error:
            self._broken[query.number] = error.message
            return None
        return AnswerView(program=program, number=query.number, called=query.name)

    def refresh(self) -> None:
        if self._queries.version() != self._state[1]:
            self.synchronise()

    def after_undo(self) -> None:
        """The version may be used again for other queries. If the schema was rolled back as well,
        it is read again after this, and then the network follows once more."""
        if self._queries.version() != self._state[1]:
            self.synchronise()
            self._state = (-1, -1)

    def after_clearing(self) -> None:
        self._state = (-1, -1)

    def begin(self, query: InstalledQuery, answer: Counter[Row]) -> None:
        """In a transaction: this is the answer of an execution, from which changes count."""
        self.records.forget(query.number)
        if query.follows == "naive":
            self.records.add(query.number, answer)

    def start(self, number: int) -> None:
        """In a transaction that has begun to watch a query: what changed before does not count."""
        self._runtime.reactions.check_phase.run(IMMEDIATE)
        self._drop_received(number)
        self._redefined.pop(number, None)

    def _drop_received(self, number: int) -> None:
        """Savepoints hold the list that there was before."""
        self._received = [each for each in self._received if _number(each.view) != number]

    def switch(self, query: InstalledQuery) -> None:
        """In a transaction: find the difference in another way from now on, with the answer of the
        last execution as before."""
        self._runtime.reactions.check_phase.run(IMMEDIATE)
        number, weights = query.number, self.rows(query)
        weights.subtract(self.records.rows(number))
        if query.follows == "differential":
            weights.subtract(self._net().get(number, Counter()))
            self._drop_received(number)
        self.records.forget(number)
        self.records.add(number, weights)

    def forget_query(self, number: int) -> None:
        """In a transaction: the query is gone."""
        self.records.forget(number)
        self._drop_received(number)

    # --- changes of the schema -----------------------------------------------------------------

    def before_schema_change(self, names: Collection[str] | None) -> None:
        """What a redefinition changes is in no Δ-set: the answers before it are compared with those
        at the end of the transaction."""
        concerned = [
            each
            for each in map(self._query_of, self._network.graph.views_of(self))
            if each is not None
            and each.number not in self._redefined
            and (names is None or not self._mentioned(each).isdisjoint(names))
        ]
        if not concerned:
            return
        self._runtime.reactions.check_phase.run(IMMEDIATE)
        for query in concerned:
            try:
                before = self.compiled(query).columns, self.rows(query)
            except HarkenError:
                self._redefined[query.number] = None
            else:
                self._redefined[query.number] = before
            self._kept_so_far[query.number] = self._net().get(query.number, Counter())

    def _query_of(self, view: WatchedView) -> InstalledQuery | None:
        assert isinstance(view, AnswerView)
        return self._queries.find(view.number)

    def _mentioned(self, query: InstalledQuery) -> set[str]:
        """The names of all functions that an answer depends on."""
        catalog, waiting = self._runtime.catalog, list(self.compiled(query).mentions)
        found = set(waiting)
        while waiting:
            for each in catalog.overloads(waiting.pop()):
                called = catalog.dependencies(each.id).functions - found
                found |= called
                waiting += called
        return found

    def _compared(self, number: int) -> Counter[Row] | None:
        """How a redefinition has changed an answer; None if nobody can say."""
        query, before = self._queries.find(number), self._redefined[number]
        if query is None or before is None:
            return None
        columns, rows = before
        if self.compiled(query).columns != columns:
            return None
        found = self.rows(query)
        found.subtract(rows)
        found.update(self._kept_so_far[number])
        return found

    def users_of(self, function: Function) -> list[InstalledQuery]:
        """The queries that read a function, for whoever wants to delete it."""
        return [
            query
            for query in self._live()
            if query.number not in self._broken and function.name in self._mentioned(query)
        ]

    def check(self) -> None:
        """After a change of the schema: every query must still compile."""
        for query in self._live():
            if query.number in self._broken:
                continue
            try:
                program = self.compiled(query).program
                prepare(program, self._runtime.catalog.hierarchy)
            except HarkenError as error:
                raise IntegrityError(
                    f"this would break {query.title}: {error.message}",
                    code="in-use",
                    hint=f"first {query.ending}",
                ) from error

    def _live(self) -> list[InstalledQuery]:
        return [each for each in self._queries.all() if each.is_live]

    # --- the open transaction ------------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        if change.plus or change.minus or change.fresh or change.failure:
            self._received.append(change)

    def note_failure(self, view: WatchedView, error: HarkenError) -> None:
        assert isinstance(view, AnswerView)
        self.records.note_trouble(view.number, FAILING, error.message)

    def snapshot(self) -> object:
        return self._received, len(self._received), dict(self._redefined)

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._received, length, self._redefined = state
        del self._received[length:]

    def forget(self) -> None:
        if self._received or self._redefined:
            self._received = []
            self._redefined.clear()
            self._kept_so_far.clear()

    def record(self) -> bool:
        """Before what is done because an answer has changed."""
        self.flush()
        return False

    def before_commit(self) -> None:
        if self._received or self._redefined or self._broken:
            self.flush()

    def flush(self) -> None:
        """Add what the transaction changed to what is kept."""
        for number, error in self._broken.items():
            if self.records.trouble(number) is None:
                self.records.note_trouble(number, LOST, error)
        weights = self._net()
        for number in self._redefined:
            compared = self._compared(number)
            if compared is None:
                weights.pop(number, None)
                self.records.note_trouble(number, LOST, "what it reads was redefined")
            else:
                weights[number] = compared
        for number in self._recovered():
            self.records.settle(number)
        for number, weight in weights.items():
            self.records.add(number, weight)
        self.forget()
        if weights:
            self.when_changed(set(weights))

    def _net(self) -> dict[int, Counter[Row]]:
        """The changes that the network has found in this transaction, summed up."""
        weights: dict[int, Counter[Row]] = {}
        for change in self._received:
            weight = weights.setdefault(_number(change.view), Counter())
            weight.update(change.plus)
            weight.subtract(change.minus)
        return weights

    def _recovered(self) -> set[int]:
        """The answers that can be computed again."""
        found = set[int]()
        for change in self._received:
            if change.failure is not None:
                found.discard(_number(change.view))
            elif change.fresh:
                found.add(_number(change.view))
        return found

    # --- executions ----------------------------------------------------------------------------

    def take(self, query: InstalledQuery) -> Difference:
        """In a transaction: the difference since the last execution, which is this one from now
        on. An answer that cannot be computed is an error, and nothing is taken."""
        trouble = self.records.trouble(query.number)
        if query.follows == "naive":
            return self._compare(query)
        weights, size = Counter[Row](), None
        if trouble is not None:
            weights = self.rows(query)  # fails if it still cannot be computed
            size = weights.total()
        if trouble is None or trouble[0] == FAILING:  # until now it has counted as empty
            weights.update(self.records.rows(query.number))
        self.records.forget(query.number)
        return difference_of(weights, size)

    def _compare(self, query: InstalledQuery) -> Difference:
        weights = self.rows(query)
        size = weights.total()
        weights.subtract(self.records.rows(query.number))
        self.records.add(query.number, weights)
        return difference_of(weights, size)


def name_of(number: int) -> str:
    """The name of a query's answer in the network."""
    return f"answer {number}"


def _number(view: WatchedView) -> int:
    assert isinstance(view, AnswerView)
    return view.number


def difference_of(weights: Counter[Row], size: int | None = None) -> Difference:
    plus = Counter({row: weight for row, weight in weights.items() if weight > 0})
    minus = Counter({row: -weight for row, weight in weights.items() if weight < 0})
    return Difference(in_order(plus), in_order(minus), size)


def in_order(rows: Counter[Row]) -> list[Row]:
    """Sorted rows, NULL first."""

    def place(row: Row) -> Row:
        return tuple((value is not None, value) for value in row)

    return sorted(rows.elements(), key=place)
