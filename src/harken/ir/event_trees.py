"""What joins the conditions of a content trigger, once each of them is a view.

A leaf is a view by its number in the trigger. It *happens* when it gains a row, and *holds* while
it has one. What joins leaves happens, and perhaps holds, depending on its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Length:
    """A number of units of time: 5 MINUTE."""

    amount: int
    unit: str


@dataclass(frozen=True, slots=True)
class Leaf:
    number: int


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Happens when one part happens while all others hold or happen."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class NotHolding:
    """Happens when the part no longer holds, and holds while it does not."""

    part: Tree


@dataclass(frozen=True, slots=True)
class InOrder:
    """Happens when the last part happens after all others have, in this order, since the last
    execution; all of them within a time."""

    parts: tuple[Tree, ...]
    within: Length | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """Happens when every part has happened since the last execution, in any order."""

    parts: tuple[Tree, ...]
    within: Length | None = None


@dataclass(frozen=True, slots=True)
class FirstOf:
    """Happens when any part does; its rows are those of the first that does."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Happens when the part has held for so long without a break; of a leaf, each of its rows."""

    part: Tree
    length: Length
    longer: bool
    """For more than the time, rather than for at least that."""


@dataclass(frozen=True, slots=True)
class Moving:
    """Happens when a value has only risen, or fallen, for so long. The leaf has its value last."""

    leaf: Leaf
    rising: bool
    length: Length


Tree: TypeAlias = Leaf | AtOnce | OneOf | NotHolding | InOrder | Collected | FirstOf | Held | Moving


def parts_of(tree: Tree) -> tuple[Tree, ...]:
    match tree:
        case AtOnce(parts) | OneOf(parts) | FirstOf(parts):
            return parts
        case InOrder(parts) | Collected(parts):
            return parts
        case NotHolding(part) | Held(part):
            return (part,)
        case Moving(leaf):
            return (leaf,)
    return ()


def waits(tree: Tree) -> bool:
    """Whether a tree asks for something that is to happen, or not, after a time."""
    absent = isinstance(tree, InOrder) and isinstance(tree.parts[-1], NotHolding)
    return absent or any(map(waits, parts_of(tree)))


def spans_checks(tree: Tree) -> bool:
    """Whether its parts may happen in different checks."""
    return isinstance(tree, InOrder | Collected) or any(map(spans_checks, parts_of(tree)))
