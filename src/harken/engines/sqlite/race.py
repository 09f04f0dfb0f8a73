"""Two evaluations of the same recursive query that race: on demand, and of whole relations.

On demand, a recursion derives only rows that the query can need (`calculus.magic`). For one node of
a large graph that can be a millionth of the work; where there are more demanded keys than rows, as
in `tak(x, y, z, v)`, it can be many times the work. No estimate can tell, because both depend on
rows that are not derived yet. So evaluation starts on demand. After a head start, the evaluation of
whole relations starts beside it, in tables of its own. The two alternate with about equal work, and
the first to finish answers.

Law: both give the same rows, and the race takes a small multiple of the faster one's work. An error
of the whole evaluation is not an error of the query: it also computes rows that the query does not
need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.recursion import Bind, Fetch, Fixpoint, Insert, Slotted, Statement, Table
from harken.engines.sqlite.sql_expressions import quote
from harken.errors import EvaluationError, is_of_data

HEAD_START = 200
"""The work of evaluation on demand before the whole evaluation starts beside it: 20 ms."""
SHORT_START = 8
"""If the whole evaluation was faster last time, the head start is its work divided by this."""
LEAD = 4
"""When one evaluation pauses, it is ahead of the other by at most its work divided by this."""
NO_LIMIT = 2**62


class Candidate(Protocol):
    """A compiled query, as a race sees it."""

    @property
    def connection(self) -> Connection: ...

    @property
    def sql(self) -> str: ...

    @property
    def slots(self) -> Slotted: ...

    @property
    def fetch(self) -> Fetch | None: ...

    @property
    def order(self) -> str: ...

    @property
    def fixpoints(self) -> tuple[Fixpoint, ...]: ...

    def clear(self) -> None: ...

    def release(self) -> None: ...


@dataclass(slots=True)
class Rival:
    """The evaluation of whole relations, compiled when a race first needs it."""

    compile: Callable[[], Candidate]
    query: Candidate | None = None
    has_failed: bool = False
    """Whether it has failed, so that it is not tried again."""
    work: int | None = None
    """Its work when it last won; None if it did not win the last race."""

    def head_start(self) -> int:
        if self.work is None:
            return HEAD_START
        return min(HEAD_START, max(1, self.work // SHORT_START))

    def compiled(self) -> Candidate:
        if self.query is None:
            self.query = self.compile()
        return self.query

    def clear(self) -> None:
        if self.query is not None:
            self.query.clear()

    def release(self) -> None:
        if self.query is not None:
            self.query.release()


class _Racer:
    """One of the two evaluations in a race, with the work that it has done."""

    def __init__(self, query: Candidate, bind: Bind, limits_inserts: bool) -> None:
        self.connection = query.connection
        self.work = 0
        self.until = 0
        self.is_done = False
        insert = self._insert_within if limits_inserts else None
        self._steps = _steps(query, bind, insert)

    def advance(self, until: int) -> bool:
        """Continue until this much work is done; true if it has finished."""
        self.until = until
        while not self.is_done and self.work < until:
            before = self.connection.work
            try:
                next(self._steps)
            except StopIteration:
                self.is_done = True
            self.work += max(1, self.connection.work - before)
        return self.is_done

    def _insert_within(
        self, table: Table, statement: Statement, values: tuple[object, ...]
    ) -> int | None:
        """Insert the rows of a statement that does not read a portion of new rows, and so may take
        any time. The rows are fetched first, because SQLite cannot interrupt a statement that
        changes a table without rolling back the transaction. None if the limit was exceeded; the
        statement is tried again later."""
        most = max(HEAD_START, self.until - self.work)
        rows = self.connection.attempt(statement.select, values, most)
        if not rows:
            return None if rows is None else 0
        marks = ", ".join("?" for _ in rows[0])
        return self.connection.insert_many(
            f"INSERT OR IGNORE INTO temp.{quote(table.name)} VALUES ({marks})", rows
        )


def evaluate(query: Candidate, rival: Rival, bind: Bind) -> Candidate:
    """Run the race, and return the query that finished. The caller clears the tables of both."""
    demanded = _Racer(query, bind, limits_inserts=False)
    if demanded.advance(NO_LIMIT if rival.has_failed else rival.head_start()):
        return query
    whole = _start_whole(rival, bind)
    ahead = max(HEAD_START, 2 * (rival.work or 0))
    while whole is not None:
        ahead = max(ahead, demanded.work + demanded.work // LEAD + 1)
        if not _advance_whole(whole, ahead, rival):
            break
        if whole.is_done:
            rival.work = whole.work
            return rival.compiled()
        if demanded.advance(whole.work + whole.work // LEAD + 1):
            break
    demanded.advance(NO_LIMIT)
    rival.work = None
    return query


def _start_whole(rival: Rival, bind: Bind) -> _Racer | None:
    """The whole evaluation, not started yet; None if its statements are too long for SQLite."""
    try:
        return _Racer(rival.compiled(), bind, limits_inserts=rival.work is None)
    except EvaluationError as error:
        if not is_of_data(error):
            raise
        rival.has_failed = True
        return None


def _advance_whole(whole: _Racer, until: int, rival: Rival) -> bool:
    """Advance the whole evaluation; false if it failed, perhaps on a row that the query does not
    need."""
    try:
        whole.advance(until)
    except EvaluationError as error:
        if not is_of_data(error):
            raise
        rival.has_failed = True
        return False
    return True


def _steps(query: Candidate, bind: Bind, insert: Insert | None) -> Iterator[None]:
    for fixpoint in query.fixpoints:
        yield from fixpoint.steps(query.connection, bind, insert)
