"""The columns and the key of what is watched, for the changes that clients get.

Law: they are those of the function as the catalog is now; a change of the schema forgets them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.consumers.monitors.restriction import Conditions
from harken.consumers.monitors.view import Watched
from harken.database.catalog import Catalog
from harken.database.changes import NO_SHAPE, RowShape


@dataclass(slots=True)
class RowShapes:
    catalog: Catalog
    conditions: Conditions
    _epoch: int = -1
    _known: dict[str, RowShape] = field(default_factory=dict)

    def of(self, watched: Watched) -> RowShape:
        if self._epoch != self.catalog.epoch:
            self._known.clear()
            self._epoch = self.catalog.epoch
        found = self._known.get(watched.function)
        if found is None:
            found = self._known[watched.function] = self._find(watched)
        return found

    def _find(self, watched: Watched) -> RowShape:
        if not self.catalog.has_function(watched.function):
            return NO_SHAPE
        function = self.catalog.function(watched.function)
        key = None if function.relation is None else function.relation.key
        return RowShape(self.conditions.columns(function), key)
