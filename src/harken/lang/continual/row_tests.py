"""Tests of rows: expressions of SQL with the operators of content triggers.

    stock.price DECBYP 5        stock.price IncreaseBy% 5        title CONTAINS 'Java'
    a ^ b                       is a AND b

They are read by the parser of SQL, which is taught these operators; they bind like LIKE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import HarkenError, LanguageError, Span, SyntaxFault, ValueFault
from harken.lang.continual.syntax import (
    CHANGES,
    DECREASES_PERCENT,
    INCREASES_PERCENT,
    OPERATORS,
    SINCE,
    WITH_PERCENT,
)
from harken.lang.sql.normalization import normalized_throughout
from harken.lang.sql.parser import HarkenSpark
from harken.lang.sql.strict_parser import LONGEST_NUMBER, complaints
from harken.lang.sql.supported_syntax import unknown_parts

MATHEMATICAL = {"≤": TokenType.LTE, "≥": TokenType.GTE, "≠": TokenType.NEQ}
"""Signs that the thesis prints."""


class ConditionDialect(HarkenSpark):
    """Spark's dialect with the operators of content triggers."""

    class Tokenizer(HarkenSpark.Tokenizer):
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            **HarkenSpark.Tokenizer.SINGLE_TOKENS,
            **MATHEMATICAL,
        }

    class Parser(HarkenSpark.Parser):
        CONJUNCTION: ClassVar[dict[TokenType, Any]] = {
            **HarkenSpark.Parser.CONJUNCTION,
            TokenType.CARET: exp.And,
        }
        BITWISE: ClassVar[dict[TokenType, Any]] = {
            token: each
            for token, each in HarkenSpark.Parser.BITWISE.items()
            if token is not TokenType.CARET
        }

        def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> Any:
            this = this or self._parse_bitwise()
            while this is not None and (made := self._compared_with_before(this)) is not None:
                this = made
            return super()._parse_range(this, parse_is)

        def _compared_with_before(self, this: exp.Expr) -> exp.Expr | None:
            token = self._curr
            if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                return None
            word = token.text.upper()
            if word == "CONTAINS" and (self._next is None or self._next.text != "("):
                self._advance()
                return _placed(exp.Contains(this=this, expression=self._operand()), this)
            if word == "SINCE" and self._match_text_seq("SINCE", "LAST", "EXECUTION"):
                return _placed(exp.Anonymous(this=SINCE, expressions=[this]), this)
            name = OPERATORS.get(word)
            if name is None:
                return None
            self._advance()
            if name == CHANGES:
                return _placed(exp.Anonymous(this=name, expressions=[this]), this)
            if name in WITH_PERCENT and self._match(TokenType.MOD):
                name = WITH_PERCENT[name]
            given = [this, self._operand()]
            return _placed(exp.Anonymous(this=name, expressions=given), this)

        def test(self, tokens: Sequence[Token], text: str) -> exp.Expr | None:
            """The whole of the words as one expression."""
            (found,) = self._parse(lambda each: each._parse_disjunction(), list(tokens), text)
            return found

        def _operand(self) -> exp.Expr:
            found = self._parse_bitwise()
            if found is None:
                self.raise_error("Something is missing", self._prev)
            assert found is not None
            return found


def _placed(node: exp.Expr, first: exp.Expr) -> exp.Expr:
    """An operator stands where its first operand does."""
    node.meta.update(first.meta)
    return node


CONDITIONS = ConditionDialect()


def tokens_of(text: str) -> list[Token]:
    """The words of a condition."""
    try:
        found = CONDITIONS.tokenize(text)
    except TokenError as error:
        raise SyntaxFault(
            "a text or a comment is not closed",
            code="syntax",
            span=Span(0, len(text)),
            hint="a quote inside of a text is written twice: 'it''s'",
        ) from error
    for token in found:
        if token.token_type is TokenType.NUMBER and len(token.text) > LONGEST_NUMBER:
            raise ValueFault(
                f"this number has {len(token.text):,} digits",
                code="overflow",
                span=Span(token.start, token.end + 1),
                hint="whole numbers have 64 bits, decimals at most 38 digits",
            )
    return found


def test_of(text: str, tokens: Sequence[Token], start: int) -> exp.Expr:
    """The test that these words of the text are. `start` is where an error points to if there are
    none."""
    if not tokens:
        raise _missing(start, "a condition is missing")
    parser = CONDITIONS.parser()
    assert isinstance(parser, ConditionDialect.Parser)
    try:
        node = parser.test(tokens, text)
    except ParseError as error:
        raise _fault(error, tokens) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        span = Span(tokens[0].start, tokens[-1].end + 1)
        raise SyntaxFault("this condition cannot be read", code="syntax", span=span) from error
    if node is None:
        raise _missing(tokens[0].start, f"{tokens[0].text} cannot stand here")
    for token, is_misplaced in complaints(tokens):
        said = "cannot stand here" if is_misplaced else "has nothing after it"
        raise SyntaxFault(
            f"{token.text} {said}", code="syntax", span=Span(token.start, token.end + 1)
        )
    node = normalized_throughout(_with_named_percents(node))
    _check(node)
    return node


PERCENT_OF = {"increaseby": INCREASES_PERCENT, "decreaseby": DECREASES_PERCENT}


def _with_named_percents(node: exp.Expr) -> exp.Expr:
    """IncreaseBy%(X) ≤ x, as the thesis also writes X IncreaseBy% x."""

    def spelled(each: exp.Expr) -> exp.Expr:
        match each:
            case (
                exp.LTE(this=exp.Mod(this=exp.Column() as name, expression=value))
                | exp.GTE(this=exp.Mod(this=exp.Column() as name, expression=value))
            ) if name.name.lower() in PERCENT_OF and not name.table:
                given = [value.unnest(), each.expression]
                operator = PERCENT_OF[name.name.lower()]
                return _placed(exp.Anonymous(this=operator, expressions=given), name)
        return each

    return node.transform(spelled)


def _check(node: exp.Expr) -> None:
    whole = exp.Select(expressions=[node.copy()])
    for part, what in unknown_parts(whole):
        raise LanguageError(
            f"{what} is not in Harken's SQL", code="unsupported", span=place(part) or place(node)
        )


def place(node: exp.Expr) -> Span | None:
    """Where a part of a test stands in the text of the condition."""
    found = [each.meta for each in node.walk() if isinstance(each.meta.get("start"), int)]
    if not found:
        return None
    return Span(min(each["start"] for each in found), max(each["end"] for each in found) + 1)


def _missing(start: int, message: str) -> HarkenError:
    return SyntaxFault(message, code="syntax", span=Span(max(0, start), max(1, start + 1)))


def _fault(error: ParseError, tokens: Sequence[Token]) -> SyntaxFault:
    details = error.errors[0] if error.errors else {}
    word = str(details.get("highlight") or "")
    line, column = details.get("line"), details.get("col")
    found = next((e for e in tokens if e.line == line and e.col == column), None)
    token = found or next((e for e in reversed(tokens) if e.text == word), tokens[-1])
    span = Span(token.start, token.end + 1)
    if "Unexpected token" in str(details.get("description")):
        return SyntaxFault(f"{token.text} cannot stand here", code="syntax", span=span)
    return SyntaxFault(f"something is missing after {token.text}", code="syntax", span=span)
