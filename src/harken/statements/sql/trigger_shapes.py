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
from harken.lang.sql.statement_shapes import pieces
from harken.values.encoding import encoder
from harken.values.types import INTEGER, TEXT, Type

Places: TypeAlias = tuple[tuple[int | None, Type], ...]
"""Where the constants of a leaf stand in the text, and their types."""
Compile: TypeAlias = Callable[[str, str], tuple[CompiledTrigger, list[Places]]]
MOST_SHAPES = 2_000
"""How many shapes a session keeps compiled."""
_LITERALS = (TokenType.NUMBER, TokenType.STRING)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as it is written, and whether it stands behind a minus sign."""

    text: str
    is_text: bool
    is_negative: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    trigger: CompiledTrigger
    taken: tuple[tuple[tuple[int, Type], ...], ...]
    """For each leaf the constants that it takes: their numbers, and types."""
    fixed: tuple[tuple[int, str], ...]
    """The constants that stayed in the condition."""

    def fits(self, literals: Sequence[Literal]) -> bool:
        return all(literals[number].text == text for number, text in self.fixed)

    def given(self, literals: Sequence[Literal]) -> CompiledTrigger | None:
        """The trigger with these constants; None if one of them is special."""
        leaves = []
        for leaf, taken in zip(self.trigger.leaves, self.taken, strict=True):
            values = [_value(literals[number], type_) for number, type_ in taken]
            if any(each is None for each in values):
                return None
            leaves.append(replace(leaf, constants=tuple(values)))
        return replace(self.trigger, leaves=tuple(leaves))


class TriggerShapes:
    """`compiled` counts how often a trigger was compiled."""

    def __init__(self, catalog: Catalog, compile: Compile) -> None:
        self._catalog = catalog
        self._compile = compile
        self._shapes: dict[tuple[Any, ...], list[_Shape]] = {}
        self._epoch = -1
        self.compiled = 0

    def compile(self, text: str, query: str) -> CompiledTrigger:
        if self._epoch != self._catalog.epoch or len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
            self._epoch = self._catalog.epoch
        words, literals = _scanned(text)
        key = words, _scanned(query)[0]
        for each in self._shapes.get(key, ()):
            if each.fits(literals) and (found := each.given(literals)) is not None:
                return found
        trigger, places = self._compile(text, query)
        self.compiled += 1
        shape = _shape_of(trigger, places, tokens_of(text), literals)
        if shape is not None:
            self._shapes.setdefault(key, []).append(shape)
        return trigger


def _scanned(text: str) -> tuple[Any, list[Literal]]:
    """A text without its constants, and the constants: found without the full scanner, if the text
    is simple."""
    cut = pieces(text)
    if cut is not None and len(cut) == 1:
        shape, constants = cut[0].shape, cut[0].constants
        signs = [each.rstrip().endswith("-") for each in shape.split("§")[:-1]]
        return shape, [
            Literal(each if isinstance(each, str) else f"{each}", isinstance(each, str), sign)
            for each, sign in zip(constants, signs, strict=True)
        ]
    words = tokens_of(text)
    found = [
        Literal(
            each.text,
            each.token_type is TokenType.STRING,
            bool(i) and words[i - 1].text == "-",
        )
        for i, each in enumerate(words)
        if each.token_type in _LITERALS
    ]
    return _without_literals(words), found


def _without_literals(words: Sequence[Token]) -> tuple[Any, ...]:
    return tuple(
        each.token_type if each.token_type in _LITERALS else (each.token_type, each.text)
        for each in words
    )


def _shape_of(
    trigger: CompiledTrigger,
    places: Sequence[Places],
    words: Sequence[Token],
    literals: Sequence[Literal],
) -> _Shape | None:
    starts = [each.start for each in words if each.token_type in _LITERALS]
    if len(starts) != len(literals):
        return None
    numbers = {start: number for number, start in enumerate(starts)}
    taken: list[tuple[tuple[int, Type], ...]] = []
    for leaf in places:
        if any(start not in numbers for start, _ in leaf):
            return None
        taken.append(tuple((numbers[start], t) for start, t in leaf if start is not None))
    lifted = {number for leaf in taken for number, _ in leaf}
    fixed = [(i, each.text) for i, each in enumerate(literals) if i not in lifted]
    return _Shape(trigger, tuple(taken), tuple(fixed))


def _value(literal: Literal, type_: Type) -> Any:
    """The stored value of a constant; None if it must be looked at by itself."""
    if type_ == TEXT:
        return encoder(TEXT)(literal.text) if literal.is_text else None
    if literal.is_text:
        return None
    try:
        value = decimal.Decimal(literal.text)
    except decimal.InvalidOperation:
        return None
    if not value or (type_ == INTEGER and (not literal.text.isdigit() or value >= 2**63)):
        return None
    if literal.is_negative:
        value = -value
    return encoder(type_)(int(value) if type_ == INTEGER else float(value))
