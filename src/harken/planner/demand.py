"""Which rows of remote relations a plan can need, asked before it runs.

The rows of a remote relation are stored elsewhere and fetched by key. A clause is followed from
what is available locally (parameters, Δ-sets, local relations). When that reaches a remote atom,
some of its columns are bound; a demand is the query for the values that they can have:

    need(K) <- the part of the body that was followed so far

Law: a row of a remote relation that contributes to an answer, or excludes one under a negation, has
the demanded values in the demanded columns. Demands are ordered: the query of each reads only rows
that the demands before it have fetched. (It is the magic set of a single call.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harken.calculus.states import is_delta
from harken.errors import SafetyFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    atoms,
    canonical,
    clause_variables,
    literal_variables,
    substitute,
)
from harken.ir.relations import Column, Kind, Relation, Role, is_extent
from harken.ir.safety import check_program, is_bound, ready, solve
from harken.ir.strata import reachable, stratify
from harken.ir.terms import Term, Variable
from harken.planner.prepare import Plan

MOST = 200
"""A plan with more demands than these asks for whole relations: so many seeks are no gain."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows of `relation` whose `columns` have the values of `plan`; all of them without one."""

    relation: Relation
    columns: tuple[int, ...] = ()
    plan: Plan | None = None


Test = Callable[[Relation], bool]


def demands(plan: Plan, is_remote: Test, is_small: Test = is_delta) -> tuple[Demand, ...]:
    """The demands of a plan, those for whole relations first; empty if it reads no remote relation.
    The search starts from relations that are small."""
    remote = _remote_relations(plan.program, is_remote)
    if not remote:
        return ()
    search = _Search(plan, is_remote, is_small)
    search.definition(plan.program.goal, (), (), frozenset())
    found = list(search.found.values())
    if len(found) > MOST:
        return tuple(Demand(relation) for relation in remote.values())
    whole = {demand.relation.id for demand in found if demand.plan is None}
    seeks = [demand for demand in found if demand.relation.id not in whole]
    return (*(Demand(remote[name]) for name in remote if name in whole), *seeks)


def demands_beside(
    definition: Definition, plan: Plan, tables: Collection[str], is_remote: Test, is_small: Test
) -> tuple[Demand, ...]:
    """The demands of a definition of a plan by itself, when the relations that are `tables` are at
    hand: those of a rule of a recursion, say, of which each round has found some rows."""
    relation = definition.relation
    goal = relation.variant(Role.AUXILIARY, f"rule of {relation.name}")
    clauses = tuple(Clause(replace(c.head, relation=goal), c.body) for c in definition.clauses)
    others = {name: each for name, each in plan.program.definitions.items() if name not in tables}
    own = replace(definition, relation=goal, clauses=clauses)
    program = Program(goal, reachable(goal, {**others, goal.id: own}))
    if not _remote_relations(program, is_remote):
        return ()
    return demands(Plan(program, stratify(program), plan.needs), is_remote, is_small)


def _remote_relations(
    program: Program, is_remote: Test, goal: Relation | None = None
) -> dict[str, Relation]:
    start = goal or program.goal
    found = {start.id: start} if is_remote(start) and start.id not in program.definitions else {}
    for definition in reachable(start, program.definitions).values():
        for clause in definition.clauses:
            for literal in clause.body:
                atom = literal.atom if isinstance(literal, Aggregation) else literal
                if isinstance(atom, Atom) and is_remote(atom.relation):
                    found[atom.relation.id] = atom.relation
    return found


class _Search:
    """Follows the clauses of a plan and collects what they ask for."""

    def __init__(self, plan: Plan, is_remote: Test, is_small: Test) -> None:
        self._plan = plan
        self._is_remote = is_remote
        self._is_small = is_small
        self._recursive = {name for stratum in plan.recursive for name in stratum.names}
        self._fresh = 0
        self._whole: set[str] = set()
        """Relations that were asked for without any value known: who asks for some of their rows
        needs nothing more."""
        self.found: dict[Any, Demand] = {}

    def definition(
        self,
        relation: Relation,
        terms: tuple[Term, ...],
        followed: tuple[Literal, ...],
        known: frozenset[Variable],
    ) -> None:
        """A derived relation is asked for by an atom with these terms, of which some are known."""
        if len(self.found) > MOST or relation.id in self._whole:
            return
        definition = self._plan.program.definition(relation)
        if relation.id in self._recursive or definition is None:
            remote = _remote_relations(self._plan.program, self._is_remote, relation)
            for each in remote.values():
                self._demand_all(each)
            return
        for clause in definition.clauses:
            self._clause(self._called(clause, terms, known), followed, known)
        if not any(is_bound(term, set(known)) for term in terms):
            self._whole |= {relation.id, *self._members(definition)}

    def _members(self, definition: Definition) -> Iterator[str]:
        """The relations whose groups these are, if they are made of the same: to know all groups
        takes all that the members take."""
        for name in definition.groups:
            members = self._plan.program.definitions.get(name)
            if members is not None and _made_of(members) == _made_of(definition):
                yield name

    def _called(
        self, clause: Clause, terms: tuple[Term, ...], known: frozenset[Variable]
    ) -> tuple[Literal, ...]:
        """The body with its variables renamed apart, those of the head replaced where known."""
        self._fresh += 1
        inside = {variable for literal in clause.body for variable in _all_variables(literal)}
        mapping: dict[Variable, Term] = {
            variable: Variable(f"{variable.name}~{self._fresh}", variable.type)
            for variable in clause_variables(clause) | inside
        }
        for term, asked in zip(clause.head.terms, terms, strict=False):
            if isinstance(term, Variable) and is_bound(asked, set(known)):
                mapping[term] = asked
        return tuple(substitute(literal, mapping) for literal in clause.body)

    def _clause(
        self, body: tuple[Literal, ...], followed: tuple[Literal, ...], known: Iterable[Variable]
    ) -> None:
        prefix = list(followed)
        bound = set(known)
        waiting = list(body)
        while waiting:
            literal = self._choose(waiting, bound)
            waiting.remove(literal)
            literal = solve(literal, bound)
            if isinstance(literal, Atom):
                self._ask(literal, prefix, bound)
            elif isinstance(literal, Aggregation):
                groups = {term for term in literal.groups if isinstance(term, Variable)}
                self._ask(literal.atom, prefix, bound & groups)
            if self._is_followed(literal):
                prefix.append(literal)
            bound.update(literal_variables(literal))

    def _is_followed(self, literal: Literal) -> bool:
        """What only tests may be left out: then more is asked for, and nothing is lost."""
        return not isinstance(literal, Atom) or not literal.negated

    def _choose(self, waiting: list[Literal], bound: set[Variable]) -> Literal:
        needs = self._plan.needs
        able = [literal for literal in waiting if ready(literal, bound, needs)]
        return min(able or waiting, key=lambda literal: self._rank(literal, bound))

    def _rank(self, literal: Literal, bound: set[Variable]) -> int:
        """Tests first, then what binds most for least; a relation that nothing binds, last."""
        if isinstance(literal, Comparison | Computation):
            return 0
        if isinstance(literal, Aggregation):
            return 5
        if literal.negated:
            return 10  # it binds nothing, and what it asks for is the less, the more is known
        relation = literal.relation
        positions = {i for i, term in enumerate(literal.terms) if is_bound(term, bound)}
        if self._is_small(relation):
            return 1
        if self._is_remote(relation):
            if not positions:
                return 9
            if set(relation.key or range(relation.inputs)) <= positions:
                return 2
            # By constants alone its rows would be paired with all that is known so far.
            joined = any(isinstance(literal.terms[i], Variable) for i in positions)
            return 6 if joined or not bound else 8
        if positions:
            return 3
        return 8 if is_extent(relation) else 7

    def _ask(self, atom: Atom, prefix: list[Literal], bound: set[Variable]) -> None:
        relation = atom.relation
        if self._is_remote(relation):
            self._demand(atom, prefix, bound)
        elif relation.kind is Kind.DERIVED:
            self.definition(relation, atom.terms, tuple(prefix), frozenset(bound))

    def _demand(self, atom: Atom, prefix: list[Literal], bound: set[Variable]) -> None:
        columns = tuple(i for i, term in enumerate(atom.terms) if is_bound(term, bound))
        if not columns:
            self._demand_all(atom.relation)
            return
        terms = tuple(atom.terms[i] for i in columns)
        goal = Relation(
            "need",
            tuple(Column(f"k{i}", atom.relation.columns[i].type) for i in columns),
            inputs=0,
            kind=Kind.DERIVED,
            role=Role.AUXILIARY,
        )
        clause = canonical(Clause(Atom(goal, terms), _leading_to(terms, prefix)))
        place = (atom.relation.id, columns, clause)
        if place in self.found:
            return
        definitions = {**self._plan.program.definitions, goal.id: Definition(goal, (clause,))}
        program = Program(goal, reachable(goal, definitions))
        try:
            plan = Plan(program, stratify(program), check_program(program))
        except SafetyFault:
            self._demand_all(atom.relation)
        else:
            self.found[place] = Demand(atom.relation, columns, plan)

    def _demand_all(self, relation: Relation) -> None:
        self.found[relation.id] = Demand(relation)


def _leading_to(terms: tuple[Term, ...], prefix: list[Literal]) -> tuple[Literal, ...]:
    """Of what was followed, that which gives the terms their values, and what tests them, by
    themselves or after a look at rows that they are, or have, the whole key of. The rest could only
    rule some of the values out, and may cost more to ask than it spares."""
    first: dict[Variable, int] = {}
    for place, literal in enumerate(prefix):
        for variable in literal_variables(literal):
            first.setdefault(variable, place)
    waiting = [first[term] for term in terms if isinstance(term, Variable)]
    kept: set[int] = set()
    while waiting:
        place = waiting.pop()
        if place not in kept:
            kept.add(place)
            waiting += [first[variable] for variable in literal_variables(prefix[place])]
    # For each variable that can be looked up, the literals that this takes beside those.
    takes = {variable: frozenset[int]() for variable, place in first.items() if place in kept}
    for place, literal in enumerate(prefix):
        given = _looked_up_by(literal)
        if place in kept or given is None or not takes.keys() >= given:
            continue
        needed = frozenset({place}).union(*(takes[variable] for variable in given))
        found = set(literal_variables(literal)) - given
        if _is_test(literal, found, takes.keys()):
            kept |= needed
        for variable in found:
            takes.setdefault(variable, needed)
    return tuple(literal for place, literal in enumerate(prefix) if place in kept)


def _looked_up_by(literal: Literal) -> set[Variable] | None:
    """The variables that must be known to look at no more than a row; None if there are none."""
    match literal:
        case Comparison():
            return set(literal_variables(literal))
        case Computation():
            return {term for term in literal.arguments if isinstance(term, Variable)}
        case Atom(negated=False) if literal.relation.key:
            key = (literal.terms[i] for i in literal.relation.key)
            return {term for term in key if isinstance(term, Variable)}
    return None


def _is_test(literal: Literal, found: set[Variable], known: Collection[Variable]) -> bool:
    """Can a literal, looked up, fail for what it gives?"""
    match literal:
        case Comparison():
            return True
        case Computation():
            return not found or not found.isdisjoint(known)
        case Atom():
            rest = [t for i, t in enumerate(literal.terms) if i not in (literal.relation.key or ())]
            return any(not isinstance(term, Variable) or term in known for term in rest)
    return False


def _made_of(definition: Definition) -> list[list[str]]:
    """The relations that each clause mentions."""
    return [sorted(atom.relation.id for atom in atoms(each.body)) for each in definition.clauses]


def _all_variables(literal: Literal) -> tuple[Variable, ...]:
    if not isinstance(literal, Aggregation):
        return literal_variables(literal)
    inside = (term for term in literal.atom.terms if isinstance(term, Variable))
    return (*literal_variables(literal), *inside)
