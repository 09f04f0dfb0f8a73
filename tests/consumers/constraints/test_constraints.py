"""UNIQUE, CHECK and FOREIGN KEY: what breaks one undoes the whole transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
CREATE TABLE firm (id INT PRIMARY KEY, code STRING UNIQUE);
CREATE TABLE person (
    name STRING,
    firm INT REFERENCES firm,
    code STRING REFERENCES firm (code),
    age INT CHECK (age >= 0),
    boss STRING,
    CONSTRAINT named UNIQUE (name, firm),
    CHECK (boss <> name)
);
INSERT INTO firm VALUES (1, 'a'), (2, NULL), (3, NULL);
INSERT INTO person VALUES ('ann', 1, 'a', 30, NULL), ('ben', NULL, NULL, NULL, 'ann');
"""
BROKEN = {
    "INSERT INTO firm VALUES (4, 'a')": "UNIQUE (code) of firm does not hold: code = 'a'",
    "UPDATE person SET age = -1 WHERE name = 'ben'": "CHECK (age >= 0) of person",
    "UPDATE person SET boss = name": "CHECK (boss <> name) of person",
    "INSERT INTO person (name, firm) VALUES ('ann', 1)": "UNIQUE (name, firm) of person",
    "INSERT INTO person (firm) VALUES (9)": "FOREIGN KEY (firm) REFERENCES firm (id) of person",
    "DELETE FROM firm WHERE id = 1": "FOREIGN KEY (firm) REFERENCES firm (id)",
    "UPDATE firm SET code = 'b' WHERE id = 1": "FOREIGN KEY (code) REFERENCES firm (code)",
}
FINE = (
    "INSERT INTO person (name) VALUES ('ann'), ('ann')",  # NULL is equal to nothing
    "UPDATE person SET age = NULL",
    "BEGIN; DELETE FROM firm WHERE id = 1; INSERT INTO firm VALUES (1, 'a'); COMMIT",
    "BEGIN; INSERT INTO person (firm) VALUES (9); INSERT INTO firm VALUES (9, NULL); COMMIT",
    "BEGIN; UPDATE person SET age = -1; UPDATE person SET age = 1; COMMIT",
    "UPDATE firm SET code = CASE id WHEN 1 THEN 'a' ELSE 'b' END WHERE id < 3",
)


@pytest.mark.parametrize("strategy", ["incremental", "naive", "adaptive"])
def test_each(strategy: str) -> None:
    db = harken.connect()
    db.monitoring(strategy)
    db.sql(SCHEMA)
    for text, said in BROKEN.items():
        before = [sorted(db.sql(f"SELECT * FROM {t}").rows, key=repr) for t in ("firm", "person")]
        with pytest.raises(harken.IntegrityError) as caught:
            db.sql(f"BEGIN; INSERT INTO firm VALUES (7, NULL); {text}; COMMIT")
        assert caught.value.code == "constraint"
        assert caught.value.message.startswith(said)
        after = [sorted(db.sql(f"SELECT * FROM {t}").rows, key=repr) for t in ("firm", "person")]
        assert after == before
    for text in FINE:
        db.sql(text)


def test_they_hold_when_the_database_is_opened_again(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db") as db:
        db.sql(SCHEMA)
    with harken.connect(tmp_path / "a.db") as db:
        with pytest.raises(harken.IntegrityError, match=r"UNIQUE \(code\)"):
            db.sql("INSERT INTO firm VALUES (4, 'a')")
        with pytest.raises(harken.IntegrityError, match="person would no longer work"):
            db.sql("DROP TABLE firm")
        db.sql("DROP TABLE person; DROP TABLE firm")


def test_a_rule_may_mend_what_is_broken() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE stock (item STRING PRIMARY KEY, n INT CHECK (n <= 10))")
    db.amosql("""
        create rule at_most() as
            when for each charstring i where stock(i) > 10
            do set stock(i) = 10;
        activate at_most();
        commit;
    """)
    db.sql("INSERT INTO stock VALUES ('pen', 70)")
    assert db.sql("SELECT n FROM stock").rows == [(10,)]


def test_in_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        db.sql("CREATE TABLE u (id INT, UNIQUE (id)) USING lake; INSERT INTO u VALUES (1), (2)")
        with pytest.raises(harken.IntegrityError, match=r"UNIQUE \(id\) of u"):
            db.sql("INSERT INTO u VALUES (2)")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE t (a INT REFERENCES frm)", "unknown-table"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (b) REFERENCES firm)", "unknown-column"),
        ("CREATE TABLE t (a INT REFERENCES person (age))", "not-unique"),
        ("CREATE TABLE t (a INT, b INT, FOREIGN KEY (a, b) REFERENCES firm)", "arity"),
        ("CREATE TABLE t (a DATE REFERENCES firm)", "type-mismatch"),
        ("CREATE TABLE t (a INT REFERENCES firm ON DELETE CASCADE)", "unsupported"),
        ("CREATE TABLE t (a INT CHECK (a > (SELECT 1)))", "unsupported"),
        ("CREATE TABLE t (a INT CHECK (b > 1))", "unknown-column"),
        ("CREATE TABLE t (a INT, UNIQUE (b))", "unknown-column"),
    ],
)
def test_refused(text: str, code: str) -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == code
    assert db.sql("SELECT count(*) FROM firm").rows == [(3,)]
