"""What the rest of Harken asks of an engine.

An engine stores relations, changes them inside transactions, and evaluates plans. It never parses
a user's text and never decides what to compute; it only knows how. Each protocol below has one
purpose and says the law that it keeps; `Engine` is all of them. Rows are tuples of stored values
(`values.encoding`), relations are those of the IR.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from harken.engines.reach import Reach
from harken.engines.tally import Tally
from harken.errors import HarkenError, StorageError
from harken.ir.relations import Relation
from harken.limits import Watch
from harken.planner.prepare import Plan
from harken.planner.screen import Alternative

Row = tuple[Any, ...]


class TooManyRows(Exception):
    """More rows were asked for than may come here at once; another strategy may need fewer."""


class BrokenOff(Exception):
    """A query took longer than it may."""


def damaged(detail: str) -> StorageError:
    return StorageError(
        f"the database file is damaged ({detail})",
        code="not-a-database",
        hint="restore it from a copy",
    )


class Query(Protocol):
    """A plan in the engine's own terms, run as often as wanted with other values.

    Law: the rows are those of the plan in the state of the relations when it runs.
    """

    @property
    def relation(self) -> Relation: ...

    @property
    def sql(self) -> str:
        """The statement, for people to read."""

    @property
    def tables(self) -> Mapping[str, str]:
        """By the id of a relation the table that holds its rows while the query runs."""

    @property
    def fixpoints(self) -> tuple[Any, ...]:
        """The recursions that are evaluated first, lowest first."""

    def rows(self, values: Sequence[Any]) -> list[Row]:
        """The rows, as stored values; `values` are the parameters by index."""

    def summed(self) -> list[Row]:
        """The rows of a weighted change, each once and with the sum of its weights, the last
        column; those that come to nothing are left out."""

    def counted(
        self, columns: Sequence[int], values: Sequence[int], present: int | None, many: bool
    ) -> list[Row] | None:
        """Some columns of the rows, each once, with how often they occur and the exact sums of
        other columns; only of rows that have a value in the column `present`. None says that the
        rows had better be counted where they are wanted, unless that is in `many` places."""

    def evaluated(self) -> AbstractContextManager[Callable[[Relation], list[Row]]]:
        """In the block, the rows of the relations that became tables on the way."""

    def clear(self) -> None:
        """Let go of the rows of its tables."""

    def release(self) -> None:
        """It is not going to be run again: let go of its tables."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Queries that were answered ahead, together. They hold while what they read is unchanged."""

    known: Mapping[Query, Query] = field(default_factory=dict)

    def of(self, query: Query) -> Query:
        """The query with its answer; the query itself if it was not asked."""
        return self.known.get(query, query) if self.known else query


NO_ANSWERS = Answers()


class Found(Protocol):
    """The rows that a statement is finding."""

    @property
    def get(self) -> Any:
        """The first row, as its only value if it has one; None without rows."""

    def fetchall(self) -> list[Row]: ...


@dataclass(frozen=True, slots=True)
class DirectAccess:
    """Reading and setting rows of one relation, bound once: the fast path, which asks nobody where
    the relation lies. It is bound again when the schema changes.

    Law: `set` is `Store.set_row` and `get` is `Store.results`, but their errors are those in
    `raised`, which `fault` turns into ours.
    """

    set: Callable[[Row], object]
    get: Callable[[Row], Found]
    raised: tuple[type[Exception], ...]
    fault: Callable[[Exception], HarkenError]


class Store(Protocol):
    """Keeps the rows of relations.

    Law: a relation has the rows that were put in and not taken out, with a key one for each key
    (all columns are the key of a set); a rollback puts back what there was.
    """

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None: ...

    def drop(self, relation: Relation) -> None: ...

    def exists(self, relation: Relation) -> bool: ...

    def create_temporary(self, relation: Relation) -> None:
        """A relation of this session alone, empty, in place of one that may be left over."""

    def drop_temporary(self, relation: Relation) -> None: ...

    def exists_temporary(self, relation: Relation) -> bool: ...

    def direct(self, relation: Relation) -> DirectAccess:
        """The fast path to a relation that is not in the lake."""

    def count(self, relation: Relation) -> int: ...

    def is_empty(self, relation: Relation) -> bool: ...

    def rows(self, relation: Relation) -> list[Row]: ...

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool: ...

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        """The rows that have these values in these columns."""

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        """What follows the arguments in the rows that begin with them."""

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        """Put a row in, in place of the one with its key."""

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None: ...

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        """Take out the rows that begin with the arguments."""

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        """The rows (first, column[0]), (first + 1, column[1]), ..."""

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        """Put in those that are not there yet; all columns of the relation are its key."""

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...


class Evaluate(Protocol):
    """Answers plans.

    Law: every engine gives the same rows for the same plan over the same relations.
    """

    def compile(self, plan: Plan, most: int | None = None) -> Query:
        """A plan whose statement would have more than `most` items is refused as too complex."""

    def compile_into(self, plan: Plan, kept: Mapping[str, str], known: Mapping[str, str]) -> Query:
        """A plan whose recursions fill tables that are `kept` and read those that are `known`."""

    def compile_reading(self, plan: Plan, known: Mapping[str, str]) -> Query:
        """A plan that reads tables that are `known`."""

    def answer_together(self, queries: Iterable[Query]) -> Answers:
        """Answer what is cheaper to answer together. The queries have no parameters."""

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        """Make a Python function callable from plans; registering it again replaces it."""

    def explain_sql(self, plan: Plan) -> str: ...

    def measure(self) -> None:
        """Look at relations that have grown a good deal, to plan better. This is only speed."""


class Capture(Protocol):
    """Knows which relations have changed since the last propagation.

    Law: a relation is marked if and only if a row of it has changed; a rollback takes marks back.
    """

    def marked(self) -> dict[str, bool]:
        """The ids of the relations that have changed; true if the change passed its screener."""

    def unmark(self) -> None: ...

    def explain_screener(self, alternatives: tuple[Alternative, ...] | None) -> str:
        """The test that a changed row has to pass, as the engine runs it, for people to read."""


class Validity(Protocol):
    """Is what is kept still right?"""

    def holds(self) -> bool: ...


class DerivationCounts(Protocol):
    """Rows of a view, each with how often it is derived.

    Law: while it is valid, a row is in the view if and only if its count is not 0.
    """

    @property
    def validity(self) -> Validity: ...

    def size(self) -> int:
        """How many rows there are."""

    def total(self) -> int:
        """How many derivations they have."""


class Fetch(Protocol):
    """Relations whose rows lie elsewhere, and come here when they are needed.

    Law: an answer is the same whether its rows were fetched ahead or not.
    """

    @property
    def has_lake(self) -> bool:
        """Are there such relations at all?"""

    @property
    def has_spark(self) -> bool: ...

    @property
    def tally(self) -> Tally: ...

    def is_in_lake(self, relation: Relation) -> bool:
        """Does a relation lie elsewhere, and here only those rows that were asked for?"""

    def schema_of(self, relation: Relation) -> str:
        """In which part of the store the rows of a relation are that are here."""

    def holds_changes(self, changed: Collection[str]) -> bool:
        """Are the Δ-sets of these relations here, for whoever reads them?"""

    def forget_large(self, relation: str | None = None) -> None:
        """The change of a relation, or of all, has been propagated."""

    def expect(self, relation: Relation, rows: Sequence[Row]) -> None:
        """These rows, or keys, are going to be changed one by one: fetch what that takes."""

    def foresee(self, query: Query, many: Callable[[], Sequence[Sequence[Any]]]) -> None:
        """A query is going to be run with each of these values: fetch what that takes."""

    def reaches(self, plan: Plan) -> tuple[Reach, ...]:
        """How the rows of such relations that a plan reads are reached, for people to read."""


class LakeRelation(Protocol):
    """A relation whose rows are a version of a table in the lake, and what is pending."""

    @property
    def relation(self) -> Relation: ...

    @property
    def place(self) -> Any:
        """Where it comes from, and up to where it is read (`sources.place.Place`)."""

    @property
    def table(self) -> Any:
        """The open source (`sources.registry.Source`)."""

    @property
    def own(self) -> Any:
        """The table, if only Harken and its streams write it."""

    @property
    def pending(self) -> Any: ...

    @property
    def is_own(self) -> bool:
        """Does Harken write the table?"""

    @property
    def is_written(self) -> bool:
        """Is there a version at all?"""

    def newest(self) -> int:
        """Look what is new where the relation comes from; the version that has it."""

    def reopen(self, frame: Any = None) -> None:
        """Read from here on from this DataFrame."""

    def set_aside(self, version: int) -> dict[str, str]:
        """The files that a version lacks because they cannot be read, and why."""

    def size(self) -> int: ...

    def bytes(self) -> int: ...


class Lake(Protocol):
    """Makes relations that lie in the lake, and takes in what others changed there.

    Law: what is pending is in no version that the database stands on, and in the next one, once.
    """

    progress: Callable[[str, int, int], None] | None
    """Told how far a step is: the relation, the parts it has, and of how many."""

    @property
    def lake_relations(self) -> Mapping[str, LakeRelation]:
        """The relations in the lake, by id."""

    @property
    def reader(self) -> Any: ...

    @property
    def spark_reader(self) -> Callable[[], Any] | None:
        """What makes the reader, where there is Spark."""

    def create_own(self, relation: Relation) -> None: ...

    def create_in_lake(self, relation: Relation, path: str, kind: str, **options: Any) -> None: ...

    def new_path_named(self, name: str) -> str: ...

    def attach(self, relations: Iterable[Relation]) -> None:
        """Know the lake relations among these, and no others: the catalog was read again."""

    def establish(self, lake_relation: Any) -> None:
        """Have a table in the lake, be it an empty one, so that others can write to it."""

    def news(self, *, set_aside: bool = False) -> Sequence[tuple[Any, int]]:
        """The relations that have changed where they come from, and their newest versions."""

    def take_in(self, lake_relation: Any, version: int) -> tuple[list[Row] | int, Any]:
        """Move on to another version: the change with weights, or its size if it stays where it
        is; and which of the new rows the relation leaves out."""

    def move_on(self, lake_relation: Any, version: int) -> None:
        """Stand on another version from now on, in this transaction and after it."""

    def check_keys(self, lake_relation: Any) -> None:
        """That the version which is read has one row for each key, if the relation has a key."""

    def left_out(self, lake_relation: Any, given: Any = None) -> object | None:
        """Which rows the relation leaves out of the version that is read, or of those `given`."""

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        """Bring the tables of the lake up to date with what is committed here."""


class TransactionEnd(Protocol):
    """What an engine does around a commit, beside the commit itself.

    Law: what is committed is committed everywhere, whatever happens after.
    """

    def before_commit(self) -> None: ...

    def after_commit(self) -> None:
        """Write what was committed to where it belongs, unless that is dear and may wait."""

    def after_undo(self) -> None:
        """A rollback, also to a savepoint: let go of what was known of the undone state."""

    def forget(self) -> None:
        """Another process has committed: what is known of the file may be old."""

    def close(self) -> None: ...


SchemaVersions = tuple[int, int]
"""Numbers of the file's schema and of the session's own."""


class Transactions(Protocol):
    """One writer at a time; readers see one state.

    Law: a transaction happens as a whole or not at all; a savepoint undoes what came after it.
    """

    path: str
    in_memory: bool
    is_new: bool
    """Was the file made just now?"""
    read_only: bool
    only_reads: bool
    """Has the open transaction not taken the write lock yet?"""

    @property
    def in_transaction(self) -> bool: ...

    def begin(self, *, write: bool = True) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def savepoint(self, name: str = "step") -> AbstractContextManager[None]:
        """Undo the block if it fails."""

    def undone(self, name: str = "undone") -> AbstractContextManager[None]:
        """Undo the block, whatever happens."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all that is read in the block be of one state."""

    def set_savepoint(self, name: str) -> None: ...

    def undo_to(self, name: str) -> None:
        """Undo what came after it, and let go of it."""

    def release(self, name: str) -> None:
        """Let go of it; what came after it stays."""

    def is_empty(self) -> bool:
        """Is there nothing in the file yet?"""

    def lock(self) -> None:
        """Take the right to write now, and not when the first row changes."""

    def without_waiting(self) -> AbstractContextManager[None]:
        """Fail at once in the block where another writer is at work."""

    def data_version(self) -> int:
        """A number that changes whenever someone else commits."""

    def seen_version(self) -> int:
        """The same as of the last read, without asking the file again."""

    def schema_versions(self) -> SchemaVersions | None:
        """Numbers that change with every table, index or trigger, and come back when that is
        undone; None if they cannot be told."""

    def give_back_room(self) -> None:
        """Return free room to the file system."""

    def use(self, settings: Mapping[str, Any]) -> None: ...

    def mark_as_ours(self) -> None: ...

    def close(self) -> None: ...


class Limits(Protocol):
    """The time that statements see, and how much of it they may take."""

    watch: Watch
    """Stops statements that take too much."""
    asking: int
    """How many Python functions of running queries are at work; they may read, not change."""
    working_time: Callable[[], float]
    """The clock that queries are timed by."""
    rows_added: int
    """How many rows recursions have derived."""
    fetched: int
    """How often rows were fetched from elsewhere."""
    answered_elsewhere: int
    """How many queries were not answered here."""

    @property
    def is_limited(self) -> bool: ...

    def limited(self, seconds: float) -> AbstractContextManager[None]:
        """Break off (`BrokenOff`) what is read in the block and takes longer."""

    def now(self) -> datetime.datetime:
        """The time; fixed within a transaction, and within a query outside of one."""

    def at(self, moment: datetime.datetime) -> AbstractContextManager[None]:
        """In the block, let it be that time."""

    def fixed_time(self) -> AbstractContextManager[None]: ...


class SystemTables(Protocol):
    """SQL for the tables of the database file that are no relations: catalog, outbox, log.

    This is the one place where SQL text still crosses the seam. It is to become methods.
    """

    raw: Any
    foreign: dict[str, Any]

    @property
    def execute(self) -> Callable[..., Any]: ...

    def run(self, sql: str, values: Any = ()) -> None: ...

    def change(self, sql: str, values: Any = ()) -> int: ...

    def rows(self, sql: str, values: Any = ()) -> list[Row]: ...

    def read(self, sql: str, values: Any = ()) -> list[Row]: ...

    def run_many(self, sql: str, values: Iterable[Any]) -> None: ...

    def value(self, sql: str, values: Any = ()) -> Any: ...

    def has_table(self, name: str, schema: str = "main") -> bool: ...


class Numbers(Protocol):
    """Whole numbers of the database, by name. Law: a rollback undoes how they were set."""

    def create(self, first: Mapping[str, int]) -> None: ...

    def get(self, name: str) -> int | None: ...

    def set(self, name: str, value: int) -> None: ...

    def raise_to(self, name: str, value: int) -> None:
        """Set it, unless it is larger already."""


class Connection(Transactions, Limits, SystemTables, Protocol):
    """A session with the database file."""


class Indexes(Protocol):
    """How rows are found sooner. Law: an index never changes the rows."""

    temporary: set[str]
    """The ids of relations whose rows are the session's own."""

    def ensure(self, wanted: Iterable[tuple[Relation, tuple[int, ...]]]) -> bool: ...

    def of(self, relation: Relation) -> tuple[str, ...]: ...

    def reload(self) -> None: ...

    def make_postponed(self) -> None: ...


class Statistics(Protocol):
    """The numbers that the cost model works with. They are only speed: no row depends on them."""

    @property
    def updates(self) -> Mapping[str, Any]:
        """How often and by how many rows each relation changes."""

    def note(self, relation: str, rows: int) -> None:
        """So many rows of a relation have changed."""

    def tell(self, relation: Relation, rows: int) -> None:
        """A relation has so many rows."""

    def forget(self) -> None: ...

    def rows(self, relation: Relation) -> float: ...

    def sizes(self, relations: Mapping[str, Relation]) -> dict[str, float]: ...

    def fanout(self, relation: Relation, columns: Collection[int]) -> float:
        """About how many rows have the same values in these columns."""


class Engine(Store, Evaluate, Capture, Fetch, Lake, TransactionEnd, Protocol):
    """One engine, or several that are composed (`placement`)."""

    @property
    def connection(self) -> Connection: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def indexes(self) -> Indexes: ...

    @property
    def statistics(self) -> Statistics: ...
