"""Parts of a body that nothing else needs a value of are existence tests.

In `r(X) ← a(X) ∧ b(_, Y) ∧ c(Y, _)` the rows of b and c say only whether there are any: as a join
they would be paired with every row of a, and the pairs thrown away again.

Law: a set has the same rows. Of a bag it would not be true: there, each pair is a row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harken.engines.sqlite.fallible import Fallibility
from harken.ir.clauses import Atom, Clause, Comparison, Literal, literal_variables
from harken.ir.relations import Kind
from harken.ir.terms import Variable, variables

Part = tuple[Literal, ...]


def independent_parts(
    clause: Clause, given: Collection[Variable], fallibility: Fallibility
) -> tuple[Part, ...]:
    """The parts of the body that share no variable with the head or with the rest; `given` are
    variables with a value. What may fail stays where it is: it is evaluated only where all else
    holds."""
    parts = _parts(clause.body, given)
    if len(parts) < 2:
        return ()
    wanted = set(variables(clause.head.terms)) - set(given)
    found = [part for part in parts if _is_test(part, wanted, fallibility)]
    # Something has to be left that rows come from.
    return tuple(found if len(found) < len(parts) else found[1:])


def _parts(body: Sequence[Literal], given: Collection[Variable]) -> list[Part]:
    """The literals by which of them share variables, each part in the order of the body."""
    groups: list[tuple[set[Variable], list[int]]] = []
    for number, literal in enumerate(body):
        names = set(literal_variables(literal)) - set(given)
        numbers = [number]
        apart = []
        for other, others in groups:
            if names.isdisjoint(other):
                apart.append((other, others))
            else:
                names |= other
                numbers += others
        groups = [*apart, (names, numbers)]
    return [tuple(body[i] for i in sorted(numbers)) for _, numbers in groups]


def _is_test(part: Part, wanted: Collection[Variable], fallibility: Fallibility) -> bool:
    return any(isinstance(each, Atom) and not each.negated for each in part) and all(
        isinstance(each, Atom | Comparison)
        and not (isinstance(each, Atom) and each.relation.kind is Kind.FOREIGN)
        and not fallibility.can_fail(each, growing=True)
        and set(wanted).isdisjoint(literal_variables(each))
        for each in part
    )
