"""Expressions: constants, variables, operators by precedence, functors, aggregates."""

from __future__ import annotations

import sys
from collections.abc import Callable

from harken.errors import SyntaxFault, ValueFault
from harken.lang.datalog import syntax
from harken.lang.datalog.token_reader import Reader
from harken.lang.datalog.tokens import Token, text_value, unsupported

AGGREGATES = ("count", "sum", "mean", "min", "max")
FUNCTORS = (
    "cat",
    "strlen",
    "substr",
    "ord",
    "to_number",
    "to_string",
    "to_float",
    "to_unsigned",
    "min",
    "max",
    "range",
)
LEVELS = (
    ("lor",),
    ("lxor",),
    ("land",),
    ("bor",),
    ("bxor",),
    ("band",),
    ("bshl", "bshr", "bshru"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""The operators between two values, those that bind least first; all of them group to the left."""
_LEVEL = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}
OPERATORS = ("symbol", "name")
"""The kinds of tokens that operators are."""
PREFIXES = ("bnot", "lnot")
WORDS = frozenset(word for level in LEVELS for word in level if word.isalpha()) | set(PREFIXES)
RESERVED = WORDS | set(AGGREGATES) | set(FUNCTORS) | {"match", "contains", "true", "false", "as"}
"""Names that no relation and no variable can have."""

LONGEST_NUMBER = 1_000
"""Characters of the longest whole number that is read; Python refuses to convert more than 4,300
digits."""
_NOT_HERE = {
    "[": "a record",
    "$": "the counter `$`, or a branch of an algebraic data type",
    "@": "a user-defined functor",
}

_COUNTERS = ("autoinc", "recursive_iteration_cnt")


class Expressions:
    def __init__(self, reader: Reader, body: Callable[[], syntax.Formula]) -> None:
        self._reader = reader
        self._body = body

    def expression(self, least: int = 0) -> syntax.Expression:
        """An expression whose operators, outside of parentheses, bind at least so strongly."""
        reader = self._reader
        start = reader.next
        left = self._prefixed()
        while reader.next.kind in OPERATORS and _LEVEL.get(reader.next.text, -1) >= least:
            operator = reader.take().text
            right = self.expression(_LEVEL[operator] + 1)
            left = syntax.Functor(operator, (left, right), reader.since(start))
        return left

    def _prefixed(self) -> syntax.Expression:
        reader = self._reader
        start = reader.next
        if reader.is_word(*PREFIXES):
            return syntax.Functor(reader.take().text, (self._prefixed(),), reader.since(start))
        if reader.accept("-"):
            value = self._prefixed()
            if isinstance(value, syntax.Number):
                return syntax.Number(-value.value, value.form, reader.since(start))
            return syntax.Functor("negate", (value,), reader.since(start))
        return self._power()

    def _power(self) -> syntax.Expression:
        reader = self._reader
        start = reader.next
        base = self._primary()
        if reader.accept("^"):
            return syntax.Functor("^", (base, self._prefixed()), reader.since(start))
        return base

    def _primary(self) -> syntax.Expression:
        token = self._reader.next
        match token.kind:
            case "integer" | "unsigned" | "float" | "address":
                return self._number(self._reader.take())
            case "text":
                self._reader.take()
                return syntax.Text(text_value(token), token.span)
            case "name":
                return self._word(token)
        if self._reader.accept("("):
            inner = self.expression()
            self._reader.expect(")")
            return inner
        if token.text in _NOT_HERE and token.kind == "symbol":
            raise unsupported(_NOT_HERE[token.text], token.span)
        raise self._reader.unexpected("a value")

    def _number(self, token: Token) -> syntax.Number:
        if token.kind == "float":
            return syntax.Number(_finite(float(token.text), token), "float", token.span)
        if token.kind == "address":
            return syntax.Number(_address(token), "integer", token.span)
        digits = token.text.removesuffix("u") if token.kind == "unsigned" else token.text
        base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
        if len(digits) > LONGEST_NUMBER:
            raise _too_large(token)
        value = int(digits, base)
        _finite(value, token)  # it may become a float
        return syntax.Number(value, token.kind, token.span)

    def _word(self, token: Token) -> syntax.Expression:
        reader = self._reader
        called = reader.after().kind == "symbol" and reader.after().text == "("
        if token.text in ("min", "max") and called:
            return self._least_or_greatest(token)
        if token.text in AGGREGATES:
            reader.take()
            value = None if reader.is_symbol(":") else self.expression()
            return self._aggregate(token, value)
        if token.text == "as" and called:
            return self._cast(token)
        if token.text == "nil":
            raise unsupported("nil, and records", token.span)
        if token.text in _COUNTERS and called:
            raise unsupported(f"{token.text}, a counter", token.span)
        if token.text in FUNCTORS and called:
            reader.take()
            return syntax.Functor(token.text, self.arguments(), reader.since(token))
        if called:
            raise SyntaxFault(
                f"there is no functor {token.text}",
                span=token.span,
                hint="there are " + ", ".join(FUNCTORS),
            )
        if token.text in RESERVED:
            raise SyntaxFault(f"{token.text} is a word of the language", span=token.span)
        reader.take()
        if token.text == "_":
            return syntax.Unnamed(token.span)
        return syntax.Named(token.text, token.span)

    def _least_or_greatest(self, token: Token) -> syntax.Expression:
        """`min(x, y)` is a functor, and `min (x) : { ... }` an aggregate."""
        reader = self._reader
        start = reader.place
        reader.take()
        given = self.arguments()
        if len(given) > 1:
            return syntax.Functor(token.text, given, reader.since(token))
        reader.place = start
        reader.take()
        return self._aggregate(token, self.expression())

    def _aggregate(self, token: Token, value: syntax.Expression | None) -> syntax.Aggregate:
        reader = self._reader
        if token.text != "count" and value is None:
            raise reader.unexpected(f"the value to take the {token.text} of")
        if token.text == "count" and value is not None:
            raise SyntaxFault(
                "count counts rows, not values", span=value.span, hint="write count : { ... }"
            )
        reader.expect(":", f"an aggregate is written {token.text} x : {{ r(x) }}")
        body = self._body()
        return syntax.Aggregate(token.text, value, body, reader.since(token))

    def _cast(self, token: Token) -> syntax.Expression:
        reader = self._reader
        reader.take()
        reader.expect("(")
        value = self.expression()
        reader.expect(",")
        named = reader.qualified("the name of a type")
        reader.expect(")")
        return syntax.Cast(value, named.text, reader.since(token))

    def arguments(self) -> tuple[syntax.Expression, ...]:
        """`(a, b, ...)`, perhaps with nothing in it."""
        reader = self._reader
        reader.expect("(")
        found: list[syntax.Expression] = []
        while not reader.is_symbol(")"):
            found.append(self.expression())
            if not reader.accept(","):
                break
        reader.expect(")")
        return tuple(found)


def _finite(value: float, token: Token) -> float:
    if abs(value) > sys.float_info.max:
        raise _too_large(token)
    return value


def _too_large(token: Token) -> ValueFault:
    return ValueFault("this number is too large", code="overflow", span=token.span)


def _address(token: Token) -> int:
    """The number that an IPv4 address stands for. It has 32 bits and a sign, as in Soufflé."""
    parts = [int(part) for part in token.text.split(".")]
    if max(parts) > 255:
        raise SyntaxFault(f"{token.text} is no address: its parts are at most 255", span=token.span)
    return int.from_bytes(bytes(parts), "big", signed=True)
