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
from typing import TYPE_CHECKING

from harken.errors import Span, TypeFault
from harken.ir.clauses import Atom, Clause, Computation, Definition, Literal
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.schema import Function
from harken.ir.terms import Constant, Term, Variable
from harken.lang.amosql.resolve import is_narrower
from harken.values.types import INTEGER, TEXT, Type

if TYPE_CHECKING:
    from harken.lang.amosql.translate import Translator


def late_call(
    translator: Translator,
    candidates: tuple[Function, ...],
    terms: tuple[Term, ...],
    literals: list[Literal],
    span: Span | None,
) -> tuple[list[Literal], tuple[Term, ...]]:
    relation = _dispatching_relation(translator, candidates, terms, span)
    if relation.id not in translator.auxiliaries:
        clauses = _clauses(translator, relation, candidates)
        translator.auxiliaries[relation.id] = Definition(relation, clauses, exclusive=True)
    literals = list(literals)
    given = tuple(
        translator.coerce(term, column.type, literals, span)
        for term, column in zip(terms, relation.columns[: relation.inputs], strict=True)
    )
    results = tuple(translator.fresh(column.type) for column in relation.columns[relation.inputs :])
    return [*literals, Atom(relation, (*given, *results), span=span)], results


def _dispatching_relation(
    translator: Translator,
    candidates: tuple[Function, ...],
    terms: tuple[Term, ...],
    span: Span | None,
) -> Relation:
    inputs = [_input_type(translator, candidates, position) for position in range(len(terms))]
    results = _result_types(translator, candidates, span)
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate((*inputs, *results)))
    bag = any(candidate.bag for candidate in candidates)
    keyed = not bag and all(
        candidate.relation is not None
        and candidate.relation.key == tuple(range(candidate.relation.inputs))
        for candidate in candidates
    )
    return Relation(
        name=_dispatching_name(candidates),
        columns=columns,
        inputs=len(inputs),
        kind=Kind.DERIVED,
        semantics=Semantics.BAG if bag else Semantics.SET,
        key=tuple(range(len(inputs))) if keyed else None,
    )


def _dispatching_name(candidates: tuple[Function, ...]) -> str:
    """The candidates are in it: a call from a narrower type has fewer."""
    taken = ("×".join(p.type.name for p in candidate.parameters) for candidate in candidates)
    return f"{candidates[0].name}*[{'|'.join(sorted(taken))}]"


def _input_type(translator: Translator, candidates: tuple[Function, ...], position: int) -> Type:
    """The least type that holds the objects every candidate takes there. A literal is the same for
    all of them, and is widened for those that take a wider type."""
    hierarchy = translator.schema.hierarchy
    types = [candidate.parameters[position].type for candidate in candidates]
    if INTEGER in types:
        return INTEGER
    common = types[0]
    for type_ in types[1:]:
        merged = hierarchy.common(common, type_)
        assert merged is not None, "candidates take related types"
        common = merged
    return common


def _result_types(
    translator: Translator, candidates: tuple[Function, ...], span: Span | None
) -> list[Type]:
    hierarchy = translator.schema.hierarchy
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
    translator: Translator, relation: Relation, candidates: tuple[Function, ...]
) -> tuple[Clause, ...]:
    clauses = [_candidate_clause(translator, relation, c, candidates) for c in candidates]
    hierarchy = translator.schema.hierarchy
    for one, other in combinations(candidates, 2):
        ordered = is_narrower(one, other, hierarchy) or is_narrower(other, one, hierarchy)
        if not ordered:
            clauses.append(_ambiguous_clause(translator, relation, one, other, candidates))
    return tuple(clauses)


def _candidate_clause(
    translator: Translator,
    relation: Relation,
    candidate: Function,
    candidates: tuple[Function, ...],
) -> Clause:
    inputs = tuple(translator.fresh(column.type) for column in relation.columns[: relation.inputs])
    body, results = translator.atom(candidate, inputs, [], None)
    wanted = relation.columns[relation.inputs :]
    results = tuple(
        translator.coerce(term, column.type, body, None)
        for term, column in zip(results, wanted, strict=True)
    )
    hierarchy = translator.schema.hierarchy
    for other in candidates:
        if other is not candidate and is_narrower(other, candidate, hierarchy):
            body.append(_not_taken_by(translator, other, candidate, inputs))
    return Clause(Atom(relation, (*inputs, *results)), tuple(body))


def _ambiguous_clause(
    translator: Translator,
    relation: Relation,
    one: Function,
    other: Function,
    candidates: tuple[Function, ...],
) -> Clause:
    inputs = tuple(translator.fresh(column.type) for column in relation.columns[: relation.inputs])
    body: list[Literal] = [
        *_membership(translator, one, None, inputs),
        *_membership(translator, other, one, inputs),
    ]
    hierarchy = translator.schema.hierarchy
    for third in candidates:
        if is_narrower(third, one, hierarchy) and is_narrower(third, other, hierarchy):
            body.append(_not_taken_by(translator, third, one, inputs))
    message = Constant(f"{one.id} and {other.id}", TEXT)
    results = []
    for mine, column in zip(one.results, relation.columns[relation.inputs :], strict=True):
        # Of the candidate's own type: equal computations are taken for one, wherever they stand.
        result = translator.fresh(mine.type)
        body.append(Computation(result, "ambiguous", (message,)))
        results.append(translator.coerce(result, column.type, body, None))
    return Clause(Atom(relation, (*inputs, *results)), tuple(body))


def _membership(
    translator: Translator,
    function: Function,
    given: Function | None,
    inputs: tuple[Variable, ...],
) -> list[Literal]:
    """Atoms that put the arguments in the types of a candidate, beyond those of `given`."""
    hierarchy = translator.schema.hierarchy
    wanted: list[Literal] = []
    for position, parameter in enumerate(function.parameters):
        implied = given is not None and hierarchy.is_subtype(
            given.parameters[position].type, parameter.type
        )
        if parameter.type.surrogate and not implied:
            extent = translator.schema.extent(parameter.type)
            wanted.append(Atom(extent, (inputs[position],)))
    return wanted


def _not_taken_by(
    translator: Translator, narrower: Function, candidate: Function, inputs: tuple[Variable, ...]
) -> Literal:
    atoms = _membership(translator, narrower, candidate, inputs)
    if len(atoms) == 1 and isinstance(atoms[0], Atom):
        return Atom(atoms[0].relation, atoms[0].terms, negated=True)
    columns = tuple(Column(f"c{i}", variable.type) for i, variable in enumerate(inputs))
    name = translator.auxiliary_name("types")
    relation = Relation(name, columns, len(columns), Kind.DERIVED)
    clause = Clause(Atom(relation, inputs), tuple(atoms))
    translator.auxiliaries[relation.id] = Definition(relation, (clause,))
    return Atom(relation, inputs, negated=True)
