"""What Spark needs to know to answer a plan: the data that other parts of Harken hold.

Spark stores nothing itself. Whoever asks it says which relations lie in the lake and at which
version, what the resident engine holds of the others, and which changes are too large to travel.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from harken.engines.delta.snapshot import LakeFile
from harken.engines.protocol import Query
from harken.engines.tally import Tally
from harken.ir.relations import Relation
from harken.planner.demand import Demand
from harken.planner.prepare import Plan
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.spark.reader import LakeReader


class VersionedTable(Protocol):
    """A table of files in the lake that can be read at any of its versions."""

    @property
    def path(self) -> str: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def version(self) -> int: ...
    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]: ...
    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table: ...


class ChangingTable(VersionedTable, Protocol):
    """One whose changes between two versions can be read."""

    def changes(self, from_version: int, to_version: int) -> pa.Table: ...

    def change_parts(
        self, from_version: int, to_version: int
    ) -> list[tuple[list[str], int | None, int]] | None:
        """Files with the weight of their rows (None: a column says it) and how many they are;
        None if the changes are in no files."""


class LakeRelation(Protocol):
    """A relation whose rows are a version of a table in the lake, and what is pending."""

    @property
    def relation(self) -> Relation: ...
    @property
    def table(self) -> ChangingTable: ...
    @property
    def version(self) -> int:
        """The version that is read."""

    @property
    def columns(self) -> list[str]:
        """The names of the relation's columns in the table."""

    @property
    def is_written(self) -> bool:
        """Is there a version at all?"""

    @property
    def is_own(self) -> bool:
        """Does Harken write the table? Rows that others write may be unsound."""

    def pending_rows(self) -> list[Row]:
        """Committed here and not in the version yet; the weight is last."""

    def keys(self, columns: Sequence[int], values: list[Row]) -> pa.Table: ...


class LargeChange(Protocol):
    """The way of a relation from one version to another, which only Spark reads."""

    @property
    def lake_relation(self) -> LakeRelation: ...
    @property
    def before(self) -> int: ...
    @property
    def after(self) -> int: ...

    kept: Any
    """The DataFrame of its rows, once they have been read."""


class AskedPlan(Protocol):
    """A plan, and which keys of lake relations it can need."""

    @property
    def relation(self) -> Relation: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def asked(self) -> Sequence[tuple[Demand, Query | None]]:
        """Each demand with the query that finds its keys; None if it is for all rows."""


class Inputs(Protocol):
    """All that a plan may read, and how it is counted."""

    @property
    def reader(self) -> LakeReader: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def lake_relations(self) -> Mapping[str, LakeRelation]:
        """The lake relations, by id."""

    @property
    def large(self) -> Mapping[str, LargeChange]:
        """Changes that did not come here, by the id of their Δ-set."""

    @property
    def python(self) -> Mapping[str, tuple[Callable[..., Any], Sequence[Callable[[Any], Any]]]]:
        """The functions behind foreign relations, by id, with the decoders of their arguments."""

    def now(self) -> datetime.datetime: ...

    def resident_rows(self, relation: Relation) -> list[Row]:
        """The rows that the resident engine holds of a relation, as stored."""
