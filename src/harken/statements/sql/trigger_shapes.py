"""Triggers that differ in constants only are compiled once.

The words of a trigger, without its constants, are its shape. If the first trigger of a shape has
lifted a constant, the next one brings its own; constants that stayed in the condition must be the
same ones.

Law: a trigger compiled by its shape is the trigger compiled by itself.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from harken.continual.trigger_conditions import CompiledTrigger
from harken.database.catalog import Catalog
from harken.lang.continual.row_tests import tokens_of
from harken.values.encoding import encoder
from harken.values.types import INTEGER, TEXT, Type

Places: TypeAlias = tuple[tuple[int | None, Type], ...]
"""Where the constants of a leaf stand in the text, and their types."""
Compile: TypeAlias = Callable[[str, str], tuple[CompiledTrigger, list[Places]]]
MOST_SHAPES = 2_000
"""How many shapes a session keeps compiled."""
_LITERALS = (TokenType.NUMBER, TokenType.STRING)


@dataclass(frozen=True, slots=True)
class _Shape:
    trigger: CompiledTrigger
    taken: tuple[tuple[tuple[int, Type], ...], ...]
    """For each leaf the constants that it takes: the number of the word, and the type."""
    fixed: tuple[tuple[int, str], ...]
    """The constants that stayed in the condition."""

    def fits(self, words: Sequence[Token]) -> bool:
        return all(words[place].text == text for place, text in self.fixed)

    def given(self, words: Sequence[Token]) -> CompiledTrigger | None:
        """The trigger with the constants of these words; None if one of them is special."""
        leaves = []
        for leaf, taken in zip(self.trigger.leaves, self.taken, strict=True):
            values = [_value(words, place, type_) for place, type_ in taken]
            if any(each is None for each in values):
                return None
            leaves.append(replace(leaf, constants=tuple(values)))
        return replace(self.trigger, leaves=tuple(leaves))


class TriggerShapes:
    def __init__(self, catalog: Catalog, compile: Compile) -> None:
        self._catalog = catalog
        self._compile = compile
        self._shapes: dict[tuple[Any, ...], list[_Shape]] = {}
        self._epoch = -1

    def compile(self, text: str, query: str) -> CompiledTrigger:
        if self._epoch != self._catalog.epoch or len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
            self._epoch = self._catalog.epoch
        words = tokens_of(text)
        key = _without_literals(words), _without_literals(tokens_of(query))
        for each in self._shapes.get(key, ()):
            if each.fits(words) and (found := each.given(words)) is not None:
                return found
        trigger, places = self._compile(text, query)
        shape = _shape_of(trigger, places, words)
        if shape is not None:
            self._shapes.setdefault(key, []).append(shape)
        return trigger


def _without_literals(words: Sequence[Token]) -> tuple[Any, ...]:
    return tuple(
        each.token_type if each.token_type in _LITERALS else (each.token_type, each.text)
        for each in words
    )


def _shape_of(
    trigger: CompiledTrigger, places: Sequence[Places], words: Sequence[Token]
) -> _Shape | None:
    numbers = {each.start: i for i, each in enumerate(words) if each.token_type in _LITERALS}
    taken: list[tuple[tuple[int, Type], ...]] = []
    for leaf in places:
        if any(start not in numbers for start, _ in leaf):
            return None
        taken.append(tuple((numbers[start], t) for start, t in leaf if start is not None))
    lifted = {place for leaf in taken for place, _ in leaf}
    fixed = [(i, words[i].text) for i in numbers.values() if i not in lifted]
    return _Shape(trigger, tuple(taken), tuple(fixed))


def _value(words: Sequence[Token], place: int, type_: Type) -> Any:
    """The stored value of a constant; None if it must be looked at by itself."""
    word = words[place]
    if type_ == TEXT:
        return encoder(TEXT)(word.text) if word.token_type is TokenType.STRING else None
    if word.token_type is not TokenType.NUMBER:
        return None
    try:
        value = decimal.Decimal(word.text)
    except decimal.InvalidOperation:
        return None
    if not value or (type_ == INTEGER and (not word.text.isdigit() or value >= 2**63)):
        return None
    if place and words[place - 1].text == "-":
        value = -value
    return encoder(type_)(int(value) if type_ == INTEGER else float(value))
