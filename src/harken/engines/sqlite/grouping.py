"""An aggregate that many rows ask for is computed once for each group.

    P(H) ← B ∧ R = sum(V : members(G, V)) ∧ C(R)

A correlated sub-query is computed for every solution of B, though it depends on G alone. Where
several solutions may have the same G the clause becomes

    groups(G) ← B
    totals(G, R) ← groups(G) ∧ R = sum(V : members(G, V))
    P(H) ← totals(G, R) ∧ rows(G, X) ∧ C(R)        rows(G, X) ← B

without `rows` if P is a set and reads no X. All three are evaluated as they stand: SQLite, which
does not know how few rows there are, would otherwise join all of B's relations with the totals.

Where the groups are those of the members themselves (`Definition.groups`), as in GROUP BY of SQL,
all of their aggregates are one SELECT with a GROUP BY; if something else in the clause says which
groups are wanted, the members are joined with those first.

Law: the clause has the same rows with the same multiplicities, and an aggregate that can fail is
computed for no group that it would not be computed for otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from harken.ir.operations import AGGREGATES, FOLDED, OPERATIONS
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import Needs, input_columns, is_bound, order
from harken.ir.terms import Term, Variable
from harken.values.types import NUMBER

NATIVE = frozenset({"count", "sum", "avg", "min", "max", *FOLDED})
GROWING = ("+", "-", "*")
"""Operations whose result can be too large."""

MOST_DOUBLED = 3
"""Aggregates of a clause, each joined by the result of the one before, that are computed once per
group. The base is written out twice for each of them; the aggregates after them are computed once
per row."""


def can_overflow(literal: Aggregation) -> bool:
    """A sum, and SQL's average of doubles, which is infinite where their sum is too large."""
    if literal.aggregate == "avg" and literal.value is not None:
        return literal.type.nullable and literal.value.type == NUMBER
    return literal.aggregate == "sum"


@dataclass(frozen=True, slots=True)
class Split:
    """A body: what can be evaluated before any aggregate and never fails, and what waits for an
    aggregate, can fail, or is better asked last."""

    base: tuple[Literal, ...]
    rest: tuple[Literal, ...]
    known: frozenset[Variable]
    """The variables of the base, and those that have values from outside."""


@dataclass(frozen=True, slots=True)
class GroupBy:
    """A relation that is one SELECT with a GROUP BY: its first columns are the group, the others
    the aggregates, each with the column of the `members` that it is of."""

    members: Definition
    groups: int
    aggregates: tuple[tuple[Aggregation, int | None], ...]


@dataclass(slots=True)
class Grouping:
    """Rewrites the clauses of one statement; the definitions it makes collect in `made`."""

    definitions: Mapping[str, Definition]
    needs: Needs
    made: dict[str, Definition] = field(default_factory=dict)
    natively: dict[str, GroupBy] = field(default_factory=dict)
    _failing: dict[tuple[str, bool], bool] = field(default_factory=dict)

    def rewrite(self, clause: Clause, given: Collection[Variable]) -> Clause:
        """The clause for values of the `given` variables, its aggregates each once per group."""
        clause = self._grouped_natively(clause, given)
        found = [each for each in clause.body if isinstance(each, Aggregation)]
        if not found or clause.head.relation.id in self.made:
            return clause
        stays = False
        joined = 0
        for literal in self._in_order(clause, given):
            split = self._split(clause.body, given)
            if not self._fails(literal, growing=True):
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

    def _grouped_natively(self, clause: Clause, given: Collection[Variable]) -> Clause:
        """The clause with the groups, and the aggregates of their members, as one relation."""
        for atom in clause.body:
            if not isinstance(atom, Atom) or atom.negated:
                continue
            definition = self.definitions.get(atom.relation.id)
            for members in definition.groups if definition is not None else ():
                found = [
                    each
                    for each in clause.body
                    if isinstance(each, Aggregation)
                    and each.atom.relation.id == members
                    and each.groups == atom.terms
                    and each.aggregate in NATIVE
                ]
                if found:
                    clause = self._natively(clause, atom, found, given)
                    atom = next(each for each in clause.body if isinstance(each, Atom))
        return self._all_as_one(clause)

    def _all_as_one(self, clause: Clause) -> Clause:
        """Several aggregates of all rows of a relation are one SELECT, too."""
        over: dict[str, list[Aggregation]] = {}
        for each in clause.body:
            if (
                isinstance(each, Aggregation)
                and not each.groups
                and each.aggregate in NATIVE
                and (each.or_null or AGGREGATES[each.aggregate].on_nothing is not None)
            ):
                over.setdefault(each.atom.relation.id, []).append(each)
        nothing = Atom(Relation("all", (), 0, Kind.DERIVED, role=Role.AUXILIARY), ())
        for found in over.values():
            if len(found) > 1 and not self.needs.get(found[0].atom.relation.id):
                clause = self._natively(clause, nothing, found, ())
        return clause

    def _natively(
        self,
        clause: Clause,
        groups: Atom,
        found: Sequence[Aggregation],
        given: Collection[Variable],
    ) -> Clause:
        rest = tuple(each for each in clause.body if each is not groups and each not in found)
        known, base = self._keys_among(rest, groups, found, given)
        members = self._wanted_members(found[0].atom, groups, base, known)
        columns = tuple(
            Column(f"c{i}", term.type) for i, term in enumerate((*groups.terms, *found))
        )
        width = len(groups.terms)
        relation = Relation(
            name=f"grouped {len(self.made)}",
            columns=columns,
            inputs=0,
            kind=Kind.DERIVED,
            key=tuple(range(width)),
            role=Role.AUXILIARY,
        )
        aggregates = tuple(
            (each, None if each.value is None else each.atom.terms.index(each.value))
            for each in found
        )
        self.natively[relation.id] = GroupBy(members, width, aggregates)
        results = [Variable(f"TOTAL#{id(each)}", each.type) for each in found]
        atom = Atom(relation, (*groups.terms, *results))
        self.made[relation.id] = Definition(relation, ())
        equations = tuple(
            Comparison("=", total, each.result) for total, each in zip(results, found, strict=True)
        )
        if all(_is_settled(each, groups) for each in base):
            rest = tuple(each for each in rest if each not in base)
        return Clause(clause.head, (atom, *rest, *equations))

    def _keys_among(
        self,
        rest: tuple[Literal, ...],
        groups: Atom,
        found: Sequence[Aggregation],
        given: Collection[Variable],
    ) -> tuple[tuple[Variable, ...], tuple[Literal, ...]]:
        """What of the rest of a clause says which groups are wanted, and by which variables."""
        late = {each.result for each in found}
        base: list[Literal] = []
        bound = set(given)
        for literal in rest:
            if not isinstance(literal, Atom) or literal.negated:
                continue
            # What can fail in the keys of a change is computed by the view itself, too.
            may_come_first = literal.relation.past or not self._fails(literal)
            if may_come_first and late.isdisjoint(literal_variables(literal)):
                base.append(literal)
                bound.update(literal_variables(literal))
        own = tuple(v for v in dict.fromkeys(_variables(groups.terms)) if v in bound)
        known = tuple(v for v in own if v not in given)
        return (known, tuple(base)) if known else ((), ())

    def _wanted_members(
        self,
        atom: Atom,
        groups: Atom,
        base: tuple[Literal, ...],
        known: tuple[Variable, ...],
    ) -> Definition:
        """The members, or those of the groups that are wanted: those start each of their clauses,
        so that an aggregate inside is computed for them alone."""
        members = self.definitions[atom.relation.id]
        if not known:
            return members
        keys = self._define("keys", known, (), base)
        name = f"wanted {len(self.made)} {atom.relation.name}"
        relation = atom.relation.variant(Role.AUXILIARY, name, inputs=0, key=None)
        if members.groups or members.first or members.numbered:
            row = tuple(
                Variable(f"MEMBER#{i}", term.type) if i >= len(groups.terms) else term
                for i, term in enumerate(atom.terms)
            )
            clauses = [Clause(Atom(relation, row), (keys, Atom(atom.relation, row)))]
        else:
            clauses = [_among(keys, groups, clause, relation) for clause in members.clauses]
        made = replace(members, relation=relation, clauses=tuple(clauses), groups=frozenset())
        if members.first or members.numbered:
            made = Definition(relation, tuple(clauses))
        self.made[relation.id] = made
        return made

    def _in_order(self, clause: Clause, given: Collection[Variable]) -> list[Aggregation]:
        """The aggregates as they are computed: those that may have no value come first."""
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
        # An atom that joins the base need not wait for a value that it has itself.
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
        return not (isinstance(literal, Aggregation) or _is_last(literal) or self._fails(literal))

    def _is_repeated(self, literal: Aggregation, split: Split, given: Collection[Variable]) -> bool:
        """Can it be computed from the base, and may several rows of the base ask for the same?"""
        if not self._is_computable(literal, split):
            return False
        groups = _variables(literal.groups)
        return bool(groups) and not split.known <= determined(split.base, {*groups, *given})

    def _is_joined(self, literal: Aggregation, split: Split) -> bool:
        """Can it be computed from the base, and is its result looked up in another relation? As
        an expression it would be computed again for every row of that relation."""
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
        """One that can fail must not go before what it came after: an aggregate that stays where
        it is, or something else that can fail."""
        if not self._fails(literal, growing=True):
            return True
        return not stays and not any(
            self._fails(each)
            for each in split.rest
            if not isinstance(each, Aggregation)
            and not _is_last(each)
            and split.known.issuperset(_read(each))
        )

    def is_whole(self, relation: Relation) -> bool:
        """Must SQLite not take it apart?"""
        return relation.id in self.made

    # --- what can fail ---------------------------------------------------------------------

    def _fails(self, literal: Literal, growing: bool = False) -> bool:
        """Can evaluating it fail? If `growing`, also by a number that grows too large."""
        match literal:
            case Comparison():
                return False
            case Computation():
                fallible = OPERATIONS[literal.operation].fallible
                return fallible or (growing and literal.operation in GROWING)
            case Atom():
                return self._rows_fail(literal.relation, growing)
            case Aggregation():
                return can_overflow(literal) or self._rows_fail(literal.atom.relation, growing)

    def _rows_fail(self, relation: Relation, growing: bool) -> bool:
        key = (relation.id, growing)
        if key not in self._failing:
            self._failing[key] = False  # a recursive one meets itself
            definition = self.definitions.get(relation.id)
            clauses = definition.clauses if definition is not None else ()
            self._failing[key] = relation.kind is Kind.FOREIGN or any(
                isinstance(each, Aggregation) or self._fails(each, growing)
                for clause in clauses
                for each in clause.body
            )
        return self._failing[key]

    # --- the clauses -----------------------------------------------------------------------

    def _grouped(
        self, clause: Clause, literal: Aggregation, split: Split, given: Collection[Variable]
    ) -> Clause:
        # A value from outside becomes a column as well: then only the groups for it are found.
        outside = [v for each in split.base for v in literal_variables(each) if v in given]
        key = tuple(dict.fromkeys((*outside, *_variables(literal.groups))))
        known = [each for each in split.base if self._is_known_by(each, key)]
        carried = tuple(v for each in known for v in literal_variables(each) if v not in key)
        # SQLite cannot start from the few rows of Δ-sets if what it joins is made a set at once.
        found = self._define("rows", (), (*key, *carried), split.base)
        groups = self._define("groups", key, carried, (found,))
        result, equation = _result(literal, split)
        asked = replace(literal, result=result)
        totals = self._define("totals", key, (*carried, result), (groups, asked))
        rest = (*(each for each in split.rest if each is not literal), *equation)
        read = {v for each in rest for v in literal_variables(each)}
        read.update(_variables(clause.head.terms))
        needed = split.known & read
        if clause.head.relation.is_set and needed <= {*given, *key, *carried, result}:
            return Clause(clause.head, (totals, *rest))
        base = self._without(split.base, known, {*key, *carried}, carried, given)
        there = (v for each in base for v in literal_variables(each) if v in needed or v in key)
        rows = self._define("rows", (), tuple(dict.fromkeys(there)), base)
        return Clause(clause.head, (totals, rows, *rest))

    def _in_stages(
        self, clause: Clause, literal: Aggregation, split: Split, given: Collection[Variable]
    ) -> Clause:
        """The base and the value of the aggregate as one relation, joined with the rest."""
        read = {v for each in (*split.rest, clause.head) for v in literal_variables(each)}
        there = [v for each in (*split.base, literal) for v in literal_variables(each)]
        there = [v for v in there if v in split.known and (v in read or v in given)]
        columns = tuple(dict.fromkeys(there))
        result, equation = _result(literal, split)
        asked = replace(literal, result=result)
        rows = self._define("rows", (), (*columns, result), (*split.base, asked))
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
        """The base without totals that come with others, and without what is settled with them,
        unless something in it reads them or has its values from them."""
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
        """Are these totals of groups that the key holds, too? Then they can come with it."""
        if not isinstance(literal, Atom) or literal.relation.id not in self.made:
            return False
        columns = literal.relation.key
        return columns is not None and set(key).issuperset(literal.terms[: len(columns)])

    def _define(
        self,
        kind: str,
        key: tuple[Variable, ...],
        values: tuple[Variable, ...],
        body: tuple[Literal, ...],
    ) -> Atom:
        terms = (*key, *values)
        relation = Relation(
            name=f"{kind} {len(self.made)}",
            columns=tuple(Column(f"c{i}", term.type) for i, term in enumerate(terms)),
            inputs=0,
            kind=Kind.DERIVED,
            semantics=Semantics.SET if key else Semantics.BAG,
            key=tuple(range(len(key))) if key else None,
            role=Role.AUXILIARY,
        )
        atom = Atom(relation, terms)
        self.made[relation.id] = Definition(relation, (Clause(atom, body),))
        return atom


def _connected(split: Split, literal: Aggregation, given: Collection[Variable]) -> Split:
    """The split with only what says something about the groups of an aggregate in its base. The
    rest of it would be a product with them: it may be joined by the result instead."""
    known = {*given, *_variables(literal.groups)}
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


def _among(keys: Atom, groups: Atom, clause: Clause, relation: Relation) -> Clause:
    """A clause of the members, for the groups that are among the keys."""
    own = clause.head.terms[: len(groups.terms)]
    place: dict[Term, Term] = {}
    equations: list[Literal] = []
    for term, inside in zip(groups.terms, own, strict=True):
        if isinstance(term, Variable) and term not in place:
            place[term] = inside
        else:
            equations.append(Comparison("=", inside, place.get(term, term)))
    wanted = replace(keys, terms=tuple(place[term] for term in keys.terms))
    return Clause(replace(clause.head, relation=relation), (wanted, *clause.body, *equations))


def _is_settled(literal: Literal, groups: Atom) -> bool:
    """Does it hold at most once for a group, so that knowing the groups is knowing it?"""
    return (
        isinstance(literal, Atom)
        and literal.relation.is_set
        and set(literal_variables(literal)) <= set(_variables(groups.terms))
    )


def _result(literal: Aggregation, split: Split) -> tuple[Variable, tuple[Literal, ...]]:
    """A variable for the value, and what says that it is one that was there before."""
    result = literal.result
    if isinstance(result, Variable) and result not in split.known:
        return result, ()
    total = Variable(f"TOTAL#{id(literal)}", literal.type)
    return total, (Comparison("=", total, result, span=literal.span),)


def _is_last(literal: Literal) -> bool:
    """An old state is asked about where everything else holds."""
    if not isinstance(literal, Atom) or not literal.negated:
        return False
    return literal.relation.past and literal.relation.kind is Kind.DERIVED


def _read(literal: Literal) -> tuple[Variable, ...]:
    """The variables that a literal needs before it can be evaluated."""
    match literal:
        case Computation():
            return _variables(literal.arguments)
        case Atom(negated=False):
            inputs = literal.relation.inputs if literal.relation.kind is Kind.FOREIGN else 0
            return _variables(literal.terms[:inputs])
    return literal_variables(literal)


def _variables(terms: Iterable[Term]) -> tuple[Variable, ...]:
    return tuple(term for term in terms if isinstance(term, Variable))
