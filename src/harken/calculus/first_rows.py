"""Kept first rows: what ORDER BY with LIMIT shows, stored, with those that come after them.

    t(X) ← rows(X) ∧ … X is among the first …      becomes      t(X) ← firsts(X)

where firsts is a stored bag. A row that leaves the first ones is replaced by the next, so some more
rows are kept, in their order. A change of the rows is a bag of weighted rows (`bags`); which are
the first ones is then a look at the beginning of what is kept, and what comes after all that is
kept does not matter.

Law: the rewritten definition has the same rows as the one it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harken.ir.clauses import Aggregation, Atom, Clause, Definition, First, Program
from harken.ir.relations import Kind, Relation, Role, Semantics
from harken.ir.safety import Needs
from harken.ir.strata import reachable
from harken.ir.terms import Constant, Variable
from harken.values.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of the goal of `members`; `relation` has as many of its columns as are
    shown."""

    relation: Relation
    first: First
    members: Program

    def ahead(self, count: int) -> Program:
        """So many of the first rows, with all columns. By its clause it has all rows, which need
        not be expanded to be put in order."""
        rows = self.members.goal
        relation = rows.variant(Role.AUXILIARY, f"ahead {rows.name}", kind=Kind.DERIVED)
        row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(rows.columns))
        there = Aggregation(Constant(True, BOOLEAN), "some", None, Atom(rows, row), row)
        clause = Clause(Atom(relation, row), (Atom(rows, row), there))
        first = replace(self.first, count=count, offset=0)
        definition = Definition(relation, (clause,), first=first)
        return Program(relation, {relation.id: definition, **self.members.definitions})


def first_rows(definition: Definition, program: Program, needs: Needs) -> FirstRows | None:
    """The first rows that could be kept for a definition; None if it depends on its caller which
    rows they are, or if there is no last one."""
    first = definition.first
    if first is None or first.captured or first.count is None:
        return None
    rows = program.definitions.get(first.relation)
    if rows is None or needs.get(first.relation):
        return None
    relation = Relation(
        name=f"first rows of {definition.relation.id}",
        columns=definition.relation.columns,
        inputs=0,
        kind=Kind.STORED,
        semantics=Semantics.BAG,
        past=True,
        role=Role.KEPT,
        of=definition.relation,
    )
    members = Program(rows.relation, reachable(rows.relation, program.definitions))
    return FirstRows(relation, first, members)


def reading(definition: Definition, kept: FirstRows) -> Definition:
    """The definition, reading what is kept."""
    columns = enumerate(kept.relation.columns)
    row = tuple(Variable(f"X{i}", column.type) for i, column in columns)
    clause = Clause(Atom(definition.relation, row), (Atom(kept.relation, row),))
    return replace(definition, clauses=(clause,), first=None)
