"""The same syntax tree with something changed in each of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from harken.errors import Span


def rebuild(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of nodes, each replaced by what `change` makes of it; what is inside comes first."""
    if isinstance(node, tuple):
        return tuple(rebuild(each, change) for each in node)
    if isinstance(node, Span) or not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {each.name: getattr(node, each.name) for each in fields(node)}
    made = {name: rebuild(part, change) for name, part in parts.items()}
    return change(replace(node, **made))


def placed(node: Any, span: Span) -> Any:
    """A tree that comes from another text, with this place in the present one."""
    return rebuild(node, lambda each: replace(each, span=span))
