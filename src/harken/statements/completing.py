"""What a language is asked when someone who types presses Tab: the place, and what is there.

A language answers with kinds of names, the likeliest first; whoever shows them picks those that
begin like the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Candidates: TypeAlias = Iterator[tuple[str, Iterable[str]]]
"""Kinds of names, each with the names; those of the kind `keyword` take the letters of the word."""


@dataclass(frozen=True, slots=True)
class Place:
    """`word` is what is being typed, with the `.`, `:` or `\\` that it begins with; `before` stands
    before it, and `text` is all that was typed."""

    word: str
    before: str
    text: str

    @property
    def begins(self) -> bool:
        """Is this the first word?"""
        return not self.before.strip()


class KnownNames(Protocol):
    """The names of a session."""

    def tables(self) -> Mapping[str, Sequence[str]]:
        """The columns of each table and view."""

    def functions(self) -> Iterable[str]: ...

    def types(self) -> Iterable[str]: ...

    def variables(self) -> Iterable[str]:
        """Interface variables, without their colon."""
