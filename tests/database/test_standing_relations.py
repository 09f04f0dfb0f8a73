"""Relations of Harken's own can be read before they have a row."""

from pathlib import Path

import pytest

import harken

NAMES = ["continual_query", "continual_execution", "delivery", "message_template"]


@pytest.mark.parametrize("name", [*NAMES, "source_state", "source_update"])
def test_they_are_empty_at_first(name: str) -> None:
    with harken.connect() as db:
        assert db.sql(f"SELECT count(*) FROM {name}").rows == [(0,)]
        assert db.monitor(name).rows() == []


def test_a_view_and_a_monitor_of_them_see_the_first_row() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT)")
        db.sql("CREATE VIEW names AS SELECT name FROM continual_query")
        monitor = db.monitor("names")
        db.sql("CREATE CONTINUAL QUERY q AS SELECT a FROM t")
        assert monitor.changes()[0].plus == [("q",)]


def test_asking_in_a_transaction_that_is_rolled_back() -> None:
    with harken.connect() as db:
        db.sql("BEGIN")
        assert db.sql("SELECT * FROM continual_query").rows == []
        db.sql("ROLLBACK")
        assert db.sql("SELECT * FROM continual_query").rows == []


def test_a_session_that_does_not_name_them_has_none() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a STRING)")
        db.sql("INSERT INTO t VALUES ('continual_query')")
        assert [each.name for each in db.views()] == ["t"]


def test_a_table_of_a_user_may_have_such_a_name() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE delivery (a INT)")
        assert db.sql("SELECT * FROM delivery").columns == ("a",)


def test_a_session_that_only_reads_makes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "d.db")
    with harken.connect(path) as db:
        db.sql("CREATE TABLE t (a INT)")
    with (
        harken.connect(path, read_only=True) as db,
        pytest.raises(harken.HarkenError, match="no table or view continual_query"),
    ):
        db.sql("SELECT * FROM continual_query")
