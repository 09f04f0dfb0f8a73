"""The changes of stored relations, captured as they happen.

While a view depends on a stored relation, its Δ-set is kept: by triggers on its table, or by
whoever changes it and says so. A mark says that the relation has changed, and whether any change
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
        """Is the relation still there?"""
        return self._engine.exists(self.by_name[name].relation)

    # --- keeping changes -------------------------------------------------------------------

    def is_of_another(self, relation: Relation) -> bool:
        """Are the changes of a table kept that had this name, and other columns? Views over the
        old one are replaced one after another."""
        capture = self.by_name.get(relation.id)
        return capture is not None and capture.relation != relation

    def capture(self, relation: Relation, *, told: bool) -> None:
        """Keep the changes of a relation; perhaps they were kept earlier in the transaction. Those
        of a relation that is `told` come by `note_rows`."""
        idle = self.by_name.get(relation.id)
        if idle is not None and (idle.relation != relation or idle.is_told != told):
            idle.unwatch()
            idle = None
        if idle is None:
            self.by_name[relation.id] = self._engine.capture.watch(relation, told=told)
        else:
            idle.capture()

    def is_told(self, name: str) -> bool:
        """Do the changes of a captured relation come from whoever makes them, not by triggers?"""
        return self.by_name[name].is_told

    def capture_again(self, names: Iterable[str]) -> None:
        """Triggers may have been undone: make them as they should be."""
        for name in names:
            self.by_name[name].capture()

    def release(self, name: str) -> None:
        self.by_name.pop(name).unwatch()

    def screener(self, name: str) -> Screener:
        return self.by_name[name].screener

    def screen(self, name: str, screener: Screener) -> None:
        self.by_name[name].screen(screener)

    def note_rows(self, relation: Relation, before: list[Row], after: list[Row]) -> None:
        """A relation has changed whose changes are told."""
        capture = self.by_name.get(relation.id)
        if capture is not None and capture.is_told:
            capture.note([*((*row, -1) for row in before), *((*row, 1) for row in after)])

    def note_changes(self, name: str, rows: list[Row]) -> None:
        """A stored relation has changed elsewhere: these rows, each with its weight."""
        capture = self.by_name.get(name)
        if capture is not None:
            capture.note(rows)

    def take_in(self, name: str, rows: list[Row]) -> None:
        """A wave has changed a stored relation, and goes on with these rows and their weights."""
        self.by_name[name].add(rows)

    def note_large(self, name: str, size: int) -> None:
        """A stored relation has changed elsewhere, too much to be held here."""
        capture = self.by_name.get(name)
        if capture is not None:
            capture.note(LargeChange(size))

    def forget_large(self) -> None:
        """What was noted as elsewhere is undone."""
        self._engine.capture.forget_large(self.by_name.values())

    # --- reading them ----------------------------------------------------------------------

    def pending(self) -> Mapping[str, bool]:
        """The relations that have changed; true if a change passed the screener."""
        return self._engine.capture.pending() if self.by_name else {}

    def has_pending(self, names: Collection[str]) -> bool:
        """Has any of these stored relations changed since the last propagation?"""
        return not self.pending().keys().isdisjoint(names)

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self.by_name[name].size() for name in sorted(names)}

    def incoming(self) -> Iterator[tuple[Relation, list[Row], list[Row]]]:
        """The Δ-sets as they stand: what each changed relation gained and lost."""
        for name in sorted(self.pending()):
            capture = self.by_name.get(name)
            if capture is not None:
                yield capture.relation, *capture.rows()

    def settle(self, names: Iterable[str]) -> None:
        """All have read these changes: forget them."""
        self._engine.capture.settle(self.by_name[name] for name in names)
