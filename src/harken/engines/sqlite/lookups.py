"""The columns by which a clause looks rows up, which deserve an index.

SQLite plans with the indexes that exist and does not say which it misses. Values from outside,
and those found through them, are few; so are the rows of a change or of one round of a
recursion.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from harken.ir.clauses import Atom, Literal, literal_variables
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import is_bound
from harken.ir.terms import Variable

Lookup = tuple[Relation, tuple[int, ...]]
"""A relation and its given columns; none if all of its rows are read."""


def from_outside(
    body: Iterable[Literal], outer: Iterable[Variable], tables: Container[str]
) -> Iterator[Lookup]:
    """The look-ups in stored relations by values of the `outer` variables, or by values that
    such a look-up finds. Relations in `tables` have indexes of their own."""
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
    """The look-ups in tables by the rules of a recursion, in join order: SQLite does not know
    that there will be many rounds."""
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
    """The rank of looking up an atom by the known variables: by key, by any column, not at all."""
    bound = _bound(atom, known)
    if atom.negated or not bound:
        return 0
    return 2 if atom.relation.key is not None and set(bound).issuperset(atom.relation.key) else 1


def _bound(atom: Atom, known: set[Variable]) -> tuple[int, ...]:
    return tuple(i for i, term in enumerate(atom.terms) if is_bound(term, known))
