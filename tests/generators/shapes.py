"""Random derived functions of the shapes that a calculus of changes has to get right.

Every relational operator, self-joins, negated conjunctions, aggregates over a group that outer
variables choose, closures; besides them whatever `programs` makes.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.generators.expressions import POOLS, Scope, Signature, literal
from tests.generators.programs import Maker


class Shapes(Maker):
    """Writes functions over integers and objects."""

    def literal_type(self) -> str:
        return self.choose(("integer",) * 11 + ("charstring", "number", "boolean"))

    def monitored_function(self) -> str:
        """One of the shapes, or anything at all."""
        shapes: list[Callable[[], str | None]] = [
            self.selection,
            self.projection,
            self.union,
            self.difference,
            self.intersection,
            self.product,
            self.join,
            self.self_join,
            self.without,
            self.grouped,
            self.closed,
        ]
        made = self.choose(shapes)() if self.below(5) else None
        return made or self.derived_function(1 + self.one_in(3))

    # --- pieces ----------------------------------------------------------------------------

    def _function(self, gives: str | None = None) -> Signature | None:
        fitting = [
            f
            for f in self.schema.functions.values()
            if len(f.gives) == 1
            and (gives is None or f.gives[0] == gives)
            and all(t not in POOLS or t == "integer" for t in f.takes)
        ]
        return self.choose(fitting) if fitting else None

    def _twins(self) -> tuple[Signature, Signature] | None:
        """Two functions with comparable values, often the same one."""
        one = self._function()
        other = one and self._function(one.gives[0])
        return (one, other) if one and other else None

    def _apply(self, function: Signature, scope: Scope) -> tuple[str, Scope]:
        """A call, its arguments from the scope or else new variables; the scope with them."""
        arguments = []
        for type_ in function.takes:
            known = [name for name, given in scope if self.schema.is_subtype(given, type_)]
            if known and self.below(4):
                arguments.append(self.choose(known))
            elif type_ == "integer":
                arguments.append(literal(self.constant(type_)))
            else:
                arguments.append(self.fresh("x"))
                scope = (*scope, (arguments[-1], type_))
        return f"{function.name}({', '.join(arguments)})", scope

    def _define(
        self, items: dict[str, str], scope: Scope, where: str, parameters: Scope = ()
    ) -> str:
        """Make a function of what is selected (a text and its type for each); some of the
        variables become arguments, or are left out."""
        local = [pair for pair in scope if pair not in parameters]
        for pair in [each for each in local if each[1] not in POOLS]:
            if self.one_in(3):
                parameters = (*parameters, pair)
                local.remove(pair)
        takes = tuple(type_ for _, type_ in parameters)
        name = f"d{len(self.schema.functions)}"
        head = self._declared(
            Signature(name, takes, tuple(items.values()), bag=self.one_in(2)), parameters
        )
        each = f" for each {', '.join(f'{t} {n}' for n, t in local)}" if local else ""
        return f"{head} as select {', '.join(items)}{each}" + (f" where {where}" if where else "")

    def _test(self, call: str, type_: str, scope: Scope) -> str:
        sign = self.sign() if type_ in POOLS else self.choose(("=", "!="))
        other = literal(self.constant(type_)) if type_ in POOLS else self.leaf(type_, scope)
        return f"{call} {sign} {other}"

    # --- shapes ----------------------------------------------------------------------------

    def selection(self) -> str | None:
        if (f := self._function()) is None:
            return None
        call, scope = self._apply(f, ())
        items = {name: type_ for name, type_ in scope if self.below(3)} or {call: f.gives[0]}
        return self._define(items, scope, self._test(call, f.gives[0], scope))

    def projection(self) -> str | None:
        if (f := self._function()) is None:
            return None
        call, scope = self._apply(f, ())
        return self._define({call: f.gives[0]}, scope, "")

    def _combined(self, how: str) -> str | None:
        """{r | f(..) = r how g(..) = r}"""
        if (pair := self._twins()) is None:
            return None
        f, g = pair
        one, scope = self._apply(f, ())
        other, scope = self._apply(g, scope)
        r = (self.fresh("r"), f.gives[0])
        where = f"{one} = {r[0]} {how} {other} = {r[0]}"
        if "not" in how:
            where += ")"
        return self._define({r[0]: r[1]}, (*scope, r), where)

    def union(self) -> str | None:
        return self._combined("or")

    def difference(self) -> str | None:
        return self._combined("and not (")

    def intersection(self) -> str | None:
        return self._combined("and")

    def product(self) -> str | None:
        f, g = self._function(), self._function()
        if f is None or g is None:
            return None
        one, scope = self._apply(f, ())
        other, whole = self._apply(g, ())
        if f.gives == g.gives == ("integer",) and self.below(2):
            items = {f"{one} {self.choose('+-*')} {other}": "integer"}
        else:
            items = {one: f.gives[0], other: g.gives[0]} if one != other else {one: f.gives[0]}
        return self._define(items, (*scope, *whole), "")

    def join(self) -> str | None:
        if (pair := self._twins()) is None:
            return None
        f, g = pair
        one, scope = self._apply(f, ())
        other, scope = self._apply(g, scope if self.below(2) else ())
        more, scope = self._joined(one, f, other, g, scope)
        where = f"{one} {self.choose(('=', '=', '<' if f.gives[0] in POOLS else '!='))} {other}"
        items = {name: type_ for name, type_ in scope if self.below(3)} or {one: f.gives[0]}
        return self._define(items, scope, where + more)

    def _joined(
        self, one: str, f: Signature, other: str, g: Signature, scope: Scope
    ) -> tuple[str, Scope]:
        """Make sure that the variables of both calls are declared, and perhaps join a third."""
        for call, function in ((one, f), (other, g)):
            given = call[call.index("(") + 1 : -1].split(", ") if function.takes else []
            for name, type_ in zip(given, function.takes, strict=True):
                if name[0].isalpha() and name not in dict(scope):
                    scope = (*scope, (name, type_))
        if self.one_in(2) and (h := self._function()) is not None:
            third, scope = self._apply(h, scope)
            return f" and {self._test(third, h.gives[0], scope)}", scope
        return "", scope

    def self_join(self) -> str | None:
        """Two (or three) different arguments with the same value."""
        with_arguments = [
            f
            for f in self.schema.functions.values()
            if len(f.gives) == 1
            and f.takes
            and f.takes[0] not in POOLS
            and all(t not in POOLS or t == "integer" for t in f.takes)
        ]
        if not with_arguments:
            return None
        f = self.choose(with_arguments)
        one, scope = self._apply(f, ())
        other, more = self._apply(f, ())
        whole = (*scope, *more)
        where = f"{one} = {other}"
        if scope and more and self.below(2):
            where += f" and {scope[0][0]} != {more[0][0]}"
        if self.one_in(3):
            third, last = self._apply(f, ())
            whole, where = (*whole, *last), f"{where} and {other} = {third}"
        items = {name: type_ for name, type_ in whole if self.below(2)} or {one: f.gives[0]}
        return self._define(items, whole, where)

    def without(self) -> str | None:
        """Not a conjunction, whose variables may be its own."""
        f, g, h = self._function(), self._function(), self._function()
        if f is None or g is None or h is None:
            return None
        one, scope = self._apply(f, ())
        two, inside = self._apply(g, scope)
        three, inside = self._apply(h, inside)
        own = inside[len(scope) :]
        tests = f"{self._test(two, g.gives[0], inside)} and {self._test(three, h.gives[0], inside)}"
        if own:
            each = ", ".join(f"{type_} {name}" for name, type_ in own)
            tests = f"some(select {own[0][0]} for each {each} where {tests})"
        items = {name: type_ for name, type_ in scope if self.below(3)} or {one: f.gives[0]}
        where = f"not ({tests})"
        if one not in items:
            where = f"{self._test(one, f.gives[0], scope)} and {where}"
        return self._define(items, scope, where)

    def grouped(self) -> str | None:
        """An aggregate of what belongs to an outer variable, perhaps compared with a constant."""
        name = self.choose(("count", "sum", "min", "max", "avg", "some", "notany"))
        numeric = name in ("sum", "min", "max", "avg")
        f, g = self._function("integer" if numeric else None), self._function()
        if f is None or g is None:
            return None
        outer = (self.fresh("x"), self.choose(list(self.schema.supertypes)))
        value, inside = self._apply(f, (outer,))
        tests = []
        if self.below(2):
            call, inside = self._apply(g, inside)
            tests.append(self._test(call, g.gives[0], inside))
        own = [pair for pair in inside if pair != outer]
        each = f" for each {', '.join(f'{t} {n}' for n, t in own)}" if own else ""
        query = f"select {'distinct ' if self.one_in(4) else ''}{value}{each}"
        query += f" where {' and '.join(tests)}" if tests else ""
        aggregate = f"{name}({query})"
        if name in ("some", "notany"):
            return self._define({outer[0]: outer[1]}, (outer,), aggregate)
        type_ = {"count": "integer", "avg": "number"}.get(name, f.gives[0])
        if self.below(2):
            return self._define({outer[0]: outer[1], aggregate: type_}, (outer,), "")
        test = f"{aggregate} {self.sign()} {self.below(4)}"
        return self._define({outer[0]: outer[1]}, (outer,), test)

    def closed(self) -> str | None:
        """What can be reached, and how much."""
        steps = [
            f
            for f in self.schema.functions.values()
            if len(f.takes) == len(f.gives) == 1 and f.takes == f.gives and f.gives[0] not in POOLS
        ]
        if not steps:
            return None
        f = self.choose(steps)
        x = (self.fresh("x"), f.takes[0])
        closure = f"tclose({f.name}, {x[0]})"
        match self.below(3):
            case 0:
                return self._define({x[0]: x[1], closure: x[1]}, (x,), "")
            case 1:
                return self._define({x[0]: x[1], f"count({closure})": "integer"}, (x,), "")
        y = (self.fresh("y"), f.takes[0])
        return self._define({x[0]: x[1], y[0]: y[1]}, (x, y), f"not ({closure} = {y[0]})")

    def link(self) -> str:
        """A stored function from a type to itself, so that there is something to close."""
        type_ = self.choose(list(self.schema.supertypes))
        name = f"l{len(self.schema.functions)}"
        return self._declared(Signature(name, (type_,), (type_,), self.one_in(2), stored=True))
