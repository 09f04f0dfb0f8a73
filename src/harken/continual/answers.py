"""Follows the answers of continual queries: a consumer of the network.

Every session on the file watches the queries whose changes are followed, so whoever changes the
data adds the change of each answer to what is kept in the file, in the same transaction. An
execution takes it. A query that cannot be computed at present fails no transaction: its answer
counts as empty until it can be computed again.

Law: what `take` returns is the difference of the answers of two executions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from harken.continual.answer_changes import Difference, Received, difference_of
from harken.continual.answer_choices import AnswerChoices, Followed, in_words
from harken.continual.answer_places import AnswerPlaces, Selection, Selections, summed
from harken.continual.answer_records import FAILING, LOST, AnswerRecords
from harken.continual.compiled_queries import CompiledQuery, Compiler, LiftedCompiler
from harken.continual.installed_queries import InstalledQueries, InstalledQuery
from harken.continual.triggered_rows import holding
from harken.database.runtime import Runtime
from harken.errors import HarkenError, IntegrityError
from harken.ir.clauses import stored_relations
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.planner.prepare import prepare
from harken.propagation.consumer import IMMEDIATE, Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row


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
        self._received: list[Received] = []
        self._failed: set[str] = set()
        """The views that could not be computed at some point of the open transaction."""
        self._failing_now: set[int] = set()
        """The queries that have begun to fail in it."""
        self._broken: dict[int, str] = {}
        """Queries that cannot be compiled here, and why."""
        self._state: tuple[int, int] = (-1, -1)
        """The schema and the version of the queries that the network follows."""
        self._redefined: dict[int, tuple[tuple[Column, ...], Counter[Row]] | None] = {}
        """The columns and answers of queries before the open transaction redefined what they read;
        None if they could not be computed."""
        self._kept_so_far: dict[int, Counter[Row]] = {}
        """The changes of those answers before that."""
        self.triggered: Callable[[InstalledQuery], Relation | None] = lambda query: None
        """The relation of the rows for which the trigger of a query became true."""
        self._compiled: dict[int, tuple[tuple[int, str], CompiledQuery]] = {}
        """By number, with the epoch and the text."""
        self._prepared: tuple[int, set[str]] = (-1, set())
        """The views that are known to compile with the present catalog."""
        self._places = AnswerPlaces(runtime.engine, network, self)
        self._selections = Selections(runtime.catalog)
        self.choices = AnswerChoices(runtime, network)
        self.lifted: LiftedCompiler = lambda text: None
        """Compiles queries that differ in constants at once."""

    # --- compiling -----------------------------------------------------------------------------

    def compiled(self, query: InstalledQuery, base: int = 0) -> CompiledQuery:
        """`base` is where the query starts in its statement, for the places of errors."""
        text = f"{query.clauses.query}\n{query.clauses.trigger}"
        key = self._runtime.catalog.epoch, text
        known = self._compiled.get(query.number)
        if known is not None and known[0] == key:
            return known[1]
        owner = f"continual query {query.number}"
        found = self._compile(query.clauses.query, owner, base, self.triggered(query))
        self._compiled[query.number] = key, found
        return found

    def rows(
        self, query: InstalledQuery, triggered: Sequence[Mapping[str, Any]] = ()
    ) -> Counter[Row]:
        """The whole present answer, where these rows triggered it."""
        relation = self.compiled(query).triggered
        if relation is None:
            return self._present(query)
        with holding(self._runtime.engine, relation, triggered):
            return self._present(query)

    def _present(self, query: InstalledQuery) -> Counter[Row]:
        program = self.compiled(query).program
        plan = prepare(program, self._runtime.catalog.hierarchy)
        connection = self._runtime.engine.connection
        started = connection.working_time()
        self._runtime.engine.measure()
        found = Counter(self._runtime.engine.compile(plan).rows(()))
        self.choices.note_recomputed(query.number, connection.working_time() - started)
        return found

    # --- watching ------------------------------------------------------------------------------

    def synchronise(self) -> None:
        version = self._queries.version()
        state = self._runtime.catalog.epoch, version
        if state == self._state:
            return
        epoch, before = self._state
        self._state = state
        changed = self._queries.changed_since(before) if epoch == state[0] else None
        if changed is None:
            self._follow_all(version)
            return
        for number in changed:
            self._follow(number)

    def _follow_all(self, version: int) -> None:
        self._broken.clear()
        queries = self._queries.all() if version else []
        wanted = {each.number: found for each in queries if (found := self._selection(each))}
        for number in self._compiled.keys() - {each.number for each in queries}:
            del self._compiled[number]
        with self._runtime.engine.connection.watch.shielded():
            self._places.hold(wanted)

    def _follow(self, number: int) -> None:
        """Follow a query as it is now in the file."""
        self._broken.pop(number, None)
        query = self._queries.find(number)
        selection = None if query is None else self._selection(query)
        with self._runtime.engine.connection.watch.shielded():
            if selection is not None:
                self._places.join(number, selection)
                return
            self._places.leave(number)
        self._compiled.pop(number, None)

    def note_change(self, query: InstalledQuery, version: int) -> None:
        """In a transaction: a query has changed, which made this version. Only that one is looked
        at, if the network follows all others already."""
        if self._state != (self._runtime.catalog.epoch, version - 1):
            self._runtime.reactions.synchronise()
            return
        self._state = (self._runtime.catalog.epoch, version)
        self._follow(query.number)

    def _selection(self, query: InstalledQuery) -> Selection | None:
        """The view of a query whose changes are followed. One that does not compile here, perhaps
        because a Python function is missing, must not prevent the database from being opened."""
        if not query.is_live or query.follows != "differential":
            return None
        try:
            return self._selected(query)
        except HarkenError as error:
            self._broken[query.number] = error.message
            return None

    def _selected(self, query: InstalledQuery) -> Selection:
        """Raises if the query does not compile."""
        catalog = self._runtime.catalog
        found = self._selections.lifted(self.lifted(query.clauses.query), query.name)
        if found is None:
            found = self._selections.compiled(query, self.compiled(query))
        if self._prepared[0] != catalog.epoch:
            self._prepared = catalog.epoch, set()
        if found.view.name not in self._prepared[1]:
            prepare(found.view.program, catalog.hierarchy)
            self._prepared[1].add(found.view.name)
        return found

    def refresh(self) -> None:
        if self._queries.version() != self._state[1]:
            self.synchronise()

    def after_undo(self) -> None:
        """The version may be used again for other queries. If the schema was rolled back as well,
        it is read again after this, and then the network follows once more."""
        self._places.restore()
        if self._queries.version() != self._state[1]:
            self.synchronise()
            self._state = (-1, -1)

    def after_clearing(self) -> None:
        self._places.clear()
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
        self._received = [each.without(number) for each in self._received]

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
        self.choices.forget(number)
        self._drop_received(number)

    def choose(self, query: InstalledQuery) -> str:
        """In the transaction of an execution: how the next difference is to be found."""
        view = self._places.view_of(query.number)
        node = None if view is None else self._network.graph.node(view.name)
        made = self.choices.decide(
            Followed(
                query.number,
                node,
                1 if view is None else len(self._places.at(view)),
                stored_relations(self.compiled(query).program),
            )
        )
        if made is None:
            return query.follows
        return "differential" if made.strategy == Strategy.INCREMENTAL else "naive"

    def explained(self, query: InstalledQuery) -> list[str]:
        """How the difference of a query is found, and why."""
        untold, strategy = self.compiled(query).untold, query.clauses.strategy
        found = "the sum of the changes of its answer, as the network finds them"
        if query.follows == "naive":
            found = "its answer is recomputed and compared with that of the last execution"
        if untold or strategy != "auto":
            return [f"difference: {found} ({untold or f'STRATEGY {strategy}'})"]
        made = self.choices.known(query.number)
        why = "not compared yet" if made is None else in_words(made)
        return [f"difference: {found}", f"decision: {why}"]

    # --- changes of the schema -----------------------------------------------------------------

    def before_schema_change(self, names: Collection[str] | None) -> None:
        """What a redefinition changes is in no Δ-set: the answers before it are compared with those
        at the end of the transaction."""
        concerned = [
            query
            for view in self._network.graph.views_of(self)
            if self._mentions(view, names)
            for query in map(self._queries.find, self._places.at(view))
            if query is not None and query.number not in self._redefined
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

    def _mentions(self, view: WatchedView, names: Collection[str] | None) -> bool:
        """Whether the queries of a view depend on any of these functions. All of them do, or none,
        because they differ in constants only."""
        number = next(iter(self._places.at(view)), None)
        query = None if number is None else self._queries.find(number)
        if query is None:
            return False
        return names is None or not self._mentioned(self._mentions_of(query)).isdisjoint(names)

    def _mentions_of(self, query: InstalledQuery) -> frozenset[str]:
        """The names that its text mentions: those of all queries that differ in constants are one
        object."""
        found = self.lifted(query.clauses.query)
        return self.compiled(query).mentions if found is None else found[0].mentions

    def _mentioned(self, mentions: Collection[str]) -> set[str]:
        """The names of all functions that an answer depends on."""
        catalog, waiting = self._runtime.catalog, list(mentions)
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

    def readers_of(self, names: Collection[str]) -> list[InstalledQuery]:
        """The queries whose answers depend on any of these."""
        reads: dict[frozenset[str], bool] = {}
        found = []
        for query in self._live():
            if query.number not in self._broken:
                mentions = self._mentions_of(query)
                if mentions not in reads:
                    reads[mentions] = not self._mentioned(mentions).isdisjoint(names)
                found += [query] if reads[mentions] else []
        return found

    def users_of(self, function: Function) -> list[InstalledQuery]:
        """The queries that read a function, for whoever wants to delete it."""
        return self.readers_of((function.name,))

    def check(self) -> None:
        """After a change of the schema: every query must still compile."""
        for query in self._live():
            if query.number in self._broken:
                continue
            try:
                if query.follows == "differential":
                    self._selected(query)
                else:
                    prepare(self.compiled(query).program, self._runtime.catalog.hierarchy)
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
        if not (change.plus or change.minus or change.fresh or change.failure):
            return
        view, has_failed = change.view, change.failure is not None
        found = summed(self._places, view, change.plus, change.minus)
        whole = not has_failed and (change.fresh or view.name in self._failed)
        concerned = set(found)
        if whole or has_failed:
            concerned.update(self._places.at(view))
        if has_failed:
            self._failed.add(view.name)
        self._received.append(Received(found, frozenset(concerned), has_failed, whole))

    def note_failure(self, view: WatchedView, error: HarkenError) -> None:
        for number in self._places.at(view):
            if self.records.trouble(number) is None:
                self._failing_now.add(number)
            self.records.note_trouble(number, FAILING, error.message)

    def snapshot(self) -> object:
        return self._received, len(self._received), dict(self._redefined)

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._received, length, self._redefined = state
        del self._received[length:]

    def forget(self) -> None:
        if self._received or self._redefined:
            self._received = []
            self._failed.clear()
            self._failing_now.clear()
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
        if self.records.has_troubles:
            self._recover(weights)
        for number, weight in weights.items():
            self.records.add(number, weight)
        self.forget()
        if weights:
            self.when_changed(set(weights))

    def _net(self) -> dict[int, Counter[Row]]:
        """The changes that the network has found in this transaction, summed up."""
        weights: dict[int, Counter[Row]] = {}
        for change in self._received:
            for number, found in change.rows.items():
                weights.setdefault(number, Counter()).update(found)
        return weights

    def _recover(self, weights: dict[int, Counter[Row]]) -> None:
        """An answer that failed before this transaction counts as empty, whatever has changed in
        it, until all of it is known."""
        concerned = {number for change in self._received for number in change.concerned}
        for number in concerned - self._failing_now:
            trouble = self.records.trouble(number)
            if trouble is None or trouble[0] != FAILING:
                continue
            weights.pop(number, None)
            known = self._since_whole(number)
            if known is not None:
                weights[number] = known
                self.records.settle(number)

    def _since_whole(self, number: int) -> Counter[Row] | None:
        """The answer, and what has changed in it since, if all of it has become known."""
        found: Counter[Row] | None = None
        for change in self._received:
            if number not in change.concerned:
                continue
            if change.failed:
                found = None
            elif change.whole or found is not None:
                found = Counter() if change.whole or found is None else found
                found.update(change.rows.get(number, {}))
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
        if trouble is not None and trouble[0] == FAILING:
            self._count_as_empty(query, trouble[1])
        return difference_of(weights, size)

    def _count_as_empty(self, query: InstalledQuery, error: str) -> None:
        """The answer can be computed, and the view that it shares with others cannot: until that
        can, the network takes the answer for empty."""
        gone = {row: -weight for row, weight in self.rows(query).items()}
        self.records.add(query.number, gone)
        self.records.note_trouble(query.number, FAILING, error)

    def _compare(self, query: InstalledQuery) -> Difference:
        weights = self.rows(query)
        size = weights.total()
        weights.subtract(self.records.rows(query.number))
        self.records.add(query.number, weights)
        return difference_of(weights, size)
