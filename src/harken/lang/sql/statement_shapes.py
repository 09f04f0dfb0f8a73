"""The shape of a statement: its text with the constants replaced by their types, found without
parsing.

`SELECT a FROM t WHERE b = 5` and `... WHERE b = 7` have the same shape. Whole numbers, decimals and
texts in single quotes are replaced; other constants stay in the shape.

Law: two statements with the same shape have the same syntax tree, except for those constants. A
text for which that is not certain, such as one with a comment or a backslash, has no shape.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

LONGEST = 20_000
"""The length in characters of the longest text that is given a shape: a longer one is unlikely to
repeat."""
DIGITS = 18
"""Whole numbers with more digits stay in the shape: they may not fit in 64 bits."""

Constants = tuple[int | Decimal | str, ...]


class Piece(NamedTuple):
    """One statement of a text. `starts` are the positions of its constants in the text."""

    start: int
    end: int
    shape: str
    constants: Constants
    starts: tuple[int, ...]


_TOKEN = re.compile(
    r"""
      (?P<blank>\s+)
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*(?!['"`]))
    | (?P<text>'(?:[^'\\]|'')*'(?!\s*['"]))
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?![A-Za-z_0-9.'"`]))
    | (?P<quoted>`[^`]*`|"[^"\\]*"(?!\s*['"]))
    | (?P<semicolon>;)
    | (?P<sign>[(),=<>*+?:!|%]|\.(?![0-9])|-(?!-)|/(?!\*))
    """,
    re.VERBOSE | re.ASCII,
)


_UNUSUAL = re.compile(r"""["`\\;#$@&^~{}\[\]§]|--|/\*|[^\x00-\x7f]""")
"""Characters that need the full scanner: anything but words, numbers, operators and texts in single
quotes."""
_CONSTANT = re.compile(
    r"(?<![A-Za-z_0-9])'(?:[^']|'')*'|(?<![A-Za-z_0-9.])[0-9]+(?:\.[0-9]+)?(?![A-Za-z_0-9.'])"
)


def pieces(text: str) -> list[Piece] | None:
    """The statements of a text; None if it cannot be cut with certainty.

    >>> [(each.shape, each.constants) for each in pieces("SELECT 5; DELETE FROM t WHERE n = 'a'")]
    [('SELECT §i', (5,)), ('DELETE FROM t WHERE n = §t', ('a',))]
    >>> pieces("SELECT 5 -- five")
    """
    if len(text) > LONGEST:
        return None
    if not _UNUSUAL.search(text) and (piece := _one(text)) is not None:
        return [piece]
    return _pieces(text)


def _one(text: str) -> Piece | None:
    """The shape of a text that is one simple statement, found by its constants alone; None if it
    needs the full scanner."""
    if text[:1].isspace():
        return None
    parts: list[str] = []
    constants: list[int | Decimal | str] = []
    starts: list[int] = []
    at = 0
    for token in _CONSTANT.finditer(text):
        start, end = token.span()
        before = text[at:start]
        if "'" in before or (parts and not before.strip()):
            return None
        value, mark = _constant(token[0])
        if mark:
            starts.append(start)
            constants.append(value)
            parts += (before, mark)
        else:
            parts += (before, token[0])
        at = end
    rest = text[at:].rstrip()
    if "'" in rest or not (rest or parts):
        return None
    parts.append(rest)
    end = at + len(rest)
    return Piece(0, end, "".join(parts), tuple(constants), tuple(starts))


def _pieces(text: str) -> list[Piece] | None:
    found: list[Piece] = []
    parts: list[str] = []
    constants: list[int | Decimal | str] = []
    starts: list[int] = []
    at, first, last = 0, -1, 0
    match = _TOKEN.match
    end = len(text)
    while at < end:
        token = match(text, at)
        if token is None:
            return None
        kind, at = token.lastgroup, token.end()
        if kind == "blank":
            if first >= 0:
                parts.append(token[0])
            continue
        if kind == "semicolon":
            if first >= 0:
                found.append(_piece(first, last, parts, constants, starts))
            parts, constants, starts, first = [], [], [], -1
            continue
        if first < 0:
            first = token.start()
        last = at
        if kind == "number" or kind == "text":
            value, mark = _constant(token[0])
            if mark:
                starts.append(token.start())
                constants.append(value)
                parts.append(mark)
                continue
        parts.append(token[0])
    if first >= 0:
        found.append(_piece(first, last, parts, constants, starts))
    return found


def _piece(
    first: int,
    last: int,
    parts: list[str],
    constants: list[int | Decimal | str],
    starts: list[int],
) -> Piece:
    return Piece(first, last, "".join(parts).rstrip(), tuple(constants), tuple(starts))


def _constant(text: str) -> tuple[int | Decimal | str, str]:
    """The value of a constant and its placeholder in the shape: the type, for a decimal with its
    digits. Empty if the constant stays."""
    if text[0] == "'":
        return text[1:-1].replace("''", "'"), "§t"
    if text[0] == "0" and text[1:2].isdigit():
        return text, ""  # the column of SELECT 007 is called 007
    if text.isdigit():
        return (int(text), "§i") if len(text) <= DIGITS else (text, "")
    if len(text) > DIGITS:
        return text, ""
    whole, _, part = text.partition(".")
    return Decimal(text), f"§{len(whole.lstrip('0'))}.{len(part)}"
