"""When the views over the clock change next, computed from the data.

Each test of the moment tells by itself when its outcome changes for some row. `at < now() - 60`
does so just after the least `at` that is not below `now() - 60`, plus 60 seconds; an index on `at`
finds it. A test of the calendar, `day = current_date()`, can only change at a boundary; whether
there is a row for which it does is asked boundary by boundary.

Law: between the moment of the clock and the next wake, no view over the clock changes while the
data stays; unless a view says that it is not followed (`planner.clock_views`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harken.calculus.clock import (
    NOW,
    ClockUses,
    RangeTest,
    Test,
    ValueTest,
    clauses_with_clock,
    is_clock,
)
from harken.calculus.clock_steps import Pace, is_followed, paces
from harken.engines.protocol import Engine, Query
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Definition,
    Literal,
    Program,
    literal_variables,
    substitute,
)
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import Needs, evaluable, required_inputs
from harken.ir.strata import reachable
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.maintenance.nodes import Planning, ViewNode
from harken.propagation.clock_moment import Clock
from harken.propagation.graph import Graph
from harken.values.encoding import decode_timestamp, decoder, encode_timestamp, encoder
from harken.values.types import TIMESTAMP

MOST_BOUNDARIES = 200
"""How many boundaries of the calendar are looked at in advance; after them one wakes to look on."""
MOST_SAME = 800
"""How many boundaries are passed over at which a value does not change at all."""
LAST = encode_timestamp(datetime.datetime.max.replace(tzinfo=datetime.UTC))


@dataclass(slots=True)
class Watch:
    """One test of the moment in one clause, with the queries that look ahead."""

    test: Test
    pace: Pace
    value: Callable[[int], Any]
    """The value of the moment's side, at a moment."""
    first: Callable[[Any, bool], Any]
    """The least value of the data's side above a bound, or also at it; None if there is none."""

    _found: list[tuple[Any, bool, Any]] = field(default_factory=list)
    """What was found ahead of which bound."""

    def next_change(self, moment: int) -> int | None:
        """The first moment after this one at which the outcome may change for some row."""
        self._found.clear()
        if self.pace.moves and not self.pace.cells:
            return self._inside(moment, None)
        return self._by_cells(moment)

    def _by_cells(self, moment: int) -> int | None:
        looked = 0
        after = None if self.pace.moves else self.value(moment)
        for _ in range(MOST_SAME):
            boundary = self.pace.next_boundary(moment)
            if boundary is None or boundary > LAST:
                return None
            if self.pace.moves:
                inside = self._inside(moment, boundary)
                if inside is not None:
                    return inside
            before = self.value(boundary - 1) if self.pace.moves else after
            after = self.value(boundary)
            if before != after:
                if self._changes_between(before, after):
                    return boundary
                looked += 1
            moment = boundary
            if looked >= MOST_BOUNDARIES:
                break
        return moment

    def _inside(self, moment: int, boundary: int | None) -> int | None:
        """The first change before a boundary, of a value that moves with the time."""
        assert isinstance(self.test, RangeTest)
        here = self.value(moment)
        includes = self.test.operator not in ("<=", ">")
        found = self._ahead(here, includes)
        if found is None:
            return None
        changed = moment + (found - here)
        if self.test.operator in ("<", ">=") or changed == moment:
            changed += 1
        return changed if changed <= LAST and (boundary is None or changed < boundary) else None

    def _ahead(self, bound: Any, inclusive: bool) -> Any:
        """The first value ahead of a bound; not asked again if it is ahead of an earlier bound,
        too, with this one between."""
        for start, included, found in self._found:
            if included == inclusive and start <= bound and (found is None or bound < found):
                return found
        found = self.first(bound, inclusive)
        self._found.append((bound, inclusive, found))
        return found

    def _changes_between(self, before: Any, after: Any) -> bool:
        """Whether a row has another outcome where the value jumps."""
        if isinstance(self.test, ValueTest):
            return True
        if before is None or after is None:
            return True
        low, high = min(before, after), max(before, after)
        match self.test.operator:
            case "<" | ">=":
                found = self._ahead(low, True)
                return found is not None and found < high
            case "<=" | ">":
                found = self._ahead(low, False)
                return found is not None and found <= high
        return bool(self._ahead(low, True) == low or self._ahead(high, True) == high)


@dataclass(slots=True)
class ClockWakes:
    """`next_wake` is when the network must move the clock next."""

    engine: Engine
    graph: Graph
    planning: Planning
    clock: Clock
    _version: int = -1
    _watches: list[Watch] = field(default_factory=list)
    _queries: list[Query] = field(default_factory=list)
    _known: tuple[object, int | None] | None = None

    def next_wake(self) -> datetime.datetime | None:
        if not self.clock.is_read:
            return None
        if self.clock.is_behind():
            return decode_timestamp(encode_timestamp(self.engine.connection.now()))
        found = self._next()
        return None if found is None else decode_timestamp(found)

    def _next(self) -> int | None:
        connection = self.engine.connection
        moment = encode_timestamp(self.clock.moment())
        state = (self.graph.version, moment, self.clock.changes, connection.data_version())
        if self._known is not None and self._known[0] == state and not connection.in_transaction:
            return self._known[1]
        with connection.snapshot():
            found = (watch.next_change(moment) for watch in self._all())
            earliest = min((each for each in found if each is not None), default=None)
        self._known = (state, earliest)
        return earliest

    def _all(self) -> list[Watch]:
        if self._version != self.graph.version:
            for query in self._queries:
                query.release()
            self._queries.clear()
            self._version = self.graph.version
            self._watches = list(self._made())
        return self._watches

    def _made(self) -> Iterator[Watch]:
        """A watch for each test of each clause; views that share a part share its clauses."""
        seen = set[tuple[Clause, Test]]()
        for node in list(self.graph.nodes.values()):
            if any(is_clock(each) for each in node.part.stored.values()):
                yield from self._of_node(node, seen)

    def _of_node(self, node: ViewNode, seen: set[tuple[Clause, Test]]) -> Iterator[Watch]:
        program = node.part.program
        needs = required_inputs(program)
        for definition, uses in clauses_with_clock(program):
            known = paces(uses)
            for test in uses.tests:
                pace = known[test.moment]
                key = (Clause(uses.clause.head, uses.clause.body), test)
                if key in seen or pace is None or not is_followed(test, known):
                    continue
                seen.add(key)
                first = self._first(test, uses, program, needs, definition)
                if first is not None:
                    yield Watch(test, pace, self._value(test.moment, uses), first)

    # --- the queries -------------------------------------------------------------------------

    def _value(self, wanted: Variable, uses: ClockUses) -> Callable[[int], Any]:
        if wanted == NOW:
            return lambda moment: moment
        given: dict[Variable, Term] = {NOW: Parameter(0, TIMESTAMP)}
        body = tuple(substitute(each, given) for each in uses.computed([wanted]))
        query = self._query("value of the clock", wanted, body, {})
        return lambda moment: query.rows((decode_timestamp(moment),))[0][0]

    def _first(
        self,
        test: Test,
        uses: ClockUses,
        program: Program,
        needs: Needs,
        definition: Definition,
    ) -> Callable[[Any, bool], Any] | None:
        if isinstance(test, ValueTest):
            return lambda bound, inclusive: None
        if isinstance(test.data, Constant):
            return _of_constant(encoder(test.data.type)(test.data.value))
        data = evaluable(uses.data(), needs)
        bound = {each for literal in data for each in literal_variables(literal)}
        if test.data not in bound:
            return None
        assert isinstance(test.data, Variable)
        self._index(test.data, data)
        queries = {
            inclusive: self._least(test.data, inclusive, data, program)
            for inclusive in (False, True)
        }
        decode = decoder(test.data.type) or (lambda stored: stored)
        return lambda bound, inclusive: queries[inclusive].rows((decode(bound),))[0][0]

    def _least(
        self, wanted: Variable, inclusive: bool, data: tuple[Literal, ...], program: Program
    ) -> Query:
        """The least value above a bound, among the rows that the data's literals give."""
        limit = Parameter(0, wanted.type.or_null(False))
        test = Comparison(">=" if inclusive else ">", wanted, limit)
        columns = (Column("at", wanted.type),)
        members = Relation(  # a bag: nobody need tell its rows apart
            "moments to come", columns, 0, Kind.DERIVED, Semantics.BAG, role=Role.AUXILIARY
        )
        found = Definition(members, (Clause(Atom(members, (wanted,)), (*data, test)),))
        result = Variable("LEAST#", wanted.type.or_null(True))
        least = Aggregation(result, "min", wanted, Atom(members, (wanted,)), (), or_null=True)
        known = {**program.definitions, members.id: found}
        return self._query("next moment", result, (least,), known)

    def _query(
        self,
        name: str,
        wanted: Variable,
        body: tuple[Literal, ...],
        known: dict[str, Definition],
    ) -> Query:
        columns = (Column("value", wanted.type),)
        goal = Relation(name, columns, 0, Kind.DERIVED, role=Role.AUXILIARY)
        own = Definition(goal, (Clause(Atom(goal, (wanted,)), body),))
        definitions = reachable(goal, {**known, goal.id: own})
        query = self.planning.compile(Program(goal, definitions))
        self._queries.append(query)
        return query

    def _index(self, wanted: Variable, data: tuple[Literal, ...]) -> None:
        """Have an index on the column that is compared with the clock."""
        for literal in data:
            if isinstance(literal, Atom) and literal.relation.kind is Kind.STORED:
                for position, term in enumerate(literal.terms):
                    if term == wanted and not literal.negated:
                        self.engine.indexes.ensure([(literal.relation, (position,))])


def _of_constant(value: Any) -> Callable[[Any, bool], Any]:
    """The same for a value that is written out."""

    def first(bound: Any, inclusive: bool) -> Any:
        return value if value > bound or (inclusive and value == bound) else None

    return first
