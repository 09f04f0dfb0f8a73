"""Random queries, conditions and values over a schema: text, mostly well typed.

What the text means is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.generators.choices import Choices

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

    def narrowest(self, types: set[str]) -> str:
        """One of the types that is above no other of them."""
        return min(t for t in types if not any(t in self.ancestors(o) for o in types - {t}))


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


Shape = Callable[[str, Scope, int], str]
"""A way to write a value: of a type, with the variables of a scope, so many levels deep."""

Condition = Callable[[Scope, int], str]


class Writer(Choices):
    def __init__(self, random: Random, schema: Schema | None = None) -> None:
        super().__init__(random)
        self.schema = schema or Schema()

    def any_type(self, objects: int = 2) -> str:
        """A type; `objects` times more often one of objects than one of literals."""
        if self.below(objects + 1):
            return self.choose(list(self.schema.supertypes))
        return self.literal_type()

    def literal_type(self) -> str:
        return self.choose(("integer", "integer", "integer", "number", "charstring", "boolean"))

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
        if depth <= 0:
            return self.choose(self.simple_conditions())(scope, 0)
        return self.choose(self.conditions())(scope, depth - 1)

    def simple_conditions(self) -> list[Condition]:
        return [self.comparison, self.comparison, self.truth, self.equality]

    def conditions(self) -> list[Condition]:
        return [
            *self.simple_conditions(),
            self.conjunction,
            self.disjunction,
            self.negation,
            self.existence,
            self.tuple_equality,
        ]

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
        if self.one_in(8):
            return f"({self.query([type_], scope, depth - 1)})"
        return self.choose(self.shapes(type_))(type_, scope, depth - 1)

    def shapes(self, type_: str) -> list[Shape]:
        shapes: list[Shape] = [self.leaf_of, self.call_of, self.call_of]
        if type_ in ("integer", "number"):
            return [*shapes, self.arithmetic, self.aggregate]
        if type_ == "charstring":
            return [*shapes, self.text, self.extreme]
        return [*shapes, self.condition_value if type_ == "boolean" else self.closure]

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
