"""The statements about messages, which sqlglot does not know.

CREATE [OR REPLACE] TEMPLATE name [(field type, ...)] [SUBJECT 'text'] TEXT 'text' [HTML 'text']
DROP TEMPLATE [IF EXISTS] name
SHOW TEMPLATES
RESEND MESSAGE number, ... · RESEND DEAD MESSAGES
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from harken.errors import Span, SyntaxFault

Verb = Literal["create", "drop", "show", "resend"]
TYPES = {
    "text": ("TEXT", "STRING", "VARCHAR"),
    "integer": ("INT", "INTEGER", "BIGINT", "SMALLINT"),
    "number": ("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMBER"),
    "boolean": ("BOOLEAN", "BOOL"),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP",),
}
PARTS = ("SUBJECT", "TEXT", "HTML")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWords:
    """What such a statement says."""

    verb: Verb
    name: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case."""
    replace: bool = False
    if_exists: bool = False
    numbers: tuple[int, ...] = ()
    """The messages to send again; none are all dead ones."""


class MessageStatement(exp.Expression):
    """Its words are in `this`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def words(self) -> MessageWords:
        found = self.args["this"]
        assert isinstance(found, MessageWords)
        return found


def read_message_statement(tokens: Sequence[Token]) -> exp.Expr | None:
    """The statement, if these words are one."""
    match [token.text.upper() for token in tokens[:4]]:
        case ["CREATE", "TEMPLATE", *_] | ["DROP", "TEMPLATE", *_]:
            begun = 2
        case ["CREATE", "OR", "REPLACE", "TEMPLATE"]:
            begun = 4
        case ["SHOW", "TEMPLATES"]:
            return MessageStatement(this=MessageWords(verb="show"))
        case ["RESEND", "MESSAGE" | "MESSAGES" | "DEAD", *_]:
            begun = 1
        case _:
            return None
    return MessageStatement(this=_Reader(tokens, begun).words())


class _Reader:
    def __init__(self, tokens: Sequence[Token], begun: int) -> None:
        self._tokens, self._at = tokens, begun

    def words(self) -> MessageWords:
        match self._tokens[0].text.upper():
            case "CREATE":
                found = self._create()
            case "DROP":
                if_exists = self._takes("IF") and self._expect("EXISTS")
                found = MessageWords(verb="drop", name=self._name(), if_exists=if_exists)
            case _:
                found = self._resend()
        if self._here is not None:
            raise self._fault(f"{self._here.text} cannot stand here")
        return found

    def _create(self) -> MessageWords:
        replace = self._at == 4
        name, fields, parts = self._name(), dict[str, str](), dict[str, str]()
        if self._takes("("):
            while True:
                own = self._name().lower()
                if own in fields:
                    raise self._fault(f"the field {own} is there twice")
                fields[own] = self._type()
                if not self._takes(","):
                    break
            self._expect(")")
        while self._here is not None:
            word = self._here.text.upper()
            if word not in PARTS or word.lower() in parts:
                raise self._fault(f"{self._here.text} cannot stand here", hint=_FORM)
            self._at += 1
            parts[word.lower()] = self._text(word)
        if "text" not in parts:
            raise self._fault("the TEXT of the template is missing", hint=_FORM)
        return MessageWords(verb="create", name=name, fields=fields, parts=parts, replace=replace)

    def _resend(self) -> MessageWords:
        if self._takes("DEAD"):
            self._expect("MESSAGES")
            return MessageWords(verb="resend")
        self._at += 1
        numbers = [self._number()]
        while self._takes(","):
            numbers.append(self._number())
        return MessageWords(verb="resend", numbers=tuple(numbers))

    # --- words ---

    @property
    def _here(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _takes(self, word: str) -> bool:
        found = self._here is not None and self._here.text.upper() == word
        self._at += found
        return found

    def _expect(self, word: str) -> bool:
        if not self._takes(word):
            raise self._fault(f"{word} should stand here", hint=_FORM)
        return True

    def _name(self) -> str:
        token = self._here
        if token is None or not token.text.isidentifier():
            raise self._fault("a name should stand here", hint=_FORM)
        self._at += 1
        return token.text

    def _type(self) -> str:
        token = self._here
        word = "" if token is None else token.text.upper()
        found = next((name for name, words in TYPES.items() if word in words), None)
        if found is None:
            raise self._fault("a type should stand here", hint="such as TEXT, INT, DOUBLE, DATE")
        self._at += 1
        if self._takes("("):  # of DECIMAL
            while not self._takes(")"):
                if self._here is None:
                    raise self._fault(") is missing")
                self._at += 1
        return found

    def _text(self, what: str) -> str:
        token = self._here
        if token is None or token.token_type is not TokenType.STRING:
            raise self._fault(f"{what} is followed by a text in quotes", hint=_FORM)
        self._at += 1
        return token.text

    def _number(self) -> int:
        token = self._here
        if token is None or not token.text.isdigit():
            raise self._fault("the number of a message should stand here")
        self._at += 1
        return int(token.text)

    def _fault(self, message: str, hint: str | None = None) -> SyntaxFault:
        token = self._here or self._tokens[-1]
        return SyntaxFault(message, span=Span(token.start, token.end + 1), hint=hint)


_FORM = "CREATE TEMPLATE name (field TYPE, ...) SUBJECT '...' TEXT '...'"
