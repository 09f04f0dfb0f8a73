"""What a text of AMOSQL says before it runs: types, functions, and which of them a call can mean.

The half of the reference interpreter that looks at no data but the types of objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harken import Object
from harken.lang.amosql import syntax
from harken.lang.amosql.tree_walk import children, descendants
from tests.models.meanings import (
    LITERAL_TYPES,
    Environment,
    Row,
    Static,
    literal_type,
    operation_type,
)

ARITHMETIC = ("+", "-", "*", "/", "||")
ALIASES = {"real": "number", "string": "charstring"}

Called = tuple[str, ...]
"""What a call means before it is evaluated: a function, or the candidates of a late-bound one."""


class Refused(Exception):
    """The text has no meaning: an unknown name, or types that do not fit."""


@dataclass
class Function:
    """`rows` are the arguments and results of a stored function, `query` defines a derived one."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    results: tuple[tuple[str | None, str], ...]
    bag: bool = False
    query: syntax.Query | None = None
    rows: list[Row] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.takes)})"

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(type_ for _, type_ in self.parameters)

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(type_ for _, type_ in self.results)


class Definitions:
    """Types, objects and functions."""

    def __init__(self) -> None:
        self.supertypes: dict[str, tuple[str, ...]] = {"object": ()}
        self.objects: dict[Object, set[str]] = {}
        """Every object with all its types, supertypes included."""
        self.functions: dict[str, dict[str, Function]] = {}
        self.interface: dict[str, Any] = {}
        self._edges: dict[Called, set[Called]] = {}
        self._cycles: dict[Called, frozenset[Called]] = {}

    # --- types -----------------------------------------------------------------------------

    def ancestors(self, name: str) -> set[str]:
        """The type itself and everything above it."""
        return {name}.union(*(self.ancestors(above) for above in self.supertypes[name]))

    def is_subtype(self, sub: str, sup: str) -> bool:
        if sub in LITERAL_TYPES or sup in LITERAL_TYPES:
            return sub == sup or (sub, sup) == ("integer", "number")
        return sup in self.ancestors(sub)

    def most_specific(self, names: Iterable[str]) -> tuple[str, ...]:
        given = set(names)
        implied = {m for n in given for m in self.ancestors(n) if m != n}
        return tuple(sorted(given - implied))

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

    def is_of(self, value: Any, type_name: str) -> bool:
        if isinstance(value, Object):
            return type_name in self.objects.get(value, ())
        return self.is_subtype(literal_type(value), type_name)

    # --- schema ----------------------------------------------------------------------------

    def define(self, node: syntax.CreateFunction) -> Function:
        function = Function(
            node.name,
            tuple((d.name or d.type, real_name(d.type)) for d in node.parameters),
            tuple((d.name, real_name(d.type)) for d in node.results),
            node.bag,
        )
        match node.body:
            case syntax.Query():
                function.query = with_named_results(node.body, function)
            case syntax.ExpressionStatement(expression=expression):
                function.query = with_named_results(as_query(expression), function)
        self.functions.setdefault(node.name, {})[function.id] = function
        self._edges.clear()
        self._cycles.clear()
        self.changed()
        return function

    def changed(self) -> None:
        """Called whenever the data or the schema has changed."""

    # --- calls -----------------------------------------------------------------------------

    def resolved(self, node: syntax.Call, env: Environment) -> list[Function]:
        statics = [s for argument in node.arguments for s in self.static(argument, env)]
        return self.resolve(node.function, statics, node.qualifier)

    def most_fitting(self, functions: list[Function], arguments: Row) -> list[Function]:
        fitting = [f for f in functions if all(map(self.is_of, arguments, f.takes))]
        return [f for f in fitting if not any(self._narrower(g, f) for g in fitting)]

    def _narrower(self, one: Function, other: Function) -> bool:
        return one is not other and all(map(self.is_subtype, one.takes, other.takes))

    def _gives(self, functions: list[Function]) -> tuple[str, ...]:
        """The types that hold what any of the functions gives."""
        first, *rest = functions
        gives = first.gives
        for other in rest:
            if len(other.gives) != len(gives):
                raise Refused(f"{first.id} and {other.id} give different numbers of results")
            gives = tuple(map(self.common, gives, other.gives))
        return gives

    def resolve(
        self, name: str, statics: list[Static], qualifier: str | None = None
    ) -> list[Function]:
        """The functions a call can mean: the best one for what is known, and those that the
        objects met at run time may prefer to it."""
        overloads = [
            f
            for f in self.functions[name].values()
            if len(f.takes) == len(statics) and qualifier in (None, *f.takes[:1])
        ]
        sure = [f for f in overloads if all(map(self._fits, statics, f.takes))]
        maybe = [f for f in overloads if all(map(self._may_fit, statics, f.takes))]
        if not sure and not maybe:
            raise Refused(f"{name} is not defined for {statics}")
        if not sure:
            return maybe
        best = [f for f in sure if not any(self._narrower(g, f) for g in sure)]
        if len(best) > 1:
            raise Refused(f"{name} is ambiguous for {statics}")
        if qualifier is not None:
            return best
        return best + [f for f in maybe if self._narrower(f, best[0])]

    def _fits(self, given: Static, wanted: str) -> bool:
        return any(self.is_subtype(type_, wanted) for type_ in given.types)

    def _may_fit(self, given: Static, wanted: str) -> bool:
        if given.exact or wanted in LITERAL_TYPES:
            return self._fits(given, wanted)
        return self._fits(given, wanted) or any(
            type_ not in LITERAL_TYPES and self.is_subtype(wanted, type_) for type_ in given.types
        )

    def _steps(self, node: syntax.Call, env: Environment) -> tuple[list[Function], list[Function]]:
        """What the first step of a closure calls, and what the others do."""
        name, qualifier = function_name(node.arguments[0])
        taken, reached = self._closed_types(node, env)
        return (
            self.resolve(name, [Static((taken,))], qualifier),
            self.resolve(name, [Static((reached,))], qualifier),
        )

    def _closed_types(self, node: syntax.Call, env: Environment) -> tuple[str, str]:
        """The type that the function of a closure is applied to, and that of what is reached."""
        name, qualifier = function_name(node.arguments[0])
        start = Static(self.static(node.arguments[1], env)[0].types[:1])
        functions = self.resolve(name, [start], qualifier)
        (reached,) = self._gives(functions)
        taken = functions[0].takes[0]
        for other in functions[1:]:
            taken = self.common(taken, other.takes[0])
        return taken, reached if len(node.arguments) == 2 else self.common(taken, reached)

    # --- recursion -------------------------------------------------------------------------

    def _cycle(self, call: Called) -> frozenset[Called]:
        """The calls that `call` leads to and that lead back to it."""
        if call not in self._cycles:
            below = self._reached(call)
            self._cycles[call] = frozenset(c for c in below if call in self._reached(c))
        return self._cycles[call]

    def _reached(self, call: Called) -> set[Called]:
        found: set[Called] = set()
        waiting = [call]
        while waiting:
            new = self._leads_to(waiting.pop()) - found
            waiting += new
            found |= new
        return found

    def _leads_to(self, call: Called) -> set[Called]:
        """A late-bound call leads to each of its candidates, a function to what it calls."""
        if len(call) > 1:
            return {(name,) for name in call}
        if call not in self._edges:
            function = self._function(call[0])
            env: Environment = {name: (None, Static((t,))) for name, t in function.parameters}
            body = function.query
            self._edges[call] = set(self._calls_in(body, env)) if body else set()
        return self._edges[call]

    def _calls_in(self, node: syntax.Node, env: Environment) -> Iterator[Called]:
        match node:
            case syntax.Query():
                env = {**env, **declared(node)}
            case syntax.Call(function="tclose"):
                for functions in self._steps(node, env):
                    yield called(functions)
            case syntax.Call(function=name) if name in self.functions:
                yield called(self.resolved(node, env))
        for child in children(node):
            yield from self._calls_in(child, env)

    def is_recursive(self, query: syntax.Query) -> bool:
        """Does the query need a recursive function or a closure? Those are computed for all
        objects, so they may fail for an object that the query does not ask for."""
        needed = self._needed(query)
        bodies = (self._function(name).query for call in needed for name in call)
        queries = [query, *(body for body in bodies if body is not None)]
        return any(map(self._cycle, needed)) or any(map(has_closure, queries))

    def _needed(self, query: syntax.Query) -> set[Called]:
        direct = set(self._calls_in(query, {}))
        return direct.union(*map(self._reached, direct))

    def _function(self, name: str) -> Function:
        return self.functions[name.partition("(")[0]][name]

    # --- static types ----------------------------------------------------------------------

    def static(self, node: syntax.Expression, env: Environment) -> tuple[Static, ...]:
        """What is known of the values of an expression before it is evaluated."""
        match node:
            case syntax.Literal():
                return (Static((literal_type(node.value),), exact=True),)
            case syntax.Name():
                return (known(node.name, env)[1],)
            case syntax.InterfaceVariable():
                return (self._static_interface(self.interface[node.name]),)
            case syntax.Tuple():
                return tuple(s for item in node.items for s in self.static(item, env))
            case syntax.Query():
                inside = {**env, **declared(node)}
                found = (s for item in node.items for s in self.static(item, inside))
                return tuple(Static(s.types[:1]) for s in found)
            case syntax.Call():
                return tuple(Static((type_,)) for type_ in self._static_call(node, env))
            case syntax.Unary(operator="-"):
                return (Static(self.static(node.operand, env)[0].types),)
            case syntax.Binary() if node.operator in ARITHMETIC:
                one, other = self.static(node.left, env)[0], self.static(node.right, env)[0]
                return (Static((operation_type(node.operator, one.types[0], other.types[0]),)),)
        return (Static(("boolean",)),)

    def _static_interface(self, value: Any) -> Static:
        if isinstance(value, Object):
            return Static(self.most_specific(self.objects[value]), exact=True)
        return Static((literal_type(value),), exact=True)

    def _static_call(self, node: syntax.Call, env: Environment) -> tuple[str, ...]:
        match node.function:
            case "count":
                return ("integer",)
            case "avg":
                return ("number",)
            case "some" | "notany":
                return ("boolean",)
            case "sum" | "min" | "max" if len(node.arguments) == 1:
                return self.static(as_query(node.arguments[0]), env)[0].types[:1]
            case "tclose":
                return self._closed_types(node, env)[1:]
        if node.function in self.functions:
            return self._gives(self.resolved(node, env))
        statics = [s for argument in node.arguments for s in self.static(argument, env)]
        return (operation_type(node.function, *(s.types[0] for s in statics)),)


def known(name: str, env: Environment) -> tuple[Any, Static]:
    if name not in env:
        raise Refused(f"there is no variable {name}")
    return env[name]


def as_query(node: syntax.Expression) -> syntax.Query:
    return node if isinstance(node, syntax.Query) else syntax.Query((node,))


def real_name(type_name: str) -> str:
    return ALIASES.get(type_name, type_name)


def with_named_results(query: syntax.Query, function: Function) -> syntax.Query:
    """Named results are variables of the body, if it mentions them and nothing else has the
    name."""
    taken = {name for name, _ in function.parameters}
    taken |= {d.name or d.type for d in query.variables}
    used = {node.name for node, _ in descendants(query) if isinstance(node, syntax.Name)}
    extra = tuple(
        syntax.Declaration(type_, name)
        for name, type_ in function.results
        if name is not None and name in used - taken
    )
    return syntax.Query(query.items, query.variables + extra, query.where, query.distinct)


def called(functions: Iterable[Function]) -> Called:
    return tuple(sorted(f.id for f in functions))


def declared(query: syntax.Query) -> Environment:
    """The variables of a query, without values."""
    return {d.name or d.type: (None, Static((real_name(d.type),))) for d in query.variables}


def has_closure(node: syntax.Node) -> bool:
    return any(
        isinstance(found, syntax.Call) and found.function == "tclose"
        for found, _ in descendants(node)
    )


def function_name(node: syntax.Expression) -> tuple[str, str | None]:
    """The function that the first argument of tclose names, and its qualifier."""
    match node:
        case syntax.Name(name=text):
            return text, None
        case syntax.Literal(value=str() as text) | syntax.FunctionReference(name=text):
            qualifier, _, name = text.rpartition(".")
            return name, qualifier or None
    raise Refused("tclose needs the name of a function")
