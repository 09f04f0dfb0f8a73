"""An engine: all protocols together, and what only makes it faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from harken.engines.protocol.capture import Capture, Histories
from harken.engines.protocol.database_copies import DatabaseCopies
from harken.engines.protocol.file_transactions import Connection, TransactionEnd
from harken.engines.protocol.keep import Keep
from harken.engines.protocol.lake_access import Fetch, Lake
from harken.engines.protocol.prepared_queries import Evaluate
from harken.engines.protocol.store import Numbers, Store
from harken.engines.protocol.waves import Waves
from harken.ir.relations import Relation


class Indexes(Protocol):
    """How rows are found sooner. Law: an index never changes the rows."""

    temporary: set[str]
    """The ids of relations whose rows are the session's own."""

    def ensure(self, wanted: Iterable[tuple[Relation, tuple[int, ...]]]) -> bool: ...

    def ensure_whole(self, relation: Relation, columns: tuple[int, ...]) -> None: ...

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
        """Set the number of rows of a relation."""

    def forget(self) -> None: ...

    def rows(self, relation: Relation) -> float: ...

    def sizes(self, relations: Mapping[str, Relation]) -> dict[str, float]: ...

    def fanout(self, relation: Relation, columns: Collection[int]) -> float:
        """About how many rows have the same values in these columns."""


class Engine(Store, Evaluate, Fetch, Lake, TransactionEnd, Protocol):
    """One engine, or several that are composed (`placement`)."""

    @property
    def connection(self) -> Connection: ...

    @property
    def capture(self) -> Capture: ...

    @property
    def histories(self) -> Histories: ...

    @property
    def keep(self) -> Keep: ...

    @property
    def waves(self) -> Waves: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def indexes(self) -> Indexes: ...

    @property
    def copies(self) -> DatabaseCopies: ...

    @property
    def statistics(self) -> Statistics: ...
