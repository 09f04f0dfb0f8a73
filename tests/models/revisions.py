"""What `set`, `add` and `remove` do, by definition: the reference interpreter for updates.

The arguments and the values are computed first, from what is there before the change. Then each
argument gets exactly the values (`set`), these as well (`add`), or loses one copy of each
(`remove`). All of it happens, or nothing.
"""

from __future__ import annotations

from harken.lang.amosql import syntax
from tests.models.interpreter import World, widened
from tests.models.meanings import Failure, Outcome, Row
from tests.models.statics import Function, Refused


class Impossible(Exception):
    """The change fails with one of these codes, and nothing of it happens."""

    def __init__(self, codes: set[str]) -> None:
        super().__init__(", ".join(sorted(codes)))
        self.codes = codes


class Untold(Exception):
    """The change goes through a derived function, which this interpreter knows nothing of."""


Revised = list[tuple[Function, list[Row]]]


def revised(world: World, node: syntax.Update) -> Revised:
    """The functions that change, with the rows they then have."""
    world.begin()
    candidates = world.resolved(node.target, {})
    arguments = _rows(world.values(node.target.arguments, {}))
    values = _rows(world.value(node.value, {}))
    changed = {function.id: (function, function.rows) for function in candidates}
    faults: set[str] = set()  # which of several is met first is not said
    for given in arguments:
        function = _chosen(world, candidates, given)
        _, rows = changed[function.id]
        try:
            rows = _changed(world, function, node.verb, rows, given, values)
        except Impossible as error:
            faults |= error.codes
        changed[function.id] = function, rows
    if faults:
        raise Impossible(faults)
    return list(changed.values())


def _rows(outcomes: list[Outcome]) -> list[Row]:
    failures = {outcome.code for outcome in outcomes if isinstance(outcome, Failure)}
    if failures:
        raise Impossible(failures)
    return [outcome for outcome in outcomes if isinstance(outcome, tuple)]


def _chosen(world: World, candidates: list[Function], given: Row) -> Function:
    """With several candidates the objects choose."""
    best = candidates if len(candidates) == 1 else world.most_fitting(candidates, given)
    if len(best) != 1:
        raise Refused("it is not clear which function is to change")
    if best[0].query is not None:
        raise Untold
    return best[0]


def _changed(
    world: World, function: Function, verb: str, rows: list[Row], given: Row, values: list[Row]
) -> list[Row]:
    types = (*function.takes, *function.gives)
    wanted = [widened((*given, *value), types) for value in values]
    if verb == "remove":
        return _without(rows, wanted)
    there = [row for row in rows if row[: len(given)] == widened(given, function.takes)]
    if verb == "set":
        rows, there = [row for row in rows if row not in there], []
    faults = set()
    if not all(all(map(world.is_of, row, types)) for row in wanted):
        faults.add("wrong-object")
    if not function.bag and len({*there, *wanted}) > 1:
        faults.add("many-values")
    if faults:
        raise Impossible(faults)
    if function.bag:
        return rows + wanted
    return rows + wanted[: 1 - len(there)]


def _without(rows: list[Row], gone: list[Row]) -> list[Row]:
    left = list(rows)
    for row in gone:
        if row in left:
            left.remove(row)
    return left
