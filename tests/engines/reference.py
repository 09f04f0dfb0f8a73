"""The reference engine: `engines/protocol` in plain Python, slow and obvious.

It keeps relations as lists of rows, undoes changes by putting a copy back, and evaluates plans by
the definition of ObjectLog. A relation without required inputs is evaluated as a whole, once; one
that needs inputs is evaluated for the values it is called with; a recursive stratum is repeated
from nothing until it stays the same. Objects are their numbers.

    rows(r) = the solutions of every clause of r, projected on its head
              (each once if r is a set, each as often as it is derived if r is a bag)

`database` holds the rows of each stored relation by the id of the relation.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from harken.ir.clauses import Aggregation, Atom, Clause, Comparison, Computation, Literal, Program
from harken.ir.relations import Kind, Relation
from harken.ir.safety import check_program, order
from harken.ir.strata import stratify
from harken.ir.terms import Constant, Term, Variable
from harken.planner.prepare import Plan
from tests.engines.reference_capture import ReferenceCapture, summed
from tests.engines.reference_keep import ReferenceKeep
from tests.models.meanings import COMPARE, Failure, Outcome, Row, aggregated, operate

Bindings = dict[Variable, Any]
Values = Mapping[int, Any]
Database = Mapping[str, Iterable[Row]]
Foreign = Mapping[str, Callable[..., Iterable[Row]]]


class EvaluationFailed(Exception):
    """An operation failed; its only argument is the code that says how."""


def evaluate(
    program: Program,
    database: Database,
    parameters: Sequence[Any] = (),
    foreign: Foreign | None = None,
) -> Counter[Row]:
    """The rows of the goal with their multiplicities; SafetyFault if they cannot be found."""
    return Counter(_Evaluation(program, database, parameters, foreign or {}).rows(program.goal, {}))


@dataclass
class _Evaluation:
    program: Program
    database: Database
    parameters: Sequence[Any]
    foreign: Foreign

    def __post_init__(self) -> None:
        self.needs = check_program(self.program)
        recursive = [stratum for stratum in stratify(self.program) if stratum.recursive]
        self.strata = {name: stratum for stratum in recursive for name in stratum.names}
        self.known: dict[tuple[str, tuple[Any, ...]], list[Row]] = {}

    def rows(self, relation: Relation, given: Values) -> Iterable[Row]:
        """All rows, or where inputs are needed, those with the given values in these columns."""
        if relation.kind is Kind.FOREIGN:
            inputs = tuple(given[i] for i in range(relation.inputs))
            return [(*inputs, *row) for row in self.foreign[relation.id](*inputs)]
        if relation.kind is Kind.STORED:
            return self.database.get(relation.id, ())
        needed = {i: given[i] for i in sorted(self.needs.get(relation.id, ()))}
        key = (relation.id, tuple(needed.values()))
        if key not in self.known:
            if relation.id in self.strata:
                self._fixpoint(relation)
            else:
                self.known[key] = self._derived(relation, needed)
        return self.known[key]

    def _derived(self, relation: Relation, given: Values) -> list[Row]:
        clauses = self.program.definitions[relation.id].clauses
        found = [row for clause in clauses for row in self._heads(clause, given)]
        return list(dict.fromkeys(found)) if relation.is_set else found

    def _fixpoint(self, relation: Relation) -> None:
        relations = [each.relation for each in self.strata[relation.id].definitions]
        found: list[set[Row]] = [set() for _ in relations]
        before = None
        while found != before:
            self.known |= {(each.id, ()): list(found[i]) for i, each in enumerate(relations)}
            before, found = found, [set(self._derived(each, {})) for each in relations]

    def _heads(self, clause: Clause, given: Values) -> Iterator[Row]:
        for start in self._matched(clause.head.terms, given, {}):
            for found in self._solutions(order(clause.body, start, self.needs), start):
                yield tuple(self._value(term, found) for term in clause.head.terms)

    def _solutions(self, body: Sequence[Literal], bindings: Bindings) -> Iterator[Bindings]:
        if not body:
            yield bindings
            return
        for extended in self._solve(body[0], bindings):
            yield from self._solutions(body[1:], extended)

    def _solve(self, literal: Literal, bindings: Bindings) -> Iterator[Bindings]:
        match literal:
            case Atom(negated=True):
                if not any(True for _ in self._matches(literal, bindings)):
                    yield bindings
            case Atom():
                yield from self._matches(literal, bindings)
            case Comparison():
                yield from self._compare(literal, bindings)
            case Computation(operation="ambiguous"):
                raise EvaluationFailed("ambiguous")
            case Computation():
                given = tuple(self._value(term, bindings) for term in literal.arguments)
                outcome = operate(literal.operation, given)
                yield from self._bound(literal.result, outcome, bindings)
            case Aggregation():
                for outcome in self._aggregate(literal, bindings):
                    yield from self._bound(literal.result, outcome, bindings)

    def _matches(self, atom: Atom, bindings: Bindings) -> Iterator[Bindings]:
        given = {
            position: self._value(term, bindings)
            for position, term in enumerate(atom.terms)
            if not isinstance(term, Variable) or term in bindings
        }
        for row in self.rows(atom.relation, given):
            yield from self._matched(atom.terms, dict(enumerate(row)), bindings)

    def _matched(
        self, terms: Sequence[Term], values: Values, bindings: Bindings
    ) -> Iterator[Bindings]:
        """The bindings under which the terms have the values, if there are any."""
        extended = dict(bindings)
        for position, value in values.items():
            term = terms[position]
            if isinstance(term, Variable) and term not in extended:
                extended[term] = value
            elif self._value(term, extended) != value:
                return
        yield extended

    def _bound(self, term: Term, outcome: Outcome, bindings: Bindings) -> Iterator[Bindings]:
        if isinstance(outcome, Failure):
            raise EvaluationFailed(outcome.code)
        return self._matched((term,), {0: outcome[0]}, bindings)

    def _compare(self, literal: Comparison, bindings: Bindings) -> Iterator[Bindings]:
        left, right = literal.left, literal.right
        if literal.operator == "=":
            if isinstance(left, Variable) and left not in bindings:
                left, right = right, left
            yield from self._bound(right, (self._value(left, bindings),), bindings)
        elif COMPARE[literal.operator](self._value(left, bindings), self._value(right, bindings)):
            yield bindings

    def _aggregate(self, literal: Aggregation, bindings: Bindings) -> list[Outcome]:
        """No value or one, over the rows that agree with the groups."""
        groups = {term: bindings[term] for term in literal.groups if isinstance(term, Variable)}
        own = [term for term in literal.atom.terms if isinstance(term, Variable)]
        terms = [t for t in own if t not in groups] if literal.value is None else [literal.value]
        rows = [tuple(found[t] for t in terms) for found in self._matches(literal.atom, groups)]
        type_name = "integer" if literal.value is None else literal.value.type.name
        return aggregated(literal.aggregate, rows, type_name)

    def _value(self, term: Term, bindings: Bindings) -> Any:
        if isinstance(term, Variable):
            return bindings[term]
        if isinstance(term, Constant):
            return term.value
        value = self.parameters[term.index]
        return float(value) if term.type.name == "number" else value


@dataclass
class State:
    """All that a rollback puts back."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    settled: dict[str, Counter[Row]] = field(default_factory=dict)
    """The rows of watched relations when they were last settled."""
    told: dict[str, Counter[Row]] = field(default_factory=dict)
    """The weights that rows of Δ-sets were given."""
    noted: dict[str, int] = field(default_factory=dict)
    """The relations of which changes were noted, each with how many rows stayed elsewhere."""
    kept: dict[str, dict[str, list[Row]]] = field(default_factory=dict)
    """What is kept, by its name and by the relation that plans read."""


class ReferenceEngine:
    def __init__(self) -> None:
        self.state = State()
        self.connection = ReferenceTransactions(self)
        self.python: dict[str, Callable[..., Iterable[Row]]] = {}
        self.capture = ReferenceCapture(self)
        self.keep = ReferenceKeep(self)

    def create(self, relation: Relation) -> None:
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

    def contains(self, relation: Relation, row: Row) -> bool:
        return row in self.rows(relation)

    def matching(self, relation: Relation, known: Values) -> list[Row]:
        return [row for row in self.rows(relation) if all(row[i] == v for i, v in known.items())]

    def results(self, relation: Relation, arguments: Row) -> list[Row]:
        found = self.matching(relation, dict(enumerate(arguments)))
        return [row[relation.inputs :] for row in found]

    def set_row(self, relation: Relation, row: Row) -> None:
        assert relation.key is not None
        self.remove_many(relation, self.matching(relation, {i: row[i] for i in relation.key}))
        self.insert_many(relation, [row])

    def remove_row(self, relation: Relation, row: Row) -> None:
        if self.contains(relation, row):
            self.state.rows[relation.id].remove(row)

    def clear(self, relation: Relation, arguments: Row) -> None:
        self.remove_many(relation, self.matching(relation, dict(enumerate(arguments))))

    def insert_many(self, relation: Relation, rows: Iterable[Row]) -> None:
        self.state.rows[relation.id] += rows

    def add_many(self, relation: Relation, rows: Iterable[Row]) -> None:
        for row in rows:
            self.set_row(relation, row)

    def remove_many(self, relation: Relation, rows: Iterable[Row]) -> None:
        for row in rows:
            self.remove_row(relation, row)

    def compile(self, plan: Plan) -> ReferenceQuery:
        return ReferenceQuery(plan.program, self)

    def register_foreign(
        self, relation: Relation, function: Callable[..., Any], decode: Sequence[Any]
    ) -> None:
        def call(*arguments: Any) -> Iterable[Row]:
            given = [turn(value) for turn, value in zip(decode, arguments, strict=True)]
            return [(value,) for value in function(*given)]

        self.python[relation.id] = call


@dataclass
class ReferenceQuery:
    program: Program
    engine: ReferenceEngine

    def rows(self, values: Sequence[Any], more: Mapping[str, list[Row]] | None = None) -> list[Row]:
        """The rows in the present state, with the rows of further relations."""
        state, changes = self.engine.state, self.engine.capture.rows()
        known = ChainMap(dict(more or {}), state.rows, changes, *state.kept.values())
        return list(evaluate(self.program, known, values, self.engine.python).elements())

    def summed(self) -> list[Row]:
        return [(*row, weight) for row, weight in summed(self.rows(())).items() if weight]

    @contextmanager
    def evaluated(self) -> Iterator[Callable[[Relation], list[Row]]]:
        known = self.program.definitions
        yield lambda relation: ReferenceQuery(Program(relation, known), self.engine).rows(())


class ReferenceTransactions:
    """Undoes by putting a copy of everything back."""

    def __init__(self, engine: ReferenceEngine) -> None:
        self.engine = engine
        self.saved: dict[str, State] = {}

    @property
    def in_transaction(self) -> bool:
        return "transaction" in self.saved

    def begin(self) -> None:
        self.set_savepoint("transaction")

    def commit(self) -> None:
        self.release("transaction")

    def rollback(self) -> None:
        self.undo_to("transaction")

    def set_savepoint(self, name: str) -> None:
        self.saved[name] = deepcopy(self.engine.state)

    def undo_to(self, name: str) -> None:
        self.engine.state = self.saved.pop(name)

    def release(self, name: str) -> None:
        del self.saved[name]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        before = deepcopy(self.engine.state)
        try:
            yield
        except BaseException:
            self.engine.state = before
            raise

    @contextmanager
    def undone(self) -> Iterator[None]:
        before = deepcopy(self.engine.state)
        yield
        self.engine.state = before
