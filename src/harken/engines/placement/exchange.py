"""Changes exchanged with the lake: those made by others, and our own.

A commit of the resident file commits everything. Pending changes are then written to the lake's
tables, at once or, where that is expensive, together with later ones. A step processes others'
changes: the database moves to a newer version, and the difference is a change like any other.

Law: a pending change is in no version that the database stands on, and exactly once in the next.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.calculus.states import delta
from harken.engines import fetch_limits as limits
from harken.engines.placement import faults
from harken.engines.placement.lake_relations import LakeRelations
from harken.errors import IntegrityError, StorageError
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement import left_out
    from harken.engines.placement.placed_relation import PlacedRelation

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class LargeDelta:
    """A change that is not held here: a lake relation's difference between two versions."""

    lake_relation: PlacedRelation
    before: int
    after: int
    rows: int
    kept: Any = None
    """Its rows in Spark's memory, once they have been read."""

    def release(self) -> None:
        if self.kept is not None:
            self.kept.unpersist()


class Exchange:
    def __init__(self, lake: LakeRelations) -> None:
        self._lake = lake
        self.connection = lake.connection
        self.progress: Progress | None = None
        """Called with the progress of a step: the relation, its finished parts, and their total."""
        self.large: dict[str, LargeDelta] = {}
        """This transaction's changes that are too large to hold here, by their Δ's id."""
        self._untidy: set[str] = set()

    # --- taking changes in -----------------------------------------------------------------

    def news(self, *, set_aside: bool = False) -> list[tuple[PlacedRelation, int]]:
        """The lake relations whose sources have changed, with their newest versions."""
        found = []
        for lake_relation in self._lake.lake_relations.values():
            if lake_relation.place.is_own:
                self._finish(lake_relation)
            if lake_relation.is_written or not lake_relation.place.is_own:
                newest = lake_relation.newest(self._progress_of(lake_relation), set_aside=set_aside)
                if newest != lake_relation.place.version:
                    found.append((lake_relation, newest))
        return found

    def _progress_of(self, lake_relation: PlacedRelation) -> Callable[[int, int], None] | None:
        return (
            None if self.progress is None else partial(self.progress, lake_relation.relation.name)
        )

    def _hold_large(self, lake_relation: PlacedRelation, version: int, rows: int) -> None:
        """Leave the change of a lake relation up to a version in the lake, for Spark to read."""
        name = delta(lake_relation.relation).id
        self.large[name] = LargeDelta(lake_relation, lake_relation.place.version, version, rows)

    def forget_large(self, relation: str | None = None) -> None:
        """Forget the change of a relation, or of all, after its propagation."""
        for name, each in list(self.large.items()):
            if relation in (None, each.lake_relation.relation.id):
                self.large.pop(name).release()

    def take_in(
        self, lake_relation: PlacedRelation, version: int
    ) -> tuple[list[Row] | int, left_out.LeftOut | None]:
        """Move to another version. Returns the relation's change with weights and the new rows
        left out; for a change too large to hold here only its size, because Spark reads it in
        place."""
        from harken.engines.placement import keys, left_out

        before = lake_relation.place.version
        size = lake_relation.change_size(version)
        if (
            size > limits.MOST_HELD
            and self._lake.has_spark
            and not (lake_relation.place.is_own and lake_relation.pending.size())
        ):
            self._hold_large(lake_relation, version, size)
            self.move_on(lake_relation, version)
            keys.check_all(lake_relation, self._lake.spark_reader)
            return size, left_out.of_large_change(
                lake_relation, before, version, self._lake.spark_reader
            )
        found = lake_relation.table_changes(version)
        rows = lake_relation.stored_changes(found)
        if lake_relation.place.is_own and not lake_relation.pending.is_empty():
            rows = lake_relation.give_way(rows)
        self.move_on(lake_relation, version)
        keys.check_changes(lake_relation, rows, self._lake.spark_reader)
        return rows, left_out.of_change(lake_relation, found)

    def _finish(self, lake_relation: PlacedRelation) -> None:
        """Complete a commit to the lake whose end was not recorded here because a process died.
        It contains what was pending then; later changes are still pending."""
        if not lake_relation.is_behind():
            return
        version = lake_relation.written_before()
        if version is not None:
            written = lake_relation.changes(version)
            self._advance(lake_relation, version)
            lake_relation.pending.add((*row, -weight) for *row, weight in written)
        if lake_relation.is_written:
            self._lake.stand(lake_relation, lake_relation.tidied_before())

    def move_on(self, lake_relation: PlacedRelation, version: int) -> None:
        """Stand on another version, in this transaction and after it."""
        lake_relation.cache.clear()
        if (
            lake_relation.place.is_own
            and version // limits.COMPACT_EVERY
            > lake_relation.place.version // limits.COMPACT_EVERY
        ):
            self._untidy.add(lake_relation.relation.id)
        self._lake.stand(lake_relation, version)

    # --- the end of a transaction ----------------------------------------------------------

    def before_commit(self) -> None:
        for lake_relation in self._lake.lake_relations.values():
            if lake_relation.place.is_own:
                lake_relation.pending.settle()

    def after_commit(self) -> None:
        """Write pending changes to the lake, unless that is expensive and can wait."""
        if self._lake.lake_relations or self._lake.places.has_gone():
            try:
                self.flush(lazily=True, give_way=True)
                self._tidy()
            except StorageError as error:
                if error.code != "locked":  # another process is writing: its commit or ours will do
                    raise
            for lake_relation in self._lake.lake_relations.values():
                if lake_relation.cache.size() > limits.CACHE_ROWS:
                    lake_relation.cache.clear()

    def _tidy(self) -> None:
        """Merge the files of tables that others write, a stream for instance, now and then as
        well."""
        while self._untidy:
            lake_relation = self._lake.lake_relations.get(self._untidy.pop())
            if lake_relation is not None:
                self._in_transaction(partial(self._tidy_one, lake_relation))

    def _tidy_one(self, lake_relation: PlacedRelation) -> None:
        self._lake.stand(lake_relation, lake_relation.tidy(lake_relation.place.version))

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        """Bring the lake's tables up to date with what is committed here.

        Where someone else has changed a table, the next step handles both changes; `give_way`
        leaves it to that silently.
        """
        if self.connection.read_only:
            return
        for lake_relation in list(self._lake.lake_relations.values()):
            if lake_relation.place.is_own and not (lazily and self._may_wait(lake_relation)):
                try:
                    self._write(lake_relation)
                except IntegrityError as error:
                    if error.code != "lake-conflict":
                        raise
                    error.hint = "take those changes in first: db.step()"
                    if not give_way:
                        raise
        for path in self._lake.places.gone():
            shutil.rmtree(path, ignore_errors=True)
            self._in_transaction(lambda: self._lake.places.forget_gone(path))  # noqa: B023

    def _may_wait(self, lake_relation: PlacedRelation) -> bool:
        if lake_relation.pending.is_empty():
            return True
        rewritten, changed = lake_relation.files_to_rewrite()
        return rewritten > limits.LAZY_REWRITE and changed < limits.LAZY_PART * lake_relation.size()

    def _write(self, lake_relation: PlacedRelation) -> None:
        def write() -> None:
            place = self._lake.places.find(lake_relation.relation.id)
            if place is None:
                return
            lake_relation.place = place
            self._finish(lake_relation)
            if lake_relation.pending.is_empty():
                return
            self._advance(lake_relation, lake_relation.write())
            lake_relation.pending.clear()
            if lake_relation.place.commits % limits.COMPACT_EVERY == 0:
                self._lake.stand(lake_relation, lake_relation.tidy(lake_relation.place.version))

        if lake_relation.is_behind() or not lake_relation.pending.is_empty():
            with faults.translated(lake_relation.place):
                self._in_transaction(write)

    def _advance(self, lake_relation: PlacedRelation, version: int) -> None:
        """Record that our commit made this version."""
        lake_relation.place = replace(
            lake_relation.place, version=version, commits=lake_relation.place.commits + 1
        )
        self._lake.places.advance(lake_relation.relation.id, version, lake_relation.place.commits)

    def _in_transaction(self, work: Callable[[], None]) -> None:
        self.connection.begin()
        try:
            work()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            self._lake.after_undo()
            raise
