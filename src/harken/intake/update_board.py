"""`source_update` and `source_state`: relations that say when a source last changed, and how it
goes.

They are the notification board of the thesis (section 6.2.3.5): what waits for changes of a source
watches a row here. Users read them like any other table, and only Harken writes them.

Law: `source_update` changes in the transaction that takes changes in, `source_state` with a state.
"""

from __future__ import annotations

from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import NameFault
from harken.intake.source_records import Progress
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import encode_timestamp
from harken.values.types import TEXT, TIMESTAMP

UPDATES, STATES = "source_update", "source_state"
SOURCE, RELATION = Column("source", TEXT), Column("relation", TEXT)
UPDATE_BOARD = Function(
    UPDATES,
    (SOURCE, RELATION),
    (Column("at", TIMESTAMP),),
    FunctionKind.STORED,
    text=f"create function {UPDATES}(charstring source, charstring relation) -> timestamp at",
)
STATE_BOARD = Function(
    STATES,
    (SOURCE,),
    (Column("state", TEXT), Column("since", TIMESTAMP), Column("why", TEXT)),
    FunctionKind.STORED,
    text=f"create function {STATES}(charstring source) -> <charstring state, timestamp since, "
    "charstring why>",
)


class UpdateBoard:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def declare(self) -> None:
        """In a transaction: create the two relations, unless they exist."""
        catalog = self._runtime.catalog
        for function in (UPDATE_BOARD, STATE_BOARD):
            if catalog.has_function(function.id):
                continue
            if catalog.named(function.name):
                raise NameFault(
                    f"sources keep their state in {function.name}, and there is something else of "
                    "that name",
                    code="exists",
                    hint=f"give {function.name} another name, or drop it",
                )
            store(self._runtime, function, resident=True)

    def note(self, source: str) -> None:
        at = encode_timestamp(self._runtime.engine.connection.now())
        self._set(UPDATE_BOARD, (source, source, at))

    def note_state(self, source: str, progress: Progress) -> None:
        self._set(STATE_BOARD, (source, progress.state, progress.since, progress.why))

    def remove(self, source: str) -> None:
        for function, key in ((UPDATE_BOARD, (source, source)), (STATE_BOARD, (source,))):
            relation = self._relation(function)
            if relation is not None:
                for rest in self._runtime.engine.results(relation, key):
                    self._runtime.engine.remove_row(relation, (*key, *rest))

    def _set(self, function: Function, row: tuple[object, ...]) -> None:
        relation = self._relation(function)
        if relation is not None:
            self._runtime.engine.set_row(relation, row)

    def _relation(self, function: Function) -> Relation | None:
        catalog = self._runtime.catalog
        if not catalog.has_function(function.id):
            return None
        return catalog.function(function.id).relation
