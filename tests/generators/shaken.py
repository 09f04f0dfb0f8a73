"""Random transactions on one table: NULLs, copies of rows, groups that empty and fill again, rows
that go and come back in the same transaction.

Law (`Watched.run`): after each, the change that was told is the difference of the view's rows, and
its stored copy has the rows that the query gives.
"""

from __future__ import annotations

from random import Random

from tests.harness.watched import Watched

SCHEMA = "CREATE TABLE t (g INT, x INT, y DOUBLE, m DECIMAL(9, 2), s STRING, d DATE, f BOOLEAN)"
POOLS = (
    ("1", "2", "NULL"),
    ("0", "1", "2", "5", "-3", "NULL"),
    ("0.5e0", "1.5e0", "1e0 / 3e0", "-2e0", "NULL"),
    ("0.50", "1.25", "-2.00", "NULL"),
    ("'a'", "'b'", "'é'", "''", "NULL"),
    ("DATE '2024-02-29'", "DATE '2023-12-31'", "NULL"),
    ("true", "false", "NULL"),
)
CONDITIONS = ("g = 1", "g IS NULL", "x > 1", "x IS NULL", "s = 'a'", "f", "y < 1", "true")
SETTINGS = ("g = 2", "g = NULL", "x = 5", "x = NULL", "y = y + 1e0", "s = 'b'", "x = x + 1")


def row(random: Random) -> str:
    return f"({', '.join(map(random.choice, POOLS))})"


def statement(random: Random) -> str:
    match random.randrange(5):
        case 0:
            return f"DELETE FROM t WHERE {random.choice(CONDITIONS)}"
        case 1:
            return f"UPDATE t SET {random.choice(SETTINGS)} WHERE {random.choice(CONDITIONS)}"
        case 2:  # away, and partly back
            once = row(random)
            return f"INSERT INTO t VALUES {once}, {once}; DELETE FROM t WHERE x > 1"
    rows = [row(random) for _ in range(1 + random.randrange(3))]
    return f"INSERT INTO t VALUES {', '.join([*rows, rows[0]])}"


def shake(watched: Watched, seed: int, transactions: int) -> None:
    random = Random(seed)
    for _ in range(transactions):
        some = (statement(random) for _ in range(1 + random.randrange(3)))
        watched.run("; ".join(some))
