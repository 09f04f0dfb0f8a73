"""Reads statements that sqlglot does not know, word by word.

Law: an error points to the word that cannot stand there, and says what may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import Span, SyntaxFault, nearest

_VALUES = (TokenType.STRING, TokenType.NUMBER)
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WordReader:
    """Begins after the first two words, such as CREATE SOURCE."""

    def __init__(self, tokens: Sequence[Token], start: int = 2) -> None:
        self._tokens = tokens
        self._at = start

    # --- parts ---

    def _options(self) -> dict[str, Any]:
        self._expect("(", "OPTIONS (name 'value', ...)")
        found: dict[str, Any] = {}
        while True:
            name = self._option_name()
            if name in found:
                raise self._fault(f"the option {name} is there twice", self._tokens[self._at - 1])
            self._takes("=")
            found[name] = self._value(name)
            if not self._takes(","):
                break
        self._expect(")", "OPTIONS (name 'value', ...)")
        return found

    def _option_name(self) -> str:
        token = self._here
        if token is not None and token.token_type is TokenType.STRING:
            self._at += 1
            return token.text.lower()
        return self._name("the name of an option")

    def _value(self, name: str) -> Any:
        token, negative = self._here, self._takes("-")
        token = self._here if negative else token
        if token is None or (negative and token.token_type is not TokenType.NUMBER):
            raise self._missing(f"the value of the option {name}")
        self._at += 1
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            return token.text
        if token.token_type is TokenType.NUMBER:
            number = int(token.text) if token.text.isdigit() else plain_number(token.text)
            if number is None:
                raise self._fault(f"{token.text} is no number", token)
            return -number if negative else number
        match token.text.upper():
            case "TRUE":
                return True
            case "FALSE":
                return False
            case "DEFAULT":
                return None
        raise self._fault(
            f"{token.text} cannot be the value of an option",
            token,
            f"write {name} '{token.text}'",
        )

    def _columns(self) -> tuple[str, ...]:
        self._expect("(", "KEY (column, ...)")
        found = [self._name("a column")]
        while self._takes(","):
            found.append(self._name("a column"))
        self._expect(")", "KEY (column, ...)")
        return tuple(dict.fromkeys(found))

    def _name(self, what: str) -> str:
        token = self._here
        if token is None:
            raise self._missing(what)
        is_quoted = token.token_type is TokenType.IDENTIFIER
        if token.token_type in _VALUES or not (is_quoted or PLAIN.fullmatch(token.text)):
            raise self._fault(f"{token.text} cannot stand here", token, f"write {what}")
        self._at += 1
        return token.text.lower()

    # --- words ---

    @property
    def _here(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _takes(self, *words: str) -> bool:
        """Are these the next words? Then they are read."""
        ahead = self._tokens[self._at : self._at + len(words)]
        is_there = tuple(
            "" if each.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else each.text.upper()
            for each in ahead
        )
        if is_there != words:
            return False
        self._at += len(words)
        return True

    def _expect(self, word: str, pattern: str) -> None:
        if not self._takes(word):
            raise self._missing(f"{word}, as in {pattern}")

    def _missing(self, what: str) -> SyntaxFault:
        if self._here is not None:
            return self._fault(f"{self._here.text} cannot stand here", self._here, f"write {what}")
        last = self._tokens[-1]
        return self._fault(f"something is missing after {last.text}", last, f"write {what}")

    def _cannot_stand(self, known: Sequence[str] = ()) -> SyntaxFault:
        token = self._here
        if token is None:
            return self._missing(" or ".join(known))
        near = nearest(token.text.upper(), known)
        hint = f"did you mean {near}?" if near else f"here may stand {', '.join(known)}"
        return self._fault(f"{token.text} cannot stand here", token, hint if known else None)

    def _fault(self, message: str, token: Token, hint: str | None = None) -> SyntaxFault:
        return SyntaxFault(message, code="syntax", span=Span(token.start, token.end + 1), hint=hint)


def plain_number(text: str) -> int | float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def quoted(name: str) -> str:
    """A name as it can stand in a statement."""
    return name if PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> str:
    match value:
        case None:
            return "DEFAULT"
        case bool():
            return str(value).upper()
        case int() | float():
            return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
