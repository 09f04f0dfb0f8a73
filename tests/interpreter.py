"""AMOSQL by definition: a reference interpreter that walks the syntax tree.

It shares nothing with the system but the parser: no ObjectLog, no planner, no SQL. A query is a
loop over every combination of its variables; an expression is a list of values, one for each way
to take a value of each function in it; `where` is a test of one combination. It is slow and
meant to be read: where it and the system disagree, one of them is wrong, and here it is easy to
see what was computed.

    rows(q) = [ items(c)  for each combination c of the variables  if where(c) ]

as a bag; a set drops repeated rows. Nothing here tries to be clever except `_candidates`, which
finds the finitely many values a variable of a literal type can have at all.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from harken import Object
from harken.lang.amosql import syntax
from harken.lang.amosql.tree import descendants

LITERAL_TYPES = frozenset({"integer", "number", "charstring", "boolean"})
SMALLEST, LARGEST = -(2**63), 2**63 - 1

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "in": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "some", "notany"})


class Refused(Exception):
    """The text has no meaning: an unknown name, or types that do not fit."""


@dataclass(frozen=True)
class Failure:
    """Stands for a row whose computation met an error, such as a division by zero."""

    code: str


@dataclass(frozen=True)
class Static:
    """What is known of a value before the query runs: its types, exactly or as upper bounds."""

    types: tuple[str, ...]
    exact: bool = False


Row = tuple[Any, ...]
Outcome = Row | Failure
Environment = dict[str, tuple[Any, Static]]


@dataclass
class Function:
    """`rows` are the arguments and results of a stored function, `query` defines a derived one."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    results: tuple[tuple[str | None, str], ...]
    bag: bool
    query: syntax.Query | None = None
    rows: list[Row] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(type_ for _, type_ in self.parameters)})"

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(type_ for _, type_ in self.parameters)

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(type_ for _, type_ in self.results)


class World:
    """Types, objects and functions, and what any query over them means."""

    def __init__(self) -> None:
        self.supertypes: dict[str, tuple[str, ...]] = {"object": ()}
        self.objects: dict[Object, set[str]] = {}
        """Every object with all its types, supertypes included."""
        self.functions: dict[str, dict[str, Function]] = {}
        self.interface: dict[str, Any] = {}
        self.discarded: set[str] = set()
        """Codes of errors that were met and did not decide the answer: another order of
        evaluation may or may not meet them."""
        self._calls: dict[tuple[str, Row], list[Outcome]] = {}
        self._recursive: dict[str, frozenset[str]] = {}
        self._active: dict[frozenset[str], dict[tuple[str, Row], list[Outcome]]] = {}
        self._wanted: set[tuple[str, str]] = set()

    # --- types -----------------------------------------------------------------------------

    def ancestors(self, name: str) -> set[str]:
        return {name}.union(*(self.ancestors(above) for above in self.supertypes[name]))

    def is_subtype(self, sub: str, sup: str) -> bool:
        if sub in LITERAL_TYPES or sup in LITERAL_TYPES:
            return sub == sup or (sub, sup) == ("integer", "number")
        return sup in self.ancestors(sub)

    def most_specific(self, names: Iterable[str]) -> tuple[str, ...]:
        given = set(names)
        return tuple(
            sorted(n for n in given if not any(n != m and n in self.ancestors(m) for m in given))
        )

    def common(self, one: str, other: str) -> str:
        """The least type above both; of several the alphabetically first."""
        if self.is_subtype(one, other):
            return other
        if self.is_subtype(other, one):
            return one
        if one in LITERAL_TYPES or other in LITERAL_TYPES:
            raise Refused(f"nothing holds {one} and {other}")
        return min(self.most_specific(self.ancestors(one) & self.ancestors(other)))

    def extent(self, type_name: str) -> list[Object]:
        return [thing for thing, types in self.objects.items() if type_name in types]

    def add_type(self, thing: Object, type_name: str) -> None:
        self.objects[thing] |= self.ancestors(type_name)

    def is_of(self, value: Any, type_name: str) -> bool:
        if isinstance(value, Object):
            return type_name in self.objects.get(value, set())
        return self.is_subtype(literal_type(value), type_name)

    def converted(self, value: Any, type_name: str) -> Any:
        return float(value) if type_name == "number" and type(value) is int else value

    # --- schema ----------------------------------------------------------------------------

    def define(self, node: syntax.CreateFunction) -> Function:
        if isinstance(node.body, syntax.ExpressionStatement):
            query: syntax.Query | None = as_query(node.body.expression)
        else:
            query = node.body if isinstance(node.body, syntax.Query) else None
        function = Function(
            node.name,
            tuple((d.name or d.type, d.type) for d in node.parameters),
            tuple((d.name, d.type) for d in node.results),
            node.bag,
            query,
        )
        self.functions.setdefault(node.name, {})[function.id] = function
        self.changed()
        return function

    def changed(self) -> None:
        """Forget what was computed from the data or the schema before."""
        self._calls.clear()
        self._recursive.clear()
        self._candidate_cache = {}

    _candidate_cache: dict[Any, set[Any]]

    # --- queries ---------------------------------------------------------------------------

    def answer(self, query: syntax.Query, bag: bool) -> list[Outcome]:
        """The rows of a query at the top level."""
        self.discarded.clear()
        return self.rows(query, {}, bag)

    def rows(self, query: syntax.Query, around: Environment, bag: bool) -> list[Outcome]:
        found: list[Outcome] = []
        for inside in self._combinations(query, around):
            truth = True if query.where is None else self.holds(query.where, inside)
            if truth is False:
                continue
            selected = self.values(query.items, inside)
            if isinstance(truth, Failure):
                if not selected:
                    self.discarded.add(truth.code)
                selected = [truth for _ in selected]
            found += selected
        return found if bag else list(dict.fromkeys(found))

    def _combinations(self, query: syntax.Query, around: Environment) -> Iterator[Environment]:
        names = [(d.name or d.type, real_name(d.type)) for d in query.variables]
        ranges = [self._range(name, type_, names, query, around) for name, type_ in names]
        for values in product(*ranges):
            inside = dict(around)
            for (name, type_), value in zip(names, values, strict=True):
                inside[name] = (value, Static((type_,)))
            yield inside

    def _range(
        self,
        name: str,
        type_name: str,
        names: list[tuple[str, str]],
        query: syntax.Query,
        around: Environment,
    ) -> Iterable[Any]:
        if type_name not in LITERAL_TYPES:
            return self.extent(type_name)
        return self._candidates(name, type_name, dict(names), query, around)

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
            return []
        return [joined(one, other) for one in left for other in right]

    def _discard(self, outcomes: Iterable[Outcome]) -> None:
        self.discarded.update(o.code for o in outcomes if isinstance(o, Failure))

    def value(self, node: syntax.Expression, env: Environment) -> list[Outcome]:
        match node:
            case syntax.Literal():
                return [(node.value,)]
            case syntax.Name():
                if node.name not in env:
                    raise Refused(f"no variable {node.name}")
                return [(env[node.name][0],)]
            case syntax.InterfaceVariable():
                return [(self.interface[node.name],)]
            case syntax.Tuple():
                return self.values(node.items, env)
            case syntax.Query():
                return self.rows(node, env, bag=False)
            case syntax.Call():
                return self._call(node, env)
            case syntax.Unary(operator="-"):
                return self._mapped("negate", self.value(node.operand, env))
            case syntax.Binary() if node.operator in ("+", "-", "*", "/", "||"):
                return self._mapped(node.operator, self.values((node.left, node.right), env))
        return self._truth_value(node, env)

    def _truth_value(self, node: syntax.Expression, env: Environment) -> list[Outcome]:
        """A comparison of values has a truth value for each pair; other conditions have one."""
        if isinstance(node, syntax.Binary) and node.operator in COMPARE and node.operator != "in":
            pairs = self.values((node.left, node.right), env)
            static = self.static(node.left, env) + self.static(node.right, env)
            if len(static) == 2 and all(s.types[0] in LITERAL_TYPES for s in static):
                return [compared(node.operator, pair) for pair in pairs]
        truth = self.holds(node, env)
        return [truth if isinstance(truth, Failure) else (truth,)]

    def _mapped(self, name: str, given: list[Outcome]) -> list[Outcome]:
        return [one if isinstance(one, Failure) else operate(name, one) for one in given]

    # --- conditions ------------------------------------------------------------------------

    def holds(self, node: syntax.Expression, env: Environment) -> bool | Failure:
        match node:
            case syntax.Binary(operator="and"):
                return self._both(self.holds(node.left, env), self.holds(node.right, env))
            case syntax.Binary(operator="or"):
                return self._either([self.holds(node.left, env), self.holds(node.right, env)])
            case syntax.Unary(operator="not"):
                inner = self.holds(node.operand, env)
                return inner if isinstance(inner, Failure) else not inner
            case syntax.Binary() if node.operator in COMPARE:
                left, right = self.value(node.left, env), self.value(node.right, env)
                return self._either(self._pairs(node.operator, left, right))
        values = self.value(node, env)
        return self._either([v if isinstance(v, Failure) else v[0] is True for v in values])

    def _pairs(
        self, sign: str, left: list[Outcome], right: list[Outcome]
    ) -> list[bool | Failure]:
        if not left or not right:
            self._discard([*left, *right])
            return []
        truths: list[bool | Failure] = []
        for one, other in product(left, right):
            if isinstance(one, Failure) or isinstance(other, Failure):
                truths.append(one if isinstance(one, Failure) else other)  # type: ignore[arg-type]
            elif len(one) != len(other):
                raise Refused("tuples of different lengths")
            elif len(one) == 1:
                truths.append(COMPARE[sign](one[0], other[0]))
            else:
                truths.append(one == other)
        return truths

    def _both(self, left: bool | Failure, right: bool | Failure) -> bool | Failure:
        """A condition that is false shields the other one from failing, but for overflows."""
        for one, other in ((left, right), (right, left)):
            if one is False:
                if isinstance(other, Failure):
                    self.discarded.add(other.code)
                return False
        return left if isinstance(left, Failure) else right

    def _either(self, truths: list[bool | Failure]) -> bool | Failure:
        failures = [truth for truth in truths if isinstance(truth, Failure)]
        if True in truths:
            self.discarded.update(failure.code for failure in failures)
            return True
        return failures[0] if failures else False

    # --- calls -----------------------------------------------------------------------------

    def _call(self, node: syntax.Call, env: Environment) -> list[Outcome]:
        if node.function in AGGREGATES and len(node.arguments) == 1:
            return self._aggregate(node.function, node.arguments[0], env)
        if node.function == "tclose":
            return self._tclose(node, env)
        given = self.values(node.arguments, env)
        if node.function not in self.functions:
            return self._mapped(node.function, given)
        statics = [s for argument in node.arguments for s in self.static(argument, env)]
        candidates = self.resolve(node.function, statics, node.qualifier)
        return self._applied(candidates, given)

    def _applied(self, candidates: list[Function], given: list[Outcome]) -> list[Outcome]:
        found: list[Outcome] = []
        for arguments in given:
            if isinstance(arguments, Failure):
                found.append(arguments)
            else:
                found += self._dispatch(candidates, arguments)
        return found

    def _dispatch(self, candidates: list[Function], arguments: Row) -> list[Outcome]:
        """The values of the most specific candidate for these very arguments."""
        fitting = [
            f for f in candidates if all(map(self.is_of, arguments, f.takes))
        ]
        best = [f for f in fitting if not any(self._narrower(g, f) for g in fitting)]
        if len(best) > 1:
            return [Failure("ambiguous")]
        if not best:
            return []
        gives = self._common_results(candidates)
        return [
            row
            if isinstance(row, Failure)
            else tuple(self.converted(v, t) for v, t in zip(row, gives, strict=True))
            for row in self.call(best[0], arguments)
        ]

    def _narrower(self, one: Function, other: Function) -> bool:
        return one is not other and all(map(self.is_subtype, one.takes, other.takes))

    def _common_results(self, candidates: list[Function]) -> tuple[str, ...]:
        gives = candidates[0].gives
        for other in candidates[1:]:
            if len(other.gives) != len(gives):
                raise Refused("candidates give different numbers of results")
            gives = tuple(map(self.common, gives, other.gives))
        return gives

    def resolve(
        self, name: str, statics: list[Static], qualifier: str | None = None
    ) -> list[Function]:
        """The functions a call can mean: the best for what is known, and those that the objects
        at run time may prefer to it."""
        overloads = [
            f
            for f in self.functions[name].values()
            if len(f.takes) == len(statics)
            and (qualifier is None or f.takes[:1] == (qualifier,))
        ]
        sure = [f for f in overloads if all(map(self._fits, statics, f.takes))]
        maybe = [f for f in overloads if all(map(self._may_fit, statics, f.takes))]
        if not sure:
            if not maybe:
                raise Refused(f"{name} is not defined for {statics}")
            return maybe
        best = [f for f in sure if not any(self._narrower(g, f) for g in sure)]
        if len(best) > 1:
            raise Refused(f"{name} is ambiguous")
        if qualifier is not None:
            return best
        return best + [f for f in maybe if self._narrower(f, best[0])]

    def _fits(self, given: Static, wanted: str) -> bool:
        return any(self.is_subtype(type_, wanted) for type_ in given.types)

    def _may_fit(self, given: Static, wanted: str) -> bool:
        if given.exact or wanted in LITERAL_TYPES:
            return self._fits(given, wanted)
        return any(
            type_ not in LITERAL_TYPES
            and (self.is_subtype(type_, wanted) or self.is_subtype(wanted, type_))
            for type_ in given.types
        )

    def call(self, function: Function, arguments: Row) -> list[Outcome]:
        """The values of one function for given arguments: a set, unless it is a bag."""
        given = tuple(map(self.converted, arguments, function.takes))
        key = (function.id, given)
        cycle = self._cycle(function.name)
        if function.name in cycle:
            return self._recursive_call(function, given, cycle)
        if key not in self._calls:
            self._calls[key] = self._evaluate(function, given)
        known = self._calls[key]
        return known

    def _evaluate(self, function: Function, given: Row) -> list[Outcome]:
        width = len(given)
        if function.query is None:
            return [row[width:] for row in function.rows if row[:width] == given]
        env: Environment = {
            name: (value, Static((type_,)))
            for (name, type_), value in zip(function.parameters, given, strict=True)
        }
        query = with_named_results(function)
        before = set(self.discarded)
        rows = self.rows(query, env, function.bag)
        if self.discarded - before:
            # Kept with the values, so that a second call knows of it too.
            self._risky.add((function.id, given))
        return [
            row
            if isinstance(row, Failure)
            else tuple(self.converted(v, t) for v, t in zip(row, function.gives, strict=True))
            for row in rows
        ]

    # --- recursion -------------------------------------------------------------------------

    def _cycle(self, name: str) -> frozenset[str]:
        """The names of the functions that `name` calls and that call it, directly or not."""
        known = self._recursive.get(name)
        if known is None:
            below = self._reached(name)
            known = frozenset(other for other in below if name in self._reached(other))
            self._recursive[name] = known
        return known

    def _reached(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for function in self.functions.get(waiting.pop(), {}).values():
                if function.query is not None:
                    called = called_names(function.query) & self.functions.keys()
                    waiting += called - found
                    found |= called
        return found

    def _recursive_call(
        self, function: Function, given: Row, cycle: frozenset[str]
    ) -> list[Outcome]:
        """The least fixpoint, by evaluating every call met until nothing is added."""
        key = (function.id, given)
        table = self._active.get(cycle)
        if table is not None:
            return table.setdefault(key, [])
        if key in self._calls:
            return self._calls[key]
        table = self._active[cycle] = {key: []}
        try:
            settled = False
            while not settled:
                settled = True
                for called in list(table):
                    overload = self._by_id(called[0])
                    rows = list(dict.fromkeys(self._evaluate(overload, called[1])))
                    if set(rows) != set(table[called]):
                        table[called] = rows
                        settled = False
                settled = settled and len(table) == len(list(table))
                size = len(table)
                if settled and any(k not in table for k in table) is False:
                    settled = size == len(table)
        finally:
            del self._active[cycle]
        self._calls.update(table)
        return table[key]

    def _by_id(self, function_id: str) -> Function:
        return self.functions[function_id.partition("(")[0]][function_id]

    def _tclose(self, node: syntax.Call, env: Environment) -> list[Outcome]:
        name, qualifier = function_name(node.arguments[0])
        starts = self.value(node.arguments[1], env)
        (start,) = self.static(node.arguments[1], env)
        (result,) = self._common_results(self.resolve(name, [Static(start.types[:1])], qualifier))
        type_ = self.common(start.types[0], result)
        step = self.resolve(name, [Static((type_,))], qualifier)
        if len(node.arguments) == 3:
            ((times,),) = self.value(node.arguments[2], env)  # type: ignore[misc]
            return [row for one in starts for row in self._power(step, one, times, type_)]
        return [row for one in starts for row in self._reach(step, one)]

    def _reach(self, step: list[Function], start: Outcome) -> list[Outcome]:
        reached: dict[Outcome, None] = {}
        waiting = [start]
        while waiting:
            for row in self._applied(step, [waiting.pop()]):
                if row not in reached:
                    reached[row] = None
                    waiting.append(row)
        return list(reached)

    def _power(
        self, step: list[Function], start: Outcome, times: int, type_: str
    ) -> list[Outcome]:
        if times < 0 or (times == 0 and type_ in LITERAL_TYPES):
            return []
        level: list[Outcome] = [start]
        for _ in range(times):
            level = list(dict.fromkeys(self._applied(step, level)))
        return level

    # --- aggregates ------------------------------------------------------------------------

    def _aggregate(
        self, name: str, argument: syntax.Expression, env: Environment
    ) -> list[Outcome]:
        query = argument if isinstance(argument, syntax.Query) else as_query(argument)
        rows = self.rows(query, env, bag=not query.distinct)
        failures = [row for row in rows if isinstance(row, Failure)]
        if failures:
            if name in ("count", "some", "notany"):
                self._discard(failures)
            return [failures[0]]
        return aggregated(name, [row for row in rows if not isinstance(row, Failure)])

    # --- static types ----------------------------------------------------------------------

    def static(self, node: syntax.Expression, env: Environment) -> tuple[Static, ...]:
        match node:
            case syntax.Literal():
                return (Static((literal_type(node.value),), exact=True),)
            case syntax.Name():
                return (env[node.name][1],)
            case syntax.InterfaceVariable():
                value = self.interface[node.name]
                if isinstance(value, Object):
                    return (Static(self.most_specific(self.objects[value]), exact=True),)
                return (Static((literal_type(value),), exact=True),)
            case syntax.Tuple():
                return tuple(s for item in node.items for s in self.static(item, env))
            case syntax.Query():
                inside = dict(env)
                for d in node.variables:
                    inside[d.name or d.type] = (None, Static((real_name(d.type),)))
                return tuple(
                    Static(s.types[:1]) for item in node.items for s in self.static(item, inside)
                )
            case syntax.Call():
                return self._static_call(node, env)
            case syntax.Unary(operator="-"):
                return (Static(self.static(node.operand, env)[0].types),)
            case syntax.Binary() if node.operator in ("+", "-", "*", "/", "||"):
                one, other = self.static(node.left, env)[0], self.static(node.right, env)[0]
                return (Static((operation_type(node.operator, one.types[0], other.types[0]),)),)
        return (Static(("boolean",)),)

    def _static_call(self, node: syntax.Call, env: Environment) -> tuple[Static, ...]:
        name = node.function
        if name in AGGREGATES and len(node.arguments) == 1:
            if name in ("count", "some", "notany", "avg"):
                given = {"count": "integer", "avg": "number"}.get(name, "boolean")
                return (Static((given,)),)
            return (Static(self.static(as_query(node.arguments[0]), env)[0].types),)
        if name == "tclose":
            function, qualifier = function_name(node.arguments[0])
            (start,) = self.static(node.arguments[1], env)
            candidates = self.resolve(function, [Static(start.types[:1])], qualifier)
            (result,) = self._common_results(candidates)
            return (Static((self.common(start.types[0], result),)),)
        statics = [s for argument in node.arguments for s in self.static(argument, env)]
        if name not in self.functions:
            return (Static((operation_type(name, *(s.types[0] for s in statics)),)),)
        gives = self._common_results(self.resolve(name, statics, node.qualifier))
        return tuple(Static((type_,)) for type_ in gives)

    # --- variables of literal types --------------------------------------------------------

    def _candidates(
        self,
        name: str,
        type_name: str,
        declared: dict[str, str],
        query: syntax.Query,
        around: Environment,
    ) -> set[Any]:
        """All values that the variable can have where the query holds, and perhaps more.

        A variable gets its values from an equation or from an argument of a function; whether
        the query holds for one is then tested like everything else.
        """
        return set(self._sources(name, type_name, declared, query, around))

    def _sources(
        self,
        name: str,
        type_name: str,
        declared: dict[str, str],
        query: syntax.Query,
        around: Environment,
    ) -> Iterator[Any]:
        others = {other: type_ for other, type_ in declared.items() if other != name}
        for node, inner in mentions(query, name):
            ranging = {**others, **inner}
            match node:
                case syntax.Binary(operator="=" | "in", left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        yield from self._solutions(one, other, name, type_name, ranging, around)
                case syntax.Call():
                    yield from self._argument_values(node, name, type_name, ranging, around)

    def _solutions(
        self,
        side: syntax.Expression,
        other: syntax.Expression,
        name: str,
        type_name: str,
        ranging: dict[str, str],
        around: Environment,
    ) -> Iterator[Any]:
        """`v = e`, `<.., v, ..> = e`, `v + k = e` and the like, solved for v."""
        if isinstance(side, syntax.Tuple):
            for position, item in enumerate(side.items):
                if item == syntax.Name(name):
                    for row in self._under_all(other, ranging, around):
                        yield from self._as_type(row[position], type_name)
            return
        if side == syntax.Name(name):
            for row in self._under_all(other, ranging, around):
                yield from self._as_type(row[0], type_name)
            return
        if isinstance(side, syntax.Binary) and side.operator in ("+", "-"):
            for part, rest, inverse in inverses(side):
                solved = syntax.Binary(inverse, other, rest)
                if inverse == "swap":
                    solved = syntax.Binary("-", rest, other)
                yield from self._solutions(part, solved, name, type_name, ranging, around)

    def _as_type(self, value: Any, type_name: str) -> Iterator[Any]:
        if type_name == "number" and type(value) is int:
            yield float(value)
        elif type_name == "integer" and type(value) is float:
            if value.is_integer():
                yield int(value)
        elif not isinstance(value, Object) and literal_type(value) == type_name:
            yield value

    def _under_all(
        self, node: syntax.Expression, ranging: dict[str, str], around: Environment
    ) -> Iterator[Row]:
        """The values of an expression for every value of the variables in it."""
        used = [n for n in ranging if any(m == syntax.Name(n) for m, _ in descendants(node))]
        key = tuple(used)
        ranges = []
        for used_name in used:
            type_ = ranging[used_name]
            if type_ in LITERAL_TYPES:
                token = (used_name, str(node))
                if token in self._wanted:
                    return
                self._wanted.add(token)
                try:
                    wrapped = syntax.Query((node,))
                    ranges.append(
                        list(self._literal_range(used_name, type_, wrapped, around))
                    )
                finally:
                    self._wanted.discard(token)
            else:
                ranges.append(self.extent(type_))
        for values in product(*ranges):
            env = dict(around)
            for used_name, value in zip(key, values, strict=True):
                env[used_name] = (value, Static((ranging[used_name],)))
            try:
                found = self.value(node, env)
            except Refused:
                continue
            yield from (row for row in found if not isinstance(row, Failure))

    def _literal_range(
        self, name: str, type_name: str, query: syntax.Query, around: Environment
    ) -> Iterator[Any]:
        """Where another literal variable has its values from: the query being evaluated."""
        for enclosing, declared in reversed(self._enclosing):
            if name in declared:
                yield from self._candidates(name, type_name, declared, enclosing, around)
                return

    _enclosing: list[tuple[syntax.Query, dict[str, str]]]

    def _argument_values(
        self,
        node: syntax.Call,
        name: str,
        type_name: str,
        ranging: dict[str, str],
        around: Environment,
    ) -> Iterator[Any]:
        if node.function not in self.functions:
            return
        for position, argument in enumerate(node.arguments):
            if argument != syntax.Name(name):
                continue
            for function in self.functions[node.function].values():
                if len(function.takes) == len(node.arguments):
                    for value in self._parameter_values(function, position):
                        yield from self._as_type(value, type_name)

    def _parameter_values(self, function: Function, position: int) -> set[Any]:
        if function.query is None:
            return {row[position] for row in function.rows}
        token = (function.id, position)
        if token in self._wanted:
            return set()
        self._wanted.add(token)
        try:
            name, type_ = function.parameters[position]
            if type_ not in LITERAL_TYPES:
                return set(self.extent(type_))
            query = with_named_results(function)
            declared = {n: t for n, t in function.parameters}
            declared |= {d.name or d.type: real_name(d.type) for d in query.variables}
            return self._candidates(name, type_, declared, query, {})
        finally:
            self._wanted.discard(token)
