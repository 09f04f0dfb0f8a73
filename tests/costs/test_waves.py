"""A transaction is one propagation, however many materialised views lie above each other.

Law: the number of waves of a transaction does not grow with the height of the views it reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import harken
from harken import Database
from harken.propagation.network import Network
from tests.harness.counting import cost, counted

CHAIN_STATEMENTS = 23
"""What an UPDATE by key over a chain of three materialised views may take of SQLite, a monitor on
the last of them included, when its wave is compiled. Interpreted it takes 34."""
SMALL_STATEMENTS = 5
"""What one row set by the fast path may take, whatever views are above it: BEGIN, the change, the
marks, the compiled wave, COMMIT."""


@pytest.fixture
def chain() -> Iterator[Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        db.load("t", [(n, n) for n in range(200)], ["k", "v"])
        db.sql("CREATE MATERIALIZED VIEW a AS SELECT k, v + 1 AS v FROM t WHERE v < 100000")
        db.sql("CREATE MATERIALIZED VIEW b AS SELECT k, v + 1 AS v FROM a WHERE v < 100000")
        db.sql("CREATE MATERIALIZED VIEW c AS SELECT k, v + 1 AS v FROM b WHERE v < 100000")
        yield db


def test_a_chain_of_materialised_views_is_one_wave(
    chain: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves = []
    make = Network.make_wave
    monkeypatch.setattr(
        Network, "make_wave", lambda self, stored: waves.append(stored) or make(self, stored)
    )
    changes = chain.monitor("c")
    chain.sql("UPDATE t SET v = 500 WHERE k = 3")
    assert len(waves) == 1
    (change,) = changes.changes()
    assert (change.plus, change.minus) == ([(3, 503)], [(3, 6)])


def test_a_chain_of_materialised_views_takes_few_statements(chain: Database) -> None:
    chain.monitor("c")
    found = cost(chain, lambda: chain.sql("UPDATE t SET v = v + 1 WHERE k = 3"))
    assert found.statements <= CHAIN_STATEMENTS, found.texts


@pytest.mark.parametrize("views", [1, 12])
def test_a_wave_that_comes_again_is_one_statement(views: int) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL)")
        db.load("t", [(n, n % 3, n) for n in range(3000)])
        for number in range(views):
            query = f"SELECT g, sum(v + {number}) AS s, count(*) AS n FROM t GROUP BY g"
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
        table, values = db.function("t"), iter(range(1, 100))

        def work() -> None:
            table[3] = (1, next(values))

        for _ in range(10):
            work()
        found = cost(db, work)
        assert found.statements <= SMALL_STATEMENTS, found.texts
        assert "compiled" in str(db.explain("v0"))
        recomputed = "SELECT g, sum(v) AS s, count(*) AS n FROM t GROUP BY g"
        assert sorted(db.sql("SELECT * FROM v0").rows) == sorted(db.sql(recomputed).rows)


def test_tables_that_only_the_network_writes_have_no_triggers(chain: Database) -> None:
    triggers = chain.internals.connection.rows(
        "SELECT tbl_name FROM temp.sqlite_schema WHERE type = 'trigger'"
    )
    assert {name for (name,) in triggers} == {"t(integer)"}


def test_the_own_change_of_a_table_is_not_propagated_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was captured of a table is its change: it is read, once for each sign, never computed,
    and whoever follows the table costs no further wave."""
    waves = []
    make = Network.make_wave
    monkeypatch.setattr(
        Network, "make_wave", lambda self, stored: waves.append(stored) or make(self, stored)
    )
    with harken.connect(settings={"compiled_waves": False}) as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        db.load("t", [(n, n) for n in range(200)], ["k", "v"])
        changes = db.monitor("t")
        db.sql("UPDATE t SET v = 500 WHERE k = 3")
        assert len(waves) == 1
        (change,) = changes.changes()
        assert (change.plus, change.minus) == ([(3, 500)], [(3, 3)])
        found = cost(db, lambda: db.sql("UPDATE t SET v = v + 1 WHERE k = 3"))
    captured = 'SELECT t1.c0 AS c0, t1.c1 AS c1 FROM "Δt(integer):delta" AS t1 WHERE'
    assert sum(text.startswith(captured) for text in found.texts) == 2, found.texts
    assert not any('"Δt(integer):delta"' in text and '"t(integer)"' in text for text in found.texts)


def test_a_row_of_a_view_is_found_by_all_its_columns() -> None:
    """Its first column may have few values: the other rows with the same one are not looked at."""
    steps = []
    for rows in (300, 3000):
        with harken.connect() as db:
            db.sql("CREATE TABLE t (k INT PRIMARY KEY, g INT NOT NULL)")
            db.load("t", [(n, n % 3) for n in range(rows)])
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, k FROM t WHERE g >= 0")
            table, values = db.function("t"), count()

            def work(table: Any = table, values: Any = values) -> None:
                table[7] = next(values) % 3

            for _ in range(60):  # until it is not measured any more
                work()
            steps.append(cost(db, work).steps)
    assert steps[1] <= steps[0] * 1.1, steps


def test_a_grouped_view_is_created_in_one_pass() -> None:
    """Its rows are read from the totals that are kept for it."""
    rows = 3000
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL)")
        db.load("t", [(n, n % 3, n) for n in range(rows)])
        query = "SELECT g, sum(v) AS s, count(*) AS n FROM t GROUP BY g"
        db.sql("CREATE MATERIALIZED VIEW warm AS SELECT g, sum(v) AS s FROM t GROUP BY g")
        found = counted(db, lambda: db.sql(f"CREATE MATERIALIZED VIEW v AS {query}"))
        large = [text for text, steps in found.texts.items() if steps > rows]
        assert len(large) == 1, large
        assert sorted(db.sql("SELECT * FROM v").rows) == sorted(db.sql(query).rows)
