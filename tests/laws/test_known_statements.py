"""Law: a statement that was seen before, but for its constants, does what it would do if it were
parsed and planned anew: the same rows, columns and types, or the same error at the same place.

Two databases get the same random statements, each several times with other constants. One keeps
planned statements, the other none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harken
from tests.generators.refilled import refilled, with_parameters
from tests.generators.sql_scripts import Script, Scripts

seeds = st.integers(0, 2**32 - 1)
TIMES = 3
"""Each statement is run so often."""


def outcome(db: harken.Database, text: str, values: Any = None) -> Any:
    try:
        found = db.sql(text, values)
    except harken.HarkenError as error:
        # Which of several rows is found first is open, as their order is.
        message = error.message.partition(" = ")[0] if error.code == "row-exists" else error.message
        return error.code, message, error.hint, error.span
    return [
        (each.columns, [str(type_) for type_ in each.types], Counter(map(repr, each.rows)))
        for each in found
    ]


class Twins:
    """The database that keeps statements, and the one that does not."""

    def __init__(self, script: Script) -> None:
        self.both = [harken.connect(settings={"statement_cache": n}) for n in (1000, 0)]
        self.tables = [table.name for table in script.tables]
        self.views = [view.name for view in script.views]
        self.tally: Counter[str] = Counter()
        for table in script.tables:
            self.run(table.definition())
        for view in script.views:
            self.run(f"CREATE VIEW {view.name} AS {view.query}")

    def run(self, text: str, values: Any = None) -> None:
        kept, anew = (outcome(db, text, values) for db in self.both)
        assert kept == anew, (text, values, kept, anew)
        self.tally["refused" if isinstance(anew, tuple) else "done"] += 1

    def compare(self) -> None:
        for name in (*self.tables, *self.views):
            self.run(f"SELECT * FROM {name}")

    def close(self) -> None:
        for db in self.both:
            db.close()


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()
    yield counts
    assert counts["done"] >= counts["refused"], counts
    assert counts["known"] >= 0.5 * counts["texts"], counts


@given(seeds)
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_known_statement_does_what_a_new_one_does(tally: Counter[str], seed: int) -> None:
    random = Random(seed)
    script = Scripts(random).script(views=3, transactions=10)
    twins = Twins(script)
    try:
        for transaction in script.transactions:
            for text in transaction.statements:
                run_often(twins, text, random)
            twins.compare()
        for view in script.views:
            run_often(twins, view.query, random)
        tally += twins.tally
        counts = twins.both[0].internals.runtime.statement_counts
        tally["known"] += counts.known
        tally["texts"] += counts.texts
        tally["unfit"] += counts.unfit
    finally:
        twins.close()


def run_often(twins: Twins, text: str, random: Random) -> None:
    twins.run(text)
    for _ in range(TIMES):
        other = refilled(text, random)
        if other is None:
            return
        twins.run(other)
        given_values = with_parameters(other)
        if given_values is not None:
            twins.run(*given_values)


SCHEMA = """
CREATE TABLE t (id INT PRIMARY KEY, s STRING DEFAULT 'none', c DECIMAL(8, 2), n DOUBLE, d DATE,
                f BOOLEAN, at TIMESTAMP);
CREATE TABLE u (a INT, b STRING);
CREATE VIEW v AS SELECT s, sum(c) AS c, count(*) AS n FROM t GROUP BY s;
INSERT INTO t VALUES (1, 'a', 1.5, 2.5e0, '2024-01-02', TRUE, '2024-01-02 03:04:05'),
                     (2, 'b', 2, NULL, NULL, FALSE, NULL),
                     (3, NULL, NULL, 1e0, '2023-05-06', NULL, NULL);
INSERT INTO u VALUES (1, 'x'), (1, 'x'), (2, 'y')
"""
TEMPLATES = (
    "SELECT * FROM t WHERE id = 1",
    "SELECT id FROM t WHERE c > 1.50 AND n <= 2 OR s = 'a'",
    "SELECT id FROM t WHERE c = 2 AND NOT (d < '2024-01-01')",
    "SELECT id FROM t WHERE d BETWEEN '2023-01-01' AND '2024-12-31' AND at > '2024-01-01'",
    "SELECT id, 5 AS five FROM t WHERE id IN (1, 2, 3, 4) ORDER BY 1 DESC LIMIT 2",
    "SELECT id FROM t WHERE id NOT IN (1, 7) AND s <> 'b'",
    "SELECT id FROM t WHERE s LIKE 'a%' AND id < 10",
    "SELECT id + 1, 5 FROM t WHERE id + 1 = 3",
    "SELECT s = 'a', count(*) FROM t WHERE id > 0 GROUP BY s = 'a' HAVING count(*) > 0",
    "SELECT id FROM t WHERE id = '1' OR n = '2.5'",
    "SELECT id FROM t WHERE id = 1.0 AND n < 7",
    "SELECT (SELECT max(a) FROM u WHERE a > 0) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a = 1)",
    "SELECT u.b, t.s FROM t JOIN u ON t.id = u.a AND u.a > 0 WHERE u.b = 'x'",
    "WITH w AS (SELECT a FROM u WHERE a < 5) SELECT count(*) FROM w WHERE a > 0",
    "SELECT id FROM t WHERE id = 1 UNION SELECT a FROM u WHERE a = 2",
    "SELECT * FROM v WHERE n > 0 AND s = 'a'",
    "SELECT DATE '2024-01-02' = d FROM t WHERE d = DATE '2024-01-02' AND id < 3",
    "SELECT id, row_number() OVER (ORDER BY id) AS r FROM t WHERE id > 0 QUALIFY r <= 2",
    "SELECT CASE WHEN id > 1 THEN 'big' ELSE 'small' END FROM t WHERE - 5 < id",
    "VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO t VALUES (4, 'd', 1.25, 2, '2024-02-03', TRUE, NULL)",
    "INSERT INTO t (id, c) VALUES (5, 3), (6, 4)",
    "INSERT INTO t (id, s) VALUES (7, 8), (8, 'x')",
    "INSERT INTO t (id, n, d) VALUES (9, 1.5, '2024-03-04') RETURNING id, n + 1",
    "INSERT INTO t (id, c) VALUES (1, 2.25) ON CONFLICT (id) DO UPDATE SET c = excluded.c + 1",
    "INSERT INTO t (id, c) VALUES (1, 2.25), (11, -3) ON CONFLICT DO NOTHING",
    "INSERT INTO u SELECT id, s FROM t WHERE id > 1",
    "INSERT INTO u VALUES (1 + 1, upper('z')), (3, NULL)",
    "INSERT INTO u VALUES (- '2', -3)",
    "UPDATE t SET s = 'new', c = 2.5 WHERE id = 2",
    "UPDATE t SET c = c + 1.25, n = n * 2 WHERE id < 3",
    "UPDATE t SET d = '2024-05-06', c = 7, n = 3 WHERE s = 'a'",
    "UPDATE t SET id = id + 1 WHERE id > 2",
    "UPDATE t SET id = 2 WHERE id = 1",
    "UPDATE t SET s = NULL, f = FALSE WHERE id = 3",
    "UPDATE t SET n = (SELECT max(n) FROM t) WHERE id = 1",
    "UPDATE t SET s = 'up' WHERE id = 1 RETURNING id, s",
    "UPDATE t SET s = u.b FROM u WHERE u.a = t.id AND u.a = 2",
    "UPDATE u SET b = 'q' WHERE a = 1",
    "UPDATE t SET c = 99999999 WHERE id = 1",
    "DELETE FROM t WHERE id = 9",
    "DELETE FROM u WHERE a = 1 AND b = 'x'",
    "DELETE FROM t WHERE c < (SELECT avg(c) FROM t) AND id > 5",
    "DELETE FROM t WHERE id = 8 RETURNING *",
    "MERGE INTO t USING (VALUES (1, 5.5), (21, 6.5)) AS w (k, c) ON t.id = w.k "
    "WHEN MATCHED AND w.c > 1 THEN UPDATE SET c = w.c, s = 'm' "
    "WHEN NOT MATCHED THEN INSERT (id, c) VALUES (w.k, 1.5)",
    "MERGE INTO t USING u ON t.id = u.a AND u.a > 1 WHEN MATCHED THEN DELETE",
    "BEGIN; UPDATE u SET a = 5 WHERE b = 'y'; ROLLBACK",
    "INSERT INTO u VALUES (1, 'two'); SELECT count(*) FROM u WHERE a = 1",
)


@given(seeds)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_kind_of_statement_when_it_is_known(seed: int) -> None:
    random = Random(seed)
    twins = Twins(Script((), (), (), "adaptive"))
    twins.tables, twins.views = ["t", "u"], ["v"]
    try:
        for each in SCHEMA.split(";"):
            twins.run(each)
        for text in random.sample(TEMPLATES, 20):
            run_often(twins, text, random)
            twins.compare()
    finally:
        twins.close()
