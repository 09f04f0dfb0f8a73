"""The variables that a body binds, and those of them that an aggregate inside it sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.lang.datalog import syntax
from harken.lang.datalog.normal_form import Conjunction, alternatives


def bound_variables(
    conjunction: Conjunction, known: Iterable[str] = (), without: syntax.Aggregate | None = None
) -> set[str]:
    """Those that have a value when the `known` ones have. Every aggregate has one, except that
    which it is to be `without`."""
    found = set(known)
    for literal in conjunction:
        if isinstance(literal, syntax.Atom):
            values = map(syntax.without_cast, literal.arguments)
            found.update(each.name for each in values if isinstance(each, syntax.Named))
    equations = [
        (side.name, syntax.direct_variables((other,)).keys())
        for side, other in _equations(conjunction)
        if isinstance(side, syntax.Named)
        and not any(each is without for each in syntax.aggregates((other,)))
    ]
    size = -1
    while size != len(found):
        size = len(found)
        found.update(name for name, needed in equations if needed <= found)
    return found


def _equations(
    conjunction: Conjunction,
) -> Iterator[tuple[syntax.Expression, syntax.Expression]]:
    for literal in conjunction:
        if isinstance(literal, syntax.Constraint) and literal.operator == "=":
            left, right = syntax.without_cast(literal.left), syntax.without_cast(literal.right)
            yield left, right
            yield right, left


def outer_variables(
    aggregate: syntax.Aggregate, conjunction: Conjunction, outer: Iterable[str]
) -> frozenset[str]:
    """The variables of an aggregate that are bound outside of it: by the body that it stands in, or
    in what is around that. A variable of the aggregated value that the aggregate itself binds is
    its own, as in `s < sum s : { r(s) }`."""
    outside = bound_variables(conjunction, outer, without=aggregate)
    mentioned = outside & syntax.deep_variables(aggregate).keys()
    if aggregate.value is None:
        return frozenset(mentioned)
    value = syntax.direct_variables((aggregate.value,)).keys()
    inside = [bound_variables(each, mentioned - value) for each in alternatives(aggregate.body)]
    own = value & set.intersection(*inside) if inside else set()
    return frozenset(mentioned - own)
