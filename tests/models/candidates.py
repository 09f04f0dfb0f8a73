"""The values that a variable of a literal type can have at all.

`for each integer i` ranges over all integers, so the reference interpreter first collects the
finitely many for which the query can hold: those that an equation gives (`i = age(p)`,
`i + 1 = age(p)`, `<i, n> = f(p)`, `not (i != 5)`) and those for which a function called with it has
a value; what is known of the results or the other arguments of a derived function may tell it as
well. They may be too many; the interpreter then tests each like any other combination. They must
not be too few. What is not followed is a value that comes out of a call whose own arguments are
looked for: `i = 3` in `pair(i) = <n, n>`, if pair(x) is <x, 3>.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from harken import Object
from harken.lang.amosql import syntax
from harken.lang.amosql.tree_walk import children, descendants
from tests.models.meanings import (
    LITERAL_TYPES,
    Environment,
    Failure,
    Outcome,
    Static,
    literal_type,
    operate,
)
from tests.models.statics import Function, function_name

if TYPE_CHECKING:
    from tests.models.interpreter import World

Types = dict[str, str]
Values = dict[Any, None]
"""Values without repetition; a Failure where one could not be computed."""
Found = dict[str, Values]
Rows = Collection[Outcome]


def candidates(world: World, query: syntax.Query, literal: Types, around: Environment) -> Found:
    """For each literal variable of the query its possible values."""
    return _Search(world, query, literal, around).found


class _Search:
    def __init__(
        self,
        world: World,
        query: syntax.Query,
        literal: Types,
        around: Environment,
        given: dict[str, Rows] | None = None,
        results: Rows = (),
    ) -> None:
        """From outside, values of some variables may be `given`, and `results` of the query."""
        self.world = world
        self.around = around
        self.types = {**literal, **_declared(query)}
        self.found: Found = {
            name: dict.fromkeys([True, False] if type_ == "boolean" else [])
            for name, type_ in self.types.items()
            if type_ in LITERAL_TYPES
        }
        for name, rows in (given or {}).items():
            self._solve(syntax.Name(name), rows)
        # One variable may get its values from another, hence the rounds; a variable that feeds
        # on itself (`i = i + 1`) must not go on for ever.
        for _ in range(len(self.found) + 1):
            known = sum(map(len, self.found.values()))
            self._solve(query, results)
            for node, _ in descendants(query):
                self._look_at(node)
            if known == sum(map(len, self.found.values())):
                break

    def _look_at(self, node: syntax.Node) -> None:
        match node:
            case syntax.Binary(operator="=" | "!=" | "in", left=left, right=right):
                ones, others = list(_flat([left])), list(_flat([right]))
                if len(ones) != len(others):  # a function with several results is among them
                    ones, others = [left], [right]
                for one, other in zip(ones, others, strict=True):
                    self._equate(one, other)
                    self._equate(other, one)
            case syntax.Call():
                self._solve_call(node, ())

    def _equate(self, side: syntax.Expression, other: syntax.Expression) -> None:
        if self._seeks(side):
            self._solve(side, self._values(other))

    def _seeks(self, node: syntax.Node) -> bool:
        return any(
            isinstance(found, syntax.Name) and found.name in self.found
            for found, _ in descendants(node)
        )

    def _solve(self, side: syntax.Expression, rows: Rows) -> None:
        """Take the values of an expression as giving values to the variables in it."""
        match side:
            case syntax.Name(name=name) if name in self.found:
                for row in rows:
                    self._add(name, row)
            case syntax.Tuple(items=items) | syntax.Query(items=items):
                for item in items:
                    self._solve(item, _cells(rows))
            case syntax.Binary(operator="+" | "-" as sign, left=left, right=right):
                if self._seeks(left):
                    inverse = "-" if sign == "+" else "+"
                    self._solve(left, _operated(inverse, rows, self._values(right)))
                if self._seeks(right):
                    known = self._values(left)
                    pair = (rows, known) if sign == "+" else (known, rows)
                    self._solve(right, _operated("-", *pair))
            case syntax.Call():
                self._solve_call(side, rows)

    def _solve_call(self, node: syntax.Call, results: Rows) -> None:
        """Take a call as giving values to the variables in its arguments: those for which it has
        a value, one of the results if any are known."""
        if node.function == "tclose":
            name, _ = function_name(node.arguments[0])
            self._solve_call(syntax.Call(name, node.arguments[1:2]), ())
        if node.function not in self.world.functions or not self._seeks(node):
            return
        arguments = list(_flat(node.arguments))
        given = [self._values(argument) for argument in arguments]
        for function in self.world.functions[node.function].values():
            known = _arguments(self.world, function, _as_many(given, len(function.takes)), results)
            for argument, rows in zip(arguments, _as_many(known, len(given)), strict=True):
                self._solve(argument, rows)

    def _values(self, node: syntax.Expression) -> Rows:
        """The values of an expression for all values of the variables in it, each once."""
        found: dict[Outcome, None] = {}
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
            found |= dict.fromkeys(self.world.value(node, env))
            self.world.discarded = outside
        return found

    def _add(self, name: str, row: Outcome) -> None:
        if isinstance(row, Failure):
            self.found[name][row] = None
            return
        wanted, value = self.types[name], row[0]
        if isinstance(value, Object):
            return
        if wanted == "number" and type(value) is int:
            value = float(value)
        if wanted == "integer" and type(value) is float and value.is_integer():
            value = int(value)
        if literal_type(value) == wanted:
            self.found[name][value] = None


def _cells(rows: Rows) -> Rows:
    """Each value of each row as a row of its own. They may have several types, so none is dropped
    as repeated: to Python, 1 is true."""
    return [
        cell
        for row in rows
        for cell in ([row] if isinstance(row, Failure) else [(value,) for value in row])
    ]


def _as_many(columns: list[Rows], width: int) -> list[Rows]:
    """One column for each of `width` places. An argument may have several values side by side
    and stand for several parameters: then what is in any column may be in each."""
    if len(columns) == width:
        return columns
    return [[cell for rows in columns for cell in _cells(rows)]] * width


def _operated(name: str, left: Rows, right: Rows) -> Rows:
    """An operation on every pair of numbers."""
    found: dict[Outcome, None] = {}
    for pair in product(left, right):
        failure = next((each for each in pair if isinstance(each, Failure)), None)
        values = tuple(value for row in pair if isinstance(row, tuple) for value in row)
        if failure is not None:
            found[failure] = None
        elif all(type(value) in (int, float) for value in values):
            found[operate(name, values)] = None
    return found


def parameter_values(world: World, function: Function, position: int) -> Iterable[Any]:
    """The values of one argument for which a function may have a value, each once."""
    type_ = function.takes[position]
    if type_ not in LITERAL_TYPES:
        return world.extent(type_)
    if type_ == "boolean" and function.query is not None:
        return [True, False]  # a condition may name neither
    rows = _arguments(world, function, [()] * len(function.takes), ())[position]
    return [row if isinstance(row, Failure) else row[0] for row in rows]


def _arguments(world: World, function: Function, given: list[Rows], results: Rows) -> list[Rows]:
    """For each argument the literal values for which a function may have a value, and one of the
    results if any are known; of some arguments values may be given."""
    if function.query is None:
        return [
            dict.fromkeys(row[i : i + 1] for row in function.rows) if t in LITERAL_TYPES else ()
            for i, t in enumerate(function.takes)
        ]
    if function.id in _searched:
        return [()] * len(function.takes)
    _searched.append(function.id)
    try:
        names = [name for name, _ in function.parameters]
        known = dict(zip(names, given, strict=True))
        search = _Search(world, function.query, dict(function.parameters), {}, known, results)
    finally:
        _searched.pop()
    return [
        [v if isinstance(v, Failure) else (v,) for v in search.found.get(name, ())]
        for name in names
    ]


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


def _flat(nodes: Iterable[syntax.Expression]) -> Iterator[syntax.Expression]:
    """The parts of tuples, and of queries for several values, in their places."""
    for node in nodes:
        if isinstance(node, syntax.Tuple | syntax.Query) and len(node.items) > 1:
            yield from _flat(node.items)
        else:
            yield node


def _free_names(node: syntax.Node) -> set[str]:
    names = {found.name for found, _ in descendants(node) if isinstance(found, syntax.Name)}
    return names - _declared(node).keys()
