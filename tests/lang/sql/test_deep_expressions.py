"""Expressions and joins of very many parts: they work, or are an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

import harken
from harken import Database

OPERANDS = 40


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.sql(
            "CREATE TABLE t (a INT, x DOUBLE, d DECIMAL(6, 2), w TIMESTAMP);"
            "INSERT INTO t VALUES (17, 2.5, 1.25, TIMESTAMP '2020-01-31 10:00:00')"
        )
        yield db


def nested(form: str, inner: str, times: int) -> str:
    for _ in range(times):
        inner = form.format(inner)
    return inner


def test_a_sum_of_many_joined_tables_is_kept(db: Database) -> None:
    names = [f"s{n}" for n in range(OPERANDS)]
    for name in names:
        db.sql(f"CREATE TABLE {name} (k INT PRIMARY KEY, v INT)")
    joins = " ".join(f"JOIN {b} ON {b}.k = {a}.k" for a, b in pairwise(names))
    total = " + ".join(f"{name}.v" for name in names)
    db.sql(f"CREATE MATERIALIZED VIEW total AS SELECT s0.k, {total} AS v FROM s0 {joins}")
    with db.transaction():
        for name in names:
            db.sql(f"INSERT INTO {name} VALUES (1, 1), (2, NULL)")
    assert sorted(db.sql("SELECT * FROM total").rows) == [(1, OPERANDS), (2, None)]
    db.sql("UPDATE s7 SET v = 5 WHERE k = 1")
    assert (1, OPERANDS + 4) in db.sql("SELECT * FROM total").rows


def test_what_is_very_long_or_deep_works_or_is_an_error_of_ours(db: Database) -> None:
    assert list(db.sql(f"SELECT {' + '.join(['a'] * 500)} AS v FROM t").rows) == [(8_500,)]
    assert list(db.sql(f"SELECT {nested('({})', 'a', 200)} AS v FROM t").rows) == [(17,)]
    assert list(db.sql(f"SELECT {nested('round({})', 'x', 40)} AS v FROM t").rows) == [(3.0,)]
    for text in (" + ".join(["a"] * 5_000), nested("abs({})", "a", 5_000), "(" * 5_000):
        with pytest.raises(harken.HarkenError):
            db.sql(f"SELECT {text} AS v FROM t")
    assert list(db.sql("SELECT a FROM t").rows) == [(17,)]
