"""Clauses that are wrong, and those that could be taken for something else."""

import pytest

import harken
from tests.continual.conftest import Watched


def install(watched: Watched, clause: str, query: str = "SELECT symbol FROM stock") -> None:
    watched.sql(f"CREATE CONTINUAL QUERY q AS {query} {clause}")


@pytest.mark.parametrize(
    ("clause", "message", "hint"),
    [
        ("DELIVER MAYBE", "MAYBE is no part of an answer", "INSERTED"),
        ("STOP MAYBE", "STOP needs a time", "STOP AFTER 2 WEEKS"),
        ("STRATEGY fast", "there is no such strategy", "auto"),
        ("PRIORITY high", "a number is missing", "whole number"),
        ("ZONE Europe/Oslo", "a time zone is missing", "single quotes"),
        ("NOTIFY FILE", "NOTIFY FILE needs the path", "NOTIFY FILE 'messages.jsonl'"),
        ("NOTIFY LOG 'x' DIGES '1 hour'", "NOTIFY LOG has no option DIGES", "digest"),
    ],
)
def test_a_wrong_clause_is_named_and_what_it_can_be(
    watched: Watched, clause: str, message: str, hint: str
) -> None:
    with pytest.raises(harken.HarkenError) as caught:
        install(watched, clause)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert watched.sql("SELECT name FROM continual_query") == []


def test_the_words_of_clauses_may_be_aliases(watched: Watched) -> None:
    query = "SELECT deliver.symbol stop FROM stock deliver WHERE deliver.price > 0"
    install(watched, "TRIGGER EVERY DAY", query)
    assert watched.state("query") == (query,)


def test_a_condition_may_stand_before_other_stops(watched: Watched) -> None:
    stops = "WHEN price > 9 OR (price < -9 OR price = 5) OR AFTER 2 EXECUTIONS OR AT '2027-01-01'"
    install(watched, f"TRIGGER EVERY HOUR STOP {stops}")
    assert watched.state("stop") == (
        "AT '2027-01-01 00:00:00' OR AFTER 2 EXECUTIONS OR "
        "WHEN price > 9 OR (price < -9 OR price = 5)",
    )
    watched.run(hours=1)
    assert watched.state("state") == ("stopped",)


def test_the_words_of_clauses_may_be_columns_of_a_trigger(watched: Watched) -> None:
    watched.sql("CREATE TABLE task (id INT PRIMARY KEY, priority INT, stop INT)")
    install(watched, "TRIGGER WHEN priority INCBY 5 OR stop CHANGES", "SELECT id FROM task")
    assert watched.state("trigger") == ("WHEN priority INCBY 5 OR stop CHANGES",)
