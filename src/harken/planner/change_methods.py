"""How the change of a view is found, by the operators in it: what `EXPLAIN` and the documents say.

A changed literal is differentiated, or what it ranges over is looked at again for the keys that a
change can affect. Keys without a column are the worst case: everything is looked at again.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harken.calculus.affected import Affected
from harken.calculus.clock_terms import BY_CHANCE
from harken.calculus.first_rows import first_rows
from harken.calculus.rederivation import is_rederivable
from harken.calculus.rounds import rounds_of
from harken.calculus.states import affected_relations
from harken.ir.clauses import Aggregation, Atom, Literal, Program, stored_relations
from harken.ir.relations import Relation
from harken.ir.safety import required_inputs
from harken.ir.strata import reachable


class How(enum.IntEnum):
    """From the cheapest to the dearest."""

    DIFFERENTIAL = 0
    IN_ORDER = 1
    REDERIVED = 2
    BY_KEY = 3
    WHOLE = 4
    IN_ROUNDS = 5
    ALL_ROUNDS = 6
    RECOMPUTED = 7

    def __str__(self) -> str:
        return SAID[self]


SAID = (
    "differentials",
    "kept in their order",
    "derived again where it may have changed, or kept",
    "by key",
    "looked at again as a whole",
    "the rounds are stored, and only what changes in each is followed; with the strategies "
    "external and naive all rounds are computed again and compared",
    "all rounds are computed again and compared",
    "computed again and compared with those of the last look",
)


@dataclass(frozen=True, slots=True)
class Looked:
    """Something that a change makes us look at again: what, by which columns, and how."""

    what: str
    how: How
    columns: tuple[str, ...] = ()
    because: str = ""

    def __str__(self) -> str:
        if self.how is How.BY_KEY:
            return f"{self.what}: for the affected {', '.join(self.columns)}"
        return f"{self.what}: {self.how}" + (f", because {self.because}" if self.because else "")


def looked_at(program: Program, far: Collection[str] = ()) -> list[Looked]:
    """What is looked at again when any of the stored relations changes; nothing of it means that
    all changes are found by differentials. `far` are the relations in the lake."""
    names = moving(program)
    if names:
        why = f"{' and '.join(names)} {_are(names)} another one in each transaction"
        return [Looked("all rows", How.RECOMPUTED, because=why)]
    needs = required_inputs(program)
    firsts = first_rows(program.definitions[program.goal.id], program, needs)
    if firsts is not None:
        return [Looked("first rows", How.IN_ORDER), *looked_at(firsts.members, far)]
    changed = frozenset(stored_relations(program))
    finder = Affected(program, changed, affected_relations(program, changed), needs)
    found: dict[str, Looked] = {}
    for clause in program.definitions[program.goal.id].clauses:
        for literal in clause.body:
            if finder.reaches(literal):
                found |= {str(each): each for each in _looked(literal, finder, far)}
    counted = [each.relation for each in program.definitions.values() if each.relation.in_rounds]
    found |= {str(each): each for each in (_recursion(each, program, far) for each in counted)}
    return list(found.values())


def rounds_again(program: Program, far: Collection[str]) -> str | None:
    """Why all rounds of a recursion with UNION ALL are computed again, whatever is wanted; None if
    they can be stored and followed."""
    if rounds_of(program) is None:
        return "there is more than a join between one round and the next"
    below = sorted(e.name for e in stored_relations(program).values() if e.id in far)
    return f"{' and '.join(below)} {_are(below)} in the lake" if below else None


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def worst(program: Program) -> How:
    return max((each.how for each in looked_at(program)), default=How.DIFFERENTIAL)


def moving(program: Program) -> list[str]:
    """The functions in it whose value is another one in another transaction, other than the time,
    which is followed."""
    names = (
        getattr(literal, "operation", "")
        for definition in program.definitions.values()
        for clause in definition.clauses
        for literal in clause.body
    )
    return sorted({name for name in names if name in BY_CHANCE})


def _looked(literal: Literal, finder: Affected, far: Collection[str]) -> list[Looked]:
    keys = finder.keys(literal)
    columns = tuple(str(term).split("#")[0].lower() for term in keys.terms)
    how = How.BY_KEY if columns else How.WHOLE
    match literal:
        case Aggregation():
            return [Looked(literal.aggregate, how, columns)]
        case Atom(negated=True):
            return [Looked("not exists", how, columns)]
    assert isinstance(literal, Atom)
    program = finder.program
    if literal.relation.id in finder.recursive:
        return [_recursion(literal.relation, program, far)]
    if program.definitions[literal.relation.id].first is not None:
        own = Program(literal.relation, reachable(literal.relation, program.definitions))
        return looked_at(own, far)
    return [Looked("rows of a subquery", how, columns)]


def _recursion(relation: Relation, program: Program, far: Collection[str]) -> Looked:
    own = Program(relation, reachable(relation, program.definitions))
    if relation.in_rounds:
        refused = rounds_again(own, far)
        how = How.IN_ROUNDS if refused is None else How.ALL_ROUNDS
        return Looked(f"UNION ALL in {relation.written_name}", how, because=refused or "")
    refused = is_rederivable(own)
    if refused is not None:
        return Looked(f"recursion, as {refused}", How.WHOLE)
    return Looked("recursion", How.REDERIVED)
