"""The far relations of a database: where they lie, and the session that reads what is large.

Law: what is known here of the places of far relations is what the file says.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.engines.placement.catalog import Places
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.tally import Tally
from harken.errors import EngineError
from harken.ir.relations import Relation
from harken.sources.place import OWN, UNWRITTEN, Place

if TYPE_CHECKING:
    from harken.engines.placement.far import FarRelation
    from harken.engines.spark.reader import LakeReader


class LakeRelations:
    def __init__(self, resident: SQLiteEngine, spark: Any = None) -> None:
        self.connection = resident.connection
        self.indexes = resident.indexes
        self._spark_given = spark
        self.places = Places(resident.connection, lambda: self.directory)
        self.far: dict[str, FarRelation] = {}
        self.tally = Tally()
        self._seen = -1
        """The state of the file, by SQLite's count, that what is at hand was brought in."""

    # --- far relations ---------------------------------------------------------------------

    def create_far(self, relation: Relation, path: str, kind: str, **options: Any) -> None:
        version = options.pop("version", UNWRITTEN)
        self.places.add(Place(relation.id, path, kind, version, 0, options))
        self._attach(relation, Place(relation.id, path, kind, version, 0, options))
        far = self.far[relation.id]
        if kind == OWN:
            far.pending.create()
        self._make_cache(far)

    def create_own(self, relation: Relation) -> None:
        """A relation of ours in the lake; its table is made when there are rows to write."""
        self.create_far(relation, self.new_path(relation), OWN)

    def drop(self, far: FarRelation) -> None:
        self._detach(far)
        far.pending.drop()
        self.places.remove(far.relation.id)

    def establish(self, far: FarRelation) -> None:
        """Have a table in the lake, be it an empty one, so that others can write to it."""
        if not far.is_written:
            self.stand(far, far.table.version)

    def new_path(self, relation: Relation) -> str:
        """Beside the file, named as people would look for it."""
        return self.new_path_named(relation.name)

    def new_path_named(self, name: str) -> str:
        directory = self.directory
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        taken = {place.path for place in self.places} | set(self.places.gone())
        path, number = directory / name, 2
        while str(path) in taken or path.exists():
            path, number = directory / f"{name}-{number}", number + 1
        return str(path)

    @property
    def directory(self) -> Path:
        if self.connection.in_memory:
            if not hasattr(self, "_temporary"):
                self._temporary = tempfile.TemporaryDirectory(prefix="harken-lake-")
            return Path(self._temporary.name)
        file = Path(self.connection.path).resolve()
        return file.with_name(f"{file.stem}.lake")

    def attach(self, relations: Iterable[Relation]) -> None:
        """Know the far relations among these, and no others: the catalog was read again."""
        places = {place.name: place for place in self.places}
        wanted = {relation.id: relation for relation in relations if relation.id in places}
        for name in [name for name in self.far if name not in wanted]:
            self._detach(self.far[name])
        for name, relation in wanted.items():
            known = self.far.get(name)
            if known is not None and known.is_at(relation, places[name]):
                known.place = places[name]
                if known.cache.exists():
                    continue
            else:
                if known is not None:
                    self._detach(known)
                self._attach(relation, places[name])
            self._make_cache(self.far[name])

    def _attach(self, relation: Relation, place: Place) -> None:
        from harken.engines.placement.far import FarRelation

        if self.has_spark:
            # Spark works beside this process: what it takes, only the wall's clock tells.
            self.connection.working_time = time.perf_counter
        self.far[relation.id] = FarRelation(
            self.connection,
            relation,
            place,
            self.places.signature(),
            lambda: self.reader,
            self.tally,
        )
        self.indexes.temporary.add(relation.id)

    def _make_cache(self, far: FarRelation) -> None:
        far.cache.drop()
        far.cache.create()
        self.indexes.reload()
        if far.relation.key is None and far.relation.inputs:
            self.indexes.ensure([(far.relation, tuple(range(far.relation.inputs)))])

    def _detach(self, far: FarRelation) -> None:
        far.cache.drop()
        del self.far[far.relation.id]
        self.indexes.temporary.discard(far.relation.id)
        self.indexes.reload()

    def forget(self) -> None:
        """Another process has committed: what is at hand may be old."""
        self.after_undo()
        for far in self.far.values():
            if far.cache.exists():
                far.cache.clear()

    def after_undo(self) -> None:
        """What is known of the places here is what the file says."""
        if not self.far:
            return
        places = {place.name: place for place in self.places}
        for name, far in self.far.items():
            if name in places:
                far.place = places[name]

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Let what is brought, and the answer, be of one state of the file: another process may
        commit, and write what was pending to the lake, between any two statements."""
        if not self.far or self.connection.in_transaction:
            yield
            return
        with self.connection.snapshot():
            version = self.connection.data_version()
            if version != self._seen:
                self.forget()
                self._seen = version
            yield

    # --- Spark -----------------------------------------------------------------------------

    @property
    def has_spark(self) -> bool:
        return self._spark_given is not None

    @property
    def spark(self) -> Any:
        """The session: the one that was given, or what makes it, called when it is first needed."""
        if self._spark_given is None:
            raise EngineError(
                "this takes Spark: the relations in the lake are too large for one process",
                code="no-spark",
                hint="open the database with a session: harken.connect(path, spark=session)",
            )
        if callable(self._spark_given) and not hasattr(self._spark_given, "sql"):
            self._spark_given = self._spark_given()
        return self._spark_given

    @cached_property
    def reader(self) -> LakeReader:
        from harken.engines.spark.reader import LakeReader

        return LakeReader(self.spark)

    @property
    def spark_reader(self) -> Callable[[], LakeReader] | None:
        """What makes the reader, for those who only may need it."""
        return (lambda: self.reader) if self.has_spark else None

    def stand(self, far: FarRelation, version: int) -> None:
        """On another version with the same rows."""
        options = far.place.options
        note = {} if far.is_own else far.table.note(version)
        if note:
            options = {**options, **note}
            self.places.describe(far.relation.id, options)
        far.place = replace(far.place, version=version, options=options)
        self.places.advance(far.relation.id, version, far.place.commits)

    def close(self) -> None:
        if hasattr(self, "_temporary"):
            self._temporary.cleanup()
