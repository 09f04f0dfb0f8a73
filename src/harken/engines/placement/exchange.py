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
    from harken.engines.placement.far import FarRelation

Row = tuple[Any, ...]
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class LargeDelta:
    """A change that is not held here: the way of a far relation from one version to another."""

    far: FarRelation
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

    def news(self, *, set_aside: bool = False) -> list[tuple[FarRelation, int]]:
        """The far relations that have changed where they come from, and their newest versions."""
        found = []
        for far in self._lake.far.values():
            if far.place.is_own:
                self._finish(far)
            if far.is_written or not far.place.is_own:
                newest = far.newest(self._progress_of(far), set_aside=set_aside)
                if newest != far.place.version:
                    found.append((far, newest))
        return found

    def _progress_of(self, far: FarRelation) -> Callable[[int, int], None] | None:
        return None if self.progress is None else partial(self.progress, far.relation.name)

    def _hold_large(self, far: FarRelation, version: int, rows: int) -> None:
        """The change of a far relation to a version stays where it is, and Spark reads it."""
        name = delta(far.relation).id
        self.large[name] = LargeDelta(far, far.place.version, version, rows)

    def forget_large(self, relation: str | None = None) -> None:
        """The change of a relation, or of all, has been propagated."""
        for name, each in list(self.large.items()):
            if relation in (None, each.far.relation.id):
                self.large.pop(name).release()

    def take_in(
        self, far: FarRelation, version: int
    ) -> tuple[list[Row] | int, left_out.LeftOut | None]:
        """Move on to another version; what that changes in the relation, with weights, and which
        of the new rows it leaves out. Of a change that is too large to be held here, its size:
        Spark reads it where it is."""
        from harken.engines.placement import keys, left_out

        before = far.place.version
        size = far.change_size(version)
        if (
            size > limits.MOST_HELD
            and self._lake.has_spark
            and not (far.place.is_own and far.pending.size())
        ):
            self._hold_large(far, version, size)
            self.move_on(far, version)
            keys.check_all(far, self._lake.spark_reader)
            return size, left_out.of_large_change(far, before, version, self._lake.spark_reader)
        found = far.table_changes(version)
        rows = far.stored_changes(found)
        if far.place.is_own and not far.pending.is_empty():
            rows = far.give_way(rows)
        self.move_on(far, version)
        keys.check_changes(far, rows, self._lake.spark_reader)
        return rows, left_out.of_change(far, found)

    def _finish(self, far: FarRelation) -> None:
        """A commit to the lake whose end was not written down here, because a process died. It has
        what was pending then; what has come since is still pending."""
        if not far.is_behind():
            return
        version = far.written_before()
        if version is not None:
            written = far.changes(version)
            self._advance(far, version)
            far.pending.add((*row, -weight) for *row, weight in written)
        if far.is_written:
            self._lake.stand(far, far.tidied_before())

    def move_on(self, far: FarRelation, version: int) -> None:
        """From now on, in this transaction and after it, stand on another version."""
        far.cache.clear()
        if (
            far.place.is_own
            and version // limits.COMPACT_EVERY > far.place.version // limits.COMPACT_EVERY
        ):
            self._untidy.add(far.relation.id)
        self._lake.stand(far, version)

    # --- the end of a transaction ----------------------------------------------------------

    def before_commit(self) -> None:
        for far in self._lake.far.values():
            if far.place.is_own:
                far.pending.settle()

    def after_commit(self) -> None:
        """Write what is pending to the lake, unless that is dear and may as well wait."""
        if self._lake.far or self._lake.places.has_gone():
            try:
                self.flush(lazily=True, give_way=True)
                self._tidy()
            except StorageError as error:
                if error.code != "locked":  # another process is writing: its commit or ours will do
                    raise
            for far in self._lake.far.values():
                if far.cache.size() > limits.CACHE_ROWS:
                    far.cache.clear()

    def _tidy(self) -> None:
        """Tables that others write, a stream for one, are tidied now and then as well."""
        while self._untidy:
            far = self._lake.far.get(self._untidy.pop())
            if far is not None:
                self._in_transaction(lambda: self._lake.stand(far, far.tidy(far.place.version)))  # noqa: B023

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        """Bring the tables of the lake up to date with what is committed here.

        Where someone else has changed a table, the next step sees to both changes. `give_way`
        leaves it to that without a word.
        """
        from harken.engines.placement.far import remove_files

        if self.connection.read_only:
            return
        for far in list(self._lake.far.values()):
            if far.place.is_own and not (lazily and self._may_wait(far)):
                try:
                    self._write(far)
                except IntegrityError as error:
                    if error.code != "lake-conflict":
                        raise
                    error.hint = "take those changes in first: db.step()"
                    if not give_way:
                        raise
        for path in self._lake.places.gone():
            remove_files(path)
            self._in_transaction(lambda: self._lake.places.forget_gone(path))  # noqa: B023

    def _may_wait(self, far: FarRelation) -> bool:
        if far.pending.is_empty():
            return True
        rewritten, changed = far.files_to_rewrite()
        return rewritten > limits.LAZY_REWRITE and changed < limits.LAZY_PART * far.size()

    def _write(self, far: FarRelation) -> None:
        def write() -> None:
            place = self._lake.places.find(far.relation.id)
            if place is None:
                return
            far.place = place
            self._finish(far)
            if far.pending.is_empty():
                return
            self._advance(far, far.write())
            far.pending.clear()
            if far.place.commits % limits.COMPACT_EVERY == 0:
                self._lake.stand(far, far.tidy(far.place.version))

        if far.is_behind() or not far.pending.is_empty():
            with faults.translated(far.place):
                self._in_transaction(write)

    def _advance(self, far: FarRelation, version: int) -> None:
        """A commit of ours has made this version."""
        far.place = replace(far.place, version=version, commits=far.place.commits + 1)
        self._lake.places.advance(far.relation.id, version, far.place.commits)

    def _in_transaction(self, work: Callable[[], None]) -> None:
        self.connection.begin()
        try:
            work()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            self._lake.after_undo()
            raise
