"""Relations whose rows lie elsewhere: fetching rows, taking changes in, writing them back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from harken.engines.access_paths import Reach
from harken.engines.protocol.prepared_queries import Query
from harken.engines.tally import Tally
from harken.ir.relations import Relation
from harken.planner.prepare import Plan
from harken.values.rows import Row


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

    def holds_changes(self, changed: Collection[str]) -> bool:
        """Are the Δ-sets of these relations here, for whoever reads them?"""

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
    """Creates relations in the lake, and processes what others changed there.

    Law: what is pending is in no version that the database stands on, and in the next one, once.
    """

    progress: Callable[[str, int, int], None] | None
    """Called with the progress of a step: the relation, the parts done, and the number of parts."""

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
