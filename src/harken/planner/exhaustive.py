"""Which relations are computed once because asking for one of their rows is as much work.

A negated relation is asked for one row at a time. In

    multiple(Z) ← num(X) ∧ num(Y) ∧ Z = X · Y        prime(Z) ← num(Z) ∧ ¬multiple(Z)

no index leads from a Z to its factors: each question goes through all pairs of numbers, where one
evaluation of `multiple` goes through them once for all questions. So it becomes a table. Where the
rows of a change ask, and no others that they do not lead to, there are few questions, and it stays
as it is.

Law: a program with other tables has the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from harken.calculus.states import is_delta
from harken.ir.clauses import (
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    literal_variables,
)
from harken.ir.terms import Variable, variables


def exhaustive(program: Program, needy: Collection[str]) -> frozenset[str]:
    """The relations to compute first; those that are `needy` cannot be, for want of arguments."""
    return frozenset(
        atom.relation.id
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in _questions(clause)
        if atom.relation.id not in needy
        and (asked := program.definition(atom.relation)) is not None
        and _can_be_a_table(asked)
        and any(_is_searched(each, _known(atom, clause)) for each in asked.clauses)
    )


def _questions(clause: Clause) -> Iterator[Atom]:
    """The negated atoms that a clause asks about, if it may do so often."""
    atoms = [each for each in clause.body if isinstance(each, Atom)]
    found = [each for each in atoms if not each.negated]
    changed = [each for each in found if is_delta(each.relation)]
    if not changed or _unlinked(found, {v for each in changed for v in literal_variables(each)}):
        yield from (each for each in atoms if each.negated)


def _unlinked(atoms: Sequence[Atom], known: Collection[Variable]) -> list[Atom]:
    """The atoms that share no variable with what is known, nor with one that does."""
    linked, left = set(known), list(atoms)
    while found := [each for each in left if not linked.isdisjoint(literal_variables(each))]:
        left = [each for each in left if each not in found]
        linked.update(v for each in found for v in literal_variables(each))
    return left


def _can_be_a_table(definition: Definition) -> bool:
    return (
        definition.relation.is_set
        and definition.limit is None
        and not (definition.first or definition.numbered or definition.groups)
    )


def _known(atom: Atom, clause: Clause) -> frozenset[int]:
    """The columns whose values a question names."""
    others = {v for each in clause.body if each is not atom for v in literal_variables(each)}
    others.update(variables(clause.head.terms))
    return frozenset(
        i for i, term in enumerate(atom.terms) if not isinstance(term, Variable) or term in others
    )


def _is_searched(clause: Clause, known: Collection[int]) -> bool:
    """Is a value that the question names computed from rows that it does not lead to?"""
    asked = {t for i, t in enumerate(clause.head.terms) if i in known and isinstance(t, Variable)}
    atoms = [each for each in clause.body if isinstance(each, Atom) and not each.negated]
    free = {v for each in _unlinked(atoms, asked) for v in literal_variables(each)}
    return not asked.isdisjoint(_computed_from(free, clause.body)) if free else False


def _computed_from(free: set[Variable], body: Sequence[Literal]) -> set[Variable]:
    """Variables that get their values from these by arithmetic."""
    found: set[Variable] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for each in body:
            match each:
                case Computation() if not (free | found).isdisjoint(variables(each.arguments)):
                    found.update(variables((each.result,)))
                case Comparison(operator="=", left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        if isinstance(one, Variable) and one in found:
                            found.update(variables((other,)))
    return found
