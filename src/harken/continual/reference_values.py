"""Previous values: what the rows of a table were at the last execution of each query.

    previous(K, from, to, there, V)    for executions at positions p with from ≤ p < to, the row
                                       with the key K was V then, and has changed since

The network tells which rows of a table changed; only those have previous values, so an execution
moves the reference of every row by moving one position, and costs as much as what it can forget.
Positions count the transactions that changed something followed or executed something.

Law: for a query at position p and each key, the row was V at its last execution, for the one entry
that covers p; without an entry it is now what it was then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from harken.continual.trigger_conditions import POSITIONS, Reference
from harken.database.runtime import Runtime
from harken.engines.protocol import COUNTERS, Query
from harken.ir.clauses import Atom, Clause, Comparison, Definition, Program
from harken.ir.relations import Kind, Relation, Role
from harken.ir.terms import Parameter, Variable
from harken.planner.prepare import prepare
from harken.propagation.wave import ViewChange
from harken.values.rows import Row
from harken.values.types import INTEGER

POSITION, LATEST = "position", "latest execution"
"""The counters of the file: positions that were given away, and the last of an execution."""


@dataclass(slots=True)
class _Followed:
    """A table whose previous values are kept."""

    reference: Reference
    users: int = 0
    weights: Counter[Row] = field(default_factory=Counter)
    """What has changed since the entries were written."""
    at_start: dict[Row, Row | None] = field(default_factory=dict)
    """The rows at the start of the transaction of the keys that it has changed."""
    written: dict[Row, Row] = field(default_factory=dict)
    """The entries that the transaction has added, by key."""


class ReferenceValues:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._engine = runtime.engine
        self._records = runtime.engine.connection.records
        self._followed: dict[str, _Followed] = {}
        """By the name of the view of the rows."""
        self._number: int | None = None
        """The position of the open transaction."""
        self._queries: dict[str, Query] = {}
        self._epoch = -1

    # --- what is followed ------------------------------------------------------------------

    @property
    def has_any(self) -> bool:
        """Whether there is something to forget at the end of a transaction."""
        return self._number is not None or bool(self._followed)

    def follows(self, view: str) -> bool:
        return view in self._followed

    def join(self, reference: Reference) -> bool:
        """Follow a table for one more leaf; whether it was not followed before."""
        name = reference.rows.name
        known = self._followed.get(name)
        if known is None:
            known = self._followed[name] = _Followed(reference)
        known.users += 1
        return known.users == 1

    def leave(self, reference: Reference) -> bool:
        """Whether nobody uses the table any longer."""
        known = self._followed[reference.rows.name]
        known.users -= 1
        if known.users == 0:
            del self._followed[reference.rows.name]
        return known.users == 0

    def clear(self) -> None:
        self._followed.clear()

    def make_room(self, references: Iterable[Reference]) -> None:
        """In a transaction: create the tables."""
        for relation in (POSITIONS, *(each.relation for each in references)):
            if not self._engine.exists(relation):
                self._engine.create(relation)

    # --- positions -------------------------------------------------------------------------

    def move(self, subscriptions: Sequence[int], references: Iterable[Reference]) -> None:
        """In a transaction: these subscriptions were executed."""
        here = self._position()
        left = set()
        for each in subscriptions:
            left |= {position for (position,) in self._engine.results(POSITIONS, (each,))}
            self._engine.set_row(POSITIONS, (each, here))
        self._records.add(COUNTERS, (LATEST, here), replace=True)
        self._forget(left, references)

    def remove(self, subscriptions: Sequence[int], references: Iterable[Reference]) -> None:
        """In a transaction: these subscriptions have ended."""
        left = set()
        for each in subscriptions:
            left |= {position for (position,) in self._engine.results(POSITIONS, (each,))}
            self._engine.clear(POSITIONS, (each,))
        self._forget(left, references)

    def _position(self) -> int:
        if self._number is None:
            self._number = self._records.count_up(POSITION)
        return self._number

    def _forget(self, left: Iterable[int], references: Iterable[Reference]) -> None:
        """Remove the entries that covered a position, if they cover no other."""
        for position in left:
            for reference in references:
                for row in self._entries(reference, position):
                    start, end = row[reference.key], row[reference.key + 1]
                    if not self._is_covered(start, end):
                        self._engine.remove_row(reference.relation, row)

    # --- changes ---------------------------------------------------------------------------

    def note(self, change: ViewChange) -> None:
        followed = self._followed[change.view.name]
        if change.fresh:
            followed.weights.clear()
            return
        followed.weights.update(change.plus)
        followed.weights.subtract(change.minus)

    def write(self) -> bool:
        """In a transaction: record what the rows that changed were before it. Whether anything was
        recorded."""
        found = False
        for followed in self._followed.values():
            if followed.weights:
                weights = followed.weights
                followed.weights = Counter()
                for key, (was, now) in _by_key(weights, followed.reference.key).items():
                    found |= self._record(followed, key, was, now)
        return found

    def _record(self, followed: _Followed, key: Row, was: Row | None, now: Row | None) -> bool:
        at_start = followed.at_start.setdefault(key, was)
        relation = followed.reference.relation
        written = followed.written.pop(key, None)
        if written is not None and at_start != now:
            followed.written[key] = written
            return False
        if written is not None:  # it is again what it was
            self._engine.remove_row(relation, written)
            return True
        if at_start == now:
            return False
        start = max((row[1] for row in self._engine.results(relation, key)), default=0)
        if self._latest() < start:
            return False  # nobody was executed while it had this value
        width = relation.arity - followed.reference.key - 3
        values = at_start[followed.reference.key :] if at_start is not None else (None,) * width
        entry = (*key, start, self._position(), int(at_start is not None), *values)
        self._engine.insert_many(relation, [entry])
        followed.written[key] = entry
        return True

    def _latest(self) -> int:
        found = self._records.find(COUNTERS, {"key": LATEST})
        return int(found[0][1]) if found else 0

    def snapshot(self) -> object:
        return self._number, {
            name: (Counter(each.weights), dict(each.at_start), dict(each.written))
            for name, each in self._followed.items()
            if each.weights or each.at_start
        }

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._number, kept = state
        for name, each in self._followed.items():
            weights, at_start, written = kept.get(name, (Counter(), {}, {}))
            each.weights, each.at_start = Counter(weights), dict(at_start)
            each.written = dict(written)

    def forget(self) -> None:
        """The transaction is over."""
        self._number = None
        for each in self._followed.values():
            each.weights.clear()
            each.at_start.clear()
            each.written.clear()

    # --- queries ---------------------------------------------------------------------------

    def _entries(self, reference: Reference, position: int) -> list[Row]:
        """The entries that cover a position."""
        relation = reference.relation
        if not self._engine.exists(relation):
            return []
        self._engine.indexes.ensure([(relation, (reference.key + 1,))])
        row = tuple(Variable(f"X{i}", each.type) for i, each in enumerate(relation.columns))
        given = Parameter(0, INTEGER)
        tests = (
            Comparison("<=", row[reference.key], given),
            Comparison(">", row[reference.key + 1], given),
        )

        def program() -> Program:
            goal = relation.variant(Role.AUXILIARY, f"covering {relation.name}", kind=Kind.DERIVED)
            clause = Clause(Atom(goal, row), (Atom(relation, row), *tests))
            return Program(goal, {goal.id: Definition(goal, (clause,))})

        return self._query(relation.id, program).rows((position,))

    def _is_covered(self, start: int, end: int) -> bool:
        def program() -> Program:
            self._engine.indexes.ensure([(POSITIONS, (1,))])
            goal = Relation("is covered", (), 0, Kind.DERIVED, role=Role.AUXILIARY)
            who, at = Variable("S", INTEGER), Variable("P", INTEGER)
            tests = (
                Comparison(">=", at, Parameter(0, INTEGER)),
                Comparison("<", at, Parameter(1, INTEGER)),
            )
            clause = Clause(Atom(goal, ()), (Atom(POSITIONS, (who, at)), *tests))
            return Program(goal, {goal.id: Definition(goal, (clause,))})

        return bool(self._query("is covered", program).rows((start, end)))

    def _query(self, name: str, program: Callable[[], Program]) -> Query:
        catalog = self._runtime.catalog
        if self._epoch != catalog.epoch:
            for each in self._queries.values():
                each.release()
            self._queries.clear()
            self._epoch = catalog.epoch
        if name not in self._queries:
            plan = prepare(program(), catalog.hierarchy)
            self._queries[name] = self._engine.compile(plan)
        return self._queries[name]


def _by_key(weights: Counter[Row], width: int) -> dict[Row, tuple[Row | None, Row | None]]:
    """What the row of each key was, and what it is."""
    found: dict[Row, tuple[Row | None, Row | None]] = {}
    for row, weight in weights.items():
        if weight:
            was, now = found.get(row[:width], (None, None))
            found[row[:width]] = (row, now) if weight < 0 else (was, row)
    return found
