"""Random programs that are dense in one thing each: every focus is a `Maker` of its own.

Programs of all kinds seldom have, say, three overloads of two arguments and an object that has to
choose among them. These do.
"""

from __future__ import annotations

from typing import ClassVar

from tests.generators.expressions import POOLS, Condition, Scope, Shape, Signature
from tests.generators.programs import Maker


class LateBinding(Maker):
    """Few names with many overloads, and objects of several types that choose among them."""

    types: ClassVar = (3, 6)
    objects: ClassVar = (4, 7)
    stored: ClassVar = (5, 8)
    derived: ClassVar = (1, 3)
    rows: ClassVar = (2, 9)
    changes: ClassVar = (
        *("put", "put by object", "put by object", "remove"),
        *("add type", "add type", "remove type", "new object", "new function", "new function"),
    )
    widths: ClassVar = {"f": 1, "g": 2, "h": 1, "k": 3}

    def supertypes(self) -> int:
        return self.choose((1, 2, 2, 3, 0)) if self.schema.supertypes else 0

    def object_types(self) -> list[str]:
        known = list(self.schema.supertypes)
        return [self.choose(known) for _ in range(self.choose((1, 2, 1, 3)))]

    def stored_function(self) -> str:
        name, takes = self._overload()
        gives, bag = self._like_others(name)
        return self._declared(Signature(name, takes, gives, bag, stored=True))

    def definition(self) -> list[str]:
        if self.one_in(5):
            return super().definition()
        name, takes = self._overload()
        gives, bag = self._like_others(name)
        parameters: Scope = tuple((self.fresh("p"), type_) for type_ in takes)
        body = self._of_another(name, parameters)
        if body is None or self.one_in(3):
            body = self._body(gives, parameters, 1)
        return [f"{self._declared(Signature(name, takes, gives, bag), parameters)} as {body}"]

    def _overload(self) -> tuple[str, tuple[str, ...]]:
        """A name and types of arguments that it is not yet defined for."""
        name = self.choose(("f", "f", "g", "g", "h", "k"))
        takes = tuple(self._taken(i) for i in range(self.widths[name]))
        if any(f.takes == takes for f in self.schema.overloads(name)):
            return self.fresh("d"), takes
        return name, takes

    def _taken(self, position: int) -> str:
        if position and self.one_in(4):
            return self.choose(("integer", "number"))
        return self.choose(list(self.schema.supertypes))

    def _like_others(self, name: str) -> tuple[tuple[str, ...], bool]:
        """What an overload gives; mostly what the others do."""
        known = self.schema.overloads(name)
        if known and self.below(4):
            return known[0].gives, known[0].bag
        if known and known[0].gives[0] in ("integer", "number"):
            return (self.choose(("integer", "number")),), self.one_in(3)
        if name == "f" or (known and known[0].gives[0] in POOLS):
            return ("integer",), self.one_in(3)
        return (self.any_type(1),) if not known else (self.any_type(9),), self.one_in(3)

    def _of_another(self, name: str, parameters: Scope) -> str | None:
        """A call of an overload that a dot chooses, as a method calls that of its supertype."""
        others = [
            f
            for f in self.schema.overloads(name)
            if all(map(self._may_be, (type_ for _, type_ in parameters), f.takes))
        ]
        if not others:
            return None
        other = self.choose(others)
        call = f"{other.takes[0]}.{name}({', '.join(p for p, _ in parameters)})"
        return f"select {call} + 10" if other.gives[0] in ("integer", "number") else call

    def question(self) -> str:
        if self.one_in(6):
            return super().question()
        narrow = [f for f in self.schema.functions.values() if len(f.gives) == 1]
        first = self.choose(narrow)
        second = self.choose([f for f in narrow if self._may_be(f.gives[0], first.gives[0])])
        scope: Scope = tuple(
            (self.fresh("x"), self.choose(list(self.schema.supertypes)))
            for _ in range(1 + self.below(2))
        )
        around = (*scope, *self.interface()) if self.one_in(4) else scope
        declared = ", ".join(f"{type_} {name}" for name, type_ in scope)
        shown = ", ".join(name for name, _ in scope)
        one, other = (self._call_by_name(f.name, around) for f in (first, second))
        condition = self.condition(around, 1)
        return self.choose(
            (
                f"select {shown}, {one} for each {declared}",
                f"select {shown}, {one}, {other} for each {declared}",
                f"select {shown} for each {declared} where {one} = {other}",
                f"select {shown} for each {declared} where not {one} = {other}",
                f"select {shown}, {one} for each {declared} where {condition}",
                f"select {shown}, count({one}) for each {declared}",
                f"count(select {one} for each {declared} where {condition})",
                f"select {shown} for each {declared} where some({one}) or {condition}",
                f"select {one} for each {declared}",
            )
        )

    def _call_by_name(self, name: str, scope: Scope) -> str:
        """With variables that the arguments may fit, whichever overload they mean."""
        function = self.choose(self.schema.overloads(name))
        arguments = []
        for type_ in function.takes:
            fitting = [n for n, given in scope if self._may_be(given, type_)]
            arguments.append(self.choose(fitting) if fitting else self.value(type_, scope, 1))
        dot = f"{function.takes[0]}." if function.takes and self.one_in(8) else ""
        return f"{dot}{name}({', '.join(arguments)})"


class Aggregates(Maker):
    """Aggregates within aggregates, over bags, sets, groups, and nothing."""

    types: ClassVar = (1, 3)
    stored: ClassVar = (4, 6)
    derived: ClassVar = (2, 4)

    def shapes(self, type_: str) -> list[Shape]:
        shapes = super().shapes(type_)
        if type_ in ("integer", "number"):
            return [*shapes, *[self.aggregate] * 4]
        return [*shapes, *[self.extreme] * 4] if type_ == "charstring" else shapes

    def conditions(self) -> list[Condition]:
        return [*super().conditions(), *[self.comparison] * 3, self.existence]

    def question(self) -> str:
        """For each object, an aggregate or two; or over all of them."""
        if self.one_in(4):
            return super().question()
        scope: Scope = ((self.fresh("x"), self.choose(list(self.schema.supertypes))),)
        ((name, type_),) = scope
        one, other = (
            self.aggregate(self.choose(("integer", "number")), scope, self.below(3))
            for _ in range(2)
        )
        return self.choose(
            (
                f"select {name}, {one} for each {type_} {name}",
                f"select {name}, {one}, {other} for each {type_} {name}",
                f"select {name} for each {type_} {name} where {one} {self.sign()} {other}",
                f"select {name} for each {type_} {name} where not {one} {self.sign()} {other}",
                f"sum(select {one} for each {type_} {name})",
                f"select {one}, count(select {other}) for each {type_} {name}",
            )
        )


class Negation(Maker):
    """What does not hold, of what does not hold."""

    types: ClassVar = (1, 3)
    stored: ClassVar = (3, 5)
    derived: ClassVar = (2, 4)
    rows: ClassVar = (0, 6)

    def conditions(self) -> list[Condition]:
        return [
            *self.simple_conditions(),
            self.disjunction,
            self.conjunction,
            *[self.negation] * 6,
            *[self.existence] * 3,
            self.tuple_equality,
        ]

    def shapes(self, type_: str) -> list[Shape]:
        shapes = super().shapes(type_)
        return [*shapes, self.condition_value] if type_ == "boolean" else shapes

    def question(self) -> str:
        if self.one_in(5):
            return super().question()
        scope: Scope = tuple(
            (self.fresh("x"), self.choose(list(self.schema.supertypes)))
            for _ in range(1 + self.below(2))
        )
        declared = ", ".join(f"{type_} {name}" for name, type_ in scope)
        shown = ", ".join(name for name, _ in scope)
        condition = self.negation(scope, 2)
        if self.one_in(3):
            condition = f"{condition} {self.choose(('and', 'or'))} {self.negation(scope, 1)}"
        return f"select {shown} for each {declared} where {condition}"


class Recursion(Maker):
    """Graphs with cycles, functions that follow them, closures."""

    types: ClassVar = (1, 3)
    objects: ClassVar = (3, 6)
    stored: ClassVar = (3, 5)
    derived: ClassVar = (2, 4)
    rows: ClassVar = (2, 8)
    changes: ClassVar = (
        "put",
        "put",
        "put",
        "remove",
        "remove",
        "remove",
        "new object",
        "new function",
    )

    def stored_function(self) -> str:
        if self.one_in(4):
            return super().stored_function()
        type_ = self.choose(list(self.schema.supertypes))
        above = self.choose(sorted(self.schema.ancestors(type_) - {"object"}))
        name = self.fresh("e")
        return self._declared(
            Signature(name, (above,), (type_,), bag=bool(self.below(3)), stored=True)
        )

    def definition(self) -> list[str]:
        return (self.recursive_function() if self.below(4) else []) or super().definition()

    def shapes(self, type_: str) -> list[Shape]:
        shapes = super().shapes(type_)
        return shapes if type_ in POOLS else [*shapes, *[self.closure] * 4]

    def question(self) -> str:
        if self.one_in(5):
            return super().question()
        if self.one_in(3):
            return self.backward_query(self.interface()) or super().question()
        name, type_ = self.fresh("x"), self.choose(list(self.schema.supertypes))
        scope: Scope = ((name, type_),)
        other = self.choose(list(self.schema.supertypes))
        one = self.closure(other, scope, self.below(2))
        condition = self.condition((*scope, ("y", other)), 1)
        return self.choose(
            (
                f"select {name}, {one} for each {type_} {name}",
                f"select {name}, count({one}) for each {type_} {name}",
                f"select {name} for each {type_} {name} where not some({one})",
                f"select {name}, y for each {type_} {name}, {other} y where y = {one}",
                f"select {name}, y for each {type_} {name}, {other} y"
                f" where not y = {one} and ({condition})",
            )
        )


class Missing(Maker):
    """Functions that mostly have no value, in comparisons, arithmetic and truth values."""

    types: ClassVar = (1, 3)
    stored: ClassVar = (5, 8)
    derived: ClassVar = (2, 4)
    rows: ClassVar = (0, 3)

    def shapes(self, type_: str) -> list[Shape]:
        shapes: list[Shape] = [*super().shapes(type_), self.call_of, self.call_of]
        if type_ in ("integer", "number"):
            return [*shapes, self.quotient]
        return [*shapes, *[self.condition_value] * 2] if type_ == "boolean" else shapes

    def quotient(self, type_: str, scope: Scope, _: int) -> str:
        """Fails for some rows that a condition may or may not have kept away."""
        one, other = (self.leaf("integer", scope) for _ in range(2))
        return f"{one} / {other}" if type_ == "number" else f"div({one}, {other})"

    def conditions(self) -> list[Condition]:
        return [*super().conditions(), self.has_value, self.has_value, self.truth]

    def has_value(self, scope: Scope, depth: int) -> str:
        return f"{self.choose(('some', 'notany'))}({self.value(self.any_type(1), scope, depth)})"

    def any_type(self, objects: int = 1) -> str:
        return super().any_type(min(objects, 1))


class Updates(Maker):
    """Bags, several columns, and changes that are computed from what is there."""

    types: ClassVar = (1, 3)
    objects: ClassVar = (3, 6)
    stored: ClassVar = (4, 7)
    derived: ClassVar = (1, 3)
    rows: ClassVar = (1, 8)
    changes: ClassVar = (
        *("compute", "compute", "compute", "compute", "put", "remove"),
        *("add type", "remove type", "delete object"),
    )

    def question(self) -> str:
        """Mostly all that a stored function holds."""
        if self.one_in(3):
            return super().question()
        function = self.choose([f for f in self.schema.functions.values() if f.stored])
        scope: Scope = tuple((self.fresh("x"), type_) for type_ in function.takes)
        declared = ", ".join(f"{type_} {name}" for name, type_ in scope)
        given = ", ".join(name for name, _ in scope)
        dot = f"{function.takes[0]}." if scope else ""
        call = f"{dot}{function.name}({given})"
        if not scope:
            return call
        results: Scope = tuple((self.fresh("y"), type_) for type_ in function.gives)
        found = ", ".join(name for name, _ in results)
        declared += "".join(f", {type_} {name}" for name, type_ in results)
        found = f"<{found}>" if len(results) > 1 else found
        shown = ", ".join(name for name, _ in (*scope, *results))
        return self.choose(
            (
                f"select {shown} for each {declared} where {call} = {found}",
                f"count(select {call} for each {', '.join(f'{t} {n}' for n, t in scope)})",
            )
        )


FOCUSES: dict[str, type[Maker]] = {
    "plain": Maker,
    "late_binding": LateBinding,
    "aggregates": Aggregates,
    "negation": Negation,
    "recursion": Recursion,
    "missing": Missing,
    "updates": Updates,
}
