"""Matching texts against patterns in bounded time.

A pattern has two forms. The linear one runs on RE2, whose time is linear in the text whatever the
pattern. What RE2 cannot say (backreferences, lookaround, possessive repetition) runs on a
backtracking engine that is stopped after `BACKTRACKING_SECONDS`.

Law: both forms give the same answer. RE2 decides whether there is a match; it also says where only
if `exact`: in a loop over something that may be empty, backtracking engines choose other groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import re2
import regex

from harken import limits
from harken.errors import LimitFault
from harken.values.pattern_size import shown

BACKTRACKING_SECONDS = 1.0
"""How long one search by backtracking may take. Ordinary searches take microseconds."""
LINEAR_BYTES = 4 * 2**20
"""Memory for one compiled RE2 pattern; RE2 has 8 MiB by default, but we keep up to 128 of them."""
END = "\0"
"""Stands in a linear form for Java's `$`. Literal characters are written as codes, so no pattern
contains it otherwise."""
LINE_ENDS = ("\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029")
LAST_CHARACTERS = frozenset("\n\r\u0085\u2028\u2029")
NEVER = "\U0010ffff"
"""A code that Unicode gives to no character. A linear form may have it where it does no harm, so
texts that have it are left to the other engine."""
NOWHERE = (-1, -1)


@dataclass(frozen=True, slots=True)
class Match:
    """A match in a text. Group 0 is all of it; a group that took no part is None."""

    text: str
    spans: Sequence[tuple[int, int]]
    names: Mapping[str, int]

    def __getitem__(self, group: int | str) -> str | None:
        number = self.names[group] if isinstance(group, str) else group
        start, end = self.spans[number]
        return None if start < 0 else self.text[start:end]

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[0][1]


@dataclass(slots=True)
class Pattern:
    """`linear` is None if RE2 cannot do it. `own` says which of its groups are the pattern's: each
    END brings one more, which marks where it stands."""

    source: str
    backtracking: Any
    linear: str | None = None
    exact: bool = True
    own: Sequence[bool] = ()
    groups: int = field(init=False)
    names: Mapping[str, int] = field(init=False)
    _has_end: bool = field(init=False)
    _linear: dict[tuple[str, bool], Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.groups = self.backtracking.groups
        self.names = dict(self.backtracking.groupindex)
        self._has_end = END in (self.linear or "")

    @property
    def is_linear(self) -> bool:
        return self.linear is not None

    @property
    def is_exact(self) -> bool:
        """Does RE2 also say where the match and its groups are?"""
        return self.linear is not None and self.exact

    def found_in(self, text: str) -> bool:
        """Is there a match anywhere in the text?"""
        if self.linear is None or NEVER in text:
            return self._backtrack("search", text) is not None
        line_end = _line_end(text) if self._has_end else ""
        return self._compiled(line_end, False).search(text.encode()) is not None

    def matches(self, text: str) -> bool:
        """Does all of the text match?"""
        if self.linear is None or NEVER in text:
            return self._backtrack("fullmatch", text) is not None
        return self._compiled("", False).fullmatch(text.encode()) is not None

    def fullmatch(self, text: str) -> Match | None:
        """All of the text as a match, with its groups; always by backtracking."""
        found = self._backtrack("fullmatch", text)
        if found is None:
            return None
        return Match(text, [found.span(number) for number in range(self.groups + 1)], self.names)

    def search(self, text: str) -> Match | None:
        """The first match."""
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[Match]:
        """All matches, one after the other."""
        if self.is_exact and NEVER not in text:
            return self._find_linearly(text)
        return self._find_backtracking(text)

    def _find_linearly(self, text: str) -> Iterator[Match]:
        line_end = _line_end(text) if self._has_end else ""
        wanted, encoded = self._compiled(line_end, True), text.encode()
        groups = range((len(self.own) if line_end else self.groups) + 1)
        places = _Places(encoded, text.isascii())
        place = 0
        while place <= len(encoded):
            limits.check()
            found = wanted.search(encoded, place)
            if found is None:
                return
            spans = [found.span(number) for number in groups]
            if line_end:
                spans = self._without_marks(spans)
            start, place = spans[0]
            yield Match(text, [places.of_characters(span) for span in spans], self.names)
            if place == start:
                place = places.next(place)

    def _without_marks(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """A `$` before the line end at the end of the text is where the match ends."""
        marked = [span for span, own in zip(spans[1:], self.own, strict=True) if not own]
        end = next((span[0] for span in marked if span != NOWHERE), spans[0][1])
        kept = [spans[0], *(span for span, own in zip(spans[1:], self.own, strict=True) if own)]
        return [(start, min(stop, end)) for start, stop in kept]

    def _find_backtracking(self, text: str) -> Iterator[Match]:
        place = 0
        while place <= len(text):
            limits.check()
            found = self._backtrack("search", text, place)
            if found is None:
                return
            spans = [found.span(number) for number in range(self.groups + 1)]
            yield Match(text, spans, self.names)
            place = found.end() + (found.end() == found.start())

    def _backtrack(self, verb: str, text: str, place: int = 0) -> Any:
        try:
            return getattr(self.backtracking, verb)(
                text, place, timeout=BACKTRACKING_SECONDS, concurrent=True
            )
        except TimeoutError:
            raise _too_slow(self.source) from None

    def _compiled(self, line_end: str, groups: bool) -> Any:
        known = self._linear.get((line_end, groups))
        if known is None:
            known = self._linear[line_end, groups] = compile_linear(self._text(line_end), groups)
        return known

    def _text(self, line_end: str) -> str:
        """RE2 cannot look ahead, but we can: the text ends in this line end, or in none."""
        assert self.linear is not None
        before = f"(?:(){escaped(line_end)}\\z|\\z)" if line_end else "\\z"
        return self.linear.replace(END, before)


class _Places:
    """Where the bytes of a text are among its characters. It goes through the text once."""

    def __init__(self, encoded: bytes, is_ascii: bool) -> None:
        self._encoded, self._is_ascii = encoded, is_ascii
        self._byte = self._character = 0

    def of_characters(self, span: tuple[int, int]) -> tuple[int, int]:
        if self._is_ascii or span == NOWHERE:
            return span
        return self._of(span[0]), self._of(span[1])

    def _of(self, byte: int) -> int:
        if byte < self._byte:  # a group begins before the end of another
            between = self._encoded[byte : self._byte].decode()
            return self._character - len(between)
        self._character += len(self._encoded[self._byte : byte].decode())
        self._byte = byte
        return self._character

    def next(self, byte: int) -> int:
        """The start of the next character."""
        byte += 1
        while byte < len(self._encoded) and self._encoded[byte] & 0xC0 == 0x80:
            byte += 1
        return byte


def compile_linear(text: str, groups: bool = True) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = LINEAR_BYTES
    options.never_capture = not groups
    return re2.compile(text, options)


def compile_backtracking(text: str, flags: int = 0) -> Any:
    """Its size must have been checked, for the engine copies what is repeated."""
    return regex.compile(text, flags | regex.VERSION0)


def escaped(text: str) -> str:
    """Characters as codes, which mean themselves wherever they stand in a pattern of RE2.

    >>> escaped("a]")
    '\\\\x{61}\\\\x{5d}'
    """
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)


def can_be_linear(text: str) -> bool:
    """RE2 refuses what is too large for it, too."""
    try:
        compile_linear(text.replace(END, "()\\z"))
    except (re2.error, UnicodeEncodeError):
        return False
    return True


def _line_end(text: str) -> str:
    """The line end at the end of a text."""
    if text[-1:] not in LAST_CHARACTERS:
        return ""
    return next((each for each in LINE_ENDS if text.endswith(each)), "")


def _too_slow(pattern: str) -> LimitFault:
    return LimitFault(
        f"the pattern '{shown(pattern)}' takes too long on a text",
        code="timeout",
        hint="without backreferences, lookaround and possessive repetition it takes linear time",
    )
