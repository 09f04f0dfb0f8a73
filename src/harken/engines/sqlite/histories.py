"""Histories: the net change of a stored relation since the transaction, or the statement, began.

`old(f(x))` and `delta_plus(f)` read them. A history is kept by triggers from the moment when a plan
first reads it, for as long as the session has the table. No screener stands before it, because any
old value may be asked for.

Law: the rows with a weight are the difference between the table now and when the history was last
cleared; a rollback takes back what came since.
"""

from __future__ import annotations

from collections.abc import Callable

from harken.calculus.past_states import histories
from harken.engines.sqlite.change_capture import EVENTS, CapturedDelta
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.table_names import stored_name
from harken.errors import SafetyFault
from harken.ir.clauses import Program
from harken.ir.past_relations import made_of
from harken.ir.relations import Relation


class History(CapturedDelta):
    """The net change of one relation, without marks and without a screener."""

    def __init__(self, connection: Connection, change: Relation) -> None:
        super().__init__(connection, made_of(change), change=change)
        self.change = change
        self.began_late = False
        """Whether the open transaction had begun when it was begun: what came before is not in."""

    def _marks(self, rows: list[str]) -> list[str]:
        return []

    def _trigger(self, event: str) -> str:
        return self.trigger_name(event, self._trigger_table)

    def _trigger_names(self) -> tuple[str, ...]:
        return tuple(f"{event} {stored_name(self._trigger_table)}" for event in EVENTS)

    @property
    def _trigger_table(self) -> str:
        """No table that a user names has a colon after its bracket."""
        return f"{table_name(self.relation)}:{self.change.since}"

    @property
    def fits(self) -> bool:
        """Whether the relation still has its table."""
        return self.connection.has_table(stored_name(table_name(self.relation)))


class Histories:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, History] = {}
        self.is_elsewhere: Callable[[Relation], bool] = lambda _: False

    def ensure(self, program: Program) -> None:
        """Keep the histories that a program reads, from now on."""
        for change in histories(program):
            known = self._known.get(change.id)
            if known is None or known.change != change:
                self._begin(change, known)

    def _begin(self, change: Relation, known: History | None) -> None:
        relation = made_of(change)
        if self.is_elsewhere(relation):
            raise SafetyFault(
                f"{relation.label} is stored in the lake, where no old values are known",
                code="unsafe",
                hint="use old values and delta_plus of functions that are stored here",
            )
        if known is not None:
            known.unwatch()
        made = History(self._connection, change)
        made.capture()
        made.began_late = self._connection.in_transaction and not self._connection.only_reads
        self._known[change.id] = made

    def began_late(self, program: Program) -> Relation | None:
        """A relation of which the open transaction does not know all changes."""
        for change in histories(program):
            known = self._known.get(change.id)
            if known is not None and known.began_late:
                return known.relation
        return None

    def forget(self, since: str | None = None) -> None:
        """The transaction, or only the statement, is over: its old values are no more."""
        for each in self._known.values():
            if since is None or each.change.since == since:
                each.clear()
                each.began_late = False

    def follow(self) -> None:
        """Tables may have come, gone, or been rolled back with their triggers."""
        for name, each in list(self._known.items()):
            if each.fits:
                each.capture()
            else:
                each.unwatch()
                del self._known[name]
