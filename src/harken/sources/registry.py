"""The kinds of sources that can stand behind a relation in the lake.

| kind      | what it is                             | its changes                             |
| --------- | -------------------------------------- | --------------------------------------- |
| own       | a table that Harken writes             | the net rows that each commit noted     |
| delta     | a Delta table of someone else          | the change feed, or files that differ   |
| directory | files in a directory that grows        | new and vanished files                  |
| frame     | any DataFrame that the user registered | its rows now against those of last time |

A new kind is one module with a `SourceKind` and one line in `MODULES` below. A source without
versions of its own keeps its rows in a table of ours, whose versions are its versions
(`kept_table.KeptTable`); `capture` brings that table up to date.

Law: rows(capture()) are the rows that the source has now, and
     changes(a, b) = rows(b) − rows(a).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from harken.errors import TypeFault
from harken.packages import needs
from harken.sources.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

    from harken.engines.delta.snapshot import LakeFile
    from harken.engines.spark.reader import LakeReader

MODULES = {
    "own": "harken.sources.own_table",
    "delta": "harken.sources.delta_table",
    "directory": "harken.sources.directory",
    "frame": "harken.sources.frame",
}
"""The module of each kind, which holds it as `KIND`. A value from the user belongs to the first
kind that accepts it."""

Progress = Callable[[int, int], None]
"""Called with the number of finished parts of a capture, and their total."""
FreePath = Callable[[], str]
ChangeParts = list[tuple[list[str], int | None, int]]
"""Files, the weight of their rows (None: a column holds it), and their number of rows."""


class Source(Protocol):
    """An open source: rows at each of its versions, and the changes between two of them.

    A protocol: kinds need no common base class.
    """

    path: str
    schema: pa.Schema
    key: tuple[str, ...]

    # --- versions ---

    @property
    def version(self) -> int:
        """The newest version."""

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        """Look for changes and return the version that has them. With `set_aside`, unreadable
        files are skipped and noted."""

    def set_aside(self, version: int) -> dict[str, str]:
        """The files missing from a version because they cannot be read, and why."""

    def written(self, version: int) -> float | None:
        """When the latest rows of a version were written, in seconds of the Unix epoch, if
        known."""

    def note(self, version: int) -> dict[str, Any]:
        """The details of a version that the place must store before the database reads it."""

    def stand_on(self, place: Place) -> None:
        """Continue from the version of this place."""

    # --- rows ---

    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table:
        """The rows of a version, or those with one of the keys."""

    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]:
        """The files of a version that can hold one of the keys."""

    @property
    def plain_files(self) -> bool:
        """Are the rows exactly what a Parquet reader finds in `files`?"""

    @property
    def groups_read(self) -> int:
        """Number of row groups that `rows` has read so far, where that is counted."""

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        """The least and the greatest value of a column in each file, where they are known."""

    def may_be_null(self, version: int, column: str) -> bool: ...

    # --- changes ---

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows that lead from one version to another, with weights."""

    def change_size(self, from_version: int, to_version: int) -> int:
        """An upper estimate of the number of rows in `changes`."""

    def change_parts(self, from_version: int, to_version: int) -> ChangeParts | None:
        """Files that hold the changes, net only together; None if only `changes` has them."""


@dataclass(frozen=True, slots=True)
class Request:
    """The user's arguments for a new lake relation."""

    source: Any
    key: Sequence[str]
    format: str | None = None
    schema: Any = None
    version: int | None = None
    reader: Callable[[], LakeReader] | None = None
    """Creates the reader through Spark, where there is Spark."""


@dataclass(frozen=True, slots=True)
class Described:
    """The description of a source, before anything is created."""

    kind: SourceKind
    schema: pa.Schema
    path: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    version: int | None = None
    """The first version to read; None if a capture finds it."""
    rows: Any = None
    """The rows, if they were given directly and are copied once."""
    frame: Any = None
    """A DataFrame that is read again at each capture and lives only as long as the session."""


class SourceKind(Protocol):
    """How sources of one kind are recognised, made and opened."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """The name of the kind for people."""

    @property
    def has_versions(self) -> bool:
        """Can the user choose the first version?"""

    @property
    def keeps_files(self) -> bool:
        """Does the place hold files of ours, to be deleted with the relation?"""

    def accepts(self, given: Any) -> bool:
        """Does the user's value belong to this kind?"""

    def describe(self, request: Request) -> Described: ...

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        """Create what a relation with these columns needs; the first `keys` of them are its key.
        Returns its place and version. `free` finds an unused path for our files."""

    def is_at(self, place: Place, given: Any) -> bool:
        """Is the value that the user gives again the source of this place?"""

    def open(
        self,
        place: Place,
        key: Sequence[str],
        reader: Callable[[], LakeReader] | None,
        frame: Any,
    ) -> Source: ...


@cache
def kind_named(name: str) -> SourceKind:
    """Imported at first use, because Arrow and Delta take time to load."""
    with needs("lake"):
        found: SourceKind = import_module(MODULES[name]).KIND
    return found


def describe(request: Request) -> Described:
    """The description of the user's value, by the first kind that accepts it."""
    kinds = map(kind_named, MODULES)
    kind = next((each for each in kinds if each.accepts(request.source)), None)
    if request.version is not None and (kind is None or not kind.has_versions):
        raise TypeFault(
            "only a Delta table has versions to begin with",
            code="bad-value",
            hint="leave out version=",
        )
    if kind is None:
        raise TypeFault(
            f"{type(request.source).__name__} is no table",
            code="bad-value",
            hint="give the path of a Delta table or a directory, a DataFrame, or an Arrow table",
        )
    return kind.describe(request)


def kinds_that_keep_files() -> tuple[str, ...]:
    return tuple(name for name in MODULES if kind_named(name).keeps_files)


def open_source(
    place: Place,
    key: Sequence[str],
    reader: Callable[[], LakeReader] | None = None,
    frame: Any = None,
) -> Source:
    return kind_named(place.kind).open(place, key, reader, frame)
