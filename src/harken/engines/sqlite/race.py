"""Two ways to evaluate the same recursive query, in turns: on demand, and as a whole.

On demand, a recursion derives only what is asked for (`calculus.magic`). That is a millionth of the
work for one node of a large graph, and many times the work where the questions are more than the
answers: `tak(x, y, z, v)` asks for rows that only the rows of other questions name. No estimate
tells which it is, because both depend on rows that are not there yet. So evaluation starts on
demand, and when that has taken a moment, evaluation of whole relations starts beside it in tables
of its own. Each works as long as the other has; whoever ends first answers.

Law: the rows are the same either way, and evaluation takes a small multiple of the better one's
work. An error of the whole evaluation is not an error of the query: it computes rows that nobody
asked for.
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
"""The work that evaluation on demand may take before the whole is tried beside it: 20 ms."""
SHORT_START = 8
"""Where the whole has been faster before, this part of its work is left to evaluation on demand to
prove better."""
LEAD = 4
"""Whoever works is at most this part of its work ahead of the other when it stops."""
TO_THE_END = 2**62


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
    """The evaluation of whole relations beside one on demand, compiled when it is first tried."""

    compile: Callable[[], Candidate]
    query: Candidate | None = None
    is_out: bool = False
    """It has failed where evaluation on demand had not."""
    work: int | None = None
    """What it took when it was faster, the last time."""

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


class _Course:
    """One of the two on its way."""

    def __init__(self, query: Candidate, bind: Bind, is_careful: bool) -> None:
        self.connection = query.connection
        self.work = 0
        self.until = 0
        self.is_done = False
        insert = self._insert_within if is_careful else None
        self._steps = _steps(query, bind, insert)

    def advance(self, until: int) -> bool:
        """Go on until this much work is done; true at the end."""
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
        """Insert the rows of a statement that reads no portion of new rows, and so may take any
        time: they come here first, because SQLite cannot break off what changes a table without
        rolling back the transaction. None if it took too much, and is to be tried again."""
        most = max(HEAD_START, self.until - self.work)
        rows = self.connection.attempt(statement.select, values, most)
        if not rows:
            return None if rows is None else 0
        marks = ", ".join("?" for _ in rows[0])
        return self.connection.insert_many(
            f"INSERT OR IGNORE INTO temp.{quote(table.name)} VALUES ({marks})", rows
        )


def evaluate(query: Candidate, rival: Rival, bind: Bind) -> Candidate:
    """Run the fixpoints of one of the two to their end, and return it. The caller clears the
    tables of both."""
    demanded = _Course(query, bind, is_careful=False)
    if demanded.advance(TO_THE_END if rival.is_out else rival.head_start()):
        return query
    whole = _rivalling(rival, bind)
    ahead = max(HEAD_START, 2 * (rival.work or 0))
    while whole is not None:
        ahead = max(ahead, demanded.work + demanded.work // LEAD + 1)
        if not _goes_on(whole, ahead, rival):
            break
        if whole.is_done:
            rival.work = whole.work
            return rival.compiled()
        if demanded.advance(whole.work + whole.work // LEAD + 1):
            break
    demanded.advance(TO_THE_END)
    rival.work = None
    return query


def _rivalling(rival: Rival, bind: Bind) -> _Course | None:
    """The whole evaluation before its first step; None if its statements are too long for
    SQLite."""
    try:
        return _Course(rival.compiled(), bind, is_careful=rival.work is None)
    except EvaluationError as error:
        if not is_of_data(error):
            raise
        rival.is_out = True
        return None


def _goes_on(whole: _Course, until: int, rival: Rival) -> bool:
    """Advance, unless that fails: perhaps on a row that nobody asked for."""
    try:
        whole.advance(until)
    except EvaluationError as error:
        if not is_of_data(error):
            raise
        rival.is_out = True
        return False
    return True


def _steps(query: Candidate, bind: Bind, insert: Insert | None) -> Iterator[None]:
    for fixpoint in query.fixpoints:
        yield from fixpoint.steps(query.connection, bind, insert)
