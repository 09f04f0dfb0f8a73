"""MERGE: each row is of the first WHEN that is about it, and * means all columns."""

from __future__ import annotations

import pytest

import harken

SCHEMA = """
CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE u (v INT, id INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO u VALUES (11, 1), (44, 4), (55, 5);
"""
HEAD = "MERGE INTO t USING u ON t.id = u.id"
MERGED = {
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *": [
        (1, 11), (2, 20), (3, 30), (4, 44), (5, 55),
    ],
    "WHEN NOT MATCHED AND u.id > 4 THEN INSERT * "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)": [
        (1, 10), (2, 20), (3, 30), (4, None), (5, 55),
    ],
    "WHEN NOT MATCHED BY SOURCE AND t.v > 20 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = v + 1": [(1, 10), (2, 21)],
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET id = 1": [
        (1, 20), (3, 30),
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", MERGED)
def test_each(text: str) -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    db.sql(f"{HEAD} {text}")
    assert sorted(db.sql("SELECT * FROM t").rows) == MERGED[text]


def test_star_takes_all_columns() -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    with pytest.raises(harken.NameFault, match="the source has no column v"):
        db.sql(
            "MERGE INTO t USING (SELECT id FROM u) AS s ON t.id = s.id WHEN MATCHED THEN "
            "UPDATE SET *"
        )
