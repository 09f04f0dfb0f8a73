"""The cost model (thesis, section 7): what it takes to evaluate a program, in rows visited.

Every literal has a cost, the rows it visits for one binding of what is known before it, and a
fan-out, the rows it gives. A body costs

    C = Σ C_i · Π F_j  for j before i

in the order a good engine would choose. Sizes and fan-outs of stored relations are read off the
data (`Statistics`); those of Δ-sets are known when it matters, and are small otherwise.

The estimates decide how something is computed, never what.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harken.calculus.states import is_delta
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    literal_variables,
)
from harken.ir.relations import Kind, Relation
from harken.ir.safety import Needs, required_inputs
from harken.ir.safety import ready as is_ready
from harken.ir.terms import Variable

SEEK = 1.0
"""Finding a row by an index."""
SCANNED = 0.25
"""A row that a scan passes over, or that follows in an index."""
TEST = 0.05
SELECTIVITY = {"=": 0.1, "!=": 0.9}
SELECTED = 0.33
"""The part of the rows that a comparison lets through, if nothing is known."""
FOREIGN = 5.0
"""A call into Python."""

KEPT = 100.0
"""The rows of a kept copy, which may not be there yet."""


class Statistics(Protocol):
    def rows(self, relation: Relation) -> float:
        """How many rows a stored relation has, about."""

    def fanout(self, relation: Relation, columns: Collection[int]) -> float:
        """How many rows agree with given values of these columns, about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    cost: float
    rows: float


@dataclass(slots=True)
class CostModel:
    """`sizes` are the rows of relations that are not in the statistics: of Δ-sets, say."""

    statistics: Statistics
    sizes: Mapping[str, float] = field(default_factory=dict)
    delta_size: float = 1.0
    """The size of a Δ-set that is not in `sizes`."""

    def program(self, program: Program, given: Collection[int] = ()) -> Estimate:
        """Evaluating the goal, for values of the given columns."""
        goal = program.definitions[program.goal.id]
        return _Estimator(self, program.definitions, required_inputs(program)).definition(
            goal, given
        )

    def body(self, literals: Iterable[Literal], bound: Collection[Variable]) -> Estimate:
        """Evaluating literals over stored relations, for values of the bound variables."""
        return _Estimator(self, {}, {}).body(tuple(literals), bound)

    def literal(self, literal: Literal, known: set[Variable]) -> Estimate:
        return _Estimator(self, {}, {}).literal(literal, known)


@dataclass(slots=True)
class _Estimator:
    model: CostModel
    definitions: Mapping[str, Definition]
    needs: Needs
    busy: set[str] = field(default_factory=set)
    """The derived relations being estimated: a recursive one meets itself."""
    met: int = 0
    """How often one did."""
    known: dict[tuple[str, frozenset[int]], Estimate] = field(default_factory=dict)
    """A relation is estimated once: windows over windows name the same one very often."""

    def definition(self, definition: Definition, given: Collection[int]) -> Estimate:
        name = definition.relation.id
        key = (name, frozenset(given))
        if key in self.known:
            return self.known[key]
        if name in self.busy:
            self.met += 1
            return Estimate(SEEK, 1.0)
        self.busy.add(name)
        met = self.met
        each = [self._clause(clause, given) for clause in definition.clauses]
        self.busy.discard(name)
        found = Estimate(sum(e.cost for e in each), sum(e.rows for e in each))
        if self.met == met:  # what met itself is only a part of an estimate
            self.known[key] = found
        return found

    def _clause(self, clause: Clause, given: Collection[int]) -> Estimate:
        terms = (clause.head.terms[position] for position in given)
        return self.body(clause.body, {term for term in terms if isinstance(term, Variable)})

    def body(self, literals: tuple[Literal, ...], bound: Collection[Variable]) -> Estimate:
        known = set(bound)
        waiting = list(literals)
        cost, rows = 0.0, 1.0
        while waiting:
            ready = [each for each in waiting if is_ready(each, known, self.needs)] or waiting[:1]
            estimates = [(self.literal(each, known), each) for each in ready]
            estimate, chosen = min(estimates, key=lambda pair: (pair[0].rows, pair[0].cost))
            cost += rows * estimate.cost
            rows *= estimate.rows
            waiting.remove(chosen)
            known.update(literal_variables(chosen))
        return Estimate(cost, rows)

    def literal(self, literal: Literal, known: set[Variable]) -> Estimate:
        match literal:
            case Atom(negated=True):
                found = self._atom(literal, known)
                return Estimate(min(found.cost, SEEK + found.cost / (1 + found.rows)), 0.5)
            case Atom():
                return self._atom(literal, known)
            case Comparison(operator="=") if self._binds(literal, known):
                return Estimate(TEST, 1.0)
            case Comparison():
                return Estimate(TEST, SELECTIVITY.get(literal.operator, SELECTED))
            case Computation():
                return Estimate(TEST, 1.0)
            case Aggregation():
                groups = {each for each in literal.groups if isinstance(each, Variable)}
                return Estimate(self._atom(literal.atom, groups).cost, 1.0)

    def _binds(self, literal: Comparison, known: set[Variable]) -> bool:
        sides = (literal.left, literal.right)
        return any(isinstance(side, Variable) and side not in known for side in sides)

    def _atom(self, atom: Atom, known: Collection[Variable]) -> Estimate:
        given = frozenset(
            position
            for position, term in enumerate(atom.terms)
            if not isinstance(term, Variable) or term in known
        )
        relation = atom.relation
        size = self.model.sizes.get(relation.id)
        if size is None and is_delta(relation):
            size = self.model.delta_size
        if size is not None:
            return _access_changed(size, relation, given)
        definition = self.definitions.get(relation.id)
        if definition is not None:
            return self.definition(definition, given)
        if relation.kind is Kind.FOREIGN:
            return Estimate(FOREIGN, 1.0)
        if relation.past:
            keyed = given.issuperset(
                relation.key if relation.key is not None else range(relation.arity)
            )
            return _access(KEPT, 1.0 if keyed else KEPT, given)
        rows = max(1.0, self.model.statistics.rows(relation))  # an empty one will not stay so
        fanout = max(1.0, self.model.statistics.fanout(relation, given)) if given else rows
        return _access(rows, fanout, given)


def _access(rows: float, fanout: float, given: Collection[int]) -> Estimate:
    if not given:
        return Estimate(SEEK + SCANNED * rows, rows)
    return Estimate(SEEK + SCANNED * fanout, min(fanout, rows))


def _access_changed(size: float, relation: Relation, given: Collection[int]) -> Estimate:
    """A Δ-set is found by its row, or read whole; half of it has the sign that is asked for."""
    if len(given) >= relation.arity - 1 > 0:
        return Estimate(SEEK, min(1.0, size))
    return Estimate(SEEK + SCANNED * size, size / 2)
