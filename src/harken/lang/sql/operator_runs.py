"""Expressions with very many operators, found before they are parsed.

`1 + 1 + ... + 1` is a tree as deep as it has operators, and the time to read and to plan it grows
with the square of that. Nothing stops the parser, so a text is looked through first, which takes
time linear in its length.

Law: no expression of a text that passes has more operators in a row than the limit.
"""

from __future__ import annotations

import re

from harken.errors import SafetyFault, Span

_PIECE = re.compile(
    r"""(?P<skipped>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/)"""
    r"|(?P<opens>\()|(?P<closes>\))|(?P<ends>[,;])"
    r"|(?P<operator>\|\||[-+*/%&|^]|\b(?:AND|OR|WHEN|NOT)\b)",
    re.IGNORECASE | re.DOTALL,
)


def check(text: str, most: int) -> None:
    """Refuse a text with an expression of more operators in a row than this.

    >>> check("SELECT 1 + 2, f(3 + 4) + 5, '+++'", 2)
    >>> check("SELECT 1 + 2 + (3 + 4) + 5", 2)
    Traceback (most recent call last):
    harken.errors.SafetyFault: an expression has more than 2 operators in a row
    """
    outer: list[int] = []
    count = 0
    for piece in _PIECE.finditer(text):
        match piece.lastgroup:
            case "operator":
                count += 1
                if count > most:
                    raise SafetyFault(
                        f"an expression has more than {most:,} operators in a row",
                        code="too-complex",
                        span=Span(*piece.span()),
                        hint="write a list as IN (...), or store intermediate results; the "
                        "setting operator_limit is the limit",
                    )
            case "opens":
                outer.append(count)
                count = 0
            case "closes":
                count = outer.pop() if outer else 0
            case "ends":
                count = 0
