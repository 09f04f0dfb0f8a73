"""Where every part of a query is made of one table that changes, differentials grow and grow."""

from __future__ import annotations

import pytest

import harken

TABLE = "CREATE TABLE t (f BOOLEAN, a BIGINT, d DATE);"
# The members of the groups are themselves looked at again: which of them have no partner?
GROUPED = """
    CREATE VIEW grouped AS SELECT DISTINCT q2.f, min(q3.a) AS least, q2.a + min(1) AS more
    FROM t AS q2 JOIN t AS q3 ON q2.d = q3.d LEFT SEMI JOIN t AS q4 ON q2.a IS NOT NULL
    FULL JOIN t AS q5 ON q3.d = q5.d GROUP BY q2.f, q2.a;
"""


def outer(depth: int) -> str:
    """Full joins of a table with itself."""
    joins = "".join(f" FULL JOIN t AS q{i} ON q{i - 1}.d = q{i}.d" for i in range(1, depth))
    return f"CREATE VIEW deep AS SELECT q0.a, count(*) AS n FROM t AS q0{joins} GROUP BY q0.a;"


@pytest.mark.parametrize("strategy", ["adaptive", "incremental"])
@pytest.mark.parametrize(("view", "query"), [("grouped", GROUPED), ("deep", outer(5))])
def test_a_view_of_many_mentions_of_one_table(strategy: str, view: str, query: str) -> None:
    with harken.connect() as db:
        db.sql(TABLE + query)
        db.monitoring(strategy)
        changes = db.monitor(view)
        rows = sorted(db.sql(f"SELECT * FROM {view};").rows, key=repr)
        for statement in (
            "INSERT INTO t VALUES (true, 1, DATE '2024-02-28'), (NULL, 2, NULL)",
            "INSERT INTO t VALUES (false, 1, DATE '2024-02-28'), (true, NULL, DATE '2024-03-01')",
            "UPDATE t SET a = a + 1 WHERE f",
            "DELETE FROM t WHERE f IS NULL",
        ):
            db.sql(statement + ";")
            for change in changes.changes():
                for row in change.minus:
                    rows.remove(row)
                rows += change.plus
            now = db.sql(f"SELECT * FROM {view};").rows
            assert sorted(rows, key=repr) == sorted(now, key=repr)
