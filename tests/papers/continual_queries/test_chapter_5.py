"""Chapter 5 of the thesis: differential relations and differential evaluation.

A differential relation is the difference of a query between two executions: `DELIVER CHANGED BY
(tid)` shows it as the thesis prints it, with old and new values side by side.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import pytest

from tests.harness.servers import PostgresDatabase
from tests.papers.continual_queries.conftest import QueryDesk

STOCKS = [
    ("120992", "DEC", 150),
    ("092394", "OLI", 145),
    ("032090", "ODI", 120),
    ("041977", "USL", 100),
]
TRANSACTION = """
    BEGIN;
    INSERT INTO Stocks VALUES ('101088', 'MAC', 117);
    UPDATE Stocks SET price = 149 WHERE tid = '120992';
    DELETE FROM Stocks WHERE tid = '092394';
    COMMIT
"""
"""Transaction T of example 4: Insert, Modify, Delete."""


@pytest.fixture
def stocks(desk: QueryDesk) -> QueryDesk:
    desk.sql("CREATE TABLE Stocks (tid STRING PRIMARY KEY, name STRING, price INT)")
    desk.db.insert("Stocks", STOCKS)
    return desk


def difference(desk: QueryDesk, query: str) -> list[tuple[Any, ...]]:
    """The differential relation of a query for transaction T: old and new rows, as the thesis
    prints them."""
    desk.sql(f"CREATE CONTINUAL QUERY q AS {query} TRIGGER ON REQUEST")
    desk.sql(TRANSACTION)
    done = desk.db.continual("q").run()
    old = {row[0]: row for row in done.deleted}
    new = {row[0]: row for row in done.inserted}
    return [(old.get(tid), new.get(tid)) for tid in sorted(old.keys() | new.keys())]


def test_example_4_the_differential_relation(stocks: QueryDesk) -> None:
    assert difference(stocks, "SELECT * FROM Stocks") == [
        (("092394", "OLI", 145), None),
        (None, ("101088", "MAC", 117)),
        (("120992", "DEC", 150), ("120992", "DEC", 149)),
    ]


def test_example_4_as_a_message(stocks: QueryDesk) -> None:
    out = stocks.directory / "out.jsonl"
    stocks.sql(
        "CREATE CONTINUAL QUERY q AS SELECT * FROM Stocks TRIGGER AFTER 1 CHANGE"
        f" DELIVER CHANGED BY (tid) NOTIFY FILE '{out}'"
    )
    stocks.fired(TRANSACTION)
    (_, line) = out.read_text().splitlines()
    assert json.loads(line)["changed"] == [
        {
            "old": {"tid": "120992", "name": "DEC", "price": 150},
            "new": {"tid": "120992", "name": "DEC", "price": 149},
        }
    ]


def test_example_5_insertions_deletions_and_combine(stocks: QueryDesk) -> None:
    stocks.sql("CREATE CONTINUAL QUERY q AS SELECT * FROM Stocks TRIGGER ON REQUEST")
    stocks.sql(TRANSACTION)
    done = stocks.db.continual("q").run()
    deletions, insertions = done.deleted, done.inserted
    assert sorted(deletions) == [("092394", "OLI", 145), ("120992", "DEC", 150)]
    assert sorted(insertions) == [("101088", "MAC", 117), ("120992", "DEC", 149)]
    combined = (set(STOCKS) - set(deletions)) | set(insertions)
    assert combined == set(stocks.sql("SELECT * FROM Stocks"))
    assert ("101088", "MAC", 117) in combined


def test_example_6_a_selection(stocks: QueryDesk) -> None:
    """Corrected: the old and the new values are each tested for themselves (definition 6); with
    the AND that is printed, OLI would not be told."""
    assert difference(stocks, "SELECT * FROM Stocks WHERE price > 120") == [
        (("092394", "OLI", 145), None),
        (("120992", "DEC", 150), ("120992", "DEC", 149)),
    ]


def test_example_7_a_projection(stocks: QueryDesk) -> None:
    """The price of DEC has changed, and is not in the projection."""
    assert difference(stocks, "SELECT tid, name FROM Stocks") == [
        (("092394", "OLI"), None),
        (None, ("101088", "MAC")),
    ]


def test_example_7_a_projection_of_a_selection(stocks: QueryDesk) -> None:
    """Corrected: printed is also DEC with the same old and new values, which by definition 4 is no
    difference."""
    query = "SELECT tid, name FROM (SELECT * FROM Stocks WHERE price > 120)"
    assert difference(stocks, query) == [(("092394", "OLI"), None)]


# --- 5.1 and example 8: joins ---------------------------------------------------------------------


def test_a_join_every_5_hours_with_one_new_object(
    desk: QueryDesk, plain_database: PostgresDatabase
) -> None:
    """5.1: R is at one site and S at another."""
    plain_database.run("CREATE TABLE s (k int PRIMARY KEY, b int)")
    plain_database.run("INSERT INTO s SELECT i, 10 * i FROM generate_series(1, 20) i")
    desk.mirror("s", plain_database)
    desk.sql("CREATE TABLE r (id INT PRIMARY KEY, k INT)")
    desk.db.insert("r", [(i, i) for i in range(1, 16)])
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT id, b FROM r JOIN s USING (k) TRIGGER EVERY 5 HOURS"
    )
    desk.sql("INSERT INTO r VALUES (99, 20)")
    assert desk.run(hours=4) == []
    (done,) = desk.run(hours=1)
    assert (done.inserted, done.deleted) == ([(99, 200)], [])


def test_example_8_three_of_four_relations_change(desk: QueryDesk) -> None:
    """The difference of a join is the sum of 2^k - 1 joins, here 7; algorithm 1 prints 2^n rows
    and a union, but deletions must be subtracted, and what is in the old state of one relation is
    what the other terms join with."""
    names = ("r1", "r2", "r3", "r4")
    before: dict[str, Counter[int]] = {}
    for number, name in enumerate(names):
        desk.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY, k INT)")
        rows = {i: (i * (number + 2)) % 3 for i in range(6)}
        desk.db.insert(name, list(rows.items()))
        before[name] = Counter(rows.values())
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT r1.k AS k FROM r1, r2, r3, r4"
        " WHERE r1.k = r2.k AND r2.k = r3.k AND r3.k = r4.k TRIGGER AFTER 1 CHANGE"
    )
    (done,) = desk.fired(
        "BEGIN; INSERT INTO r1 VALUES (10, 0), (11, 1); DELETE FROM r1 WHERE id = 0;"
        "UPDATE r2 SET k = 2 - k; DELETE FROM r3 WHERE k = 1; INSERT INTO r3 VALUES (10, 2); COMMIT"
    )
    found = Counter(k for (k,) in done.inserted)
    found.subtract(k for (k,) in done.deleted)
    after = {name: Counter(k for (k,) in desk.sql(f"SELECT k FROM {name}")) for name in names}
    assert {k: n for k, n in found.items() if n} == dict(dra(before, after))


def dra(
    before: dict[str, Counter[int]], after: dict[str, Counter[int]]
) -> Iterator[tuple[int, int]]:
    """Algorithm 1, corrected: the rows of the truth table but the one without a change."""
    for k in range(3):
        old = {name: counts[k] for name, counts in before.items()}
        delta = {name: counts[k] - old[name] for name, counts in after.items()}
        changed = [name for name in before if before[name] != after[name]]
        truth_table = [row for row in product((False, True), repeat=len(changed)) if any(row)]
        assert len(truth_table) == 2 ** len(changed) - 1 == 7
        total = 0
        for row in truth_table:
            chosen = dict(zip(changed, row, strict=True))
            total += prod(delta[name] if chosen.get(name) else old[name] for name in before)
        if total:
            yield k, total


# --- example 9 ------------------------------------------------------------------------------------


def test_example_9(stocks: QueryDesk) -> None:
    """Corrected: the initial execution of Q1 is printed with the tid of MAC; it is that of USL."""
    stocks.sql(
        "CREATE CONTINUAL QUERY q1 AS SELECT * FROM Stocks WHERE price < 120 TRIGGER EVERY DAY"
    )
    stocks.sql(
        "CREATE CONTINUAL QUERY q2 AS SELECT * FROM Stocks"
        ' WHERE name = "DEC" OR name = "MAC" TRIGGER EVERY DAY'
    )
    first = [
        each[0] for each in stocks.sql("SELECT result FROM continual_execution ORDER BY query")
    ]
    assert '"tid": "041977"' in first[0]
    assert '"tid": "120992"' in first[1]
    stocks.sql(TRANSACTION)
    one, two = sorted(stocks.run(days=1), key=lambda done: done.query)
    assert one.inserted == [("101088", "MAC", 117)]
    assert sorted(two.inserted) == [("101088", "MAC", 117), ("120992", "DEC", 149)]


@pytest.mark.parametrize("condition", ["price < 120", "(name = 'DEC' OR name = 'MAC')"])
def test_example_9_with_timestamps(desk: QueryDesk, condition: str) -> None:
    """MQ1 and MQ2, the other approach, which needs rows that are only ever added. Corrected: in
    MQ2 the AND binds closer than the OR, so the two names need parentheses."""
    desk.sql("CREATE TABLE Stocks (tid STRING PRIMARY KEY, name STRING, price INT, st TIMESTAMP)")
    desk.sql("INSERT INTO Stocks VALUES ('041977', 'USL', 100, TIMESTAMP '1998-05-04 11:00:00')")
    desk.sql("INSERT INTO Stocks VALUES ('101088', 'MAC', 117, TIMESTAMP '1998-05-04 13:00:00')")
    query = f"SELECT tid FROM Stocks p WHERE {condition} AND p.st < CURRENT_TIMESTAMP"
    before = desk.sql(query)
    desk.run(hours=2)
    assert set(desk.sql(query)) - set(before) == {("101088",)}


# --- 5.3, 5.5 and 5.6 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivered", "parts"),
    [
        ("INSERTED", {"inserted": 2, "deleted": 0}),
        ("DELETED", {"inserted": 0, "deleted": 2}),
        ("COMPLETE", {"inserted": 2, "deleted": 2, "rows": 4}),
        ("CHANGED BY (tid)", {"inserted": 1, "deleted": 1, "changed": 1}),
    ],
)
def test_what_the_user_wishes_to_see(
    stocks: QueryDesk, delivered: str, parts: dict[str, int]
) -> None:
    """Step 4 of algorithm 1: the differential result, deletions, or the complete set."""
    out = stocks.directory / "out.jsonl"
    stocks.sql(
        "CREATE CONTINUAL QUERY q AS SELECT * FROM Stocks TRIGGER AFTER 1 CHANGE"
        f" DELIVER {delivered} NOTIFY FILE '{out}'"
    )
    stocks.fired(TRANSACTION)
    told = json.loads(out.read_text().splitlines()[-1])
    assert {name: len(told.get(name) or ()) for name in parts} == parts


def test_an_irrelevant_update_executes_nothing(stocks: QueryDesk) -> None:
    """5.5.2: nothing is computed for what cannot change the answer."""
    stocks.sql(
        "CREATE CONTINUAL QUERY q AS SELECT * FROM Stocks WHERE price > 120 TRIGGER AFTER 1 CHANGE"
    )
    assert stocks.fired("UPDATE Stocks SET price = 99 WHERE name = 'USL'") == []


def test_a_deleted_row_that_is_added_again(stocks: QueryDesk) -> None:
    """5.2.1: of a row that came and went between two executions nothing is told."""
    stocks.sql("CREATE CONTINUAL QUERY q AS SELECT * FROM Stocks TRIGGER EVERY DAY")
    stocks.sql("DELETE FROM Stocks WHERE name = 'USL'")
    stocks.sql("INSERT INTO Stocks VALUES ('041977', 'USL', 100)")
    (done,) = stocks.run(days=1)
    assert done.outcome == "unchanged"


def test_the_delta_relation_of_stock(desk: QueryDesk, plain_database: PostgresDatabase) -> None:
    """5.6, step 1: OLD_SYMBOL, OLD_PRICE, NEW_SYMBOL, NEW_PRICE of the table STOCK at FINANCIAL."""
    plain_database.run("CREATE TABLE stock (symbol text PRIMARY KEY, price int)")
    plain_database.run("INSERT INTO stock VALUES ('DEC', 150)")
    desk.mirror("stock", plain_database)
    monitor = desk.db.monitor("stock")
    plain_database.run("UPDATE stock SET price = 149")
    desk.run(minutes=1)
    (change,) = monitor.changes()
    assert change.pairs(("symbol",)).updated == [(("DEC", 150), ("DEC", 149))]
