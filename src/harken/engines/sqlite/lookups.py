"""By which columns a clause looks rows up: those want an index.

SQLite plans with the indexes there are, and does not say which it misses. Values from outside, and
those that a look-up by them leads to, are few; so are the rows of a change or of a round of a
recursion.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from harken.ir.clauses import Atom, Literal, literal_variables
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import is_bound
from harken.ir.terms import Variable

Lookup = tuple[Relation, tuple[int, ...]]
"""A relation, and the columns whose values are given; none if all of its rows are read."""


def from_outside(
    body: Iterable[Literal], outer: Iterable[Variable], tables: Container[str]
) -> Iterator[Lookup]:
    """How stored relations are looked up by values of the `outer` variables, or by those that such
    a look-up leads to. What is in `tables` has indexes of its own."""
    known = set(outer)
    follows = bool(known)
    waiting = [
        each
        for each in body
        if isinstance(each, Atom)
        and each.relation.kind is Kind.STORED
        and each.relation.id not in tables
    ]
    while waiting:
        atom = max(waiting, key=lambda each: _reach(each, known))
        columns = _bound(atom, known)
        yield atom.relation, columns
        waiting.remove(atom)
        if columns and follows and not atom.negated:
            known.update(literal_variables(atom))


def in_rounds(joins: Sequence[Literal], tables: Container[str]) -> Iterator[Lookup]:
    """How the rules of a recursion look tables up, in the order of their joins: SQLite does not
    know that there will be many rounds."""
    atoms = [each for each in joins if isinstance(each, Atom)]
    if not any(_is_recent(atom.relation) for atom in atoms):
        return
    known: set[Variable] = set()
    for atom in atoms:
        columns = _bound(atom, known)
        if columns and (atom.relation.kind is Kind.STORED or atom.relation.id in tables):
            yield atom.relation, columns
        known.update(() if atom.negated else literal_variables(atom))


def _is_recent(relation: Relation) -> bool:
    return relation.role in (Role.RECENT, Role.REDERIVED)


def _reach(atom: Atom, known: set[Variable]) -> int:
    """How good it is to look an atom up by what is known: by its key, by anything, not at all."""
    bound = _bound(atom, known)
    if atom.negated or not bound:
        return 0
    return 2 if atom.relation.key is not None and set(bound).issuperset(atom.relation.key) else 1


def _bound(atom: Atom, known: set[Variable]) -> tuple[int, ...]:
    return tuple(i for i, term in enumerate(atom.terms) if is_bound(term, known))
