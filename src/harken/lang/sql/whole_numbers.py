"""Whole numbers that the text states, as literals or as arithmetic over literals."""

from __future__ import annotations

from sqlglot import exp


def whole_number(node: exp.Expr) -> int | None:
    """The value of an expression of whole numbers; None if it is another one."""
    if isinstance(node, exp.Literal):
        return int(node.this) if node.this.isdigit() and not node.is_string else None
    if isinstance(node, exp.Cast) and node.to.this in (exp.DType.INT, exp.DType.BIGINT):
        return whole_number(node.this)
    if isinstance(node, exp.Paren | exp.Neg):
        inside = whole_number(node.this)
        return -inside if inside is not None and isinstance(node, exp.Neg) else inside
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return None
    left, right = whole_number(node.left), whole_number(node.right)
    if left is None or right is None:
        return None
    match node:
        case exp.Add():
            return left + right
        case exp.Sub():
            return left - right
    return left * right
