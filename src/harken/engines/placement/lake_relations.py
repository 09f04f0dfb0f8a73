"""The lake relations of a database: where they are, and the session that reads large ones.

Law: the places known here are those in the file.
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

from harken.engines.placement.lake_catalog import Places
from harken.engines.sqlite.engine import SQLiteEngine
from harken.engines.tally import Tally
from harken.errors import EngineError
from harken.ir.relations import Relation
from harken.sources.place import OWN, UNWRITTEN, Place

if TYPE_CHECKING:
    from harken.engines.placement.placed_relation import PlacedRelation
    from harken.engines.spark.reader import LakeReader


class LakeRelations:
    def __init__(self, resident: SQLiteEngine, spark: Any = None) -> None:
        self.connection = resident.connection
        self.indexes = resident.indexes
        self._spark_given = spark
        self.places = Places(resident.connection, lambda: self.directory)
        self.lake_relations: dict[str, PlacedRelation] = {}
        self.tally = Tally()
        self._seen = -1
        """The state of the file, by SQLite's data version, in which the cached rows were
        fetched."""

    # --- lake relations ---------------------------------------------------------------------

    def create_in_lake(self, relation: Relation, path: str, kind: str, **options: Any) -> None:
        version = options.pop("version", UNWRITTEN)
        self.places.add(Place(relation.id, path, kind, version, 0, options))
        self._attach(relation, Place(relation.id, path, kind, version, 0, options))
        lake_relation = self.lake_relations[relation.id]
        if kind == OWN:
            lake_relation.pending.create()
        self._make_cache(lake_relation)

    def create_own(self, relation: Relation) -> None:
        """Create a relation of ours in the lake; its table is created with the first rows to
        write."""
        self.create_in_lake(relation, self.new_path(relation), OWN)

    def drop(self, lake_relation: PlacedRelation) -> None:
        self._detach(lake_relation)
        lake_relation.pending.drop()
        self.places.remove(lake_relation.relation.id)

    def establish(self, lake_relation: PlacedRelation) -> None:
        """Create the table in the lake, even if empty, so that others can write to it."""
        if not lake_relation.is_written:
            self.stand(lake_relation, lake_relation.table.version)

    def new_path(self, relation: Relation) -> str:
        """A path beside the file, named after the relation."""
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
        """Open the lake relations among these and no others, after the catalog was read again."""
        places = {place.name: place for place in self.places}
        wanted = {relation.id: relation for relation in relations if relation.id in places}
        for name in [name for name in self.lake_relations if name not in wanted]:
            self._detach(self.lake_relations[name])
        for name, relation in wanted.items():
            known = self.lake_relations.get(name)
            if known is not None and known.is_at(relation, places[name]):
                known.place = places[name]
                if known.cache.exists():
                    continue
            else:
                if known is not None:
                    self._detach(known)
                self._attach(relation, places[name])
            self._make_cache(self.lake_relations[name])

    def _attach(self, relation: Relation, place: Place) -> None:
        from harken.engines.placement.placed_relation import PlacedRelation

        if self.has_spark:
            # Spark works in another process: only the wall clock tells its time.
            self.connection.working_time = time.perf_counter
        self.lake_relations[relation.id] = PlacedRelation(
            self.connection,
            relation,
            place,
            self.places.signature(),
            lambda: self.reader,
            self.tally,
        )
        self.indexes.temporary.add(relation.id)

    def _make_cache(self, lake_relation: PlacedRelation) -> None:
        lake_relation.cache.drop()
        lake_relation.cache.create()
        self.indexes.reload()
        if lake_relation.relation.key is None and lake_relation.relation.inputs:
            self.indexes.ensure(
                [(lake_relation.relation, tuple(range(lake_relation.relation.inputs)))]
            )

    def _detach(self, lake_relation: PlacedRelation) -> None:
        lake_relation.cache.drop()
        del self.lake_relations[lake_relation.relation.id]
        self.indexes.temporary.discard(lake_relation.relation.id)
        self.indexes.reload()

    def forget(self) -> None:
        """Another process has committed: cached rows may be outdated."""
        self.after_undo()
        for lake_relation in self.lake_relations.values():
            if lake_relation.cache.exists():
                lake_relation.cache.clear()

    def after_undo(self) -> None:
        """Read the places from the file again."""
        if not self.lake_relations:
            return
        places = {place.name: place for place in self.places}
        for name, lake_relation in self.lake_relations.items():
            if name in places:
                lake_relation.place = places[name]

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Hold one state of the file for fetching and answering: another process may commit, and
        write pending changes to the lake, between any two statements."""
        if not self.lake_relations or self.connection.in_transaction:
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
        """The session: the given one, or a new one created at first use."""
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
        """A function that creates the reader, for callers that may not need it."""
        return (lambda: self.reader) if self.has_spark else None

    def stand(self, lake_relation: PlacedRelation, version: int) -> None:
        """Stand on another version with the same rows."""
        options = lake_relation.place.options
        note = {} if lake_relation.is_own else lake_relation.table.note(version)
        if note:
            options = {**options, **note}
            self.places.describe(lake_relation.relation.id, options)
        lake_relation.place = replace(lake_relation.place, version=version, options=options)
        self.places.advance(lake_relation.relation.id, version, lake_relation.place.commits)

    def close(self) -> None:
        if hasattr(self, "_temporary"):
            self._temporary.cleanup()
