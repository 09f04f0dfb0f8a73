"""What comes from the lake and what goes there: the changes that others made, and our own.

A commit of the resident file is a commit of everything. Then what is pending is written to the
tables, at once or, where that is dear, together with what follows. Others' changes are taken in by
a step: the database moves on to a newer version, and what lies between is a change like any other.

Law: what is pending is in no version that the database stands on, and in the next one, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.calculus.states import delta
from harken.engines import fetch_limits as limits
from harken.engines.placement import faults
from harken.engines.placement.lake_relations import LakeRelations
from harken.errors import IntegrityError, StorageError

if TYPE_CHECKING:
    from harken.engines.placement import left_out
    from harken.engines.placement.placed_relation import PlacedRelation

Row = tuple[Any, ...]
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class LargeDelta:
    """A change that is not held here: the way of a lake relation from one version to another."""

    lake_relation: PlacedRelation
    before: int
    after: int
    rows: int
    kept: Any = None
    """Its rows where Spark keeps them, once they have been read."""

    def release(self) -> None:
        if self.kept is not None:
            self.kept.unpersist()


class Exchange:
    def __init__(self, lake: LakeRelations) -> None:
        self._lake = lake
        self.connection = lake.connection
        self.progress: Progress | None = None
        """Who is told how far a step is: the relation, the parts it has, and of how many."""
        self.large: dict[str, LargeDelta] = {}
        """The changes of this transaction that are too large to be held here, by their Δ's id."""
        self._untidy: set[str] = set()

    # --- taking changes in -----------------------------------------------------------------

    def news(self, *, set_aside: bool = False) -> list[tuple[PlacedRelation, int]]:
        """The lake relations that have changed where they come from, and their newest versions."""
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
        """The change of a lake relation to a version stays where it is, and Spark reads it."""
        name = delta(lake_relation.relation).id
        self.large[name] = LargeDelta(lake_relation, lake_relation.place.version, version, rows)

    def forget_large(self, relation: str | None = None) -> None:
        """The change of a relation, or of all, has been propagated."""
        for name, each in list(self.large.items()):
            if relation in (None, each.lake_relation.relation.id):
                self.large.pop(name).release()

    def take_in(
        self, lake_relation: PlacedRelation, version: int
    ) -> tuple[list[Row] | int, left_out.LeftOut | None]:
        """Move on to another version; what that changes in the relation, with weights, and which
        of the new rows it leaves out. Of a change that is too large to be held here, its size:
        Spark reads it where it is."""
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
        """A commit to the lake whose end was not written down here, because a process died. It has
        what was pending then; what has come since is still pending."""
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
        """From now on, in this transaction and after it, stand on another version."""
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
        """Write what is pending to the lake, unless that is dear and may as well wait."""
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
        """Tables that others write, a stream for one, are tidied now and then as well."""
        while self._untidy:
            lake_relation = self._lake.lake_relations.get(self._untidy.pop())
            if lake_relation is not None:
                self._in_transaction(partial(self._tidy_one, lake_relation))

    def _tidy_one(self, lake_relation: PlacedRelation) -> None:
        self._lake.stand(lake_relation, lake_relation.tidy(lake_relation.place.version))

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        """Bring the tables of the lake up to date with what is committed here.

        Where someone else has changed a table, the next step sees to both changes. `give_way`
        leaves it to that without a word.
        """
        from harken.engines.placement.placed_relation import remove_files

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
            remove_files(path)
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
        """A commit of ours has made this version."""
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
