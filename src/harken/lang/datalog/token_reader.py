"""A place in a list of tokens: look at the next, take it, say what was expected instead."""

from __future__ import annotations

from harken.errors import Span, SyntaxFault
from harken.lang.datalog.tokens import Token

HABITS = {
    "<-": "a rule is written head :- body.",
    ":=": "a rule is written head :- body.",
    "=>": "a rule is written head :- body.",
    "if": "a rule is written head :- body.",
    "->": "a rule is written head :- body.",
    "%": "a comment begins with //, or stands between /* and */",
    "--": "a comment begins with //, or stands between /* and */",
    "<>": "unequal is written !=",
    "==": "equal is written =",
    "&&": "and is a comma, or is a semicolon",
    "and": "and is a comma, or is a semicolon",
    "or": "and is a comma, or is a semicolon",
    "?": "a query is written ?- edge(x, y).",
    ":-": "a query is written ?- edge(x, y).",
    "..": "x = range(1, 4) has the values 1, 2 and 3",
}
"""What people write who come from Prolog, SQL or another Datalog, and what to write here."""


class Reader:
    def __init__(self, given: list[Token]) -> None:
        self._tokens = given
        self.place = 0

    @property
    def next(self) -> Token:
        return self._tokens[self.place]

    def after(self, distance: int = 1) -> Token:
        return self._tokens[min(self.place + distance, len(self._tokens) - 1)]

    @property
    def end(self) -> int:
        """Where the token that was taken last ends in the text."""
        return self._tokens[self.place - 1].span.end

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self.place += 1
        return token

    def is_symbol(self, *symbols: str) -> bool:
        token = self.next
        return token.kind == "symbol" and token.text in symbols

    def is_word(self, *words: str) -> bool:
        token = self.next
        return token.kind == "name" and token.text in words

    def accept(self, *symbols: str) -> Token | None:
        return self.take() if self.is_symbol(*symbols) else None

    def expect(self, symbol: str, hint: str | None = None) -> Token:
        if not self.is_symbol(symbol):
            raise self.unexpected(f"`{symbol}`", hint)
        return self.take()

    def name(self, what: str) -> Token:
        if self.next.kind != "name" or self.next.text == "_":
            raise self.unexpected(what)
        return self.take()

    def is_call(self) -> bool:
        """Is the next thing a name, perhaps with dots in it, before a parenthesis?"""
        after = self.after(self._length_of_name())
        return self.next.kind == "name" and after.kind == "symbol" and after.text == "("

    def qualified(self, what: str) -> Token:
        """A name with or without dots: `inner`, `outer.inner`."""
        length = self._length_of_name()
        start = self.name(what)
        parts = [start, *(self.take() for _ in range(length - 1))]
        return Token("name", "".join(part.text for part in parts), self.since(start))

    def _length_of_name(self) -> int:
        """How many tokens a name with dots has, if one is next. No blank is in it, so that a
        directive on the next line is none of its parts; `.input` is one in `a.input(x)`."""
        length = 1
        while self._touches(length):
            if self.after(length).kind == "directive" and self.after(length + 1).text == "(":
                length += 1
            elif self.after(length).text == "." and self._touches(length + 1, "name"):
                length += 2
            else:
                break
        return length

    def _touches(self, distance: int, kind: str | None = None) -> bool:
        """Does a token (of this kind) begin where the one before it ends?"""
        token = self.after(distance)
        touches = token.span.start == self.after(distance - 1).span.end
        return touches and kind in (None, token.kind)

    def _habit(self) -> str | None:
        """What to write instead of what Prolog, SQL and other Datalogs have here."""
        pair = self.next.text + (self.after(1).text if self._touches(1) else "")
        before = self._tokens[max(self.place - 1, 0)].text + self.next.text
        return HABITS.get(pair) or HABITS.get(before) or HABITS.get(self.next.text)

    def since(self, start: Token) -> Span:
        return Span(start.span.start, self.end)

    def unexpected(self, wanted: str, hint: str | None = None) -> SyntaxFault:
        found = "the end of the text" if self.next.kind == "end" else f"`{self.next.text}`"
        hint = self._habit() or hint
        return SyntaxFault(
            f"{wanted} is expected here, but this is {found}", span=self.next.span, hint=hint
        )
