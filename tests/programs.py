"""Random AMOSQL programs: mostly well typed, small, and dense enough that things collide.

A `Maker` takes its choices from anything like `random.Random`: hypothesis gives it one whose
choices shrink. It writes text only; what the text means is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

POOLS: dict[str, tuple[Any, ...]] = {
    "integer": (0, 1, 2, 3, -1, 5),
    "number": (0.0, 1.0, 0.5, 2.0, -1.5, 3.0),
    "charstring": ("", "a", "b", "ab", "B", "å"),
    "boolean": (True, False),
}
LITERALS = tuple(POOLS)

Scope = tuple[tuple[str, str], ...]
"""The variables at a place, each with its type; an interface variable has a colon."""


@dataclass(frozen=True)
class Signature:
    name: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    bag: bool = False
    stored: bool = False
    finds: bool = False
    """Can its literal arguments be found from its data, as those of a stored function can?"""

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.takes)})"


@dataclass
class Schema:
    """What a text may refer to."""

    supertypes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: dict[str, Signature] = field(default_factory=dict)
    objects: dict[str, set[str]] = field(default_factory=dict)
    """Interface variables with all the types of their objects."""

    def ancestors(self, name: str) -> set[str]:
        above = self.supertypes.get(name, ())
        return {name, "object"}.union(*(self.ancestors(a) for a in above))

    def is_subtype(self, sub: str, sup: str) -> bool:
        if sub in POOLS or sup in POOLS:
            return sub == sup or (sub, sup) == ("integer", "number")
        return sup in self.ancestors(sub)

    def overloads(self, name: str) -> list[Signature]:
        return [f for f in self.functions.values() if f.name == name]


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


class Maker:
    def __init__(self, random: Random, schema: Schema | None = None) -> None:
        self.random = random
        self.schema = schema or Schema()
        self._names = 0

    # --- choices ---------------------------------------------------------------------------

    def below(self, limit: int) -> int:
        return self.random.randrange(limit)

    def one_in(self, n: int) -> bool:
        """False is the simpler choice."""
        return self.random.randrange(n) == n - 1

    def choose(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    # --- schema ----------------------------------------------------------------------------

    def type_statement(self) -> str:
        known = list(self.schema.supertypes)
        name = f"t{len(known)}"
        above: list[str] = []
        for _ in range(self.below(3) if known else 0):
            candidate = self.choose(known)
            if candidate not in above:
                above.append(candidate)
        self.schema.supertypes[name] = tuple(above)
        return f"create type {name}" + (f" subtype of {', '.join(above)}" if above else "")

    def any_type(self, objects: int = 2) -> str:
        """A type; `objects` times more often one of objects than one of literals."""
        if self.below(objects + 1):
            return self.choose(list(self.schema.supertypes))
        return self.literal_type()

    def literal_type(self) -> str:
        return self.choose(("integer", "integer", "integer", "number", "charstring", "boolean"))

    def stored_function(self) -> str:
        name = f"s{self.below(4)}"
        known = self.schema.overloads(name)
        takes = tuple(self.any_type(3) for _ in range(self.choose((1, 1, 1, 2, 0, 3))))
        gives = tuple(self.any_type(1) for _ in range(self.choose((1, 1, 1, 2))))
        bag = self.one_in(3)
        if known:
            takes = self._other_takes(known)
            gives, bag = known[0].gives, known[0].bag if self.below(3) else bag
        if self.schema.functions.get(Signature(name, takes, gives).id):
            name = f"s{len(self.schema.functions) + 5}"
        return self._declared(Signature(name, takes, gives, bag, stored=True))

    def _other_takes(self, known: list[Signature]) -> tuple[str, ...]:
        """Argument types for another overload. The first is new, so that a dot can tell it."""
        width = len(known[0].takes)
        used = {f.takes[0] for f in known if f.takes}
        free = [t for t in (*self.schema.supertypes, "integer") if t not in used]
        if not width or not free:
            return known[0].takes
        return (self.choose(free), *(self.any_type(6) for _ in range(width - 1)))

    def _declared(self, function: Signature, parameters: Scope = ()) -> str:
        """The head of a definition; makes the function known."""
        named = parameters or tuple(("", type_) for type_ in function.takes)
        takes = ", ".join(f"{type_} {name}".strip() for name, type_ in named)
        gives = ", ".join(function.gives)
        if len(function.gives) > 1:
            gives = f"<{gives}>"
        self._know(function)
        bag = "bag of " if function.bag else ""
        return f"create function {function.name}({takes}) -> {bag}{gives}"

    def derived_function(self, depth: int = 2) -> str:
        name = self.choose((f"d{len(self.schema.functions)}", f"v{self.below(2)}"))
        known = self.schema.overloads(name)
        takes = tuple(self.any_type(5) for _ in range(self.choose((1, 1, 2, 0))))
        gives = tuple(self.any_type(1) for _ in range(self.choose((1, 1, 1, 2))))
        bag = self.one_in(4)
        if known:
            takes = self._other_takes(known)
            gives, bag = known[0].gives, known[0].bag if self.below(3) else bag
        parameters: Scope = tuple((self.fresh("p"), type_) for type_ in takes)
        body = self._body(gives, parameters, depth)
        return f"{self._declared(Signature(name, takes, gives, bag), parameters)} as {body}"

    def _body(self, gives: tuple[str, ...], parameters: Scope, depth: int) -> str:
        """A query, or now and then an expression alone."""
        if len(gives) == 1 and self.one_in(8):
            return self.value(gives[0], parameters, depth)
        return self.query(gives, parameters, depth)

    def named_result_function(self) -> str:
        """Its result has a name, and the body gives the name a value."""
        name, parameter, result = self.fresh("n"), self.fresh("p"), self.fresh("y")
        taken, given = self.any_type(3), self.any_type(1)
        scope: Scope = ((parameter, taken),)
        condition = self.binding((result, given), scope, 1)
        head = self._declared(Signature(name, (taken,), (given,), self.one_in(4)), scope)
        return f"{head} {result} as select {result} where {condition}"

    def counting_query(self, scope: Scope, depth: int) -> str:
        """How many rows a bag has, and what they add up to: shows every row too much."""
        rows = self.query(["integer"], scope, depth)
        return f"select count({rows}), sum({self.query(['integer'], scope, depth)})"

    def backward_query(self, scope: Scope) -> str | None:
        """Which objects a function leads to a given one, perhaps in several steps."""
        steps = [
            f
            for f in self.schema.functions.values()
            if len(f.takes) == len(f.gives) == 1 and not POOLS.keys() & {*f.takes, *f.gives}
        ]
        if not steps or not scope:
            return None
        f = self.choose(steps)
        call = self.choose((f"{f.name}(x)", f"tclose({f.name}, x)", f"{f.name}({f.name}(x))"))
        return f"select x for each {f.takes[0]} x where {call} = {self.choose(scope)[0]}"

    def inverse_function(self) -> list[str]:
        """From a value back to what has it: `i(v) = the x with f(x) = v`."""
        fitting = [
            f
            for f in self.schema.functions.values()
            if len(f.takes) == len(f.gives) == 1 and (f.stored or f.finds)
        ]
        if not fitting:
            return []
        f = self.choose(fitting)
        name, variable = self.fresh("i"), self.fresh("x")
        (taken,), (given,) = f.takes, f.gives
        signature = Signature(name, (given,), (taken,), self.one_in(3), finds=True)
        head = self._declared(signature, (("p", given),))
        extra = ""
        if self.one_in(2):
            extra = f" and ({self.condition((('p', given), (variable, taken)), 1)})"
        call = f"{f.name}({variable})"
        return [f"{head} as select {variable} for each {taken} {variable} where {call} = p{extra}"]

    def recursive_function(self) -> list[str]:
        """One of a few shapes of recursion over a function from a type to the same type."""
        steps = [
            f
            for f in self.schema.functions.values()
            if len(f.takes) == len(f.gives) == 1
            and f.takes[0] not in POOLS
            and self.schema.is_subtype(f.gives[0], f.takes[0])
        ]
        if not steps:
            return []
        step = self.choose(steps)
        type_, f, r = step.takes[0], step.name, self.fresh("r")
        head = f"create function {r}({type_} a) -> {type_} as select b for each {type_} b where"
        extra = ""
        if self.one_in(3):
            extra = f" and ({self.condition((('a', type_), ('b', type_)), 1)})"
        self._know(Signature(r, (type_,), (type_,)))
        shapes = (
            f"{f}(a) = b or {f}({r}(a)) = b{extra}",
            f"{f}(a) = b{extra} or {r}({f}(a)) = b",
            f"{f}(a) = b or {r}({r}(a)) = b{extra}",
            f"a = b{extra} or {f}({r}(a)) = b",
        )
        if self.below(3):
            return [f"{head} {self.choose(shapes)}"]
        # Two functions that need each other: the first stands in until there is the second.
        q = self.fresh("r")
        self._know(Signature(q, (type_,), (type_,)))
        other = f"create function {q}({type_} a) -> {type_} as select"
        shapes = (
            f"a = b or {f}({q}(a)) = b{extra}",
            f"{f}(a) = b or {q}({r}(a)) = b{extra}",
        )
        return [f"{other} {f}(a)", f"{head} {self.choose(shapes)}", f"{other} {f}({r}(a))"]

    def _know(self, function: Signature) -> None:
        self.schema.functions[function.id] = function

    # --- data ------------------------------------------------------------------------------

    def constant(self, type_: str) -> Any:
        """A Python value, or the interface variable of an object; None if there is none."""
        if type_ in POOLS:
            return self.choose(POOLS[type_])
        fitting = [name for name, types in self.schema.objects.items() if type_ in types]
        return f":{self.choose(fitting)}" if fitting else None

    def row(self, function: Signature) -> tuple[Any, ...] | None:
        values = tuple(self.constant(type_) for type_ in (*function.takes, *function.gives))
        return None if None in values else values

    # --- queries ---------------------------------------------------------------------------

    def query(self, gives: Sequence[str], scope: Scope, depth: int, distinct: bool = False) -> str:
        declared: Scope = ()
        conditions: list[str] = []
        for _ in range(self.choose((1, 0, 2, 1))):
            declared += ((self.fresh("x"), self.choose(list(self.schema.supertypes))),)
        if depth and self.one_in(5):
            variable = (self.fresh("i"), self.literal_type())
            conditions.append(self.binding(variable, scope + declared, depth - 1))
            declared += (variable,)
        inside = scope + declared
        if self.below(4):
            conditions.append(self.condition(inside, depth))
        items = ", ".join(self.value(type_, inside, depth) for type_ in gives)
        text = f"select {'distinct ' if distinct else ''}{items}"
        if declared:
            text += " for each " + ", ".join(f"{type_} {name}" for name, type_ in declared)
        if conditions:
            joined = [f"({c})" for c in conditions] if len(conditions) > 1 else conditions
            text += " where " + " and ".join(joined)
        return text

    def binding(self, variable: tuple[str, str], scope: Scope, depth: int) -> str:
        """A condition that gives a literal variable its values."""
        name, type_ = variable
        calls = [
            (f, position)
            for f in self.schema.functions.values()
            for position, taken in enumerate(f.takes)
            if taken == type_ and (f.stored or f.finds)
        ]
        shape = self.below(6) if type_ in POOLS else 2
        if shape == 5 and calls:
            function, position = self.choose(calls)
            arguments = [
                name if i == position else self.value(taken, scope, depth)
                for i, taken in enumerate(function.takes)
            ]
            call = f"{function.name}({', '.join(arguments)})"
            if len(function.gives) > 1:
                return f"some(select {call})"
            if function.gives[0] in POOLS:
                return f"{call} {self.sign()} {self.value(function.gives[0], scope, depth)}"
            return f"{call} = {self.value(function.gives[0], scope, depth)}"
        if shape == 4 and type_ == "integer":
            one, other = self.value(type_, scope, 0), self.value(type_, scope, depth)
            sides = (f"{name} + {one}", f"{one} + {name}", f"{name} - {one}", f"{one} - {name}")
            return f"{self.choose(sides)} = {other}"
        if shape == 3:
            return (
                f"{name} = {self.value(type_, scope, depth)} or "
                f"{name} = {self.value(type_, scope, depth)}"
            )
        if shape == 2:
            return f"{self.value(type_, scope, depth)} = {name}"
        return f"{name} = {self.value(type_, scope, depth)}"

    def sign(self) -> str:
        return self.choose(("=", "<", ">=", "!=", ">", "<="))

    def condition(self, scope: Scope, depth: int) -> str:
        simple = [self.comparison, self.comparison, self.truth, self.equality]
        if depth <= 0:
            return self.choose(simple)(scope, 0)
        shapes: list[Callable[[Scope, int], str]] = [
            *simple,
            self.conjunction,
            self.disjunction,
            self.negation,
            self.existence,
            self.tuple_equality,
        ]
        return self.choose(shapes)(scope, depth - 1)

    def comparison(self, scope: Scope, depth: int) -> str:
        type_ = self.literal_type()
        other = self.choose(("integer", "number")) if type_ in ("integer", "number") else type_
        sign = self.sign()
        return f"{self.value(type_, scope, depth)} {sign} {self.value(other, scope, depth)}"

    def equality(self, scope: Scope, depth: int) -> str:
        """Of objects, perhaps of two types."""
        types = list(self.schema.supertypes)
        sign = self.choose(("=", "!=", "in"))
        one, other = self.choose(types), self.choose(types)
        if self.below(3):
            other = one
        return f"{self.value(one, scope, depth)} {sign} {self.value(other, scope, depth)}"

    def truth(self, scope: Scope, depth: int) -> str:
        return self.value("boolean", scope, depth)

    def conjunction(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth)}) and ({self.condition(scope, depth)})"

    def disjunction(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth)}) or ({self.condition(scope, depth)})"

    def negation(self, scope: Scope, depth: int) -> str:
        return f"not ({self.condition(scope, depth)})"

    def existence(self, scope: Scope, depth: int) -> str:
        gives = [self.any_type() for _ in range(1 + self.one_in(4))]
        return f"{self.choose(('some', 'notany'))}({self.query(gives, scope, depth)})"

    def tuple_equality(self, scope: Scope, depth: int) -> str:
        wide = [f for f in self.schema.functions.values() if len(f.gives) == 2]
        if not wide:
            return self.comparison(scope, depth)
        function = self.choose(wide)
        items = ", ".join(self.value(type_, scope, 0) for type_ in function.gives)
        return f"<{items}> = {self.call(function, scope, depth)}"

    # --- values ----------------------------------------------------------------------------

    def value(self, type_: str, scope: Scope, depth: int) -> str:
        if depth <= 0:
            return self.leaf(type_, scope)
        shapes: list[Callable[[str, Scope, int], str]] = [self.leaf_of, self.call_of, self.call_of]
        if type_ in ("integer", "number"):
            shapes += [self.arithmetic, self.aggregate]
        elif type_ == "charstring":
            shapes += [self.text, self.extreme]
        elif type_ == "boolean":
            shapes += [self.condition_value]
        else:
            shapes += [self.closure]
        if self.one_in(8):
            return f"({self.query([type_], scope, depth - 1)})"
        return self.choose(shapes)(type_, scope, depth - 1)

    def leaf_of(self, type_: str, scope: Scope, _: int) -> str:
        return self.leaf(type_, scope)

    def leaf(self, type_: str, scope: Scope) -> str:
        sure = [name for name, given in scope if self.schema.is_subtype(given, type_)]
        if type_ in POOLS:
            if sure and self.below(2):
                return self.choose(sure)
            simple = [
                f
                for f in self.schema.functions.values()
                if f.gives == (type_,)
                and len(f.takes) == 1
                and any(self._may_be(given, f.takes[0]) for _, given in scope)
            ]
            if simple and self.below(4):
                function = self.choose(simple)
                fitting = [n for n, given in scope if self._may_be(given, function.takes[0])]
                return f"{function.name}({self.choose(fitting)})"
            return literal(self.choose(POOLS[type_]))
        if sure:
            return self.choose(sure)
        related = [name for name, given in scope if self._may_be(given, type_)]
        if related and self.below(2):
            return self.choose(related)
        name = self.fresh("x")
        return f"(select {name} for each {type_} {name})"

    def _may_be(self, given: str, wanted: str) -> bool:
        if given in POOLS or wanted in POOLS:
            return self.schema.is_subtype(given, wanted)
        return self.schema.is_subtype(given, wanted) or self.schema.is_subtype(wanted, given)

    def call_of(self, type_: str, scope: Scope, depth: int) -> str:
        fitting = [
            f
            for f in self.schema.functions.values()
            if len(f.gives) == 1 and self.schema.is_subtype(f.gives[0], type_)
        ]
        if not fitting:
            return self.leaf(type_, scope)
        return self.call(self.choose(fitting), scope, depth)

    def call(self, function: Signature, scope: Scope, depth: int) -> str:
        arguments = ", ".join(self.value(type_, scope, depth) for type_ in function.takes)
        several = len(self.schema.overloads(function.name)) > 1
        dot = function.takes and several and self.one_in(4)
        qualifier = f"{function.takes[0]}." if dot else ""
        return f"{qualifier}{function.name}({arguments})"

    def arithmetic(self, type_: str, scope: Scope, depth: int) -> str:
        left = self.value(type_, scope, depth)
        shape = self.below(12)
        match shape:
            case 6:
                return f"-({left})"
            case 7:
                return f"abs({left})"
            case 8 | 9 if type_ == "integer":
                operation = self.choose(("mod", "div"))
                return f"{operation}({left}, {self.choose((2, 3, -2))})"
            case 10 if type_ == "number":
                return f"({left}) / {self.choose((2, 4, -2))}"
            case 10:
                rounding = self.choose(("round", "floor", "ceiling"))
                return f"{rounding}({self.value('number', scope, depth)})"
            case 11 if type_ == "integer":
                return f"length({self.value('charstring', scope, depth)})"
        other = self.choose(("integer", "number")) if type_ == "number" else "integer"
        return f"({left}) {self.choose('+-*')} ({self.value(other, scope, depth)})"

    def text(self, type_: str, scope: Scope, depth: int) -> str:
        left = self.value(type_, scope, depth)
        match self.below(5):
            case 3:
                return f"upper({left})"
            case 4:
                return f"substring({left}, {self.choose((1, 2, -1))}, 1)"
        return f"({left}) || ({self.value(type_, scope, depth)})"

    def condition_value(self, _: str, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth)})"

    def aggregate(self, type_: str, scope: Scope, depth: int) -> str:
        if type_ == "integer" and self.below(2):
            gives = [self.any_type() for _ in range(1 + self.one_in(4))]
            return f"count({self._aggregated(gives, scope, depth)})"
        names = ("sum", "min", "max", "avg") if type_ == "number" else ("sum", "min", "max")
        name = self.choose(names)
        inner = self.choose(("integer", "number")) if name == "avg" else type_
        return f"{name}({self._aggregated([inner], scope, depth)})"

    def extreme(self, type_: str, scope: Scope, depth: int) -> str:
        return f"{self.choose(('min', 'max'))}({self._aggregated([type_], scope, depth)})"

    def _aggregated(self, gives: list[str], scope: Scope, depth: int) -> str:
        if len(gives) == 1 and self.one_in(3):
            return self.call_of(gives[0], scope, depth)
        return self.query(gives, scope, depth, distinct=self.one_in(4))

    def closure(self, type_: str, scope: Scope, depth: int) -> str:
        steps = [
            f
            for f in self.schema.functions.values()
            if len(f.takes) == len(f.gives) == 1
            and f.takes[0] not in POOLS
            and self.schema.is_subtype(f.gives[0], f.takes[0])
            and self.schema.is_subtype(f.takes[0], type_)
        ]
        if not steps:
            return self.call_of(type_, scope, depth)
        function = self.choose(steps)
        start = self.value(function.takes[0], scope, depth)
        count = f", {self.below(4)}" if self.one_in(4) else ""
        return f"tclose({function.name}, {start}{count})"
