"""Statements of the same shape: a text with other constants of the same types in it."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from harken.lang.sql.statement_shapes import Piece, pieces

TEXTS = ("", "a", "b", "1", "2.5", "it's", "2024-01-02", "2024-02-30", "x" * 9)


def refilled(text: str, random: Random) -> str | None:
    """The same with other constants; None if the text has no shape."""
    found = pieces(text)
    return None if found is None else "; ".join(_filled(each, random) for each in found)


def with_parameters(text: str) -> tuple[str, list[Any]] | None:
    """The same with its constants as parameters, and their values."""
    found = pieces(text)
    if found is None or len(found) != 1:
        return None
    return _joined(found[0], ["?"] * len(found[0].constants)), list(found[0].constants)


def _filled(piece: Piece, random: Random) -> str:
    return _joined(piece, [_written(_other(each, random)) for each in piece.constants])


def _joined(piece: Piece, constants: list[str]) -> str:
    parts, left = [], piece.shape
    for constant in constants:
        before, _, left = left.partition("§")
        mark = left[:1] if left[:1] in ("i", "t") else _digits(left)
        left = left[len(mark) :]
        parts += [before, constant]
    return "".join([*parts, left])


def _digits(text: str) -> str:
    length = next((i for i, c in enumerate(text) if c not in "0123456789."), len(text))
    return text[:length]


def _other(value: Any, random: Random) -> Any:
    if random.randrange(3) == 0:
        return value
    if isinstance(value, str):
        return random.choice(TEXTS)
    if isinstance(value, Decimal):
        digits, exponent = len(value.as_tuple().digits), value.as_tuple().exponent
        return Decimal(random.randrange(10**digits)).scaleb(int(exponent))
    return random.choice((0, 1, 2, 3, random.randrange(100), 10**17, value + 1))


def _written(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
