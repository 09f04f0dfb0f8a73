"""A statement that breaks off, or is nearly right, is answered with what is missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("CREATE", "something is missing after CREATE", ""),
        ("ALTER", "something is missing after ALTER", ""),
        ("DROP", "something is missing after DROP", ""),
        ("EXPLAIN", "something is missing after EXPLAIN", ""),
        ("ALTER TABLE t ADD COLUMN", "something is missing after COLUMN", ""),
        ("ALTER TABLE t ADD", "something is missing after ADD", ""),
        ("SHOW nope", "SHOW", "the name of a setting"),
        ("SET statement_timeout", "this form of SET", "SET name = value"),
        ("SET row_limit = (SELECT 1)", "this form of SET", "a number or a text"),
        ("REFRESH", "REFRESH", "REFRESH MATERIALIZED VIEW v"),
        ("SELECT 'a' LIKE 'a' ESCAPE '!!' AS x", "ESCAPE takes one character", "ESCAPE '!'"),
        ("CREATE OR REPLACE TABLE v (a INT)", "already a view v", "DROP VIEW v"),
    ],
)
def test_the_answer_says_what_is_missing(text: str, said: str, hint: str) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(text)
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_rule_must_be_named_to_be_activated() -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError) as caught:
        db.amosql("activate;")
    assert "with the name of a rule" in str(caught.value.hint)


def test_a_version_that_was_never_written_is_not_a_shortened_log(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"k": [1], "x": [2]}))
    with harken.connect(tmp_path / "a.db") as db, pytest.raises(harken.HarkenError) as caught:
        db.lake("f", path, key=["k"], version=99)
    assert caught.value.code == "no-such-version"
    assert "shortened" not in str(caught.value.hint)


@pytest.mark.parametrize("value", ["maybe", "2", '""'])
def test_a_flag_of_datalog_is_true_or_false(tmp_path: Path, value: str) -> None:
    (tmp_path / "r.facts").write_text("1\n")
    with harken.connect() as db, pytest.raises(harken.HarkenError) as caught:
        db.datalog(f".decl r(x: number)\n.input r(headers={value})", facts=tmp_path)
    assert "true or false" in caught.value.message or caught.value.code == "syntax"
