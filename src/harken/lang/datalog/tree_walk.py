"""Walking and rebuilding a syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def nodes(node: Any) -> Iterator[Any]:
    """A node and all nodes in it, those of aggregates too."""
    if isinstance(node, tuple):
        for each in node:
            yield from nodes(each)
    elif is_dataclass(node) and not isinstance(node, Span | type):
        yield node
        for part in fields(node):
            yield from nodes(getattr(node, part.name))


def with_span(node: Any, span: Span) -> Any:
    """A tree that comes from another text, with this place in the present one."""
    return rebuild(node, lambda each: replace(each, span=span))
