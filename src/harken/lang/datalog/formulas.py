"""Bodies of rules: atoms, constraints, `!`, conjunction with `,` and disjunction with `;`."""

from __future__ import annotations

from harken.errors import SyntaxFault, number_given
from harken.lang.datalog import syntax
from harken.lang.datalog.expressions import RESERVED, WORDS, Expressions
from harken.lang.datalog.token_reader import Reader

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
TESTS = ("match", "contains")


class Formulas:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._expressions = Expressions(reader, self._aggregated)

    def disjunction(self) -> syntax.Formula:
        reader = self._reader
        start = reader.next
        parts = [self._conjunction()]
        while reader.accept(";"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else syntax.Or(tuple(parts), reader.since(start))

    def _conjunction(self) -> syntax.Formula:
        reader = self._reader
        start = reader.next
        parts = [self._term()]
        while reader.accept(","):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else syntax.And(tuple(parts), reader.since(start))

    def _term(self) -> syntax.Formula:
        reader = self._reader
        token = reader.next
        if reader.accept("!"):
            return syntax.Not(self._term(), reader.since(token))
        if reader.is_symbol("("):
            return self._in_parentheses()
        if reader.is_word("true", "false"):
            reader.take()
            return syntax.Truth(token.text == "true", token.span)
        called = reader.is_call()
        if reader.is_word(*TESTS) and called:
            return self._test()
        if called and token.text not in RESERVED:
            return self.atom()
        return self._constraint()

    def _in_parentheses(self) -> syntax.Formula:
        """`(a(x); b(x))` is a formula, and `(x + 1) < y` begins with a value: what comes after the
        parenthesis tells."""
        reader = self._reader
        start = reader.place
        try:
            reader.take()
            inner = self.disjunction()
            reader.expect(")")
            if not self._goes_on():
                return inner
        except SyntaxFault as as_formula:
            reader.place = start
            try:
                return self._constraint()
            except SyntaxFault as as_value:
                furthest = max(as_formula, as_value, key=lambda each: each.span.start)  # type: ignore[union-attr]
                raise furthest from None
        reader.place = start
        return self._constraint()

    def _goes_on(self) -> bool:
        reader = self._reader
        return reader.is_symbol(*COMPARISONS, *"+-*/%^") or reader.is_word(*WORDS)

    def _constraint(self) -> syntax.Formula:
        reader = self._reader
        start = reader.next
        left = self._expressions.expression()
        if not reader.is_symbol(*COMPARISONS):
            raise reader.unexpected("a comparison", "a body has atoms, r(x), and tests, x < 1")
        operator = reader.take().text
        right = self._expressions.expression()
        return syntax.Constraint(operator, left, right, reader.since(start))

    def _test(self) -> syntax.Formula:
        reader = self._reader
        token = reader.take()
        given = self._expressions.arguments()
        if len(given) != 2:
            raise SyntaxFault(
                f"{token.text} takes 2 values, and {number_given(len(given))}",
                code="arity",
                span=reader.since(token),
            )
        return syntax.Constraint(token.text, given[0], given[1], reader.since(token))

    def atom(self) -> syntax.Atom:
        reader = self._reader
        token = reader.qualified("the name of a relation")
        if token.text in RESERVED:
            raise SyntaxFault(f"{token.text} is a word of the language", span=token.span)
        arguments = self._expressions.arguments()
        return syntax.Atom(token.text, arguments, reader.since(token))

    def _aggregated(self) -> syntax.Formula:
        """The body of an aggregate: a formula in braces, or a single atom."""
        if not self._reader.accept("{"):
            return self.atom()
        body = self.disjunction()
        self._reader.expect("}")
        return body
