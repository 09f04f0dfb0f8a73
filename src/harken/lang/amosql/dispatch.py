"""Late binding: a call whose function depends on the types of the objects at run time.

The candidates become one derived relation with a clause each, and a clause holds only for objects
that no narrower candidate takes:

    grossincome*(E, R) ← manager.grossincome(E, R)
    grossincome*(E, R) ← employee.grossincome(E, R) ∧ ¬manager(E)

Where an object is of two types whose candidates are not ordered, evaluation fails with
`ambiguous` rather than choosing one.
"""

from __future__ import annotations

from itertools import combinations

from harken.errors import Span, TypeFault
from harken.ir.clauses import Atom, Clause, Computation, Definition, Literal
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.schema import Function
from harken.ir.terms import Constant, Term, Variable
from harken.lang.amosql.overload_resolution import is_narrower
from harken.lang.amosql.program_draft import Draft
from harken.values.types import INTEGER, TEXT, Type


def late_call(
    draft: Draft,
    candidates: tuple[Function, ...],
    terms: tuple[Term, ...],
    literals: list[Literal],
    span: Span | None,
) -> tuple[list[Literal], tuple[Term, ...]]:
    relation = _dispatching_relation(draft, candidates, terms, span)
    if relation.id not in draft.auxiliaries:
        clauses = _clauses(draft, relation, candidates)
        draft.auxiliaries[relation.id] = Definition(relation, clauses, exclusive=True)
    literals = list(literals)
    given = tuple(
        draft.coerce(term, column.type, literals, span)
        for term, column in zip(terms, relation.columns[: relation.inputs], strict=True)
    )
    results = tuple(draft.fresh(column.type) for column in relation.columns[relation.inputs :])
    return [*literals, Atom(relation, (*given, *results), span=span)], results


def _dispatching_relation(
    draft: Draft,
    candidates: tuple[Function, ...],
    terms: tuple[Term, ...],
    span: Span | None,
) -> Relation:
    inputs = [_input_type(draft, candidates, position) for position in range(len(terms))]
    results = _result_types(draft, candidates, span)
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate((*inputs, *results)))
    bag = any(candidate.bag for candidate in candidates)
    keyed = not bag and all(
        candidate.relation is not None
        and candidate.relation.key == tuple(range(candidate.relation.inputs))
        for candidate in candidates
    )
    # A call from a narrower type has fewer candidates.
    return Relation(
        name=f"{candidates[0].name}*",
        columns=columns,
        inputs=len(inputs),
        kind=Kind.DERIVED,
        semantics=Semantics.BAG if bag else Semantics.SET,
        key=tuple(range(len(inputs))) if keyed else None,
        role=Role.LATE_BOUND,
        of="|".join(sorted(each.id for each in candidates)),
    )


def _input_type(draft: Draft, candidates: tuple[Function, ...], position: int) -> Type:
    """The least type that holds the objects every candidate takes there. A literal is the same for
    all of them, and is widened for those that take a wider type."""
    hierarchy = draft.schema.hierarchy
    types = [candidate.parameters[position].type for candidate in candidates]
    if INTEGER in types:
        return INTEGER
    common = types[0]
    for type_ in types[1:]:
        merged = hierarchy.common(common, type_)
        assert merged is not None, "candidates take related types"
        common = merged
    return common


def _result_types(draft: Draft, candidates: tuple[Function, ...], span: Span | None) -> list[Type]:
    hierarchy = draft.schema.hierarchy
    first, *rest = candidates
    results = [column.type for column in first.results]
    for other in rest:
        merged = [
            hierarchy.common(mine, theirs.type)
            for mine, theirs in zip(results, other.results, strict=False)
        ]
        if len(other.results) != len(results) or None in merged:
            raise TypeFault(
                f"{first.id} and {other.id} give results of different types, and only the "
                "object decides which one is called",
                code="type-mismatch",
                span=span,
                hint="choose one with a dot, or give both the same result type",
            )
        results = [type_ for type_ in merged if type_ is not None]
    return results


def _clauses(
    draft: Draft, relation: Relation, candidates: tuple[Function, ...]
) -> tuple[Clause, ...]:
    clauses = [_candidate_clause(draft, relation, c, candidates) for c in candidates]
    hierarchy = draft.schema.hierarchy
    for one, other in combinations(candidates, 2):
        ordered = is_narrower(one, other, hierarchy) or is_narrower(other, one, hierarchy)
        if not ordered:
            clauses.append(_ambiguous_clause(draft, relation, one, other, candidates))
    return tuple(clauses)


def _candidate_clause(
    draft: Draft,
    relation: Relation,
    candidate: Function,
    candidates: tuple[Function, ...],
) -> Clause:
    inputs = tuple(draft.fresh(column.type) for column in relation.columns[: relation.inputs])
    body, results = draft.atom(candidate, inputs, [], None)
    wanted = relation.columns[relation.inputs :]
    results = tuple(
        draft.coerce(term, column.type, body, None)
        for term, column in zip(results, wanted, strict=True)
    )
    hierarchy = draft.schema.hierarchy
    for other in candidates:
        if other is not candidate and is_narrower(other, candidate, hierarchy):
            body.append(_not_taken_by(draft, other, candidate, inputs))
    return Clause(Atom(relation, (*inputs, *results)), tuple(body))


def _ambiguous_clause(
    draft: Draft,
    relation: Relation,
    one: Function,
    other: Function,
    candidates: tuple[Function, ...],
) -> Clause:
    inputs = tuple(draft.fresh(column.type) for column in relation.columns[: relation.inputs])
    body: list[Literal] = [
        *_membership(draft, one, None, inputs),
        *_membership(draft, other, one, inputs),
    ]
    hierarchy = draft.schema.hierarchy
    for third in candidates:
        if is_narrower(third, one, hierarchy) and is_narrower(third, other, hierarchy):
            body.append(_not_taken_by(draft, third, one, inputs))
    message = Constant(f"{one.id} and {other.id}", TEXT)
    results = []
    for mine, column in zip(one.results, relation.columns[relation.inputs :], strict=True):
        # Of the candidate's own type: equal computations are taken for one, wherever they stand.
        result = draft.fresh(mine.type)
        body.append(Computation(result, "ambiguous", (message,)))
        results.append(draft.coerce(result, column.type, body, None))
    return Clause(Atom(relation, (*inputs, *results)), tuple(body))


def _membership(
    draft: Draft,
    function: Function,
    given: Function | None,
    inputs: tuple[Variable, ...],
) -> list[Literal]:
    """Atoms that put the arguments in the types of a candidate, beyond those of `given`."""
    hierarchy = draft.schema.hierarchy
    wanted: list[Literal] = []
    for position, parameter in enumerate(function.parameters):
        implied = given is not None and hierarchy.is_subtype(
            given.parameters[position].type, parameter.type
        )
        if parameter.type.surrogate and not implied:
            extent = draft.schema.extent(parameter.type)
            wanted.append(Atom(extent, (inputs[position],)))
    return wanted


def _not_taken_by(
    draft: Draft, narrower: Function, candidate: Function, inputs: tuple[Variable, ...]
) -> Literal:
    atoms = _membership(draft, narrower, candidate, inputs)
    if len(atoms) == 1 and isinstance(atoms[0], Atom):
        return Atom(atoms[0].relation, atoms[0].terms, negated=True)
    columns = tuple(Column(f"c{i}", variable.type) for i, variable in enumerate(inputs))
    name = draft.auxiliary_name("types")
    relation = Relation(name, columns, len(columns), Kind.DERIVED, role=Role.PART)
    clause = Clause(Atom(relation, inputs), tuple(atoms))
    draft.auxiliaries[relation.id] = Definition(relation, (clause,))
    return Atom(relation, inputs, negated=True)
