"""Expressions as text: a canonical form to compare them by, and a readable one for messages.

The text that sqlglot generates is no canonical form: for Spark it writes to_char(a, '999') as
CAST(a AS STRING), which means something else.
"""

from __future__ import annotations

from sqlglot import exp


def canonical_text(node: exp.Expr) -> str:
    """Equal for two expressions that mean the same in the same place. The case of names and
    parentheses do not matter.

    >>> from sqlglot import parse_one
    >>> spelling(parse_one("A + (b)")) == spelling(parse_one("a + B"))
    True
    >>> spelling(parse_one("'a'")) == spelling(parse_one("'A'"))
    False
    """
    return _spelled(node.unalias())


def as_written(node: exp.Expr) -> str:
    """The expression in Spark's syntax, for messages. sqlglot fails on some calls that lack an
    argument."""
    try:
        return node.sql("spark")
    except (AttributeError, KeyError, TypeError, ValueError):
        return f"{node.key.upper()}(...)"


def _spelled(plain: exp.Expr) -> str:
    while isinstance(plain, exp.Paren):
        plain = plain.this
    if isinstance(plain, exp.Identifier):
        return plain.name.lower()
    if isinstance(plain, exp.Literal):
        return repr(plain.this) if plain.is_string else str(plain.this)
    parts = [
        f"{key}={_part(value)}"
        for key, value in sorted(plain.args.items())
        if value is not None and value is not False and value != []
    ]
    return f"{type(plain).__name__}({', '.join(parts)})"


def _part(value: object) -> str:
    if isinstance(value, exp.Expr):
        return _spelled(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_part, value))}]"
    return repr(value)
