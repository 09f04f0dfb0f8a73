"""What tells two expressions apart: all that they are made of.

The text that sqlglot would write does not: it has one spelling for what it takes to be the same in
Spark, and to_char(a, '999') is not CAST(a AS STRING).
"""

from __future__ import annotations

from sqlglot import exp


def canonical_text(node: exp.Expr) -> str:
    """The same for two expressions that mean the same wherever both can stand. Names differ in case
    only, and parentheses say nothing.

    >>> from sqlglot import parse_one
    >>> spelling(parse_one("A + (b)")) == spelling(parse_one("a + B"))
    True
    >>> spelling(parse_one("'a'")) == spelling(parse_one("'A'"))
    False
    """
    return _spelled(node.unalias())


def as_written(node: exp.Expr) -> str:
    """As Spark would write it, for people. sqlglot trips over some calls that lack an argument."""
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
