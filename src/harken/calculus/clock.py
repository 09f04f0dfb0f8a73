"""The clock as a relation: views over `now()` are views over data.

`clock` has one row, the moment up to which all views have been brought. A program that asks for the
time reads it:

    overdue(T) ← due(T, D) ∧ D < now()      becomes      overdue(T) ← due(T, D) ∧ clock(N) ∧ D < N

When time passes, the clock loses its old moment N' and gains the new one, and the change of
`overdue` follows as from any other change. It does not visit all of `due`: a clause can give
another row for N than for N' only where one of its tests of the clock has another outcome. For
`D < N` those are the rows with N' ≤ D < N, a range that an index finds.

Law: for the moments N' and N, the solutions of a clause that pass no guard of `moved` are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from harken.calculus.clock_terms import FLIPPED, Solver, binders, is_pure
from harken.calculus.states import ADDED, NOTHING, REMOVED, delta
from harken.ir.clauses import (
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    atoms,
    literal_variables,
    substitute,
    substitute_term,
)
from harken.ir.operations import COMPARISONS
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import BOOLEAN, TIMESTAMP

CLOCK = Relation("clock", (Column("moment", TIMESTAMP),), 0, Kind.STORED, role=Role.CLOCK)
NOW = Variable("NOW#", TIMESTAMP)
BEFORE = Variable("NOW#@before", TIMESTAMP)
"""The moment that the clock showed before."""
BEFORE_MARK = "@before"
"""The end of the names of values at the earlier moment: bounds of a range that is likely small."""
TESTS = {f"is {operator}": operator for operator in COMPARISONS}


def is_clock(relation: Relation) -> bool:
    return relation.role is Role.CLOCK


def reads_clock(program: Program) -> bool:
    """Whether any clause of a program reads the clock."""
    return any(
        is_clock(atom.relation)
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
    )


# --- reading the clock ---------------------------------------------------------------------


def with_clock(program: Program) -> Program:
    """The program reading the clock where it asked for the time."""
    changed = {
        name: replace(definition, clauses=tuple(map(_reading, definition.clauses)))
        for name, definition in program.definitions.items()
        if any(map(_asks_time, definition.clauses))
    }
    return program.replacing(changed) if changed else program


def _asks_time(clause: Clause) -> bool:
    return any(
        isinstance(each, Computation) and each.operation in ("now", "today") for each in clause.body
    )


def _reading(clause: Clause) -> Clause:
    if not _asks_time(clause):
        return clause
    body: list[Literal] = [Atom(CLOCK, (NOW,))]
    for each in clause.body:
        if isinstance(each, Computation) and each.operation == "now":
            body.append(Comparison("=", each.result, NOW, span=each.span))
        elif isinstance(each, Computation) and each.operation == "today":
            body.append(Computation(each.result, "to_date", (NOW,), span=each.span))
        else:
            body.append(each)
    return _named(Clause(clause.head, tuple(body)))


def _named(clause: Clause) -> Clause:
    """The clause without variables that only name the moment."""
    body = list(clause.body)
    for each in clause.body:
        if isinstance(each, Comparison) and each.right == NOW and _is_a_name(each, body):
            assert isinstance(each.left, Variable)
            body.remove(each)
            names: dict[Variable, Term] = {each.left: NOW}
            body = [substitute(literal, names) for literal in body]
            terms = tuple(substitute_term(term, names) for term in clause.head.terms)
            clause = Clause(replace(clause.head, terms=terms), tuple(body))
    return Clause(clause.head, tuple(body))


def _is_a_name(equation: Comparison, body: Sequence[Literal]) -> bool:
    """Whether `X = NOW` is what binds X."""
    name = equation.left
    others = (each for each in body if each is not equation)
    return equation.operator == "=" and isinstance(name, Variable) and not binders(name, others)


# --- what a clause does with the moment ----------------------------------------------------


def separate_clock(program: Program) -> Program:
    """The program with each clause in the form that `ClockUses` reads: one clock atom, whose moment
    no other literal binds, and values of the moment alone on their side of a comparison."""
    changed = {
        name: replace(definition, clauses=tuple(map(_separated, definition.clauses)))
        for name, definition in program.definitions.items()
        if any(map(_clock_atoms, definition.clauses))
    }
    return program.replacing(changed) if changed else program


def _clock_atoms(clause: Clause) -> list[Atom]:
    return [
        each
        for each in clause.body
        if isinstance(each, Atom) and not each.negated and is_clock(each.relation)
    ]


def _separated(clause: Clause) -> Clause:
    found = _clock_atoms(clause)
    if not found:
        return clause
    body: list[Literal] = [Atom(CLOCK, (NOW,))]
    body += (each for each in clause.body if each not in found)
    for term in dict.fromkeys(atom.terms[0] for atom in found):
        if term != NOW:
            body.append(Comparison("=", term, NOW))
    return Solver(NOW).isolated(_named(Clause(clause.head, tuple(body))))


@dataclass(frozen=True, slots=True)
class RangeTest:
    """A test of what the data says against a value of the moment: `D < f(N)`."""

    operator: str
    data: Term
    moment: Variable


@dataclass(frozen=True, slots=True)
class ValueTest:
    """A value of the moment that something else depends on: another value, other rows."""

    moment: Variable


Test = RangeTest | ValueTest


@dataclass(slots=True)
class ClockUses:
    """What one separated clause does with the moment: the values that are computed of it, in order,
    and the tests by which it has an effect."""

    clause: Clause
    values: dict[Variable, Computation] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = {NOW}
        waiting = [each for each in self.clause.body if isinstance(each, Computation)]
        while found := next((each for each in waiting if is_pure(each, known)), None):
            assert isinstance(found.result, Variable)
            self.values[found.result] = found
            known.add(found.result)
            waiting.remove(found)
        for term in self.clause.head.terms:
            self._add_values([term], known)
        for literal in self.clause.body:
            self._look_at(literal, known)
        self.tests = list(dict.fromkeys(self.tests))

    def _look_at(self, literal: Literal, known: set[Variable]) -> None:
        match literal:
            case Atom() if is_clock(literal.relation):
                return
            case Computation() if literal.result in self.values:
                return
            case Comparison():
                sides = (literal.left, literal.right)
                self._add_test(literal.operator, sides, known)
            case Computation() if literal.operation in TESTS:
                first, second = literal.arguments
                self._add_test(TESTS[literal.operation], (first, second), known)
                self._add_values([literal.result], known)
            case _:
                self._add_values(literal_variables(literal), known)

    def _add_test(self, operator: str, sides: tuple[Term, Term], known: set[Variable]) -> None:
        left, right = sides
        if left in known and right not in known:
            operator, left, right = FLIPPED[operator], right, left
        if right in known and left not in known:
            assert isinstance(right, Variable)
            if not right.type.nullable:
                self.tests.append(RangeTest(operator, left, right))
                return
        self._add_values(sides, known)

    def _add_values(self, terms: Iterable[Term], known: set[Variable]) -> None:
        self.tests += (ValueTest(t) for t in terms if isinstance(t, Variable) and t in known)

    @property
    def shows_moment(self) -> bool:
        """Whether the clause gives other rows at every moment."""
        return ValueTest(NOW) in self.tests

    def computed(self, wanted: Iterable[Variable]) -> list[Computation]:
        """The computations of these values, in order."""
        needed = set(wanted)
        found = []
        for variable in reversed(self.values):
            if variable in needed:
                needed.update(literal_variables(self.values[variable]))
                found.append(self.values[variable])
        return found[::-1]

    def data(self) -> list[Literal]:
        """The literals that do not depend on the moment."""
        tainted = {NOW, *self.values}
        kept = list(self.clause.body)
        while True:
            late = [each for each in kept if _reads(each, tainted)]
            if not late:
                return kept
            kept = [each for each in kept if each not in late]
            tainted |= {
                each.result
                for each in late
                if isinstance(each, Computation) and isinstance(each.result, Variable)
            }


def _reads(literal: Literal, variables: set[Variable]) -> bool:
    if isinstance(literal, Atom) and is_clock(literal.relation):
        return True
    return not variables.isdisjoint(literal_variables(literal))


def values_of_moment(clause: Clause) -> Collection[Literal]:
    """The computations of a clause that depend on the moment alone."""
    return tuple(ClockUses(clause).values.values()) if _clock_atoms(clause) else ()


# --- what changes when the moment does -----------------------------------------------------


def moved(clause: Clause, atom: Atom, weight: Term, disjoint: bool = False) -> list[list[Literal]]:
    """The guards of a clause for a change of its clock `atom`: literals beside Δclock(N, `weight`),
    of which at least one list holds for each solution that the clause has at one moment only. With
    `disjoint` at most one does."""
    other = Atom(delta(CLOCK), (BEFORE, _at_earlier(weight)))
    if not is_clock(atom.relation) or atom.terms != (NOW,):
        return [[]]
    uses = ClockUses(clause)
    if uses.shows_moment:
        return [[]]
    found: list[list[Literal]] = []
    same: list[Literal] = []
    for number, test in enumerate(uses.tests):
        found += ([*same, *changed] for changed in _changed(test))
        if disjoint:
            same += _same(test, number)
    needed = [test.moment for test in uses.tests]
    earlier = [_earlier(each) for each in uses.computed(needed)]
    differ = Comparison("!=", _at_earlier(weight), NOTHING)
    moments = Comparison("!=", BEFORE, NOW)
    between = [] if not isinstance(weight, Variable) else [differ, moments]
    return [[other, *between, *earlier, *guard] for guard in found]


def _at_earlier(term: Term) -> Term:
    if isinstance(term, Variable):
        return Variable(f"{term.name}{BEFORE_MARK}", term.type)
    assert isinstance(term, Constant)
    return REMOVED if term == ADDED else ADDED


def _earlier(computation: Computation) -> Computation:
    names: dict[Variable, Term] = {
        each: _at_earlier(each) for each in literal_variables(computation)
    }
    changed = substitute(computation, names)
    assert isinstance(changed, Computation)
    return changed


def _changed(test: Test) -> Iterator[list[Literal]]:
    """The ways in which a test has another outcome at the earlier moment."""
    now, then = test.moment, _at_earlier(test.moment)
    if isinstance(test, ValueTest):
        yield [Comparison("!=", now, then)]
        return
    for low, high in ((then, now), (now, then)):
        match test.operator:
            case "<" | ">=":
                yield [Comparison(">=", test.data, low), Comparison("<", test.data, high)]
            case "<=" | ">":
                yield [Comparison(">", test.data, low), Comparison("<=", test.data, high)]
            case _:
                yield [Comparison("=", test.data, low), Comparison("!=", low, high)]


def _same(test: Test, number: int) -> list[Literal]:
    """A test has the same outcome at both moments."""
    now, then = test.moment, _at_earlier(test.moment)
    if isinstance(test, ValueTest):
        return [Comparison("=", now, then)]
    here, there = (Variable(f"TEST#{number}{mark}", BOOLEAN.or_null(True)) for mark in ("", "'"))
    operation = f"is {test.operator}"
    return [
        Computation(here, operation, (test.data, now)),
        Computation(there, operation, (test.data, then)),
        Comparison("=", here, there),
    ]


def clauses_with_clock(program: Program) -> Iterator[tuple[Definition, ClockUses]]:
    """The separated clauses that read the clock, with what they do with it."""
    for definition in program.definitions.values():
        for clause in definition.clauses:
            if _clock_atoms(clause):
                yield definition, ClockUses(clause)
