"""Walking and rebuilding a syntax tree, whatever its nodes are.

A rebuilt tree equals the old one except for what `change` did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from harken.errors import Span
from harken.lang.amosql.syntax import Node

N = TypeVar("N", bound=Node)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the node's fields."""
    for _, value in _parts(node):
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def descendants(node: Node) -> Iterator[tuple[Node, int]]:
    """The node and all below it, each with its depth; not by recursion, so of any depth."""
    waiting = [(node, 1)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        waiting += [(child, depth + 1) for child in children(found)]


def rebuilt(node: N, change: Callable[[Node], Node]) -> N:
    """The node with `change` made to each node directly below it."""
    changes: dict[str, Any] = {}
    for name, value in _parts(node):
        if isinstance(value, Node):
            changes[name] = change(value)
        elif isinstance(value, tuple):
            changes[name] = tuple(change(v) if isinstance(v, Node) else v for v in value)
    return replace(node, **changes) if changes else node


def moved(node: N, offset: int) -> N:
    """The same tree with its spans `offset` further on."""
    if offset == 0:
        return node
    span = Span(node.span.start + offset, node.span.end + offset)
    return replace(rebuilt(node, lambda child: moved(child, offset)), span=span)


def _parts(node: Node) -> Iterator[tuple[str, Any]]:
    for part in fields(node):
        if part.name != "span":
            yield part.name, getattr(node, part.name)
