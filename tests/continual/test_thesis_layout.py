"""The layout of the thesis: its examples of chapters 1 and 2 with time triggers, as printed."""

import pytest

import harken
from tests.continual.conftest import Watched

WEATHER = """
Creat CQ Savannah_weather_watch as
Query:  SELECT *
        FROM weather
        WHERE location like 'Savannah' AND state = 'Georgia'{stray}
        OR location like 'Fort Stewart';
Trigger: every 20 minutes;
Stop:    1 year (default).
"""
BANKING = """Create CQ banking_activity_watch as
Query:
    SELECT customer_id{more}
    FROM   Account
    GROUP BY customer_id having SUM(withdraw_amount) > 2000;
Trigger: 6:00pm everyday
Stop: 1 year (by default)
"""


@pytest.fixture
def bank(watched: Watched) -> Watched:
    watched.sql("CREATE TABLE weather (location STRING, state STRING, sky STRING)")
    watched.sql(
        "CREATE TABLE Account (customer_id INT, account_no INT, withdraw_amount DOUBLE, "
        "PRIMARY KEY (customer_id, account_no))"
    )
    return watched


@pytest.mark.parametrize("stray", ["", ";"])
def test_the_weather_example_as_printed(bank: Watched, stray: str) -> None:
    bank.sql(WEATHER.format(stray=stray))
    bank.sql("INSERT INTO weather VALUES ('Fort Stewart', 'Georgia', 'snow')")
    assert bank.state("trigger", "stop") == ("EVERY 20 MINUTES", "AFTER 1 YEAR")
    (done,) = bank.run(minutes=20)
    assert done.inserted == [("Fort Stewart", "Georgia", "snow")]


def test_example_1_with_its_columns_grouped(bank: Watched) -> None:
    bank.sql(BANKING.format(more=", SUM(withdraw_amount) AS total"))
    bank.sql("INSERT INTO Account VALUES (1, 1, 1500), (1, 2, 700), (2, 3, 1999)")
    assert bank.state("trigger") == ("EVERY DAY AT '18:00'",)
    (done,) = bank.run(hours=6)
    assert done.inserted == [(1, 2200.0)]


def test_example_1_as_printed_fails_clearly(bank: Watched) -> None:
    with pytest.raises(
        harken.HarkenError, match=r"account_no must be in GROUP BY.*\n3:25"
    ) as caught:
        bank.sql(BANKING.format(more=", account_no, withdraw_amount"))
    assert caught.value.code


def test_statements_may_follow(bank: Watched) -> None:
    rows = bank.sql(f"{WEATHER.format(stray='')}; SELECT count(*) FROM continual_query")
    assert rows == [(1,)]


def test_a_query_is_needed(bank: Watched) -> None:
    with pytest.raises(harken.HarkenError, match="needs a query"):
        bank.sql("Create CQ empty as Query: ; Trigger: everyday; Stop: 1 year")
