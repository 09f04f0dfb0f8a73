"""The values that a variable of a literal type can have at all.

`for each integer i` ranges over all integers, so the reference interpreter first collects the
finitely many for which the query can hold: those that an equation gives (`i = age(p)`,
`i + 1 = age(p)`, `<i, n> = f(p)`) and those for which a function called with it has a value. They
may be too many, never too few; the interpreter then tests each like any other combination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from meanings import LITERAL_TYPES, Environment, Failure, Outcome, Static, literal_type

from harken import Object
from harken.lang.amosql import syntax
from harken.lang.amosql.tree import children, descendants

if TYPE_CHECKING:
    from interpreter import World
    from statics import Function

Types = dict[str, str]
Found = dict[str, dict[Any, None]]
"""Each variable's values, without repetition; a Failure where one could not be computed."""


def candidates(world: World, query: syntax.Query, literal: Types, around: Environment) -> Found:
    """For each literal variable of the query its possible values."""
    return _Search(world, query, literal, around).found


class _Search:
    def __init__(
        self, world: World, query: syntax.Query, literal: Types, around: Environment
    ) -> None:
        self.world = world
        self.around = around
        self.types = {**literal, **_declared(query)}
        self.found: Found = {
            name: {} for name, type_ in self.types.items() if type_ in LITERAL_TYPES
        }
        # One variable may get its values from another, hence the rounds; a variable that feeds
        # on itself (`i = i + 1`) must not go on for ever.
        for _ in range(len(self.found) + 1):
            for node, _ in descendants(query):
                self._look_at(node)

    def _look_at(self, node: syntax.Node) -> None:
        match node:
            case syntax.Binary(operator="=" | "in", left=left, right=right):
                self._solve(left, right)
                self._solve(right, left)
            case syntax.Call():
                self._look_at_call(node)

    def _solve(self, side: syntax.Expression, other: syntax.Expression) -> None:
        """Take `side = other` as giving values to the variables of `side`."""
        match side:
            case syntax.Name(name=name) if name in self.found:
                for row in self._values(other):
                    self._add(name, row, 0)
            case syntax.Tuple(items=items):
                for position, item in enumerate(items):
                    if isinstance(item, syntax.Name) and item.name in self.found:
                        for row in self._values(other):
                            self._add(item.name, row, position)
            case syntax.Binary(operator="+", left=left, right=right):
                self._solve(left, syntax.Binary("-", other, right))
                self._solve(right, syntax.Binary("-", other, left))
            case syntax.Binary(operator="-", left=left, right=right):
                self._solve(left, syntax.Binary("+", other, right))
                self._solve(right, syntax.Binary("-", left, other))

    def _look_at_call(self, node: syntax.Call) -> None:
        for position, argument in enumerate(node.arguments):
            if isinstance(argument, syntax.Name) and argument.name in self.found:
                for function in self.world.functions.get(node.function, {}).values():
                    if len(function.takes) == len(node.arguments):
                        for value in parameter_values(self.world, function, position):
                            known = value if isinstance(value, Failure) else (value,)
                            self._add(argument.name, known, 0)

    def _values(self, node: syntax.Expression) -> Iterator[Outcome]:
        """The values of an expression for all values of the variables in it."""
        used = _free_names(node) & self.types.keys()
        ranges = [
            list(self.found[n]) if n in self.found else self.world.extent(self.types[n])
            for n in sorted(used)
        ]
        for values in product(*ranges):
            env = dict(self.around)
            for name, value in zip(sorted(used), values, strict=True):
                env[name] = (value, Static((self.types[name],)))
            outside, self.world.discarded = self.world.discarded, set()
            rows = self.world.value(node, env)
            self.world.discarded = outside
            yield from rows

    def _add(self, name: str, row: Outcome, position: int) -> None:
        if isinstance(row, Failure):
            self.found[name][row] = None
            return
        wanted, value = self.types[name], row[position]
        if isinstance(value, Object):
            return
        if wanted == "number" and type(value) is int:
            value = float(value)
        if wanted == "integer" and type(value) is float and value.is_integer():
            value = int(value)
        if literal_type(value) == wanted:
            self.found[name][value] = None


def parameter_values(world: World, function: Function, position: int) -> Iterable[Any]:
    """The values of one argument for which a function may have a value, each once."""
    name, type_ = function.parameters[position]
    if type_ not in LITERAL_TYPES:
        return world.extent(type_)
    if function.query is None:
        return dict.fromkeys(row[position] for row in function.rows)
    if type_ == "boolean":
        return [True, False]  # a condition may name neither
    if function.id in _searched:
        return []
    _searched.append(function.id)
    try:
        parameters = dict(function.parameters)
        return candidates(world, function.query, parameters, {})[name]
    finally:
        _searched.pop()


_searched: list[str] = []
"""The functions whose arguments are being looked for, so that recursion ends."""


def _declared(query: syntax.Node) -> Types:
    """Every variable of the query and of the queries inside it."""
    found = {}
    if isinstance(query, syntax.Query):
        found = {d.name or d.type: {"real": "number"}.get(d.type, d.type) for d in query.variables}
    for child in children(query):
        found |= _declared(child)
    return found


def _free_names(node: syntax.Node) -> set[str]:
    names = {found.name for found, _ in descendants(node) if isinstance(found, syntax.Name)}
    return names - _declared(node).keys()
