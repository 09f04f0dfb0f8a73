"""Rows that are written out in a query: joined with each other they stay rows, not clauses."""

from __future__ import annotations

import harken

ROWS = ", ".join(f"({i}, CAST({i} AS STRING), CAST('{i}.5' AS DECIMAL(5, 1)))" for i in range(12))


def test_joins_of_written_rows_stay_small() -> None:
    db = harken.connect()
    db.sql(f"CREATE VIEW v AS SELECT * FROM VALUES {ROWS} AS v(a, b, c)")
    query = (
        "SELECT x.a, y.b, z.c FROM v AS x LEFT JOIN v AS y ON x.a = y.a + 1 "
        "JOIN v AS z ON z.a < y.a WHERE x.a IN (SELECT a FROM v WHERE c > 3) "
        "AND NOT EXISTS (SELECT 1 FROM v WHERE v.b = 4)"
    )
    plan = [line for (line,) in db.sql(f"EXPLAIN {query}").rows]
    assert plan.index("As SQL:") < 200
    assert db.sql(query).rows == []
    assert len(db.sql(query.replace("b = 4", "b = 40")).rows) == 54


def test_few_written_rows_are_clauses() -> None:
    db = harken.connect()
    plan = [line for (line,) in db.sql("EXPLAIN SELECT a FROM VALUES (1), (2) AS v(a)").rows]
    assert plan[plan.index("As SQL:") + 1] == "SELECT 1 AS c0 UNION ALL SELECT 2 AS c0"
