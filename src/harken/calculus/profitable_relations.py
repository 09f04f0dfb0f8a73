"""Maximal profitable relations: which subexpressions of a conjunction are worth storing.

Fabret, Regnier and Simon, sections 4.2 and 4.3 and the appendix. A producer-filter decomposition
(definition 4.4) splits Φ into a safe φ and a ψ whose variables φ binds. Its relation (definition
4.5) is φ with a flag for each literal of ψ, and it is autonomous wherever φ is, whatever happens to
ψ (proposition 4.1): a change of ψ only turns flags.

The order of the lists in the appendix decides; where it leaves a choice, the most selective literal
is taken, and among equals the first. A negative literal is only joined where its variables are
bound. In the example A, B, C of section 4.3 the third step makes A a filter of B ⋈ C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harken.calculus.autonomy import (
    Change,
    changes_of,
    criterion,
    is_autonomous,
    is_autonomous_for,
)
from harken.calculus.rule_formulas import Bases, Formula, Occurrence

Selectivity = Callable[[Occurrence], float]
"""How many rows a literal is expected to have; the fewer, the more selective."""


@dataclass(frozen=True, slots=True)
class Profitable:
    """A producer with the filters that are flags of it."""

    producer: Formula
    filters: tuple[Occurrence, ...] = ()

    @property
    def literals(self) -> tuple[Occurrence, ...]:
        return (*self.producer.literals, *self.filters)


def is_decomposition(producer: Formula, filters: Sequence[Occurrence]) -> bool:
    """Definition 4.4: the producer is safe and binds all variables of the filter."""
    bound = producer.variables
    inside = (each for each in producer.literals if each.negated)
    return bool(producer.positive) and all(each.variables <= bound for each in (*inside, *filters))


def decomposition_is_autonomous(
    producer: Formula,
    filters: Sequence[Occurrence],
    changes: tuple[Change, ...],
    bases: Bases,
) -> bool:
    """Proposition 4.1: a predicate of the filter never matters."""
    return is_decomposition(producer, filters) and is_autonomous(producer, changes, bases)


@dataclass(slots=True)
class Search:
    """The state of the algorithm: which literals are marked."""

    formula: Formula
    changes: tuple[Change, ...]
    bases: Bases
    selectivity: Selectivity
    marked: list[Occurrence] = field(default_factory=list)

    # --- the appendix ----------------------------------------------------------------------

    def choose_source(self) -> Occurrence | None:
        """A positive literal that is not marked, by the list of the appendix."""
        left = [each for each in self.formula.positive if each not in self.marked]
        wanted: list[Callable[[Occurrence], bool]] = [
            lambda each: not self._own(each),
            lambda each: self._all_by(self.formula, each, 3),
            lambda each: self._all_by(self.formula, each, 1),
            lambda each: is_autonomous_for(self.formula, each, self.changes, self.bases),
            lambda _: True,
        ]
        return self._first(left, wanted)

    def choose_max_subexpression(self, start: Occurrence, found: Formula) -> Formula:
        """Extend an autonomous expression from a literal, as far as it stays autonomous."""
        if start.negated:
            return found
        while (chosen := self._adjacent(start, found)) is not None:
            self.marked.append(chosen)
            found = self.choose_max_subexpression(chosen, found.and_(chosen))
        return found

    def _adjacent(self, start: Occurrence, found: Formula) -> Occurrence | None:
        joined = [
            each
            for each in self.formula.literals
            if each not in self.marked
            and each.variables & start.variables
            and self._may_join(each, found)
        ]
        wanted: list[Callable[[Occurrence], bool]] = [
            lambda each: each.negated and not self._own(each),
            lambda each: not each.negated and not self._own(each),
            lambda each: self._all_by(found.and_(each), each, 2),
            lambda each: self._all_by(found.and_(each), each, 1),
            lambda each: self._all_by(found.and_(each), each, 3),
            lambda _: True,
        ]
        return self._first(joined, wanted)

    def _may_join(self, each: Occurrence, found: Formula) -> bool:
        if each.negated and not each.variables <= found.variables:
            return False
        return is_autonomous(found.and_(each), self.changes, self.bases)

    def _own(self, each: Occurrence) -> tuple[Change, ...]:
        return changes_of(each, self.changes, self.bases)

    def _all_by(self, formula: Formula, each: Occurrence, number: int) -> bool:
        """Whether there are changes of the literal, and one criterion is enough for all of them."""
        own = self._own(each)
        return bool(own) and all(
            criterion(formula, each, change, self.changes) == number for change in own
        )

    def _first(
        self, given: Sequence[Occurrence], wanted: Sequence[Callable[[Occurrence], bool]]
    ) -> Occurrence | None:
        for test in wanted:
            fitting = [each for each in given if test(each)]
            if fitting:
                return min(fitting, key=self.selectivity)
        return None


def maximal_profitable_relations(
    formula: Formula,
    changes: tuple[Change, ...],
    bases: Bases,
    selectivity: Selectivity = lambda _: 0.0,
) -> tuple[Profitable, ...]:
    """The algorithm of section 4.3: every literal belongs to at most one relation."""
    search = Search(formula, changes, bases, selectivity)
    autonomous: list[Formula] = []
    while (source := search.choose_source()) is not None:
        search.marked.append(source)
        alone = Formula((source,), formula.tests)
        autonomous.append(search.choose_max_subexpression(source, alone))
    filters = [each for each in formula.literals if each not in search.marked]
    filters += [
        single.literals[0]
        for single in autonomous
        if len(single.literals) == 1
        and any(
            decomposition_is_autonomous(other, single.literals, changes, bases)
            for other in autonomous
            if other is not single
        )
    ]
    return _with_filters(autonomous, filters, search)


def _with_filters(
    autonomous: Sequence[Formula], filters: Sequence[Occurrence], search: Search
) -> tuple[Profitable, ...]:
    """Steps 3 and 4: each filter goes to the most selective producer that takes it."""
    producers = [
        each for each in autonomous if not (len(each.literals) == 1 and each.literals[0] in filters)
    ]
    taken: dict[int, list[Occurrence]] = {i: [] for i in range(len(producers))}
    for each in filters:
        fitting = [
            i
            for i, producer in enumerate(producers)
            if decomposition_is_autonomous(
                producer, (*taken[i], each), search.changes, search.bases
            )
        ]
        if fitting:
            chosen = min(fitting, key=lambda i: _size(producers[i], search.selectivity))
            taken[chosen].append(each)
    return tuple(
        Profitable(producer, tuple(taken[i]))
        for i, producer in enumerate(producers)
        if taken[i] or len(producer.literals) > 1
    )


def _size(producer: Formula, selectivity: Selectivity) -> float:
    return min(selectivity(each) for each in producer.positive)
