"""Differentials of a bag: how often each row was gained or lost.

The multiplicity of a row of P is a sum of products over the solutions of its clauses, so its change
follows from the changes of the factors, all other factors in the new state:

    Δ(Q ⋈ R) = ΔQ ⋈ R + Q ⋈ ΔR − ΔQ ⋈ ΔR

and so on for more changed literals: one term for each non-empty subset of them, with the sign of
its size (chapter 1.5.3, thesis 5.3.3: what several changes have in common is counted once). A
negated or aggregated literal, or a derived one, changes by its value now minus its value before,
for the keys that are affected.

The terms pair rows of the new state with rows that went, which were never there together; their
weights cancel. What can fail is therefore computed last, of rows whose weights do not cancel: a
division must not fail for a row of neither state.

Law: the weights of ΔP, summed for each row, are the multiplicities in P minus those in P@old.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TypeAlias

from harken.calculus.affected import Affected
from harken.calculus.clock import moved, values_of_moment
from harken.calculus.states import (
    NOTHING,
    affected_relations,
    delta,
    literal_in_old,
    old,
    old_definitions,
)
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
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import required_inputs
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import INTEGER


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which a factor changed: what stands in its place, and its weight."""

    literals: tuple[Literal, ...]
    weight: Term
    sign: int


def weighted(relation: Relation) -> Relation:
    """ΔP as it is computed: the columns of P and a weight, to be summed for each row."""
    return Relation(
        name=f"change of {relation.name}",
        columns=(*relation.columns, Column("weight", INTEGER)),
        inputs=relation.inputs,
        kind=Kind.DERIVED,
        semantics=Semantics.BAG,
        role=Role.CHANGE,
        of=relation,
    )


def differentiate_bag(
    program: Program, changed: Collection[str], nodes: Collection[str] = ()
) -> Program:
    """A program whose goal is the weighted change of the goal of `program`; `nodes` are derived
    relations with Δ-sets of their own, as for `differentiate`.

    Which rows are the first ones is found in both states: by its clauses each row would be compared
    with all others.
    """
    if program.definitions[program.goal.id].first is not None:
        return recompute_bag(program, changed, nodes)
    finder = _finder(program, changed, nodes)
    target = weighted(program.goal)
    clauses: list[Clause] = []
    made: dict[str, Definition] = {}
    for clause in program.definitions[program.goal.id].clauses:
        late = _late(clause) if _changes_together(clause, finder) else ()
        if late:
            clauses.append(_netted(clause, late, target, finder, made))
        else:
            clauses += _terms(clause, target, finder)
    known = {**program.definitions, **old_definitions(program, changed, nodes), **finder.made}
    return Program(target, {**known, **made, target.id: Definition(target, tuple(clauses))})


def count_terms(program: Program, changed: Collection[str], nodes: Collection[str] = ()) -> int:
    """How many terms `differentiate_bag` has: they double with each factor that changes."""
    definition = program.definitions[program.goal.id]
    if definition.first is not None:
        return 2
    finder = _finder(program, changed, nodes)
    return sum(
        math.prod(1 + len(_variants(f, i, clause, finder)) for i, f in enumerate(factors)) - 1
        for clause in definition.clauses
        for factors in (_factors(clause.body, finder),)
    )


def _finder(program: Program, changed: Collection[str], nodes: Collection[str]) -> Affected:
    affected = affected_relations(program, changed, nodes)
    return Affected(program, changed, affected, required_inputs(program))


def _changes_together(clause: Clause, finder: Affected) -> bool:
    """Do several factors change, so that there are terms of two states?"""
    factors = _factors(clause.body, finder)
    changing = [f for i, f in enumerate(factors) if _variants(f, i, clause, finder)]
    return len(changing) > 1 and not clause.head.relation.inputs


def _late(clause: Clause) -> tuple[Literal, ...]:
    """The computations that can fail, and what is computed of them and tested; nothing that
    another relation is joined by."""
    late: list[Literal] = []
    results: set[Variable] = set()
    of_moment = values_of_moment(clause)
    for literal in clause.body:
        if not isinstance(literal, Computation | Comparison) or literal in of_moment:
            continue
        fails = isinstance(literal, Computation) and OPERATIONS[literal.operation].fallible
        if fails or results & set(literal_variables(literal)):
            late.append(literal)
            if isinstance(literal, Computation) and isinstance(literal.result, Variable):
                results.add(literal.result)
    early = [each for each in clause.body if each not in late]
    joined = {variable for each in early for variable in literal_variables(each)}
    return () if results & joined else tuple(late)


def _netted(
    clause: Clause,
    late: tuple[Literal, ...],
    target: Relation,
    finder: Affected,
    made: dict[str, Definition],
) -> Clause:
    """ΔP by way of the net change of what P is computed of."""
    early = tuple(each for each in clause.body if each not in late)
    wanted = {v for each in late for v in literal_variables(each)} | set(clause.head.terms)
    known = dict.fromkeys(v for each in early for v in literal_variables(each))
    row = tuple(variable for variable in known if variable in wanted)
    columns = tuple(Column(f"c{i}", each.type) for i, each in enumerate(row))
    name = f"{target.name} {len(made)}"
    base = Relation(name, columns, 0, Kind.DERIVED, Semantics.BAG, role=Role.AUXILIARY, of=target)
    terms = weighted(base)
    made[terms.id] = Definition(terms, tuple(_terms(Clause(Atom(base, row), early), terms, finder)))
    there = base.variant(Role.AUXILIARY, f"rows of {base.name}", semantics=Semantics.SET)
    weight, total = Variable("WEIGHT#", INTEGER), Variable("TOTAL#", INTEGER)
    members = Atom(terms, (*row, weight))
    found = Clause(Atom(there, row), (members,))
    made[there.id] = Definition(there, (found,), groups=frozenset({terms.id}))
    body = (
        Atom(there, row),
        Aggregation(total, "sum", weight, members, row),
        Comparison("!=", total, NOTHING),
        *late,
    )
    return Clause(replace(clause.head, relation=target, terms=(*clause.head.terms, total)), body)


def recompute_bag(
    program: Program,
    changed: Collection[str],
    nodes: Collection[str] = (),
    stored: Relation | None = None,
) -> Program:
    """The same change by evaluating P in both states: the rows of P count for, those of P@old
    against. If P@old is `stored`, only P need be computed."""
    goal, target = program.goal, weighted(program.goal)
    before = stored or old(goal)
    known = dict(program.definitions)
    if stored is None:
        known |= old_definitions(program, changed, nodes)
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(goal.columns))
    clauses = tuple(
        Clause(Atom(target, (*row, Constant(weight, INTEGER))), (Atom(state, row),))
        for state, weight in ((goal, 1), (before, -1))
        if stored is not None or before.id in known
    )
    return Program(target, {**known, target.id: Definition(target, clauses)})


MOST_AGGREGATED = 3
"""So many factors with aggregates change each by itself: with n of them there are 3ⁿ terms."""

Factor: TypeAlias = tuple[Literal, ...]
"""Literals whose change is looked at together."""


def _terms(clause: Clause, target: Relation, finder: Affected) -> Iterator[Clause]:
    """One clause for each non-empty subset of the changed factors, and each way they changed."""
    factors = _factors(clause.body, finder)
    variants = {
        position: found
        for position, factor in enumerate(factors)
        if (found := _variants(factor, position, clause, finder))
    }
    for size in range(1, len(variants) + 1):
        for subset in combinations(variants, size):
            for chosen in product(*(variants[position] for position in subset)):
                yield _term(clause, factors, target, dict(zip(subset, chosen, strict=True)))


def _factors(body: tuple[Literal, ...], finder: Affected) -> list[Factor]:
    """The body in factors: what is looked at again for the same keys is one. The aggregates of a
    group, and whether there is such a group, change together. Aggregates over many different keys
    are one as well, looked at again for what their keys have in common."""
    factors: dict[object, Factor] = {}
    for position, literal in enumerate(body):
        key: object = position
        if finder.reaches(literal):
            key = frozenset(finder.keys(literal).terms)
        factors[key] = (*factors.get(key, ()), literal)
    found = list(factors.values())
    aggregated = [f for f in found if isinstance(f[0], Aggregation) and finder.reaches(f[0])]
    if len(aggregated) <= MOST_AGGREGATED:
        return found
    rest = [factor for factor in found if factor not in aggregated]
    return [*rest, tuple(literal for factor in aggregated for literal in factor)]


def _variants(
    factor: Factor, position: int, clause: Clause, finder: Affected
) -> tuple[Variant, ...]:
    literal = factor[0]
    if finder.reaches(literal) or _is_negated_bag(literal, finder):
        keys = finder.any_of([_keys(each, finder) for each in factor])
        before = tuple(literal_in_old(each, finder.affected) for each in factor)
        one = Constant(1, INTEGER)
        return (Variant((keys, *factor), one, 1), Variant((keys, *before), one, -1))
    if isinstance(literal, Atom) and literal.relation.id in finder.changed:
        weight = Variable(f"WEIGHT#{position}", INTEGER)
        row = Atom(delta(literal.relation), (*literal.terms, weight), span=literal.span)
        changed = (row, Comparison("!=", weight, NOTHING))
        guards = moved(clause, literal, weight, disjoint=True)
        sign = -1 if literal.negated else 1
        return tuple(Variant((*changed, *guard), weight, sign) for guard in guards)
    return ()


def _is_negated_bag(literal: Literal, finder: Affected) -> bool:
    """Losing one of two copies does not make a row absent: look at it in both states."""
    return (
        isinstance(literal, Atom)
        and literal.negated
        and literal.relation.id in finder.changed
        and not literal.relation.is_set
    )


def _keys(literal: Literal, finder: Affected) -> Atom:
    if finder.reaches(literal):
        return finder.keys(literal)
    assert isinstance(literal, Atom)
    return finder.touched(literal)


def _term(
    clause: Clause, factors: Sequence[Factor], target: Relation, chosen: dict[int, Variant]
) -> Clause:
    body: list[Literal] = []
    sign = 1 if len(chosen) % 2 else -1
    weights: list[Term] = []
    for position, factor in enumerate(factors):
        variant = chosen.get(position)
        if variant is None:
            body += factor
            continue
        body += variant.literals
        sign *= variant.sign
        weights.append(variant.weight)
    total: Term = Constant(sign, INTEGER)
    for number, weight in enumerate(weights):
        product_so_far = Variable(f"PRODUCT#{number}", INTEGER)
        body.append(Computation(product_so_far, "*", (total, weight)))
        total = product_so_far
    head = replace(clause.head, relation=target, terms=(*clause.head.terms, total))
    return Clause(head, tuple(body))
