"""The words of a clause, each with its place, and a reader that goes through them.

The clauses of a continual query are read word by word; conditions and queries in them are cut out
as text. A word is a name, a number, a text in quotes, or a sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harken.errors import Span, SyntaxFault, offered

_WORD = re.compile(
    r"""
      (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<quoted>`[^`]*`)
    | (?P<number>\d+(?:\.\d+)?(?![A-Za-z_\d]))
    | (?P<name>[A-Za-z_\u0080-\U0010ffff\d][A-Za-z_\d\u0080-\U0010ffff]*%?)
    | (?P<sign>&&|<=|>=|<>|!=|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)


DIGITS = 18
"""Whole numbers with more digits may not fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class Word:
    kind: str
    """`text`, `quoted`, `number`, `name` or `sign`."""
    text: str
    """As it is written."""
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "name" else self.text

    @property
    def whole(self) -> int | None:
        """A whole number; one with more digits than any limit allows counts as the largest."""
        if self.kind != "number" or not self.text.isdigit():
            return None
        return int(self.text) if len(self.text) <= DIGITS else 10**DIGITS

    @property
    def value(self) -> str:
        """What a text in quotes, or a name, says."""
        if self.kind not in ("text", "quoted"):
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def words_of(text: str) -> list[Word]:
    """
    >>> [each.text for each in words_of("EVERY 2 WEEKS AT '08:00' -- early")]
    ['EVERY', '2', 'WEEKS', 'AT', "'08:00'"]
    """
    found = []
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        if kind == "sign" and match[0] in "'\"`":
            raise SyntaxFault(
                "a text is not closed",
                code="syntax",
                span=Span(match.start(), len(text)),
                hint="a quote inside of a text is written twice: 'it''s'",
            )
        if kind != "blank":
            found.append(Word(kind, match[0], match.start(), match.end()))
    return found


def quoted(text: str) -> str:
    """
    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


class Reader:
    """Goes through the words of a text. `base` is where the text starts in its statement, for the
    places of errors."""

    def __init__(self, text: str, base: int = 0) -> None:
        self.text, self.base = text, base
        self.words = words_of(text)
        self.at = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.words)

    @property
    def word(self) -> Word | None:
        return None if self.is_done else self.words[self.at]

    def sees(self, *upper: str) -> bool:
        """Whether the next words are these."""
        here = self.words[self.at : self.at + len(upper)]
        return len(here) == len(upper) and all(
            each.upper == name for each, name in zip(here, upper, strict=True)
        )

    def takes(self, *upper: str) -> bool:
        """Go past these words, if they are next."""
        if not self.sees(*upper):
            return False
        self.at += len(upper)
        return True

    def takes_one(self, choices: Iterable[str]) -> str | None:
        """Go past one of these words, if one is next."""
        word = self.word
        if word is None or word.upper not in choices:
            return None
        self.at += 1
        return word.upper

    def takes_kind(self, *kinds: str) -> Word | None:
        word = self.word
        if word is None or word.kind not in kinds:
            return None
        self.at += 1
        return word

    def need(self, *upper: str) -> None:
        if not self.takes(*upper):
            raise self.fault(f"{' '.join(upper)} is missing")

    def need_text(self, what: str) -> str:
        found = self.takes_kind("text")
        if found is None:
            raise self.fault(f"{what} is missing", hint="write it in single quotes")
        return found.value

    def need_name(self, what: str) -> str:
        found = self.takes_kind("name", "quoted")
        if found is None:
            raise self.fault(f"{what} is missing")
        return found.value

    def need_whole(self, what: str) -> int:
        found = self.takes_kind("number")
        whole = None if found is None else found.whole
        if whole is None:
            self.at -= found is not None
            raise self.fault(f"{what} is missing", hint="write a whole number")
        return whole

    def takes_pattern(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past what a pattern matches here, which may be several words."""
        if self.is_done:
            return None
        found = pattern.match(self.text, self.words[self.at].start)
        if found is not None:
            while not self.is_done and self.words[self.at].start < found.end():
                self.at += 1
        return found

    def rest(self) -> tuple[str, int]:
        """The text of all words that are left, and where it starts in the statement."""
        start = self.words[self.at].start if not self.is_done else len(self.text)
        self.at = len(self.words)
        return self.text[start:].strip(), self.base + start

    def between(self, start: int, end: int) -> str:
        """The text of some words, as it is written."""
        words = self.words[start:end]
        return self.text[words[0].start : words[-1].end] if words else ""

    def need_end(self, what: str) -> None:
        word = self.word
        if word is not None:
            raise self.fault(f"{word.text} cannot stand here", hint=f"{what} ends before it")

    def fault(self, message: str, hint: str | None = None, word: Word | None = None) -> SyntaxFault:
        """An error at the next word, or after the last."""
        place = word or self.word
        if place is not None:
            span = Span(self.base + place.start, self.base + place.end)
        else:
            end = self.words[-1].end if self.words else 0
            span = Span(self.base + max(0, end - 1), self.base + max(1, end))
        return SyntaxFault(message, code="syntax", span=span, hint=hint)

    def unknown(self, what: str, choices: Iterable[str]) -> SyntaxFault:
        """An error about a word that is none of these."""
        word = self.word
        if word is None:
            return self.fault(f"{what} is missing", hint=f"one of {', '.join(choices)}")
        hint = offered(word.upper, list(choices), "words")
        return self.fault(f"{word.text} is no {what}", hint=hint)


def depths(words: list[Word]) -> list[int]:
    """How many parentheses are open before each word."""
    found, depth = [], 0
    for word in words:
        if word.kind == "sign" and word.text in ")]":
            depth -= 1
        found.append(depth)
        if word.kind == "sign" and word.text in "([":
            depth += 1
    return found
