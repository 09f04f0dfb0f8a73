"""The moment up to which the views of a session have been brought: the row of the clock.

Views over `now()` read it (`calculus.clock`). A wave that reaches one of them first moves the
clock to the present of its transaction, so it finds what the transaction and the passing time did
together; and a wave may be asked for only to move it.

The row is in a temporary table, so that a rollback takes it back. Where other sessions bring the
same views up to date (rules, constraints, materialised views, monitors that outlive a session), the
moment is in the file as well, and the file is right.

Law: the rows of a view over the clock, as last reported, are those of the tables then at this
moment.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from harken.calculus.clock import CLOCK
from harken.engines.protocol import Engine, Field, RecordKind
from harken.errors import HarkenError
from harken.maintenance.nodes import ViewNode
from harken.propagation.captures import Captures
from harken.propagation.graph import Graph
from harken.values.encoding import decode_timestamp, encode_timestamp

IN_FILE = RecordKind(
    "harken_clock", (Field("name", "text"), Field("moment", "integer")), key=("name",)
)
NAME = "views"


class Clock:
    def __init__(self, engine: Engine, graph: Graph, captures: Captures) -> None:
        self._engine = engine
        self._graph = graph
        self._captures = captures
        self._is_open = False
        self._version = -1
        self._near: frozenset[str] = frozenset()
        self._is_shared = False
        self._has_missed = False
        self.complaints: list[HarkenError] | None = None
        """In a transaction in which only time passes, what consumers have against it."""
        self.changes = 0
        """Grows when what the views over the clock read may have changed."""
        self._recorded = -1
        """The version of the graph for which the file has the moment, or has not."""
        graph.prepare_clock = self.prepare
        self.is_wanted = False
        """Whether the next wave is to move the clock, whatever has changed."""

    # --- the moment --------------------------------------------------------------------------

    def open(self) -> None:
        """Have a moment, before anything reads it."""
        if self._is_open and self._engine.exists_temporary(CLOCK):
            return
        self._is_open = True
        if not self._engine.exists_temporary(CLOCK):
            self._engine.create_temporary(CLOCK)
            self._set(self._in_file() or self._now())
        self._engine.statistics.tell(CLOCK, 1)

    def moment(self) -> datetime.datetime:
        """The moment of the last wave that moved it."""
        self.open()
        return decode_timestamp(self._row())

    @contextmanager
    def at_present(self) -> Iterator[None]:
        """Read the clock of now, as a view is read that nobody follows."""
        self.open()
        held = self._row()
        self._set(self._now())
        try:
            yield
        finally:
            self._set(held)

    def _row(self) -> int:
        ((found,),) = self._engine.matching(CLOCK, {})
        return int(found)

    def _set(self, at: int) -> None:
        for row in self._engine.matching(CLOCK, {}):
            self._engine.remove_row(CLOCK, row)
        self._engine.set_row(CLOCK, (at,))

    def _now(self) -> int:
        return encode_timestamp(self._engine.connection.now())

    def _in_file(self) -> int | None:
        records = self._engine.connection.records
        found = records.find(IN_FILE, {"name": NAME}) if records.exist(IN_FILE) else []
        return int(found[0][1]) if found else None

    def prepare(self) -> None:
        """A view over the clock is about to be connected. The first one starts at the present, and
        the others are brought to it with the transaction that defines this one."""
        connection = self._engine.connection
        self.is_wanted |= connection.in_transaction
        if self._is_open and not self.is_read and self._engine.exists_temporary(CLOCK):
            self._set(self._in_file() or self._now())
        self.open()

    def before_commit(self) -> None:
        """The file has the moment while there are views that all sessions bring up to date."""
        if not self._is_open or self._recorded == self._graph.version:
            return
        self._look_at_graph()
        self._recorded = self._graph.version
        records = self._engine.connection.records
        if self._is_shared and self._in_file() is None:
            records.make_room(IN_FILE)
            records.add(IN_FILE, (NAME, self._row()), replace=True)
        elif not self._is_shared and self._in_file() is not None:
            records.remove(IN_FILE, {"name": NAME})

    def follow(self) -> None:
        """Another session may have moved the clock of the file. The views that only this session
        has have missed that: the next wave has their consumers start over."""
        if not self._is_open or not self.is_read:
            return
        self._look_at_graph()
        moved = self._in_file() if self._is_shared else None
        if moved is not None and moved != self._row():
            self._has_missed |= bool(self._own_views())
            self._set(moved)

    def is_behind(self) -> bool:
        """Whether views that only this session has have missed something."""
        return self._has_missed and bool(self._own_views())

    def after_commit(self) -> None:
        self._has_missed = False

    def restore(self) -> None:
        """After a rollback, which may have taken the table."""
        self.changes += 1
        self.is_wanted = False
        if self._is_open:
            self._is_open = False
            self.open()
            self.follow()

    @contextmanager
    def passing(self) -> Iterator[list[HarkenError]]:
        """A transaction in which only time passes: nobody can be refused it. Yields the complaints
        of consumers that would refuse a transaction."""
        self.complaints = []
        try:
            yield self.complaints
        finally:
            self.complaints = None
            self.is_wanted = False

    # --- in a wave ---------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether any watched view depends on the clock."""
        return CLOCK.id in self._graph.affects

    def concerns(self, changed: Collection[str]) -> bool:
        """Whether a view over the clock reads any of these relations."""
        if not self.is_read:
            return False
        self._look_at_graph()
        if self._near.isdisjoint(changed):
            return False
        self.changes += 1
        return True

    def move(self) -> list[ViewNode]:
        """In a transaction, before a wave: show the present. The change is captured. If another
        session has moved the clock of the file meanwhile, returns the views that only this one
        has: their consumers have missed what happened until then."""
        self.is_wanted = False
        self.open()
        self._look_at_graph()
        self.follow()
        start, now = self._row(), self._now()
        if start != now:
            self._set(now)
            self._captures.note_rows(CLOCK, [(start,)], [(now,)])
        if self._is_shared:
            records = self._engine.connection.records
            records.make_room(IN_FILE)
            records.add(IN_FILE, (NAME, now), replace=True)
        return self._own_views() if self._has_missed else []

    def _own_views(self) -> list[ViewNode]:
        nodes = self._graph.nodes.values()
        return [n for n in nodes if CLOCK.id in n.part.stored and not self._graph.is_shared(n.view)]

    def _look_at_graph(self) -> None:
        if self._version == self._graph.version:
            return
        self._version = self._graph.version
        readers = [node for node in self._graph.nodes.values() if CLOCK.id in node.part.stored]
        self._near = frozenset(name for node in readers for name in node.part.stored) - {CLOCK.id}
        self._is_shared = any(self._graph.is_shared(node.view) for node in readers)
