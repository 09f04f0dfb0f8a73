"""AMOSQL by definition: a reference interpreter that walks the syntax tree.

It shares nothing with the system but the parser: no ObjectLog, no planner, no SQL. A query is a
loop over every combination of its variables; an expression is a list of rows, one for each way
to take a value of each function in it; `where` is a test of one combination:

    rows(q) = [ r  for each combination c of the variables of q
                   if where(c)
                   for r in items(c) ]

as a bag; a set drops repeated rows. It is slow and meant to be read: where it and the system
disagree, one of them is wrong, and here it is easy to see what was computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from harken import Object
from harken.lang.amosql import syntax
from harken.lang.amosql.tree_walk import descendants
from tests.models.candidates import candidates
from tests.models.meanings import (
    AGGREGATES,
    COMPARE,
    LITERAL_TYPES,
    Environment,
    Failure,
    Outcome,
    Row,
    Static,
    aggregated,
    operate,
)
from tests.models.statics import (
    ARITHMETIC,
    Called,
    Definitions,
    Function,
    Refused,
    as_query,
    called,
    known,
    real_name,
)

ROUNDS = 100
PATIENCE = 50_000
"""How many combinations of values are tried before an answer is given up."""


class TooLong(Exception):
    """The answer would take this interpreter, which tries everything, too long."""


Truth = bool | Failure


class _Remembered:
    """The answers of one query. Holds the query, so that its id stays its own."""

    def __init__(self, query: syntax.Query) -> None:
        self.query = query
        nodes = [node for node, _ in descendants(query)]
        self.free = sorted({node.name for node in nodes if isinstance(node, syntax.Name)})
        self.rows: dict[tuple[Any, ...], tuple[list[Outcome], set[str]]] = {}


class World(Definitions):
    """Types, objects and functions, and what any query over them means."""

    def __init__(self) -> None:
        super().__init__()
        self.discarded: set[str] = set()
        """Codes of errors that were met but did not decide the answer: another order of
        evaluation may or may not meet them."""
        self.tried = 0
        self._subqueries: dict[int, _Remembered] = {}
        self._wrapped: dict[int, tuple[syntax.Expression, syntax.Query]] = {}
        self._calls: dict[tuple[str, Row], tuple[list[Outcome], set[str]]] = {}
        self._active: dict[frozenset[Called], dict[tuple[str, Row], list[Outcome]]] = {}

    # --- changes ---------------------------------------------------------------------------

    def add_type(self, thing: Object, type_name: str) -> None:
        self.objects[thing] |= self.ancestors(type_name)
        self.changed()

    def remove_type(self, thing: Object, type_name: str) -> None:
        """The object leaves the type and its subtypes, and the rows that need it to be there."""
        types = self.objects[thing]
        types -= {name for name in types if type_name in self.ancestors(name)}
        if not types:
            del self.objects[thing]
        for overloads in self.functions.values():
            for function in overloads.values():
                columns = (*function.takes, *function.gives)
                function.rows = [r for r in function.rows if all(map(self.is_of, r, columns))]
        self.changed()

    def delete(self, thing: Object) -> None:
        self.remove_type(thing, "object")

    def changed(self) -> None:
        """Forget what was computed from the data or the schema as they were."""
        self._calls.clear()
        self._subqueries.clear()

    # --- queries ---------------------------------------------------------------------------

    def answer(self, query: syntax.Query, bag: bool) -> list[Outcome]:
        """The rows of a query at the top level."""
        self.begin()
        return self.rows(query, {}, bag)

    def begin(self) -> None:
        """Forget what was met when something else was computed."""
        self.discarded = set()
        self.tried = 0
        self._active.clear()

    def rows(self, query: syntax.Query, around: Environment, bag: bool) -> list[Outcome]:
        """The rows for given values of the variables around the query; remembered, but not while
        a recursive function is still growing."""
        if self._active:
            return self._rows(query, around, bag)
        known = self._subqueries.setdefault(id(query), _Remembered(query))
        key = (bag, *(around[name][0] for name in known.free if name in around))
        if key not in known.rows:
            outside, self.discarded = self.discarded, set()
            known.rows[key] = self._rows(query, around, bag), self.discarded
            self.discarded = outside
        rows, discarded = known.rows[key]
        self.discarded |= discarded
        return rows

    def _rows(self, query: syntax.Query, around: Environment, bag: bool) -> list[Outcome]:
        found: list[Outcome] = []
        for inside, failure in self._combinations(query, around):
            truth = True if query.where is None else self.holds(query.where, inside)
            if truth is False:
                continue
            if failure is not None:
                self._discard([failure])
                continue
            selected = self.values(query.items, inside)
            if isinstance(truth, Failure):
                self._discard([] if selected else [truth])
                selected = [truth for _ in selected]
            found += selected
        return found if bag else list(dict.fromkeys(found))

    def _combinations(
        self, query: syntax.Query, around: Environment
    ) -> Iterator[tuple[Environment, Failure | None]]:
        """Each way to give the variables values: objects of their types, or candidates. Where a
        candidate could not be computed, with the failure: if it passes, it may be met."""
        types = {d.name or d.type: real_name(d.type) for d in query.variables}
        literal = {name: type_ for name, type_ in types.items() if type_ in LITERAL_TYPES}
        found = candidates(self, query, literal, around) if literal else {}
        ranges = [
            found[name] if name in literal else self.extent(type_) for name, type_ in types.items()
        ]
        for values in product(*ranges):
            self._try(1)
            inside = dict(around)
            for (name, type_), value in zip(types.items(), values, strict=True):
                inside[name] = (value, Static((type_,)))
            yield inside, next((value for value in values if isinstance(value, Failure)), None)

    def _try(self, combinations: int) -> None:
        self.tried += combinations
        if self.tried > PATIENCE:
            raise TooLong

    # --- expressions -----------------------------------------------------------------------

    def values(self, nodes: Iterable[syntax.Expression], env: Environment) -> list[Outcome]:
        """Every way to take one value of each expression, side by side."""
        found: list[Outcome] = [()]
        for node in nodes:
            found = self._beside(found, self.value(node, env))
        return found

    def _beside(self, left: list[Outcome], right: list[Outcome]) -> list[Outcome]:
        if not left or not right:
            self._discard([*left, *right])
        self._try(len(left) * len(right))
        return [joined(one, other) for one in left for other in right]

    def _discard(self, outcomes: Iterable[Outcome | bool]) -> None:
        self.discarded |= {o.code for o in outcomes if isinstance(o, Failure)}

    def value(self, node: syntax.Expression, env: Environment) -> list[Outcome]:
        match node:
            case syntax.Literal():
                return [(node.value,)]
            case syntax.Name():
                value = known(node.name, env)[0]
                return [value if isinstance(value, Failure) else (value,)]
            case syntax.InterfaceVariable():
                return [(self.interface[node.name],)]
            case syntax.Tuple():
                return self.values(node.items, env)
            case syntax.Query():
                return self.rows(node, env, bag=False)
            case syntax.Call():
                return self._call(node, env)
            case syntax.Unary(operator="-"):
                return mapped("negate", self.value(node.operand, env))
            case syntax.Binary() if node.operator in ARITHMETIC:
                return mapped(node.operator, self.values((node.left, node.right), env))
        return self._truth_value(node, env)

    def _truth_value(self, node: syntax.Expression, env: Environment) -> list[Outcome]:
        """A comparison of literals has a value for each pair; another condition always has one."""
        if isinstance(node, syntax.Binary) and node.operator in COMPARE:
            statics = self.static(node.left, env) + self.static(node.right, env)
            if len(statics) == 2 and all(s.types[0] in LITERAL_TYPES for s in statics):
                return mapped(f"is {node.operator}", self.values((node.left, node.right), env))
        truth = self.holds(node, env)
        return [truth if isinstance(truth, Failure) else (truth,)]

    # --- conditions ------------------------------------------------------------------------

    def holds(self, node: syntax.Expression, env: Environment) -> Truth:
        match node:
            case syntax.Binary(operator="and"):
                return self._both(self.holds(node.left, env), self.holds(node.right, env))
            case syntax.Binary(operator="or"):
                return self._any([self.holds(node.left, env), self.holds(node.right, env)])
            case syntax.Unary(operator="not"):
                inner = self.holds(node.operand, env)
                return inner if isinstance(inner, Failure) else not inner
            case syntax.Binary(operator=sign) if sign in COMPARE or sign == "in":
                left, right = self.value(node.left, env), self.value(node.right, env)
                if not left or not right:
                    self._discard([*left, *right])
                return self._any([compared(sign, a, b) for a in left for b in right])
        values = self.value(node, env)
        return self._any([v if isinstance(v, Failure) else v[0] is True for v in values])

    def _both(self, left: Truth, right: Truth) -> Truth:
        """A condition that is false shields the other from a failure that its data causes."""
        if left is False or right is False:
            hidden = [t for t in (left, right) if isinstance(t, Failure)]
            self._discard(f for f in hidden if f.code != "division-by-zero")
            return False
        return left if isinstance(left, Failure) else right

    def _any(self, truths: list[Truth]) -> Truth:
        if True in truths:
            self._discard(truths)
            return True
        return next((truth for truth in truths if isinstance(truth, Failure)), False)

    # --- calls -----------------------------------------------------------------------------

    def _call(self, node: syntax.Call, env: Environment) -> list[Outcome]:
        if node.function in AGGREGATES and len(node.arguments) == 1:
            return self._aggregate(node.function, node.arguments[0], env)
        if node.function == "tclose":
            return self._tclose(node, env)
        given = self.values(node.arguments, env)
        if node.function not in self.functions:
            return mapped(node.function, given)
        return self._applied(self.resolved(node, env), given)

    def _applied(self, functions: list[Function], given: list[Outcome]) -> list[Outcome]:
        found: list[Outcome] = []
        for arguments in given:
            if isinstance(arguments, Failure):
                found.append(arguments)
            else:
                found += self._dispatched(functions, arguments)
        return found

    def _dispatched(self, functions: list[Function], arguments: Row) -> list[Outcome]:
        """The values of the function that is the most specific for these very arguments."""
        best = self.most_fitting(functions, arguments)
        if len(best) > 1:
            return [Failure("ambiguous")]
        gives = self._gives(functions)
        rows = [widened(row, gives) for f in best for row in self.call(f, arguments)]
        is_recursive = len(functions) > 1 and self._cycle(called(functions))
        return list(dict.fromkeys(rows)) if is_recursive else rows

    def call(self, function: Function, arguments: Row) -> list[Outcome]:
        """The values of one function for given arguments: a set, unless it is a bag."""
        given = widened(arguments, function.takes)
        assert isinstance(given, tuple)
        cycle = self._cycle((function.id,))
        if cycle in self._active:
            return self._active[cycle].setdefault((function.id, given), [])
        if (function.id, given) not in self._calls:
            outside, self.discarded = self.discarded, set()
            rows = self._fixpoint(function, given, cycle) if cycle else self._body(function, given)
            self._calls[function.id, given] = rows, self.discarded
            self.discarded = outside
        rows, discarded = self._calls[function.id, given]
        self.discarded |= discarded
        return rows

    def _body(self, function: Function, given: Row) -> list[Outcome]:
        if function.query is None:
            return [row[len(given) :] for row in function.rows if row[: len(given)] == given]
        env: Environment = {
            name: (value, Static((type_,)))
            for (name, type_), value in zip(function.parameters, given, strict=True)
        }
        rows = [widened(row, function.gives) for row in self.rows(function.query, env, True)]
        is_bag = function.bag and not self._cycle((function.id,))
        return rows if is_bag else list(dict.fromkeys(rows))

    # --- recursion -------------------------------------------------------------------------

    def _fixpoint(self, function: Function, given: Row, cycle: frozenset[Called]) -> list[Outcome]:
        """Evaluate every call that is met, starting from no values, until nothing changes."""
        table: dict[tuple[str, Row], list[Outcome]] = {(function.id, given): []}
        self._active[cycle] = table
        try:
            for _ in range(ROUNDS):
                before = {key: Counter(rows) for key, rows in table.items()}
                for name, arguments in list(table):
                    overload = self._function(name)
                    table[name, arguments] = self._body(overload, arguments)
                if before == {key: Counter(rows) for key, rows in table.items()}:
                    return table[function.id, given]
        finally:
            del self._active[cycle]
        raise Refused(f"{function.id} does not settle")

    def _tclose(self, node: syntax.Call, env: Environment) -> list[Outcome]:
        first, further = self._steps(node, env)
        taken, _ = self._closed_types(node, env)
        starts = self.value(node.arguments[1], env)
        if len(node.arguments) == 2:
            return [row for start in starts for row in self._reach(first, further, start)]
        ((times,),) = self.value(node.arguments[2], env)  # type: ignore[misc]
        if times == 0:
            return [
                row for row in starts if isinstance(row, Failure) or self._is_object(row, taken)
            ]
        return [row for start in starts for row in self._power(first, further, start, times)]

    def _is_object(self, row: Row, type_name: str) -> bool:
        return isinstance(row[0], Object) and self.is_of(row[0], type_name)

    def _reach(
        self, first: list[Function], further: list[Function], start: Outcome
    ) -> list[Outcome]:
        reached = dict.fromkeys(self._applied(first, [start]))
        waiting = list(reached)
        while waiting:
            row = waiting.pop()
            for new in self._applied(further, [row] if isinstance(row, tuple) else []):
                if new not in reached:
                    reached[new] = None
                    waiting.append(new)
        return list(reached)

    def _power(
        self, first: list[Function], further: list[Function], start: Outcome, times: int
    ) -> list[Outcome]:
        if times < 0:
            return []
        level = list(dict.fromkeys(self._applied(first, [start])))
        for _ in range(times - 1):
            level = list(dict.fromkeys(self._applied(further, level)))
        return level

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(self, name: str, argument: syntax.Expression, env: Environment) -> list[Outcome]:
        query = self._as_query(argument)
        rows = self.rows(query, env, bag=not query.distinct)
        failures = [row for row in rows if isinstance(row, Failure)]
        if failures:
            self._discard(failures if name in ("count", "some", "notany") else [])
            return failures[:1]
        type_ = self.static(query, env)[0].types[0]
        return aggregated(name, [row for row in rows if isinstance(row, tuple)], type_)

    def _as_query(self, node: syntax.Expression) -> syntax.Query:
        """Always the same query for the same node, so that its answers are remembered."""
        if isinstance(node, syntax.Query):
            return node
        if id(node) not in self._wrapped:
            self._wrapped[id(node)] = node, as_query(node)
        return self._wrapped[id(node)][1]


def joined(one: Outcome, other: Outcome) -> Outcome:
    if isinstance(one, Failure):
        return one
    return other if isinstance(other, Failure) else one + other


def mapped(name: str, given: list[Outcome]) -> list[Outcome]:
    return [one if isinstance(one, Failure) else operate(name, one) for one in given]


def widened(row: Outcome, types: tuple[str, ...]) -> Outcome:
    """Integers as numbers where numbers are declared."""
    if isinstance(row, Failure):
        return row
    return tuple(
        float(value) if type_ == "number" and type(value) is int else value
        for value, type_ in zip(row, types, strict=True)
    )


def compared(sign: str, one: Outcome, other: Outcome) -> Truth:
    if isinstance(one, Failure):
        return one
    if isinstance(other, Failure):
        return other
    if len(one) != len(other):
        raise Refused("tuples of different lengths are compared")
    return one == other if sign in ("=", "in") else COMPARE[sign](one[0], other[0])
