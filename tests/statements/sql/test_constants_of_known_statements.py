"""Statements that come again with other constants, and were once answered with the first ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken

OFTEN = 3
"""The first run of a statement learns it, later ones use what was learned."""


def run(texts: list[str], kept: int) -> list[object]:
    found: list[object] = []
    with harken.connect(settings={"statement_cache": kept}) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)")
        for text in texts * OFTEN:
            try:
                result = db.sql(text)[0]
            except harken.HarkenError as error:
                found.append((error.code, error.message, error.hint))
            else:
                found.append((result.columns, list(map(str, result.types)), result.rows))
    return found


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["SELECT .5;", "SELECT .05;"], id="a point without a digit before it"),
        pytest.param(["SELECT id FROM t WHERE 0.07 > .5;", "SELECT id FROM t WHERE 0.07 > .05;"]),
        pytest.param(
            ["SELECT 7", "SELECT 007", "SELECT 7;", "SELECT 007;"], id="the column's name"
        ),
        pytest.param(["SELECT 1.5 FROM t", "SELECT 01.5 FROM t"], id="the name of a decimal"),
        pytest.param(
            ["UPDATE t SET id = id + NULL WHERE id > 1"], id="NULL for a key of whole numbers"
        ),
    ],
)
def test_constants_are_those_of_the_text(texts: list[str]) -> None:
    assert run(texts, 1000) == run(texts, 0)


def test_a_failing_statement_is_the_first_to_meet_a_new_schema(tmp_path: Path) -> None:
    path = tmp_path / "stock.db"
    insert = "INSERT INTO c (id) VALUES (7)"
    with harken.connect(path) as one, harken.connect(path) as two:
        one.sql("CREATE TABLE c (id INT PRIMARY KEY, v INT CHECK (v < 10))")
        one.sql("CREATE MATERIALIZED VIEW mv AS SELECT v, count(*) AS n FROM c GROUP BY v")
        one.sql(insert)
        two.sql("UPDATE c SET v = 7 WHERE id = 10")
        with pytest.raises(harken.HarkenError, match="already has a row"):
            two.sql(insert)
        one.sql("ALTER TABLE c ADD COLUMN x INT DEFAULT 100")
        for _ in range(2):
            with pytest.raises(harken.HarkenError, match="already has a row"):
                two.sql(insert)
        two.sql("UPDATE c SET v = 1 WHERE id = 7")
        assert two.sql("SELECT * FROM c").rows == [(7, 1, 100)]
        assert two.sql("SELECT * FROM mv").rows == [(1, 1)]
