"""The words of a condition, and a reader that goes through them.

Tests are cut out of the words and read by the parser of SQL; this knows where they end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import Span, SyntaxFault

LEADING = ("WHEN", "WHILE", "ON", "SIGNAL")
"""The words that a trigger outside of the thesis's layout begins with."""
JOINING = frozenset({"AND", "OR", "^"})
ENDING = frozenset({"THEN", "ELSE", "WHERE", "GROUPBY", "GROUP BY", "FOR", "WITHIN", ";", ","})
_PAIRS = {(said, "MONOTONICALLY") for said in ("INCREASED", "DECREASED", "INCREASES", "DECREASES")}
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


def word(token: Token | None) -> str:
    """A word in capital letters; what stands in quotes is none."""
    if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return ""
    return " ".join(token.text.upper().split())


def clause_end(tokens: Sequence[Token], joining: Collection[str] = JOINING) -> int:
    """How many words the test has that begins here. The `joining` words end it, too."""
    depth = betweens = cases = 0
    for place, token in enumerate(tokens):
        name = word(token)
        if token.token_type in _OPEN:
            depth += 1
        elif token.token_type in _CLOSE:
            depth -= 1
            if depth < 0:
                return place
        if depth:
            continue
        if name == "CASE":
            cases += 1
        elif name == "END":
            cases -= 1
        elif name == "BETWEEN":
            betweens += 1
        elif name == "AND" and betweens:
            betweens -= 1
        elif not cases and (name in joining or _ends(name, tokens, place)):
            return place
    return len(tokens)


def _ends(name: str, tokens: Sequence[Token], place: int) -> bool:
    following = word(tokens[place + 1]) if place + 1 < len(tokens) else ""
    return name in ENDING or (name, following) in _PAIRS


def is_event_in_parentheses(tokens: Sequence[Token]) -> bool:
    """Whether the parenthesis that begins here holds a condition, and not a part of an
    expression, like (a + b) > c."""
    depth = inside = 0
    for inside, token in enumerate(tokens):  # noqa: B007
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0:
            break
    if depth or word(tokens[1]) in ("SELECT", "WITH", "VALUES"):
        return False
    rest = tokens[inside + 1 :]
    return not rest or clause_end(rest) == 0


def is_bare_event(
    tokens: Sequence[Token], events: Collection[str], testing: Collection[str]
) -> bool:
    """Whether UPDATE stock.price begins here, rather than a test of a column called update."""
    seen = [word(each) for each in tokens[:3]]
    if len(seen) < 2 or seen[0] not in events:
        return False
    if seen[1] == "OR":
        return seen[2:] != [] and seen[2] in events
    return _is_name(tokens[1]) and seen[1] not in {*testing, *JOINING, *ENDING}


class WordReader:
    def __init__(self, text: str, tokens: list[Token], start: int) -> None:
        self._text = text
        self._tokens = tokens
        self._at = start

    @property
    def left(self) -> list[Token]:
        return self._tokens[self._at :]

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def _token(self) -> Token | None:
        return None if self.is_done else self._tokens[self._at]

    @property
    def seen(self) -> str | None:
        """The next word as it is written."""
        return None if self.is_done else self._tokens[self._at].text

    @property
    def span(self) -> Span:
        """The next word, or the end of the text."""
        token = self._token
        if token is not None:
            return Span(token.start, token.end + 1)
        return Span(max(0, self.last_end - 1), max(1, self.last_end))

    @property
    def last_end(self) -> int:
        """Where the last word ends that was read."""
        return self._tokens[self._at - 1].end + 1 if self._at else 0

    def sees(self, *upper: str) -> bool:
        here = self._tokens[self._at : self._at + len(upper)]
        return tuple(map(word, here)) == upper

    def takes(self, *upper: str) -> bool:
        """Go past these words, if they are next."""
        if not self.sees(*upper):
            return False
        self._at += len(upper)
        return True

    def need(self, upper: str) -> None:
        if not self.takes(upper):
            raise self.fault(f"{upper} is missing" if self.is_done else f"{upper} is missing here")

    def one_of(self, choices: Collection[str]) -> str | None:
        found = word(self._token)
        if not found or found not in choices:
            return None
        self._at += 1
        return found

    def until(self, count: int) -> list[Token]:
        """Go past this many words."""
        found = self._tokens[self._at : self._at + count]
        self._at += count
        return found

    def name(self, what: str) -> str:
        token = self._token
        if token is None or not _is_name(token):
            raise self.fault(f"{what} is missing")
        self._at += 1
        return token.text

    def table_name(self) -> str:
        """The name of a table, or that of a host: www.nws.nova.gov."""
        found = [self.name("the name of a table")]
        while self.takes("."):
            found.append(self.name("a part of the name"))
        return ".".join(found)

    def whole_number(self) -> int:
        token = self._token
        if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
            raise self.fault("a number is missing", hint="write a whole number of units of time")
        self._at += 1
        return int(token.text)

    def unexpected(self) -> SyntaxFault:
        return self.fault(f"{self.seen} cannot stand here")

    def fault(self, message: str, hint: str | None = None) -> SyntaxFault:
        return SyntaxFault(message, code="syntax", span=self.span, hint=hint)


def _is_name(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    text = token.text
    return bool(text) and token.token_type is not TokenType.STRING and text.isidentifier()
