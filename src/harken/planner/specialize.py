"""Push what a caller knows into a recursive relation.

If an argument of a recursive relation is handed on unchanged by each of its recursive clauses, a
caller that gives a value for it needs only the rows with that value:

    closure(5, Y) over  closure(X, Y) ← closure(X, Z) ∧ edge(Z, Y)
    needs only          closure(5, Y) ← closure(5, Z) ∧ edge(Z, Y)

A closure asked for backwards (`closure(X, 5)`) is first turned round, from its left-linear to its
right-linear form, so that its other argument is the one handed on.

Law: the calling clause has the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Definition,
    Literal,
    Program,
    canonical,
    literal_terms,
    substitute,
    substitute_term,
)
from harken.ir.relations import Role
from harken.ir.strata import depends_on, reachable, stratify
from harken.ir.terms import Term, Variable


def specialize(program: Program) -> Program:
    definitions = dict(program.definitions)
    single = {
        next(iter(stratum.names))
        for stratum in stratify(program)
        if stratum.recursive
        and len(stratum.definitions) == 1
        and stratum.definitions[0].limit is None  # it counts all rows, not those with a value
    }
    for name, definition in program.definitions.items():
        if name in single:
            continue
        clauses = tuple(_specialize_clause(c, definitions, single) for c in definition.clauses)
        definitions[name] = replace(definition, clauses=clauses)
    return Program(program.goal, reachable(program.goal, definitions))


def _specialize_clause(
    clause: Clause, definitions: dict[str, Definition], single: set[str]
) -> Clause:
    body = tuple(_specialize_literal(literal, definitions, single) for literal in clause.body)
    return Clause(clause.head, body)


def _specialize_literal(
    literal: Literal, definitions: dict[str, Definition], single: set[str]
) -> Literal:
    if isinstance(literal, Aggregation):
        atom = _specialize_atom(literal.atom, definitions, single)
        return replace(literal, atom=atom)
    if isinstance(literal, Atom):
        return _specialize_atom(literal, definitions, single)
    return literal


def _specialize_atom(atom: Atom, definitions: dict[str, Definition], single: set[str]) -> Atom:
    if atom.relation.id not in single:
        return atom
    known = [i for i, term in enumerate(atom.terms) if not isinstance(term, Variable)]
    for definition in _forms(definitions[atom.relation.id]):
        position = next((i for i in known if _is_handed_on(definition, i)), None)
        if position is not None:
            special = _with_value(definition, position, atom.terms[position])
            definitions[special.relation.id] = special
            return replace(atom, relation=special.relation)
    return atom


def _forms(definition: Definition) -> Iterator[Definition]:
    yield definition
    turned = _right_linear(definition)
    if turned is not None:
        yield turned


def _is_handed_on(definition: Definition, position: int) -> bool:
    name = definition.relation.id
    for clause in definition.clauses:
        head = clause.head.terms[position]
        handed = [
            literal.terms[position]
            for literal in clause.body
            if isinstance(literal, Atom) and literal.relation.id == name
        ]
        if handed and (not isinstance(head, Variable) or set(handed) != {head}):
            return False
    return True


def _with_value(definition: Definition, position: int, value: Term) -> Definition:
    general = definition.relation
    relation = general.variant(Role.AUXILIARY, f"{general.name}[{position}={value}]")

    def renamed(literal: Literal) -> Literal:
        if isinstance(literal, Atom) and literal.relation.id == general.id:
            return replace(literal, relation=relation)
        return literal

    clauses = []
    for clause in definition.clauses:
        head = clause.head.terms[position]
        step: dict[Variable, Term] = {head: value} if isinstance(head, Variable) else {}
        terms = tuple(substitute_term(term, step) for term in clause.head.terms)
        body = tuple(renamed(substitute(literal, step)) for literal in clause.body)
        clauses.append(Clause(Atom(relation, terms), body))
    return Definition(relation, tuple(clauses), definition.exclusive, tabled=definition.tabled)


def _right_linear(definition: Definition) -> Definition | None:
    """The mirror image of `r(X,Y) ← b(X,Y)`, `r(X,Y) ← r(X,Z) ∧ b(Z,Y)`; None for other shapes."""
    relation = definition.relation
    if relation.arity != 2 or len(definition.clauses) != 2:
        return None
    base, step = definition.clauses
    if relation.id in depends_on(Definition(relation, (base,))):
        return None
    first, *rest = step.body
    if not (isinstance(first, Atom) and first.relation.id == relation.id) or not rest:
        return None
    start, middle = first.terms
    end = step.head.terms[1]
    variables = (start, middle, end)
    if not all(isinstance(term, Variable) for term in variables) or len(set(variables)) != 3:
        return None
    if step.head.terms[0] != start or any(start in literal_terms(literal) for literal in rest):
        return None
    if any(isinstance(lit, Atom) and lit.relation.id == relation.id for lit in rest):
        return None
    repeated = Clause(replace(base.head, terms=(middle, end)), tuple(rest))
    if canonical(repeated) != canonical(base):
        return None
    turned = relation.variant(Role.AUXILIARY, f"{relation.name}~")
    again = Clause(
        Atom(turned, (middle, start)), (*rest, Atom(turned, (end, start), span=first.span))
    )
    return Definition(turned, (Clause(Atom(turned, base.head.terms), base.body), again))
