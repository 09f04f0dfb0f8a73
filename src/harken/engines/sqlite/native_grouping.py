"""Groups and their aggregates as one SELECT with a GROUP BY.

Where the groups of a clause are those of the members themselves (`Definition.groups`), as in SQL's
GROUP BY, one SELECT computes all of their aggregates:

    P(H) ← groups(G) ∧ R = sum(V : members(G, V)) ∧ C   becomes   P(H) ← grouped(G, R) ∧ C

If C says which groups are wanted, the members are joined with those groups first.

Law: the clause has the same rows with the same multiplicities.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harken.engines.sqlite.auxiliary import Auxiliaries
from harken.engines.sqlite.fallible import Fallibility
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Definition,
    Literal,
    literal_variables,
)
from harken.ir.operations import AGGREGATES, FOLDED
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.safety import Needs
from harken.ir.terms import Term, Variable, variables

NATIVE = frozenset({"count", "sum", "avg", "min", "max", *FOLDED})
"""Aggregates that SQLite can compute for each group of a GROUP BY."""


@dataclass(frozen=True, slots=True)
class GroupBy:
    """One SELECT with a GROUP BY: its first columns are the group, the others the aggregates,
    each with the column of `members` that it aggregates."""

    members: Definition
    groups: int
    aggregates: tuple[tuple[Aggregation, int | None], ...]


@dataclass(slots=True)
class NativeGrouping:
    definitions: Mapping[str, Definition]
    needs: Needs
    auxiliaries: Auxiliaries
    fallibility: Fallibility
    grouped: dict[str, GroupBy] = field(default_factory=dict)
    """The SELECTs with GROUP BY, by the ids of their relations."""

    def rewrite(self, clause: Clause, given: Collection[Variable]) -> Clause:
        """The clause with its groups and their aggregates as one relation."""
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
                    clause = self._grouped(clause, atom, found, given)
                    atom = next(each for each in clause.body if isinstance(each, Atom))
        return self._all_as_one(clause)

    def _all_as_one(self, clause: Clause) -> Clause:
        """Several aggregates over all rows of a relation also become one SELECT."""
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
                clause = self._grouped(clause, nothing, found, ())
        return clause

    def _grouped(
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
            name=f"grouped {len(self.auxiliaries.made)}",
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
        self.grouped[relation.id] = GroupBy(members, width, aggregates)
        results = [Variable(f"TOTAL#{id(each)}", each.type) for each in found]
        atom = Atom(relation, (*groups.terms, *results))
        self.auxiliaries.made[relation.id] = Definition(relation, ())
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
        """The literals that say which groups are wanted, and the variables by which they say it."""
        late = {each.result for each in found}
        base: list[Literal] = []
        bound = set(given)
        for literal in rest:
            if not isinstance(literal, Atom) or literal.negated:
                continue
            # A key of a change that can fail is computed by the view itself, too.
            may_come_first = literal.relation.past or not self.fallibility.can_fail(literal)
            if may_come_first and late.isdisjoint(literal_variables(literal)):
                base.append(literal)
                bound.update(literal_variables(literal))
        own = tuple(v for v in dict.fromkeys(variables(groups.terms)) if v in bound)
        known = tuple(v for v in own if v not in given)
        return (known, tuple(base)) if known else ((), ())

    def _wanted_members(
        self,
        atom: Atom,
        groups: Atom,
        base: tuple[Literal, ...],
        known: tuple[Variable, ...],
    ) -> Definition:
        """The members of the wanted groups, or all of them. The keys come first in each clause,
        so that an aggregate inside is computed for the wanted groups only."""
        members = self.definitions[atom.relation.id]
        if not known:
            return members
        keys = self.auxiliaries.define("keys", known, (), base)
        name = f"wanted {len(self.auxiliaries.made)} {atom.relation.name}"
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
        self.auxiliaries.made[relation.id] = made
        return made


def _among(keys: Atom, groups: Atom, clause: Clause, relation: Relation) -> Clause:
    """A clause of the members, restricted to the groups among the keys."""
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
    """Does the literal hold at most once per group, so that the groups determine it?"""
    return (
        isinstance(literal, Atom)
        and literal.relation.is_set
        and set(literal_variables(literal)) <= set(variables(groups.terms))
    )
