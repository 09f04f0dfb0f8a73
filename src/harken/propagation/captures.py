"""The changes of stored relations, captured as they happen.

While a view depends on a stored relation, the relation has a Δ-set, filled by triggers on its table
or by the code that changes it. A mark says that the relation has changed, and whether any change
passed the screener.

Law: a Δ-set is the difference between the relation now and when the Δ-set was last settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from harken.engines.protocol import CapturedDelta, Engine, LargeChange
from harken.ir.relations import Relation
from harken.planner.screen import Screener
from harken.values.rows import Row


class Captures:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by_name: dict[str, CapturedDelta] = {}

    def __len__(self) -> int:
        return len(self.by_name)

    def names(self) -> list[str]:
        return list(self.by_name)

    def relation(self, name: str) -> Relation | None:
        capture = self.by_name.get(name)
        return None if capture is None else capture.relation

    def exists(self, name: str) -> bool:
        """Whether the relation still exists."""
        relation = self.by_name[name].relation
        return self._engine.exists(relation) or self._engine.exists_temporary(relation)

    # --- capturing changes -----------------------------------------------------------------

    def is_of_another(self, relation: Relation) -> bool:
        """Whether a table of this name with other columns is captured. Views over the old table are
        replaced one after another."""
        capture = self.by_name.get(relation.id)
        return capture is not None and capture.relation != relation

    def capture(self, relation: Relation, *, reported: bool) -> None:
        """Capture the changes of a relation; it may have been captured earlier in the transaction.
        Changes of a relation that is `reported` arrive through `note_rows`."""
        idle = self.by_name.get(relation.id)
        if idle is not None and (idle.relation != relation or idle.is_reported != reported):
            idle.unwatch()
            idle = None
        if idle is None:
            self.by_name[relation.id] = self._engine.capture.watch(relation, reported=reported)
        else:
            idle.capture()

    def is_reported(self, name: str) -> bool:
        """Whether the changes of a captured relation are reported by the code that makes them, not
        by triggers."""
        return self.by_name[name].is_reported

    def capture_again(self, names: Iterable[str]) -> None:
        """A rollback may have removed triggers: create them again."""
        for name in names:
            self.by_name[name].capture()

    def release(self, name: str) -> None:
        self.by_name.pop(name).unwatch()

    def screener(self, name: str) -> Screener:
        return self.by_name[name].screener

    def screen(self, name: str, screener: Screener) -> None:
        self.by_name[name].screen(screener)

    def note_rows(self, relation: Relation, before: list[Row], after: list[Row]) -> None:
        """Report a change of a relation that has no triggers."""
        capture = self.by_name.get(relation.id)
        if capture is not None and capture.is_reported:
            capture.note([*((*row, -1) for row in before), *((*row, 1) for row in after)])

    def note_changes(self, name: str, rows: list[Row]) -> None:
        """Report changes made elsewhere: rows of a stored relation with their weights."""
        capture = self.by_name.get(name)
        if capture is not None:
            capture.note(rows)

    def note_rows_of_wave(self, name: str, rows: list[Row]) -> None:
        """A wave has changed a stored relation, and continues with these rows and weights."""
        self.by_name[name].add(rows)

    def note_large(self, name: str, size: int) -> None:
        """Report a change made elsewhere that is too large to be copied here."""
        capture = self.by_name.get(name)
        if capture is not None:
            capture.note(LargeChange(size))

    def forget_large(self) -> None:
        """The reported large changes were rolled back."""
        self._engine.capture.forget_large(self.by_name.values())

    # --- reading them ----------------------------------------------------------------------

    def pending(self) -> Mapping[str, bool]:
        """The changed relations; True if a change passed the screener."""
        return self._engine.capture.pending() if self.by_name else {}

    def has_pending(self, names: Collection[str]) -> bool:
        """Whether any of these stored relations has changed since the last propagation."""
        return not self.pending().keys().isdisjoint(names)

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self.by_name[name].size() for name in sorted(names)}

    def incoming(self) -> Iterator[tuple[Relation, list[Row], list[Row]]]:
        """The present Δ-sets: what each changed relation gained and lost."""
        for name in sorted(self.pending()):
            capture = self.by_name.get(name)
            if capture is not None:
                yield capture.relation, *capture.rows()

    def settle(self, names: Iterable[str]) -> None:
        """All readers are done with these changes: drop them."""
        self._engine.capture.settle(self.by_name[name] for name in names)
