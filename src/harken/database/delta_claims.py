"""Claims on past changes: what is kept for consumers that have not seen them yet.

The thesis calls the changes that a consumer still needs its active delta zone (section 5.5.3); that
of a relation is the union of its consumers' zones. Each consumer keeps its own changes, so what
nobody needs is nowhere; a claim that is given up is a zone that ends.

Law: who loses a claim misses no change: the next thing it gets is the complete answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeltaClaim:
    holder: str
    """In words: `the monitor m of cheap`."""
    changes: int
    bytes: int
    since: float
    """When the holder had seen everything, in seconds of the Unix epoch."""
    give_up: Callable[[float], None]
    """In a transaction: forget the changes, or those before this moment."""
    is_active: bool = False
    """Does its holder make progress by itself, so that age is no reason to give up?"""


Claims = Callable[[Collection[str]], Iterable[DeltaClaim]]
"""The claims on changes of these views."""
