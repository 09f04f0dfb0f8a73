"""Where a lake relation's rows come from, as the database file remembers it.

Law: a kind opens the same source from an equal place, in this session and in every later one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OWN = "own"
"""The kind of table that Harken itself writes; every other kind is read-only."""
UNWRITTEN = -1
"""The version of a table that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Place:
    """`version` is the version that is read; `commits` counts and numbers our own commits."""

    name: str
    path: str
    kind: str
    version: int = UNWRITTEN
    commits: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        return self.kind == OWN
