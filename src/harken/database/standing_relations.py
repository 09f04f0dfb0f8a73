"""Relations of Harken's own that users read, such as `continual_query`: there for whoever asks.

A file has them from the first row on that is written to them, or the first time that somebody names
them; so a session that never does pays nothing.

Law: a name that is registered here can be read in every session that may write the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harken.database.catalog import Catalog

_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class StandingRelations:
    catalog: Catalog
    can_write: bool
    _declare: dict[str, Callable[[], object]] = field(default_factory=dict)

    def register(self, name: str, declare: Callable[[], object]) -> None:
        """`declare` creates the relation, in a transaction, if it does not exist."""
        self._declare[name] = declare

    def missing(self, text: str) -> list[str]:
        """Those that a text may name and that do not exist yet."""
        if not self.can_write:
            return []
        text = text.lower()
        named = [name for name in self._declare if name in text]
        words = set(_WORD.findall(text)) if named else ()
        return [name for name in named if name in words and not self.catalog.named(name)]

    def declare(self, names: list[str]) -> None:
        """In a transaction."""
        for name in names:
            self._declare[name]()
