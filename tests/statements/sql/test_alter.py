"""ALTER TABLE: the rows stay, views follow or are named."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import harken


@pytest.fixture
def db() -> harken.Database:
    db = harken.connect()
    db.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 0), s STRING DEFAULT 'x', UNIQUE (s))"
    )
    db.sql("INSERT INTO t VALUES (2, 20, 'b'), (1, 10, NULL)")
    return db


def rows(db: harken.Database, query: str = "SELECT * FROM t ORDER BY id") -> list[tuple[Any, ...]]:
    return db.sql(query).rows


def test_columns_come_and_go(db: harken.Database) -> None:
    db.sql("ALTER TABLE t ADD COLUMN n INT")
    db.sql(
        "ALTER TABLE t ADD COLUMNS (m DECIMAL(9, 2) DEFAULT 1.50, f BOOLEAN NOT NULL DEFAULT true)"
    )
    assert rows(db)[0] == (1, 10, None, None, Decimal("1.50"), True)
    db.sql("INSERT INTO t (id) VALUES (3); ALTER TABLE t DROP COLUMN m")
    assert rows(db)[-1] == (3, None, "x", None, True)
    db.sql("ALTER TABLE t DROP COLUMN IF EXISTS m; ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT")
    assert rows(db) == [
        (1, 10, None, None, True),
        (2, 20, "b", None, True),
        (3, None, "x", None, True),
    ]


def test_names_change_also_in_constraints(db: harken.Database) -> None:
    db.sql("ALTER TABLE t RENAME COLUMN a TO amount; ALTER TABLE t RENAME TO u")
    assert rows(db, "SELECT id, amount FROM u ORDER BY id") == [(1, 10), (2, 20)]
    for wrong in ("(4, -1, 'q')", "(5, 1, 'b')", "(1, 1, 'z')"):
        with pytest.raises(harken.HarkenError):
            db.sql(f"INSERT INTO u VALUES {wrong}")
    with pytest.raises(harken.HarkenError, match="no table or view t"):
        rows(db)


def test_not_null_and_default(db: harken.Database) -> None:
    with pytest.raises(harken.HarkenError, match="cannot be NULL"):
        db.sql("ALTER TABLE t ALTER COLUMN s SET NOT NULL")
    db.sql("UPDATE t SET s = 'c' WHERE s IS NULL; ALTER TABLE t ALTER COLUMN s SET NOT NULL")
    db.sql("ALTER TABLE t ALTER COLUMN s DROP DEFAULT; ALTER TABLE t ALTER COLUMN a SET DEFAULT 7")
    with pytest.raises(harken.HarkenError, match="cannot be NULL"):
        db.sql("INSERT INTO t (id) VALUES (3)")
    db.sql("ALTER TABLE t ALTER COLUMN s DROP NOT NULL; INSERT INTO t (id) VALUES (3)")
    assert rows(db)[-1] == (3, 7, None)


def test_views_follow(db: harken.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT id, a FROM t; CREATE VIEW w AS SELECT sum(a) AS s FROM v")
    db.sql("CREATE VIEW everything AS SELECT * FROM t")
    db.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 3; INSERT INTO t VALUES (3, 5, 'q', 1)")
    assert rows(db, "SELECT * FROM w") == [(35,)]
    assert rows(db, "SELECT * FROM everything WHERE id = 1") == [(1, 10, None, 3)]
    seen = db.monitor("w")
    db.sql("ALTER TABLE t DROP COLUMN n; ALTER TABLE t ADD COLUMN n INT DEFAULT 3")
    assert seen.changes() == []
    with pytest.raises(harken.HarkenError, match="v, w would no longer work") as caught:
        db.sql("ALTER TABLE t DROP COLUMN a")
    assert caught.value.code == "in-use"
    assert rows(db, "SELECT * FROM w") == [(35,)]
    with pytest.raises(harken.HarkenError, match="the monitor of w"):
        db.sql("ALTER TABLE t DROP COLUMN a CASCADE")
    seen.close()
    db.sql("ALTER TABLE t DROP COLUMN a CASCADE")
    with pytest.raises(harken.HarkenError, match="no table or view w"):
        rows(db, "SELECT * FROM w")
    assert rows(db, "SELECT * FROM everything WHERE id = 1") == [(1, None, 3)]


def test_what_is_made_of_it_later_is_exact(db: harken.Database) -> None:
    db.sql("BEGIN; ALTER TABLE t ADD COLUMN g INT DEFAULT 1; UPDATE t SET g = id; COMMIT")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT g, sum(a) AS s FROM t GROUP BY g")
    db.sql("INSERT INTO t VALUES (3, 5, 'q', 2); DELETE FROM t WHERE id = 1")
    assert sorted(rows(db, "SELECT * FROM m")) == [(2, 25)]


REFUSED = {
    "ALTER TABLE t DROP COLUMN id": "in-use",
    "ALTER TABLE t DROP COLUMN z": "unknown-column",
    "ALTER TABLE t DROP COLUMN s": "unknown-column",  # UNIQUE (s) mentions it
    "ALTER TABLE t ADD COLUMN a INT": "exists",
    "ALTER TABLE t ADD COLUMN n INT NOT NULL": "null",
    "ALTER TABLE t ADD COLUMN n INT DEFAULT 0 CHECK (n > 0)": "constraint",
    "ALTER TABLE t RENAME COLUMN a TO s": "exists",
    "ALTER TABLE t RENAME TO other": "exists",
    "ALTER TABLE t ALTER COLUMN a TYPE STRING": "unsupported",
    "ALTER TABLE nothing ADD COLUMN n INT": "unknown-table",
    "ALTER TABLE other DROP COLUMN x": "unsupported",
    "ALTER TABLE other RENAME TO another": "in-use",
    "ALTER TABLE other RENAME COLUMN x TO y": "in-use",
    "ALTER TABLE parent RENAME TO another": "in-use",
    "ALTER TABLE parent DROP COLUMN u": "in-use",
    "ALTER TABLE kept ADD COLUMN n INT": "unsupported",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(db: harken.Database, text: str) -> None:
    db.sql("CREATE TABLE other (x INT); CREATE TABLE parent (k INT PRIMARY KEY, u INT UNIQUE)")
    db.sql("CREATE TABLE child (k INT REFERENCES parent (u))")
    db.sql("CREATE MATERIALIZED VIEW kept AS SELECT count(x) AS n FROM other")
    before = rows(db)
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == REFUSED[text]
    assert rows(db) == before
    db.sql("INSERT INTO t VALUES (9, 9, 'nine'); INSERT INTO other VALUES (1)")
    assert rows(db, "SELECT * FROM kept") == [(1,)]


def test_a_rollback_undoes_it_and_a_file_keeps_it(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db") as db:
        db.sql("CREATE TABLE t (a INT, b INT) ; INSERT INTO t VALUES (1, 2), (1, 2)")
        db.sql("BEGIN; ALTER TABLE t DROP COLUMN b; ROLLBACK")
        assert rows(db, "SELECT * FROM t") == [(1, 2), (1, 2)]
        db.sql("ALTER TABLE t RENAME COLUMN b TO c; ALTER TABLE t ADD COLUMN d INT DEFAULT 4")
    with harken.connect(tmp_path / "a.db") as db:
        assert rows(db, "SELECT c, d FROM t") == [(2, 4), (2, 4)]


def test_constraints_outlive_a_rollback_of_another_table_of_that_name(db: harken.Database) -> None:
    """Their conditions had been put back one after another, each screened for the other table."""
    with pytest.raises(harken.HarkenError, match="zz"):
        db.sql(
            "BEGIN; DROP TABLE t;"
            "CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 1), n INT); SELECT zz FROM t"
        )
    if db.in_transaction:
        db.sql("ROLLBACK")
    for wrong in ("(3, -1, 'q')", "(4, 1, 'b')"):
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(f"INSERT INTO t VALUES {wrong}")
        assert caught.value.code == "constraint"
