"""The reference engine: `engines/protocol.py` in plain Python, slow and obvious.

It keeps relations as lists of rows, undoes changes by putting a copy back, and evaluates plans by
the definition of ObjectLog. A relation without required inputs is evaluated as a whole, once; one
that needs inputs is evaluated for the values it is called with; a recursive stratum is repeated
from nothing until it stays the same. Objects are their numbers.

    rows(r) = the solutions of every clause of r, projected on its head
              (each once if r is a set, each as often as it is derived if r is a bag)

`database` holds the rows of each stored relation by the id of the relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from harken.engines.protocol import NO_ANSWERS, Answers, Query
from harken.ir.clauses import Aggregation, Atom, Clause, Comparison, Computation, Literal, Program
from harken.ir.relations import Kind, Relation
from harken.ir.safety import check_program, order
from harken.ir.strata import stratify
from harken.ir.terms import Constant, Parameter, Term, Variable
from harken.planner.prepare import Plan
from tests.engines.reference_capture import Changes, ReferenceCapture
from tests.engines.reference_records import ReferenceRecords
from tests.models.meanings import COMPARE, Failure, Row, aggregated, operate

Bindings = dict[Variable, Any]
Database = Mapping[str, Iterable[Row]]
Foreign = Mapping[str, Callable[..., Iterable[Row]]]


class EvaluationFailed(Exception):
    """An operation failed: `code` says how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def evaluate(
    program: Program,
    database: Database,
    parameters: Sequence[Any] = (),
    foreign: Foreign | None = None,
) -> Counter[Row]:
    """The rows of the goal with their multiplicities; SafetyFault if they cannot be found."""
    evaluation = _Evaluation(program, database, parameters, foreign or {})
    return Counter(evaluation.rows(program.goal, {}))


class _Evaluation:
    def __init__(
        self, program: Program, database: Database, parameters: Sequence[Any], foreign: Foreign
    ) -> None:
        self.program = program
        self.database = database
        self.parameters = parameters
        self.foreign = foreign
        self.needs = check_program(program)
        self.strata = {
            name: stratum
            for stratum in stratify(program)
            if stratum.recursive
            for name in stratum.names
        }
        self.known: dict[tuple[str, tuple[tuple[int, Any], ...]], list[Row]] = {}

    # --- relations -------------------------------------------------------------------------

    def rows(self, relation: Relation, given: Mapping[int, Any]) -> list[Row]:
        """The rows that have the given values in the given columns."""
        found = self._all(relation, given)
        return [row for row in found if all(row[i] == value for i, value in given.items())]

    def _all(self, relation: Relation, given: Mapping[int, Any]) -> list[Row]:
        """At least the wanted rows: all of them, where that needs no inputs."""
        if relation.kind is Kind.FOREIGN:
            inputs = tuple(given[i] for i in range(relation.inputs))
            return [(*inputs, *row) for row in self.foreign[relation.id](*inputs)]
        if relation.kind is Kind.STORED:
            return list(self.database.get(relation.id, ()))
        needed = sorted(self.needs.get(relation.id, ()))
        inputs = tuple((i, given[i]) for i in needed)
        key = (relation.id, inputs)
        if key not in self.known:
            if relation.id in self.strata:
                self._fixpoint(relation)
            else:
                self.known[key] = self._derived(relation, dict(inputs))
        return self.known[key]

    def _derived(self, relation: Relation, given: Mapping[int, Any]) -> list[Row]:
        definition = self.program.definitions[relation.id]
        found = [row for clause in definition.clauses for row in self._heads(clause, given)]
        return list(dict.fromkeys(found)) if relation.is_set else found

    def _fixpoint(self, relation: Relation) -> None:
        relations = [d.relation for d in self.strata[relation.id].definitions]
        for each in relations:
            self.known[each.id, ()] = []
        settled = False
        while not settled:
            settled = True
            for each in relations:
                rows = self._derived(each, {})
                settled = settled and set(rows) == set(self.known[each.id, ()])
                self.known[each.id, ()] = rows

    # --- clauses ---------------------------------------------------------------------------

    def _heads(self, clause: Clause, given: Mapping[int, Any]) -> Iterator[Row]:
        start = self._matched(clause.head.terms, given, {})
        if start is None:
            return
        body = order(clause.body, start, self.needs)
        for bindings in self._solutions(body, start):
            yield tuple(self._value(term, bindings) for term in clause.head.terms)

    def _solutions(self, body: Sequence[Literal], bindings: Bindings) -> Iterator[Bindings]:
        if not body:
            yield bindings
            return
        for extended in self._solve(body[0], bindings):
            yield from self._solutions(body[1:], extended)

    def _solve(self, literal: Literal, bindings: Bindings) -> Iterator[Bindings]:
        match literal:
            case Atom(negated=True):
                if not self._matches(literal, bindings):
                    yield bindings
            case Atom():
                yield from self._matches(literal, bindings)
            case Comparison():
                yield from self._compare(literal, bindings)
            case Computation():
                given = tuple(self._value(term, bindings) for term in literal.arguments)
                yield from self._bound(literal.result, self._operate(literal, given), bindings)
            case Aggregation():
                for value in self._aggregate(literal, bindings):
                    yield from self._bound(literal.result, value, bindings)

    def _matches(self, atom: Atom, bindings: Bindings) -> list[Bindings]:
        given = {
            position: self._value(term, bindings)
            for position, term in enumerate(atom.terms)
            if not isinstance(term, Variable) or term in bindings
        }
        matched = (
            self._matched(atom.terms, dict(enumerate(row)), bindings)
            for row in self.rows(atom.relation, given)
        )
        return [extended for extended in matched if extended is not None]

    def _matched(
        self, terms: Sequence[Term], values: Mapping[int, Any], bindings: Bindings
    ) -> Bindings | None:
        """The bindings under which the terms have the values, if there are any."""
        extended = dict(bindings)
        for position, value in values.items():
            term = terms[position]
            if isinstance(term, Variable) and term not in extended:
                extended[term] = value
            elif self._value(term, extended) != value:
                return None
        return extended

    def _bound(self, term: Term, value: Any, bindings: Bindings) -> Iterator[Bindings]:
        extended = self._matched((term,), {0: value}, bindings)
        if extended is not None:
            yield extended

    def _compare(self, literal: Comparison, bindings: Bindings) -> Iterator[Bindings]:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            if isinstance(left, Variable) and left not in bindings:
                left, right = right, left
            yield from self._bound(right, self._value(left, bindings), bindings)
        elif COMPARE[literal.operator](self._value(left, bindings), self._value(right, bindings)):
            yield bindings

    def _operate(self, literal: Computation, given: Row) -> Any:
        if literal.operation == "ambiguous":
            raise EvaluationFailed("ambiguous")
        outcome = operate(literal.operation, given)
        if isinstance(outcome, Failure):
            raise EvaluationFailed(outcome.code)
        return outcome[0]

    def _aggregate(self, literal: Aggregation, bindings: Bindings) -> list[Any]:
        """No value or one, over the rows that agree with the groups."""
        groups = {term: bindings[term] for term in literal.groups if isinstance(term, Variable)}
        private = [
            position
            for position, term in enumerate(literal.atom.terms)
            if isinstance(term, Variable) and term not in groups
        ]
        found = self._matches(literal.atom, groups)
        if literal.value is not None:
            rows = [(extended[literal.value],) for extended in found]
            type_name = literal.value.type.name
        else:
            rows = [
                tuple(extended[literal.atom.terms[i]] for i in private)  # type: ignore[index]
                for extended in found
            ]
            type_name = "integer"
        outcomes = aggregated(literal.aggregate, rows, type_name)
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                raise EvaluationFailed(outcome.code)
        return [outcome[0] for outcome in outcomes if isinstance(outcome, tuple)]

    def _value(self, term: Term, bindings: Bindings) -> Any:
        match term:
            case Variable():
                return bindings[term]
            case Constant():
                return term.value
            case Parameter():
                value = self.parameters[term.index]
                return float(value) if term.type.name == "number" else value


@dataclass
class ReferenceQuery:
    plan: Plan
    engine: ReferenceEngine

    @property
    def relation(self) -> Relation:
        return self.plan.program.goal

    def rows(self, values: Sequence[Any]) -> list[Row]:
        engine = self.engine
        return list(
            evaluate(
                self.plan.program,
                engine.state.rows | engine.capture.delta_rows(),
                values,
                engine.python,
            ).elements()
        )

    def summed(self) -> list[Row]:
        weights: Counter[Row] = Counter()
        for *row, weight in self.rows(()):
            weights[tuple(row)] += weight
        return [(*row, weight) for row, weight in weights.items() if weight]

    def counted(
        self, columns: Sequence[int], values: Sequence[int], present: int | None, many: bool
    ) -> list[Row] | None:
        groups: dict[Row, list[int]] = {}
        for row in self.rows(()):
            if present is None or row[present] is not None:
                group = groups.setdefault(tuple(row[i] for i in columns), [0] * (1 + len(values)))
                group[0] += 1
                for number, value in enumerate(values, start=1):
                    group[number] += row[value]
        return [(*by, *totals) for by, totals in groups.items()]

    def release(self) -> None:
        """There is nothing to release."""


@dataclass
class State:
    """All that a rollback puts back."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    records: ReferenceRecords = field(default_factory=ReferenceRecords)
    changes: Changes = field(default_factory=Changes)


class ReferenceEngine:
    def __init__(self) -> None:
        self.state = State()
        self.connection = ReferenceTransactions(self)
        self.numbers = ReferenceNumbers(self)
        self.python: dict[str, Callable[..., Iterable[Row]]] = {}
        self.capture = ReferenceCapture(lambda: self.state, self._with_rows)

    def _with_rows(self, program: Program, more: dict[str, list[Row]]) -> Counter[Row]:
        return evaluate(program, self.state.rows | more, (), self.python)

    # --- Store -----------------------------------------------------------------------------

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None:
        self.state.rows[relation.id] = []

    def drop(self, relation: Relation) -> None:
        del self.state.rows[relation.id]

    def exists(self, relation: Relation) -> bool:
        return relation.id in self.state.rows

    def rows(self, relation: Relation) -> list[Row]:
        return list(self.state.rows[relation.id])

    def count(self, relation: Relation) -> int:
        return len(self.rows(relation))

    def is_empty(self, relation: Relation) -> bool:
        return not self.rows(relation)

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool:
        return tuple(row) in self.rows(relation)

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        return [row for row in self.rows(relation) if all(row[i] == v for i, v in known.items())]

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        inputs = relation.inputs
        return [row[inputs:] for row in self.matching(relation, dict(enumerate(arguments)))]

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        key = relation.key
        if key is not None:
            self._keep(relation, lambda other: any(other[i] != row[i] for i in key))
        self.state.rows[relation.id].append(tuple(row))

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if tuple(row) in self.rows(relation):
            self.state.rows[relation.id].remove(tuple(row))

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        given = tuple(arguments)
        self._keep(relation, lambda row: row[: len(given)] != given)

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        self.state.rows[relation.id] += map(tuple, rows)

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            if not self.contains(relation, row):
                self.insert_many(relation, [row])

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self.remove_row(relation, row)

    def _keep(self, relation: Relation, wanted: Callable[[Row], bool]) -> None:
        self.state.rows[relation.id] = list(filter(wanted, self.rows(relation)))

    # --- Evaluate --------------------------------------------------------------------------

    def compile(self, plan: Plan, most: int | None = None) -> ReferenceQuery:
        return ReferenceQuery(plan, self)

    def updating(self, plan: Plan, relation: Relation, assigned: Mapping[int, int]) -> None:
        """It reads the rows first."""

    def deleting(self, plan: Plan, relation: Relation) -> None:
        """It reads the rows first."""

    def answer_together(self, queries: Iterable[Query]) -> Answers:
        return NO_ANSWERS

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        def call(*arguments: Any) -> Iterable[Row]:
            given = [turn(value) for turn, value in zip(decode, arguments, strict=True)]
            return [(value,) for value in function(*given)]

        self.python[relation.id] = call


class ReferenceTransactions:
    """Undoes by putting back a copy of everything."""

    def __init__(self, engine: ReferenceEngine) -> None:
        self._engine = engine
        self._begun: State | None = None
        self._savepoints: dict[str, State] = {}

    @property
    def records(self) -> ReferenceRecords:
        return self._engine.state.records

    @property
    def in_transaction(self) -> bool:
        return self._begun is not None

    def begin(self, *, write: bool = True) -> None:
        self._begun = deepcopy(self._engine.state)

    def commit(self) -> None:
        self._begun = None

    def rollback(self) -> None:
        assert self._begun is not None
        self._engine.state, self._begun = self._begun, None

    def set_savepoint(self, name: str) -> None:
        self._savepoints[name] = deepcopy(self._engine.state)

    def undo_to(self, name: str) -> None:
        self._engine.state = self._savepoints.pop(name)

    def release(self, name: str) -> None:
        del self._savepoints[name]

    @contextmanager
    def savepoint(self, name: str = "step") -> Iterator[None]:
        self.set_savepoint(name)
        try:
            yield
        except BaseException:
            self.undo_to(name)
            raise
        self.release(name)

    @contextmanager
    def undone(self, name: str = "undone") -> Iterator[None]:
        self.set_savepoint(name)
        try:
            yield
        finally:
            self.undo_to(name)


class ReferenceNumbers:
    def __init__(self, engine: ReferenceEngine) -> None:
        self._engine = engine

    def create(self, first: Mapping[str, int]) -> None:
        self._engine.state.numbers = dict(first)

    def get(self, name: str) -> int | None:
        return self._engine.state.numbers.get(name)

    def set(self, name: str, value: int) -> None:
        self._engine.state.numbers[name] = value

    def raise_to(self, name: str, value: int) -> None:
        self.set(name, max(value, self._engine.state.numbers[name]))
