"""Totals in the file are followed by every session that writes, or taken off the list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import harken

TIMES = 12
"""After so many changes of the same table a wave is compiled."""


@pytest.mark.parametrize("total", ["sum(v)", "max(v)"])
def test_a_wave_compiled_without_them_does_not_leave_them_stale(tmp_path: Path, total: str) -> None:
    path = tmp_path / "stock.db"
    query = f"SELECT g, {total} AS total FROM t GROUP BY g"

    def change(db: harken.Database, k: int) -> None:
        db.sql(f"UPDATE t SET v = v + {k + 1} WHERE id = {k}")

    with harken.connect(path) as one:
        one.sql("CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL)")
        one.sql("INSERT INTO t SELECT id, id, id FROM range(20)")
        one.sql(f"CREATE MATERIALIZED VIEW m AS {query}")
        for k in range(TIMES):
            change(one, k)  # with groups of one row totals are not worth keeping
        with harken.connect(path) as two:
            two.sql("INSERT INTO t SELECT id + 100, id % 5, 1 FROM range(3000)")
        with harken.connect(path) as two:
            for k in range(TIMES):
                change(two, k)  # now they are, and another session builds them
            change(one, 0)
            for k in range(TIMES):
                change(two, k)
                assert Counter(two.sql("SELECT * FROM m").rows) == Counter(two.sql(query).rows)
