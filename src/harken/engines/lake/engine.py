"""The engine of a database that may have far relations: SQLite, with the lake behind it.

A statement that touches far relations says which rows it can need (`planner.demand`). If they are
few, they are brought here and SQLite answers; if they are many, Spark answers from the lake. Either
way the rows are the same.

Law: whatever runs where, a far relation is its table at the version the database stands on, with
what is pending.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.calculus.states import delta
from harken.engines.lake import faults
from harken.engines.lake.catalog import OWN, UNWRITTEN, Place, Places
from harken.engines.lake.query import FarQuery
from harken.engines.lake.tally import Tally
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.engine import Query, SQLiteEngine
from harken.engines.sqlite.faults import read_only
from harken.errors import EngineError, HarkenError, IntegrityError, StorageError
from harken.ir.clauses import stored_relations
from harken.ir.relations import Relation, is_extent
from harken.planner.demand import Demand, demands
from harken.planner.prepare import Plan

if TYPE_CHECKING:
    from harken.engines.lake.far import FarRelation
    from harken.engines.spark.reader import LakeReader

Row = tuple[Any, ...]
Progress = Callable[[str, int, int], None]

SMALL = 20_000
"""A relation of so many rows is brought as a whole when it is first asked for."""
MOST_ROWS = 200_000
"""A larger one is not: a statement that needs all of it is Spark's."""
MOST_KEYS = 20_000
"""A statement that needs the rows of more keys than these is Spark's."""
MOST_HELD = 100_000
"""A change that is taken in is held here up to so many rows."""
CACHE_ROWS = 2_000_000
LAZY_REWRITE = 1_000_000
"""A commit that would rewrite more rows than these, for few changed ones, waits for others."""
LAZY_PART = 0.01
COMPACT_EVERY = 32
"""After so many commits to a table, its small files are merged."""


@dataclass(frozen=True, slots=True)
class LargeDelta:
    """A change that is not held here: the way of a far relation from one version to another."""

    far: FarRelation
    before: int
    after: int
    rows: int


class LakeEngine(SQLiteEngine):
    def __init__(self, connection: Connection, spark: Any = None) -> None:
        self.python: dict[str, tuple[Callable[..., Any], Sequence[Callable[[Any], Any]]]] = {}
        """The Python functions behind foreign relations, and what decodes their arguments."""
        super().__init__(connection)
        self._spark_given = spark
        self._places = Places(connection, lambda: self.directory)
        self.far: dict[str, FarRelation] = {}
        self.forced: str | None = None
        """`resident` or `spark`: where statements over far relations run, whatever it costs."""
        self.progress: Progress | None = None
        """Who is told how far a step is: the relation, the parts it has, and of how many."""
        self.large: dict[str, LargeDelta] = {}
        """The changes of this transaction that are too large to be held here, by their Δ's id."""
        self.tally = Tally()
        self._untidy: set[str] = set()
        self._seen = -1
        """The state of the file, by SQLite's count, that what is at hand was brought in."""
        self.statistics.elsewhere = self._rows_far_away
        self.statistics.values_elsewhere = lambda relation, i: self.far[relation.id].values(i)

    # --- far relations ---------------------------------------------------------------------

    def is_far(self, relation: Relation) -> bool:
        return relation.id in self.far

    def schema_of(self, relation: Relation) -> str:
        return "temp" if relation.id in self.far else "main"

    def create_far(self, relation: Relation, path: str, kind: str, **options: Any) -> None:
        version = options.pop("version", UNWRITTEN)
        self._places.add(Place(relation.id, path, kind, version, 0, options))
        self._attach(relation, Place(relation.id, path, kind, version, 0, options))
        far = self.far[relation.id]
        if kind == OWN:
            far.pending.create()
        self._make_cache(far)

    def establish(self, far: FarRelation) -> None:
        """Have a table in the lake, be it an empty one, so that others can write to it."""
        if not far.is_written:
            self._stand(far, far.table.version)

    def new_path(self, relation: Relation) -> str:
        """Beside the file, named as people would look for it."""
        return self.new_path_named(relation.name)

    def new_path_named(self, name: str) -> str:
        directory = self.directory
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        taken = {place.path for place in self._places} | set(self._places.gone())
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
        places = {place.name: place for place in self._places}
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
        from harken.engines.lake.far import FarRelation

        self.far[relation.id] = FarRelation(
            self.connection,
            relation,
            place,
            self._places.signature(),
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
        places = {place.name: place for place in self._places}
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

    # --- bringing rows ---------------------------------------------------------------------

    def bring(self, relation: Relation, columns: tuple[int, ...], values: Collection[Row]) -> None:
        """Have the rows with one of these values in the columns at hand."""
        far = self.far[relation.id]
        if far.cache.is_whole() or not values:
            return
        if far.size() <= SMALL:
            far.cache.bring_all(far)
        else:
            far.cache.bring(columns, values, far)

    def bring_all(self, relation: Relation) -> None:
        far = self.far[relation.id]
        far.cache.bring_all(far)

    def expect(self, relation: Relation, rows: Sequence[Row]) -> None:
        """These rows, or keys, are going to be changed one by one: fetch all that takes at once."""
        if relation.id not in self.far or not rows:
            return
        home = self.far[relation.id].cache.home
        if not home:
            self.bring_all(relation)
        elif max(home) < len(rows[0]):
            self.bring(relation, home, {tuple(row[i] for i in home) for row in rows})

    def _expect_deletion(self, oid: int) -> None:
        """An object is going to be deleted, or to lose a type, and what mentions it with it."""
        for far in list(self.far.values()):
            for position, column in enumerate(far.relation.columns):
                if column.type.surrogate:
                    self.bring(far.relation, (position,), [(oid,)])

    def _bring_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.refuse_input(relation)
            self.expect(relation, [tuple(row)])

    def refuse_input(self, relation: Relation) -> None:
        if self.connection.read_only:
            raise read_only()
        if not self.far[relation.id].place.is_own:
            raise EngineError(
                f"{relation.name} is an input: others write it, and Harken reads it",
                code="read-only",
                hint="change it where it comes from; db.step() takes the changes in",
            )

    def _rows_far_away(self, relation: Relation) -> float | None:
        far = self.far.get(relation.id)
        if far is None:
            return None
        pending = far.pending.balance() if far.place.is_own else 0
        return float(max(0, far.size() + pending))

    # --- what SQLiteEngine does, with the rows brought first -------------------------------

    def drop(self, relation: Relation) -> None:
        far = self.far.get(relation.id)
        if far is None:
            super().drop(relation)
            return
        self._detach(far)
        far.pending.drop()
        self._places.remove(relation.id)

    def exists(self, relation: Relation) -> bool:
        if relation.id in self.far:
            return self._places.find(relation.id) is not None
        return super().exists(relation)

    def count(self, relation: Relation) -> int:
        rows = self._rows_far_away(relation)
        return super().count(relation) if rows is None else int(rows)

    def is_empty(self, relation: Relation) -> bool:
        rows = self._rows_far_away(relation)
        return super().is_empty(relation) if rows is None else rows == 0

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        if relation.id in self.far:
            self.refuse_input(relation)
            given = [tuple(row) for row in rows]
            self.expect(relation, given)
            rows = given
        super().insert_many(relation, rows)

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.insert_many(relation, zip(range(first, first + len(column)), column, strict=True))
            return
        super().insert_column(relation, first, column)

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        self._bring_row(relation, row)
        super().set_row(relation, row)

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if self.far and is_extent(relation):
            self._expect_deletion(row[0])
        self._bring_row(relation, row)
        super().remove_row(relation, row)

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.refuse_input(relation)
            self._bring_arguments(relation, arguments)
        super().clear(relation, arguments)

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool:
        with self.steady():
            if relation.id in self.far:
                self.expect(relation, [tuple(row)])
            return super().contains(relation, row)

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        if relation.id not in self.far:
            return super().matching(relation, known)
        with self.steady():
            if known:
                self.bring(relation, tuple(known), [tuple(known.values())])
            else:
                self.bring_all(relation)
            return super().matching(relation, known)

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        if relation.id not in self.far:
            return super().results(relation, arguments)
        with self.steady():
            self._bring_arguments(relation, arguments)
            return super().results(relation, arguments)

    def _bring_arguments(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if arguments:
            self.bring(relation, tuple(range(len(arguments))), [tuple(arguments)])
        else:
            self.bring_all(relation)

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        super().register_foreign(relation, function, decode)
        self.python[relation.id] = function, decode

    # --- queries ---------------------------------------------------------------------------

    def compile(self, plan: Plan) -> Query:
        query = super().compile(plan)
        wanted = demands(plan, self.is_far) if self.far else ()
        deltas = self._deltas(plan) if self.far else frozenset()
        if not wanted and not deltas:
            return query
        asked = tuple((each, self._question(each)) for each in wanted)
        return FarQuery(
            query.relation,
            query.sql,
            query.slots,
            query.fixpoints,
            query.connection,
            plan,
            asked,
            deltas,
            self,
        )

    def _deltas(self, plan: Plan) -> frozenset[str]:
        """The Δ-sets of far relations that a plan reads."""
        far = {delta(each.relation).id for each in self.far.values()}
        return frozenset(far & stored_relations(plan.program).keys())

    def _question(self, demand: Demand) -> Query | None:
        return None if demand.plan is None else super().compile(demand.plan)

    def is_at_hand(self, query: FarQuery, values: Sequence[Any]) -> bool:
        """Bring what a query needs; false if Spark is to answer it."""
        if self.forced == "spark" or query.deltas & self.large.keys() or not self._fits(query):
            return False
        try:
            for demand, question in query.asked:
                if question is None:
                    self.bring_all(demand.relation)
                    continue
                far = self.far[demand.relation.id]
                if far.cache.is_whole():
                    continue
                keys = set(question.rows(values))
                if len(keys) > MOST_KEYS and self.has_spark and far.size() > SMALL:
                    return False
                self.bring(demand.relation, demand.columns, keys)
        except HarkenError:
            # What was asked too early may fail where the query itself does not.
            for demand, _ in query.asked:
                if not self._small_enough(demand.relation):
                    return False
            for demand, _ in query.asked:
                self.bring_all(demand.relation)
        return True

    def foresee(self, query: FarQuery, many: Sequence[Sequence[Any]]) -> None:
        """A query is going to be asked with many values, one after the other: fetch what it needs
        at once, as far as it is asked for by key."""
        if self.forced == "spark":
            return
        for demand, question in query.asked:
            if question is None:
                return
            if self.far[demand.relation.id].cache.is_whole():
                continue
            keys = {key for values in many for key in question.rows(values)}
            if len(keys) > MOST_KEYS:
                return
            self.bring(demand.relation, demand.columns, keys)

    def _fits(self, query: FarQuery) -> bool:
        return all(
            question is not None or self._small_enough(demand.relation)
            for demand, question in query.asked
        )

    def _small_enough(self, relation: Relation) -> bool:
        far = self.far[relation.id]
        return self.forced == "resident" or far.cache.is_whole() or far.size() <= MOST_ROWS

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

    # --- taking changes in -----------------------------------------------------------------

    def news(self) -> list[tuple[FarRelation, int]]:
        """The far relations that have changed where they come from, and their newest versions."""
        found = []
        for far in self.far.values():
            if far.place.is_own:
                self._finish(far)
            if far.is_written or not far.place.is_own:
                newest = far.table.capture(self._progress_of(far))
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
                del self.large[name]

    def take_in(self, far: FarRelation, version: int) -> list[Row] | int:
        """Move on to another version; what that changes in the relation, with weights. Of a change
        that is too large to be held here, its size: Spark reads it where it is."""
        size = far.change_size(version)
        if size > MOST_HELD and self.has_spark and not (far.place.is_own and far.pending.size()):
            self._hold_large(far, version, size)
            self.move_on(far, version)
            return size
        rows = far.changes(version)
        if far.place.is_own and not far.pending.is_empty():
            rows = far.give_way(rows)
        self.move_on(far, version)
        return rows

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
            self._stand(far, far.tidied_before())

    def move_on(self, far: FarRelation, version: int) -> None:
        """From now on, in this transaction and after it, stand on another version."""
        far.cache.clear()
        if far.place.is_own and version // COMPACT_EVERY > far.place.version // COMPACT_EVERY:
            self._untidy.add(far.relation.id)
        self._stand(far, version)

    # --- the end of a transaction ----------------------------------------------------------

    def before_commit(self) -> None:
        for far in self.far.values():
            if far.place.is_own:
                far.pending.settle()

    def after_commit(self) -> None:
        """Write what is pending to the lake, unless that is dear and may as well wait."""
        if self.far or self._places.gone():
            try:
                self.flush(lazily=True, give_way=True)
                self._tidy()
            except StorageError as error:
                if error.code != "locked":  # another process is writing: its commit or ours will do
                    raise
            for far in self.far.values():
                if far.cache.size() > CACHE_ROWS:
                    far.cache.clear()

    def _tidy(self) -> None:
        """Tables that others write, a stream for one, are tidied now and then as well."""
        while self._untidy:
            far = self.far.get(self._untidy.pop())
            if far is not None:
                self._in_transaction(lambda: self._stand(far, far.tidy(far.place.version)))  # noqa: B023

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        """Bring the tables of the lake up to date with what is committed here.

        Where someone else has changed a table, the next step sees to both changes. `give_way`
        leaves it to that without a word.
        """
        from harken.engines.lake.far import remove_files

        if self.connection.read_only:
            return
        for far in list(self.far.values()):
            if far.place.is_own and not (lazily and self._may_wait(far)):
                try:
                    self._write(far)
                except IntegrityError as error:
                    if error.code != "lake-conflict":
                        raise
                    error.hint = "take those changes in first: db.step()"
                    if not give_way:
                        raise
        for path in self._places.gone():
            remove_files(path)
            self._in_transaction(lambda: self._places.forget_gone(path))  # noqa: B023

    def _may_wait(self, far: FarRelation) -> bool:
        if far.pending.is_empty():
            return True
        rewritten, changed = far.files_to_rewrite()
        return rewritten > LAZY_REWRITE and changed < LAZY_PART * far.size()

    def _write(self, far: FarRelation) -> None:
        def write() -> None:
            place = self._places.find(far.relation.id)
            if place is None:
                return
            far.place = place
            self._finish(far)
            if far.pending.is_empty():
                return
            self._advance(far, far.write())
            far.pending.clear()
            if far.place.commits % COMPACT_EVERY == 0:
                self._stand(far, far.tidy(far.place.version))

        if far.is_behind() or not far.pending.is_empty():
            with faults.translated(far.place.path):
                self._in_transaction(write)

    def _advance(self, far: FarRelation, version: int) -> None:
        """A commit of ours has made this version."""
        far.place = replace(far.place, version=version, commits=far.place.commits + 1)
        self._places.advance(far.relation.id, version, far.place.commits)

    def _stand(self, far: FarRelation, version: int) -> None:
        """On another version with the same rows."""
        far.place = replace(far.place, version=version)
        self._places.advance(far.relation.id, version, far.place.commits)

    def _in_transaction(self, work: Callable[[], None]) -> None:
        self.connection.begin()
        try:
            work()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            self.after_undo()
            raise

    def close(self) -> None:
        if hasattr(self, "_temporary"):
            self._temporary.cleanup()
