"""Which relations are computed once, for all who mention them.

A derived relation is written out where it is mentioned, so that the engine can order all joins at
once. Where many relations are built on each other, that grows without bounds: each is written out
again wherever one above it is. So of a long program the relations that are `tabled` may become
tables of their own, as recursive ones always do: those that are mentioned more than once, and
those that are long by themselves.

Law: a program with other tables has the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from harken.ir.clauses import Program, atoms, written_out
from harken.ir.strata import stratify

LONG = 120
"""A fully expanded program of at most this many literals is left as it is."""
SHARED = 12
"""An expansion may add at most this many literals."""


def tabulate(program: Program, needy: Collection[str]) -> frozenset[str]:
    """The relations to compute first; those that are `needy` cannot be, for want of arguments."""
    if not any(each.tabled for each in program.definitions.values()):
        return frozenset()
    if written_out(program) <= LONG:
        return frozenset()
    mentions = _mentions(program)
    chosen: set[str] = set()
    lengths: dict[str, int] = {}
    for stratum in stratify(program):
        for definition in stratum.definitions:
            name = definition.relation.id
            bodies = [clause.body for clause in definition.clauses]
            inner = sum(lengths.get(atom.relation.id, 0) for body in bodies for atom in atoms(body))
            length = inner + sum(map(len, bodies))
            again = length * (mentions[name] - 1)
            may = definition.tabled and name not in needy and name != program.goal.id
            if stratum.recursive:
                length = 0
            elif may and (again > SHARED or length > LONG):
                chosen.add(name)
                length = 0
            lengths[name] = length
    return frozenset(chosen)


def _mentions(program: Program) -> Counter[str]:
    return Counter(
        atom.relation.id
        for definition in program.definitions.values()
        for clause in definition.clauses
        for atom in atoms(clause.body)
    )
