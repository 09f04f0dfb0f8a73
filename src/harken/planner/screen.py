"""Screener predicates: which changes of a stored relation can matter to a condition at all.

When a row of Q comes or goes, a condition can only change if the rest of the body of some clause,
for some occurrence of Q in it, holds for that row at that moment (thesis, section 4.4). The
screener of Q is that test, for every occurrence in every condition; how much of the body is tested
is chosen by cost (section 7.2), between nothing and all of it.

Two kinds are told apart. A *row test* needs nothing but the row: a row that fails it never matters,
in no state, and leaves no event. A *moment test* also asks other relations, as they are when the
row changes: one that fails it is remembered, for it is part of the old state, but does not by
itself bring about a check. It asks no far relation, whose rows need not be at hand at that moment.

Law: if a condition gains or loses a tuple, at least one of the changes since the last check has
passed its screener.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from harken.ir.clauses import Atom, Clause, Comparison, Computation, Literal, literal_variables
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import ready
from harken.ir.terms import Term, Variable
from harken.planner.cost import CostModel
from harken.planner.network_nodes import Part

CHECK = 50.0
"""A check phase that finds nothing, in the units of the cost model."""
MOST_TESTS = 50
"""The tests of an occurrence that a screener looks at: it may let a row pass that the tests left
out would have stopped. SQLite's expressions are at most 1,000 deep."""
ALTERNATIVES = 6
"""A screener that would have to test more occurrences than this is not worth it."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """For one occurrence of the relation: the tests that a row must pass."""

    row: tuple[Variable, ...]
    tests: tuple[Literal, ...]
    cost: float
    passing: float
    """The part of the changes that is expected to pass."""


@dataclass(frozen=True, slots=True)
class Screener:
    """A change matters if it passes one of the alternatives of both kinds; None: it always does."""

    relation: Relation
    row_tests: tuple[Alternative, ...] | None
    moment_tests: tuple[Alternative, ...] | None
    changes: float
    """The changed rows of a transaction that it was chosen for."""


def choose_screener(
    relation: Relation,
    parts: Sequence[Part],
    model: CostModel,
    changes: float,
    is_in_lake: Callable[[Relation], bool] = lambda _: False,
) -> Screener:
    """The screener of a relation for the conditions it influences; `changes` is how many rows of
    it a transaction changes, about."""
    occurrences = list(_occurrences(relation, parts, is_in_lake))
    if any(each is None for each in occurrences) or len(occurrences) > ALTERNATIVES:
        return Screener(relation, None, None, changes)
    rows, moments = [], []
    for occurrence in occurrences:
        assert occurrence is not None
        row, literals = occurrence
        rows.append(_alternative(row, _row_tests(row, literals), model))
        moments.append(_cheapest(row, literals, model, changes))
    return Screener(
        relation,
        tuple(dict.fromkeys(rows)) if all(each.tests for each in rows) else None,
        tuple(dict.fromkeys(moments)) if all(each.tests for each in moments) else None,
        changes,
    )


Occurrence = tuple[tuple[Variable, ...], tuple[Literal, ...]]


def _occurrences(
    relation: Relation, parts: Sequence[Part], is_in_lake: Callable[[Relation], bool]
) -> Iterator[Occurrence | None]:
    """Every occurrence of the relation with the tests around it; None if one is not in a clause
    of the condition itself, but below a negation, an aggregate or another relation."""
    for part in parts:
        inside = 0
        for clause in part.program.definitions[part.relation.id].clauses:
            for literal in clause.body:
                if isinstance(literal, Atom) and literal.relation == relation:
                    inside += 1
                    yield _around(literal, clause, is_in_lake)
        if inside < _mentions(relation, part):
            yield None


def _mentions(relation: Relation, part: Part) -> int:
    found = 0
    for definition in part.program.definitions.values():
        for clause in definition.clauses:
            for literal in clause.body:
                atom = literal if isinstance(literal, Atom) else getattr(literal, "atom", None)
                found += isinstance(atom, Atom) and atom.relation == relation
    return found


def _around(atom: Atom, clause: Clause, is_in_lake: Callable[[Relation], bool]) -> Occurrence:
    """The rest of the body, as far as it can be tested when a row changes."""
    row = tuple(Variable(f"ROW{i}", c.type) for i, c in enumerate(atom.relation.columns))
    same = tuple(
        Comparison("=", variable, term) for variable, term in zip(row, atom.terms, strict=True)
    )
    rest = (
        each
        for each in clause.body
        if each is not atom
        and _testable(each, atom.relation)
        and not (isinstance(each, Atom) and is_in_lake(each.relation))
    )
    return row, (*same, *rest)


def _testable(literal: Literal, relation: Relation) -> bool:
    """Of a relation that occurs twice the other row may be the one that has changed."""
    match literal:
        case Atom():
            stored = literal.relation.kind is Kind.STORED and literal.relation != relation
            return stored and literal.relation.role is not Role.BEFORE
        case Comparison():
            return True
        case Computation():
            return not OPERATIONS[literal.operation].fallible
    return False


def _row_tests(row: tuple[Variable, ...], literals: Sequence[Literal]) -> tuple[Literal, ...]:
    alone = [each for each in literals if not isinstance(each, Atom)]
    return _needed(row, [each for each, _, _ in islice(_in_order(row, alone), MOST_TESTS)])


def _cheapest(
    row: tuple[Variable, ...], literals: Sequence[Literal], model: CostModel, changes: float
) -> Alternative:
    """The prefix of the tests for which testing and the rows that slip through cost least."""
    steps = list(islice(_in_order(row, literals, model), MOST_TESTS))
    slip = steps[-1][1] if steps else 0.0
    candidates = [Alternative(row, (), 0.0, 1.0)]
    for count, (_, cost, rows) in enumerate(steps, start=1):
        tests = _needed(row, [literal for literal, _, _ in steps[:count]])
        if tests:
            candidates.append(Alternative(row, tests, cost, min(1.0, rows)))
    return min(candidates, key=lambda each: _expected(each, changes, slip))


def _expected(alternative: Alternative, changes: float, slip: float) -> float:
    """Testing every change, and propagating all of them if one passes."""
    passing = min(1.0, changes * alternative.passing)
    return changes * alternative.cost + passing * (CHECK + changes * slip)


def _alternative(
    row: tuple[Variable, ...], tests: tuple[Literal, ...], model: CostModel
) -> Alternative:
    estimate = model.body(tests, row)
    return Alternative(row, tests, estimate.cost, min(1.0, estimate.rows))


def _in_order(
    row: tuple[Variable, ...], literals: Sequence[Literal], model: CostModel | None = None
) -> Iterator[tuple[Literal, float, float]]:
    """The literals that can be tested for a row, the most telling first, each with the cost and
    the rows of all up to it."""
    known = set(row)
    waiting = list(literals)
    cost, rows = 0.0, 1.0
    while able := [each for each in waiting if ready(each, known, {}, solving=False)]:
        chosen = able[0]
        if model is not None:
            estimates = [(model.literal(each, known), each) for each in able]
            estimate, chosen = min(estimates, key=lambda pair: (pair[0].rows, pair[0].cost))
            cost += rows * estimate.cost
            rows *= estimate.rows
        waiting.remove(chosen)
        known.update(literal_variables(chosen))
        yield chosen, cost, rows


def _needed(row: tuple[Variable, ...], tests: Sequence[Literal]) -> tuple[Literal, ...]:
    """Without what only gives names to values that no test looks at; nothing if none is left."""
    uses: Counter[Term] = Counter()
    for literal in tests:
        uses.update(literal_variables(literal))
    uses.update(row)  # its values are there anyway
    kept, before = list(tests), len(tests) + 1
    while len(kept) < before:
        before, still = len(kept), []
        for each in reversed(kept):  # what reads a value comes after what binds it
            if _only_binds(each, uses):
                uses.subtract(literal_variables(each))
            else:
                still.append(each)
        kept = still[::-1]
    return tuple(kept)


def _only_binds(literal: Literal, uses: Mapping[Term, int]) -> bool:
    match literal:
        case Comparison(operator="="):
            return uses.get(literal.left) == 1 or uses.get(literal.right) == 1
        case Computation():
            return uses.get(literal.result) == 1
    return False
