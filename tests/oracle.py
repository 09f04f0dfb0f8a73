"""ObjectLog by definition: a naive evaluator of programs as they were translated.

It uses no planner and no engine. A relation without required inputs is evaluated as a whole, once;
one that needs inputs is evaluated for the values it is called with; a recursive stratum is
repeated from nothing until it stays the same. Objects are their numbers.

    rows(r) = the solutions of every clause of r, projected on its head
              (each once if r is a set, each as often as it is derived if r is a bag)

`database` holds the rows of each stored relation by the id of the relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from meanings import COMPARE, Failure, Row, aggregated, operate

from harken.ir.clauses import Aggregation, Atom, Clause, Comparison, Computation, Literal, Program
from harken.ir.relations import Kind, Relation
from harken.ir.safety import check_program, order
from harken.ir.strata import stratify
from harken.ir.terms import Constant, Parameter, Term, Variable

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
