"""Random AMOSQL programs: mostly well typed, small, and dense enough that things collide.

A `Maker` writes the statements that make types, functions and data, and the questions to ask.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.generators.expressions import POOLS, Scope, Signature, Writer, literal


class Maker(Writer):
    """Makes programs of all kinds; those in `focuses.py` make more of one kind."""

    types: ClassVar = (2, 4)
    objects: ClassVar = (3, 5)
    stored: ClassVar = (4, 7)
    derived: ClassVar = (3, 6)
    rows: ClassVar = (0, 9)
    """The least and the most there are to begin with; the rows are those of one function."""

    changes: ClassVar = (
        *("put", "put", "put", "remove", "remove"),
        *("add type", "remove type", "new object", "delete object", "new function"),
    )
    """What may happen between two questions, as often as it stands here."""

    # --- schema ----------------------------------------------------------------------------

    def type_statement(self) -> str:
        known = list(self.schema.supertypes)
        name = f"t{len(known)}"
        above = tuple(dict.fromkeys(self.choose(known) for _ in range(self.supertypes())))
        self.schema.supertypes[name] = above
        return f"create type {name}" + (f" subtype of {', '.join(above)}" if above else "")

    def supertypes(self) -> int:
        """How many a new type has at most."""
        return self.below(3) if self.schema.supertypes else 0

    def object_types(self) -> list[str]:
        """The type that a new object is created with, and those that it gains."""
        known = list(self.schema.supertypes)
        return [self.choose(known) for _ in range(1 + self.one_in(3))]

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

    def definition(self) -> list[str]:
        """A derived function of any kind; none if the schema has nothing to make it of."""
        match self.below(10):
            case 7:
                return self.recursive_function()
            case 8:
                return self.inverse_function()
            case 9:
                return [self.named_result_function()]
        return [self.derived_function(1 + self.below(2))]

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

    def computed_change(self) -> str:
        """`set f(a) = e`, where a and e may have any number of values."""
        function = self.choose([f for f in self.schema.functions.values() if f.stored])
        arguments = ", ".join(self._computed(type_) for type_ in function.takes)
        value = f"({self.query(function.gives, self.interface(), self.below(2))})"
        if len(function.gives) == 1 and self.one_in(3):
            value = self.value(function.gives[0], self.interface(), 1)
        dot = f"{function.takes[0]}." if function.takes else ""
        verb = self.choose(("set", "set", "add", "remove"))
        return f"{verb} {dot}{function.name}({arguments}) = {value}"

    def _computed(self, type_: str) -> str:
        constant = self.constant(type_)
        if constant is None or self.one_in(3):
            return self.value(type_, self.interface(), 1)
        return literal(constant) if type_ in POOLS else str(constant)

    # --- questions -------------------------------------------------------------------------

    def question(self) -> str:
        """A query to ask, perhaps about objects that interface variables hold."""
        scope = self.interface() if self.one_in(2) else ()
        depth = 1 + self.below(3)
        match self.below(8):
            case 5 | 6:
                return self.counting_query(scope, depth)
            case 7:
                backward = self.backward_query(self.interface())
                if backward is not None:
                    return backward
        gives = [self.any_type() for _ in range(1 + self.one_in(3))]
        return self.query(gives, scope, depth, distinct=self.one_in(8))

    def interface(self) -> Scope:
        return tuple(
            (f":{name}", self.schema.narrowest(types))
            for name, types in list(self.schema.objects.items())[:2]
        )

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
