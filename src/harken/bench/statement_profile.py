"""`harken bench statements-profile`: where the time of one small statement goes, in CPU time of its
thread, the least of several rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

import harken
from harken.bench.figures import Figure
from harken.lang.sql.statement_shapes import pieces

UPDATE = "UPDATE sale SET amount = {} WHERE id = {}"
SELECT = "SELECT id, shop, kind, amount FROM sale WHERE id = ?"
BY_HAND = 'UPDATE main."sale(integer)" SET c3 = ?1 WHERE c0 = ?2 AND c3 IS NOT ?1'
TURN = 1_000


def figures(items: int = 100_000, rounds: int = 15) -> Iterator[Figure]:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, kind INT, amount INT)")
        db.load("sale", [(i, i % 100, i % 10, i) for i in range(items)])
        for name, work in _parts(db, items).items():
            yield Figure("statements-profile", f"{name}, µs", _least(work, rounds) * 1e6)


def _parts(db: harken.Database, items: int) -> dict[str, Callable[[], object]]:
    """The whole, and parts of it by themselves."""
    numbers = count(items)
    internals = db.internals
    execute, watch = internals.connection.raw.execute, internals.connection.watch
    marks, text = UPDATE.format("?", "?"), UPDATE.format(1234567, 54321)

    def by_text() -> None:
        number = next(numbers)
        db.sql(UPDATE.format(number, number % items))

    def by_parameters() -> None:
        number = next(numbers)
        db.sql(marks, (number, number % items))

    def watched() -> None:
        with watch.statement():
            pass

    def by_hand() -> None:
        number = next(numbers)
        execute("BEGIN IMMEDIATE")
        execute(BY_HAND, (number, number % items))
        execute("COMMIT")

    return {
        "UPDATE by key, parameters": by_parameters,
        "UPDATE by key, text": by_text,
        "of it: SQLite, BEGIN to COMMIT": by_hand,
        "of it: a transaction that changes nothing": lambda: internals.transactions.alone(_nothing),
        "of it: limits and cancelling": watched,
        "of it: constants cut out of the text": lambda: pieces(text),
        "SELECT by key, parameters": lambda: db.sql(SELECT, (next(numbers) % items,)),
    }


def _nothing() -> None:
    """The work of an empty transaction."""


def _least(work: Callable[[], object], rounds: int) -> float:
    """The seconds of one run."""
    least = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(TURN):
            work()
        least = min(least, (time.thread_time() - start) / TURN)
    return least
