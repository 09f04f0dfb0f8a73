"""Walking and rebuilding a syntax tree, whatever its nodes are.

A rebuilt tree equals the old one except for what `change` did. Nothing here recurses: a chain such
as `a + b + c` leans to the left, and may be longer than Python's stack is deep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from harken.errors import SafetyFault, Span
from harken.lang.amosql.syntax import Binary, Expression, Node

N = TypeVar("N", bound=Node)

# The engines take expressions that are 1000 levels deep, and most links become a level.
LONGEST_CHAIN = 900


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the node's fields."""
    for _, value in _parts(node):
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def descendants(node: Node) -> Iterator[tuple[Node, int]]:
    """The node and all below it, each before those below it and with its depth.

    The links of a chain are at one depth: whoever follows `chain` does not go deeper either.
    """
    waiting = [(node, 1)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        waiting += [(child, depth + (not _linked(found, child))) for child in children(found)]


def _linked(node: Node, child: Node) -> bool:
    return isinstance(node, Binary) and isinstance(child, Binary) and child is node.left


def chain(node: Binary, operators: Collection[str]) -> tuple[Expression, list[Binary]]:
    """The leftmost operand of a chain of these operators, and its links from left to right."""
    links = [node]
    first = node.left
    while isinstance(first, Binary) and first.operator in operators:
        links.append(first)
        first = first.left
    if len(links) > LONGEST_CHAIN:
        raise SafetyFault(
            f"more than {LONGEST_CHAIN} parts are joined by `{node.operator}`",
            code="too-complex",
            span=node.span,
            hint="keep the values in a `bag of` function, and use `in`, some(...) or sum(...)",
        )
    return first, links[::-1]


def rebuilt(node: N, change: Callable[[Node], Node]) -> N:
    """The tree with `change` made to each node, to those below it first."""
    made: dict[int, Any] = {}
    for found in reversed([found for found, _ in descendants(node)]):
        made[id(found)] = change(_with_children(found, made))
    return cast(N, made[id(node)])


def _with_children(node: Node, made: dict[int, Any]) -> Node:
    changes: dict[str, Any] = {}
    for name, value in _parts(node):
        if isinstance(value, Node):
            changes[name] = made[id(value)]
        elif isinstance(value, tuple):
            changes[name] = tuple(made[id(v)] if isinstance(v, Node) else v for v in value)
    return replace(node, **changes) if changes else node


def moved(node: N, offset: int) -> N:
    """The same tree with its spans `offset` further on."""

    def move(node: Node) -> Node:
        return replace(node, span=Span(node.span.start + offset, node.span.end + offset))

    return rebuilt(node, move) if offset else node


def _parts(node: Node) -> Iterator[tuple[str, Any]]:
    for part in fields(node):
        if part.name != "span":
            yield part.name, getattr(node, part.name)
