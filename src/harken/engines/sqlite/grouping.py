"""An aggregate that many rows need is computed once per group.

    P(H) ← B ∧ R = sum(V : members(G, V)) ∧ C(R)

A correlated sub-query would be computed for every solution of B, though it depends on G alone.
Where several solutions may share a G, the clause becomes

    groups(G) ← B
    totals(G, R) ← groups(G) ∧ R = sum(V : members(G, V))
    P(H) ← totals(G, R) ∧ rows(G, X) ∧ C(R)        rows(G, X) ← B

without `rows` if P is a set and reads no X. All three are auxiliary relations, evaluated as they
stand: SQLite does not know how few rows they have and would otherwise join all of B's relations
with the totals.

Groups that a GROUP BY can name are found first (`native_grouping`).

Law: the clause has the same rows with the same multiplicities, and an aggregate that can fail is
computed for no group that it would not be computed for otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from harken.engines.sqlite.auxiliary import Auxiliaries
from harken.engines.sqlite.fallible import Fallibility
from harken.engines.sqlite.native_grouping import NativeGrouping
from harken.errors import SafetyFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    literal_variables,
)
from harken.ir.dependencies import determined
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Kind, Relation
from harken.ir.safety import Needs, input_columns, is_bound, order
from harken.ir.terms import Variable, variables

MOST_DOUBLED = 3
"""Aggregates of a clause, each joined by the result of the one before, that are computed once per
group. The base is written out twice for each of them; the aggregates after them are computed once
per row."""


@dataclass(frozen=True, slots=True)
class Split:
    """A body in two parts. The base can be evaluated before any aggregate and never fails; the
    rest needs an aggregate, can fail, or is better tested last."""

    base: tuple[Literal, ...]
    rest: tuple[Literal, ...]
    known: frozenset[Variable]
    """The variables of the base, and those bound outside."""


@dataclass(slots=True)
class Grouping:
    """Rewrites the clauses of one statement."""

    definitions: Mapping[str, Definition]
    needs: Needs
    auxiliaries: Auxiliaries = field(default_factory=Auxiliaries)
    native: NativeGrouping = field(init=False)
    fallibility: Fallibility = field(init=False)

    def __post_init__(self) -> None:
        self.fallibility = Fallibility(self.definitions)
        self.native = NativeGrouping(
            self.definitions, self.needs, self.auxiliaries, self.fallibility
        )

    @property
    def made(self) -> Mapping[str, Definition]:
        """The definitions of the auxiliary relations, by id."""
        return self.auxiliaries.made

    def rewrite(self, clause: Clause, given: Collection[Variable]) -> Clause:
        """The clause for values of the `given` variables, with each aggregate computed once per
        group."""
        clause = self.native.rewrite(clause, given)
        found = [each for each in clause.body if isinstance(each, Aggregation)]
        if not found or clause.head.relation.id in self.made:
            return clause
        stays = False
        joined = 0
        for literal in self._in_order(clause, given):
            split = self._split(clause.body, given)
            if not self.fallibility.can_fail(literal, growing=True):
                split = _connected(split, literal, given)
            is_repeated = self._is_repeated(literal, split, given)
            is_joined = self._is_joined(literal, split)
            joined += is_joined
            if not (is_repeated or is_joined) or not self._may_move(literal, split, stays):
                stays = True
            elif is_joined and (not is_repeated or joined > MOST_DOUBLED):
                clause = self._in_stages(clause, literal, split, given)
            else:
                clause = self._grouped(clause, literal, split, given)
        return clause

    def _in_order(self, clause: Clause, given: Collection[Variable]) -> list[Aggregation]:
        """The aggregates in the order of their evaluation: those that may have no value come
        first."""
        ordered = order(clause.body, given, self.needs)
        found = [each for each in ordered if isinstance(each, Aggregation)]
        return sorted(found, key=lambda each: AGGREGATES[each.aggregate].on_nothing is not None)

    def _split(self, body: tuple[Literal, ...], given: Collection[Variable]) -> Split:
        known = set(given)
        late: set[Variable] = set()
        base: list[Literal] = []
        rest: list[Literal] = []
        for literal in order(body, given, self.needs):
            used = literal_variables(literal)
            if late.isdisjoint(used) and self._is_base(literal):
                base.append(literal)
                known.update(used)
            else:
                rest.append(literal)
                late.update(set(used) - known)
        # An atom that joins the base need not wait for a variable that it binds itself.
        for literal in [each for each in rest if self._joins(each, known)]:
            base.append(literal)
            rest.remove(literal)
            known.update(literal_variables(literal))
        return Split(tuple(base), tuple(rest), frozenset(known))

    def _joins(self, literal: Literal, known: Collection[Variable]) -> bool:
        return (
            isinstance(literal, Atom)
            and not literal.negated
            and self._is_base(literal)
            and not input_columns(literal.relation, self.needs)
            and not set(known).isdisjoint(literal_variables(literal))
        )

    def _is_base(self, literal: Literal) -> bool:
        return not (
            isinstance(literal, Aggregation)
            or _is_last(literal)
            or self.fallibility.can_fail(literal)
        )

    def _is_repeated(self, literal: Aggregation, split: Split, given: Collection[Variable]) -> bool:
        """Can the base compute it, and may several rows of the base need the same group?"""
        if not self._is_computable(literal, split):
            return False
        groups = variables(literal.groups)
        return bool(groups) and not split.known <= determined(split.base, {*groups, *given})

    def _is_joined(self, literal: Aggregation, split: Split) -> bool:
        """Can the base compute it, and is its result looked up in another relation? As an
        expression it would be computed again for every row of that relation."""
        return (
            self._is_computable(literal, split)
            and literal.result not in split.known
            and any(
                isinstance(each, Atom) and not each.negated and literal.result in each.terms
                for each in split.rest
            )
        )

    def _is_computable(self, literal: Aggregation, split: Split) -> bool:
        inputs = input_columns(literal.atom.relation, self.needs)
        wanted = (*literal.groups, *(literal.atom.terms[i] for i in inputs))
        return all(is_bound(term, set(split.known)) for term in wanted)

    def _may_move(self, literal: Aggregation, split: Split, stays: bool) -> bool:
        """An aggregate that can fail must not overtake whatever used to come before it: an
        aggregate that stays in place, or another literal that can fail."""
        if not self.fallibility.can_fail(literal, growing=True):
            return True
        return not stays and not any(
            self.fallibility.can_fail(each)
            for each in split.rest
            if not isinstance(each, Aggregation)
            and not _is_last(each)
            and split.known.issuperset(_read(each))
        )

    def is_whole(self, relation: Relation) -> bool:
        """Must SQLite evaluate the relation as it stands?"""
        return relation.id in self.made

    # --- the clauses -----------------------------------------------------------------------

    def _grouped(
        self, clause: Clause, literal: Aggregation, split: Split, given: Collection[Variable]
    ) -> Clause:
        # A value from outside becomes a column as well, so that only its groups are found.
        outside = [v for each in split.base for v in literal_variables(each) if v in given]
        key = tuple(dict.fromkeys((*outside, *variables(literal.groups))))
        known = [each for each in split.base if self._is_known_by(each, key)]
        carried = tuple(v for each in known for v in literal_variables(each) if v not in key)
        # SQLite can start from the few rows of a Δ-set only while the join is not made a set at
        # once.
        found = self.auxiliaries.define("rows", (), (*key, *carried), split.base)
        groups = self.auxiliaries.define("groups", key, carried, (found,))
        result, equation = _result(literal, split)
        asked = replace(literal, result=result)
        totals = self.auxiliaries.define("totals", key, (*carried, result), (groups, asked))
        rest = (*(each for each in split.rest if each is not literal), *equation)
        read = {v for each in rest for v in literal_variables(each)}
        read.update(variables(clause.head.terms))
        needed = split.known & read
        if clause.head.relation.is_set and needed <= {*given, *key, *carried, result}:
            return Clause(clause.head, (totals, *rest))
        base = self._without(split.base, known, {*key, *carried}, carried, given)
        there = (v for each in base for v in literal_variables(each) if v in needed or v in key)
        rows = self.auxiliaries.define("rows", (), tuple(dict.fromkeys(there)), base)
        return Clause(clause.head, (totals, rows, *rest))

    def _in_stages(
        self, clause: Clause, literal: Aggregation, split: Split, given: Collection[Variable]
    ) -> Clause:
        """The base and the aggregate's value as one relation, joined with the rest."""
        read = {v for each in (*split.rest, clause.head) for v in literal_variables(each)}
        there = [v for each in (*split.base, literal) for v in literal_variables(each)]
        there = [v for v in there if v in split.known and (v in read or v in given)]
        columns = tuple(dict.fromkeys(there))
        result, equation = _result(literal, split)
        asked = replace(literal, result=result)
        rows = self.auxiliaries.define("rows", (), (*columns, result), (*split.base, asked))
        rest = (*(each for each in split.rest if each is not literal), *equation)
        return Clause(clause.head, (rows, *rest))

    def _without(
        self,
        base: tuple[Literal, ...],
        known: Collection[Literal],
        settled: Collection[Variable],
        carried: Collection[Variable],
        given: Collection[Variable],
    ) -> tuple[Literal, ...]:
        """The base without the totals that come with others and without literals they settle,
        unless another literal of the base reads them or is bound by them."""
        there = {*given, *settled}
        left = tuple(
            each
            for each in base
            if each not in known
            and not (
                isinstance(each, Comparison | Computation)
                and there.issuperset(literal_variables(each))
            )
        )
        read = {variable for each in left for variable in literal_variables(each)}
        if not read.isdisjoint(carried):
            return base
        try:
            order(left, given, self.needs)
        except SafetyFault:
            return base
        return left

    def _is_known_by(self, literal: Literal, key: tuple[Variable, ...]) -> bool:
        """Are these totals of groups that the key contains? Then they can come with it."""
        if not isinstance(literal, Atom) or literal.relation.id not in self.made:
            return False
        columns = literal.relation.key
        return columns is not None and set(key).issuperset(literal.terms[: len(columns)])


def _connected(split: Split, literal: Aggregation, given: Collection[Variable]) -> Split:
    """The split with only those literals in its base that restrict the groups of an aggregate.
    Any others would form a product with the groups; they may be joined by the result instead."""
    known = {*given, *variables(literal.groups)}
    outside = list(split.base)
    while found := [
        each for each in outside if not known.isdisjoint({*literal_variables(each)} - {*given})
    ]:
        outside = [each for each in outside if each not in found]
        known.update(v for each in found for v in literal_variables(each))
    if not outside:
        return split
    base = tuple(each for each in split.base if each not in outside)
    there = (v for each in base for v in literal_variables(each))
    return Split(base, (*outside, *split.rest), frozenset((*given, *there)))


def _result(literal: Aggregation, split: Split) -> tuple[Variable, tuple[Literal, ...]]:
    """A variable for the value, and the equation with a result that was known before."""
    result = literal.result
    if isinstance(result, Variable) and result not in split.known:
        return result, ()
    total = Variable(f"TOTAL#{id(literal)}", literal.type)
    return total, (Comparison("=", total, result, span=literal.span),)


def _is_last(literal: Literal) -> bool:
    """The old state of a derived relation is tested last."""
    if not isinstance(literal, Atom) or not literal.negated:
        return False
    return literal.relation.past and literal.relation.kind is Kind.DERIVED


def _read(literal: Literal) -> tuple[Variable, ...]:
    """The variables that a literal needs before it can be evaluated."""
    match literal:
        case Computation():
            return variables(literal.arguments)
        case Atom(negated=False):
            inputs = literal.relation.inputs if literal.relation.kind is Kind.FOREIGN else 0
            return variables(literal.terms[:inputs])
    return literal_variables(literal)
