"""Derived functions under watch: their change by the calculus, against their two states.

`Watching` keeps the Δ-sets of everything the functions depend on. After each transaction it
demands of every function that

    by differentials  =  by evaluating both states  =  state now − state before

where a change is a count for each row: +1 and −1 for a set, any number for a bag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harken import Database
from harken.calculus.bags import differentiate_bag, recompute_bag
from harken.calculus.differentials import Change, differentiate, recompute
from harken.calculus.states import delta, in_old_state
from harken.engines.protocol import Query
from harken.engines.sqlite.change_capture import CapturedDelta
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.assemble import assemble
from harken.ir.clauses import Program, atoms
from harken.ir.relations import Kind, Relation
from harken.ir.safety import required_inputs
from harken.planner.expand import expand
from harken.planner.prepare import prepare

Row = tuple[Any, ...]
Weights = dict[Row, int]
"""How often each row was gained (or lost, if negative). No row has weight 0."""


def difference(now: Mapping[Row, int], before: Mapping[Row, int]) -> Weights:
    """
    >>> difference({(1,): 2, (3,): 1}, {(1,): 2, (2,): 1})
    {(3,): 1, (2,): -1}
    """
    weights = {row: now.get(row, 0) - before.get(row, 0) for row in (*now, *before)}
    return {row: weight for row, weight in weights.items() if weight}


def signed(plus: Iterable[Row], minus: Iterable[Row]) -> Weights:
    """Two sets of rows as one change. A row that is in a set twice weighs 2, which no set may."""
    return difference(Counter(plus), Counter(minus))


def influents(program: Program) -> dict[str, Relation]:
    """The stored relations that a program reads."""
    return {
        atom.relation.id: atom.relation
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
        if atom.relation.kind is Kind.STORED
    }


@dataclass
class Watch:
    """One program, whose changes are asked for again and again; statements are made once."""

    db: Database
    name: str
    program: Program
    influents: dict[str, Relation] = field(init=False)
    before: Counter[Row] = field(init=False)
    _queries: dict[Any, tuple[Query, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.influents = influents(self.program)
        self.before = self.state()

    @property
    def is_bag(self) -> bool:
        return not self.program.goal.is_set

    def state(self) -> Counter[Row]:
        """The rows as the database has them now, all computed again."""
        (query,) = self._compiled("state", lambda: (self.program,))
        return Counter(query.rows(()))

    def change(self, changed: Collection[str]) -> Weights:
        """What the calculus says, given which relations have changed."""
        if self.is_bag:
            return self._by_weights(differentiate_bag, changed)
        plus, minus = self._signed(differentiate, changed)
        return signed(plus.rows(()), minus.rows(()))

    def recomputed(self, changed: Collection[str]) -> tuple[set[Row], set[Row]]:
        """The rows gained and lost according to `recompute`: a bag is taken as a set."""
        plus, minus = self._signed(recompute, changed)
        return set(plus.rows(())), set(minus.rows(()))

    def recounted(self, changed: Collection[str]) -> Weights:
        """The change of a bag according to `recompute_bag`."""
        return self._by_weights(recompute_bag, changed)

    def old_state(self, changed: Collection[str]) -> Counter[Row]:
        """The rows before the changes, by logical rollback."""
        key = ("old", frozenset(changed))
        (query,) = self._compiled(key, lambda: (in_old_state(self.program, changed),))
        return Counter(query.rows(()))

    def candidates(self, changed: Collection[str]) -> Counter[Row]:
        """Δ+P without the check against the old state: what a nervous rule reacts to."""

        def nervous() -> tuple[Program]:
            return (differentiate(self.program, changed, checked=False).plus,)

        (query,) = self._compiled(("nervous", frozenset(changed)), nervous)
        return Counter(query.rows(()))

    def _signed(
        self, method: Callable[[Program, Collection[str]], Change], changed: Collection[str]
    ) -> tuple[Query, ...]:
        def programs() -> tuple[Program, Program]:
            change = method(self.program, changed)
            return change.plus, change.minus

        return self._compiled((method.__name__, frozenset(changed)), programs)

    def _by_weights(
        self, method: Callable[[Program, Collection[str]], Program], changed: Collection[str]
    ) -> Weights:
        (query,) = self._compiled(
            (method.__name__, frozenset(changed)), lambda: (method(self.program, changed),)
        )
        total: Counter[Row] = Counter()
        for *row, weight in query.rows(()):
            total[tuple(row)] += weight
        return difference(total, {})

    def _compiled(self, key: Any, programs: Callable[[], tuple[Program, ...]]) -> tuple[Query, ...]:
        if key not in self._queries:
            runtime = self.db.internals.runtime
            hierarchy = runtime.catalog.hierarchy
            self._queries[key] = tuple(
                runtime.engine.compile(prepare(each, hierarchy)) for each in programs()
            )
        return self._queries[key]


def program_of(db: Database, name: str, expanded: bool = True) -> Program:
    """The clauses of a derived function; `expanded` as rules do it, down to what is stored."""
    catalog = db.internals.catalog
    relation = db.internals.relation(name)
    assert relation is not None
    program = assemble(relation, (), catalog)
    return expand(program, catalog.hierarchy, required_inputs(program)) if expanded else program


class Watching:
    """A database with functions under watch."""

    def __init__(self, db: Database, names: Iterable[str] = (), expanded: bool = True) -> None:
        self.db = db
        self.watches: dict[str, Watch] = {}
        self.delta_sets: dict[str, CapturedDelta] = {}
        self.tables: dict[str, Counter[Row]] = {}
        """What the captured relations held when their Δ-sets were last empty."""
        for name in names:
            self.watch(Watch(db, name, program_of(db, name, expanded)))

    def watch(self, watch: Watch) -> None:
        self.watches[watch.name] = watch
        for relation in watch.influents.values():
            self.capture(relation)

    def capture(self, relation: Relation) -> None:
        if relation.id not in self.delta_sets:
            self.delta_sets[relation.id] = CapturedDelta(self.db.internals.connection, relation)
            self.delta_sets[relation.id].capture()
            self.tables[relation.id] = self.rows(relation)

    # --- Δ-sets ----------------------------------------------------------------------------

    def rows(self, relation: Relation) -> Counter[Row]:
        columns = ", ".join(f"c{i}" for i in range(relation.arity))
        table = quote(table_name(relation))
        return Counter(self.db.internals.connection.rows(f"SELECT {columns} FROM main.{table}"))

    def deltas(self) -> dict[str, Weights]:
        """The Δ-sets that are not empty."""
        found = {}
        for name, delta_set in self.delta_sets.items():
            table = f"temp.{quote(delta(delta_set.relation).id)}"
            rows = self.db.internals.connection.rows(f"SELECT * FROM {table}")
            found[name] = {tuple(row): weight for *row, weight in rows if weight}
        return {name: weights for name, weights in found.items() if weights}

    def put(self, deltas: Mapping[str, Weights]) -> None:
        """Let the Δ-sets be these."""
        for name, delta_set in self.delta_sets.items():
            self._fill(delta_set, deltas.get(name, {}))

    def give(self, relation: Relation, change: Weights) -> None:
        """Let a derived relation have a Δ-set, as a node of a network has one."""
        delta_set = CapturedDelta(self.db.internals.connection, relation)
        delta_set.create()
        self._fill(delta_set, change)

    def _fill(self, delta_set: CapturedDelta, change: Weights) -> None:
        delta_set.clear()
        table = f"temp.{quote(delta(delta_set.relation).id)}"
        marks = ", ".join("?" for _ in range(delta_set.relation.arity + 1))
        for row, weight in change.items():
            self.db.internals.connection.run(
                f"INSERT INTO {table} VALUES ({marks})", (*row, weight)
            )

    def forget(self) -> None:
        """Make what the database holds now the state before."""
        for name, delta_set in self.delta_sets.items():
            delta_set.clear()
            self.tables[name] = self.rows(delta_set.relation)
        for watch in self.watches.values():
            watch.before = watch.state()

    # --- the law ---------------------------------------------------------------------------

    def run(self, text: str) -> dict[str, Weights]:
        """Run a transaction, demand the law of every function, and forget the changes."""
        self.db.amosql(text)
        found = self.check()
        self.forget()
        return found

    def check(self) -> dict[str, Weights]:
        """The changes of all functions since the last time; an AssertionError if one is wrong."""
        deltas = self.deltas()
        for name, delta_set in self.delta_sets.items():
            moved = difference(self.rows(delta_set.relation), self.tables[name])
            assert deltas.get(name, {}) == moved, f"the Δ-set of {name} is wrong"
        return {
            name: self.check_one(watch, set(deltas).intersection(watch.influents))
            for name, watch in self.watches.items()
        }

    def check_one(self, watch: Watch, changed: Collection[str]) -> Weights:
        now = watch.state()
        wanted = difference(now, watch.before)
        found = watch.change(changed)
        told = f"Δ{watch.name} when {', '.join(sorted(changed)) or 'nothing'} changed"
        assert found == wanted, f"{told}: differentials give {found}, the states {wanted}"
        again = signed(*watch.recomputed(watch.influents))
        moved = difference(dict.fromkeys(now, 1), dict.fromkeys(watch.before, 1))
        assert again == moved, f"{told}: recompute gives {again}, the states {moved}"
        if watch.is_bag:
            counted = watch.recounted(watch.influents)
            assert counted == wanted, f"{told}: recompute_bag gives {counted}, not {wanted}"
        before = watch.old_state(watch.influents)
        assert before == watch.before, f"{told}: the old state is {before}, not {watch.before}"
        return wanted


def size(program: Program) -> int:
    """How many stored relations the program would join if everything were written out."""
    known: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in known:
            known[name] = 1  # what a recursive relation says of itself
            definition = program.definitions.get(name)
            if definition is not None:
                known[name] = sum(
                    of(atom.relation.id)
                    for clause in definition.clauses
                    for atom in atoms(clause.body)
                )
        return known[name]

    return of(program.goal.id)
