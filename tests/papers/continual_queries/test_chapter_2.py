"""Chapter 2 of the thesis: the concept, its examples, and the statements of 2.4.2.

Each statement is the printed one. What has to be corrected is said where it is.
"""

import datetime

import pytest

import harken
from tests.harness.servers import PostgresDatabase
from tests.papers.continual_queries.conftest import QueryDesk, Weather

EXAMPLE_1 = """
Create CQ banking_activity_watch as
Query:
    SELECT customer_id, account_no, withdraw_amount
    FROM   Account
    GROUP BY customer_id having SUM(withdraw_amount) > 2000;
Trigger: 6:00pm everyday
Stop: 1 year (by default)
"""
EXAMPLE_2 = """
Create CQ inventory_monitoring as
Query:
    SELECT item_name, item_no, qty_on_hand, qty_on_order, threshold
    FROM Item_Inventory;
Trigger:
    qty_on_hand + qty_on_order < threshold;
Stop: six months
"""
WEATHER_EVERY_20_MINUTES = """
Creat CQ Savannah_weather_watch as
Query:  SELECT *
        FROM www.nws.nova.gov
        WHERE location like 'Savannah' AND state = 'Georgia';
        OR location like 'Fort Stewart';
Trigger: every 20 minutes;
Stop:    1 year (default).
"""
PLANS_WHEN_THE_WEATHER_CHANGES = """
Creat CQ Savannah_weather_watch as
Query:
    SELECT plan_no, plan_desc, plan_alt_routes
    FROM   Transportation_plan
    WHERE  plan_route like 'Savannah to Fort Stewart';
Trigger:
    FROM   www.nws.nova.gov
    WHERE  location like 'Savannah' AND state = 'Georgia'

OR location like 'Fort Stewart';
Stop: next 3 months.
"""
BAYER = """
Creat CQ Bayer_Stock_watch as
Query:  SELECT company_symbol, stock_price, hi_last_wk, lo_last_wk
        FROM    Stock
        WHERE   company_name = 'Bayer AG';
Trigger: Stock.company_name = 'Bayer AG' AND
        Stock.stock_price DecreaseBy% 5;
Stop:   9:00:00 am, Oct. 26, 1998
"""


# --- 2.2 ------------------------------------------------------------------------------------------


def accounts(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TABLE account (customer_id int, account_no int PRIMARY KEY, withdraw_amount int)"
    )
    database.run("INSERT INTO account VALUES (1, 11, 1500), (2, 21, 1999)")


def test_example_1_as_printed_names_the_column_that_is_not_grouped(desk: QueryDesk) -> None:
    desk.sql("CREATE TABLE Account (customer_id INT, account_no INT, withdraw_amount INT)")
    with pytest.raises(harken.HarkenError, match="account_no must be in GROUP BY") as caught:
        desk.sql(EXAMPLE_1)
    assert caught.value.span is not None
    assert EXAMPLE_1[caught.value.span.start :].startswith("account_no")
    assert desk.sql("SELECT count(*) FROM continual_query") == [(0,)]


def test_example_1(desk: QueryDesk, plain_database: PostgresDatabase) -> None:
    """Corrected: account_no and withdraw_amount are not grouped; their sum is meant."""
    accounts(plain_database)
    desk.mirror("account", plain_database)
    desk.sql(EXAMPLE_1.replace("account_no, withdraw_amount", "SUM(withdraw_amount) AS withdrawn"))
    plain_database.run("INSERT INTO account VALUES (1, 12, 700)")
    assert desk.run(hours=5, minutes=59) == []
    (done,) = desk.run(minutes=1)
    assert (done.at.hour, done.inserted) == (18, [(1, 2200)])
    (again,) = desk.run(days=1)
    assert again.outcome == "unchanged"


def test_example_2(desk: QueryDesk, plain_database: PostgresDatabase) -> None:
    plain_database.run(
        "CREATE TABLE item_inventory (item_no int PRIMARY KEY, item_name text, qty_on_hand int,"
        " qty_on_order int, threshold int)"
    )
    plain_database.run(
        "INSERT INTO item_inventory VALUES (1, 'cap', 50, 50, 90), (2, 'hat', 9, 9, 5)"
    )
    desk.mirror("item_inventory", plain_database)
    desk.sql(EXAMPLE_2)
    plain_database.run("UPDATE item_inventory SET qty_on_order = 45 WHERE item_no = 1")
    assert desk.run(minutes=1) == []
    plain_database.run("UPDATE item_inventory SET qty_on_hand = 44 WHERE item_no = 1")
    (done,) = desk.run(minutes=1)
    assert done.inserted == [("cap", 1, 44, 45, 90)]
    plain_database.run("UPDATE item_inventory SET threshold = 100 WHERE item_no = 2")
    (done,) = desk.run(minutes=1)
    assert done.inserted == [("hat", 2, 9, 9, 100)]
    assert desk.run(days=185) == []
    assert desk.sql("SELECT state FROM continual_query") == [("stopped",)]


def test_the_events_of_example_2_are_found_by_the_system(desk: QueryDesk) -> None:
    """2.3: UPDATE of qty_on_hand, of qty_on_order and of threshold."""
    desk.sql(
        "CREATE TABLE Item_Inventory (item_no INT PRIMARY KEY, item_name STRING, qty_on_hand INT,"
        " qty_on_order INT, threshold INT)"
    )
    desk.sql(EXAMPLE_2)
    columns = [each.strip("(").split(",")[0] for each in desk.events("inventory_monitoring")]
    assert columns == ["qty_on_hand", "qty_on_order", "threshold"]


def test_a_plane_that_has_been_in_a_sector_for_more_than_5_minutes(desk: QueryDesk) -> None:
    """2.2: tell me the flight number."""
    desk.sql("CREATE TABLE plane (flight STRING PRIMARY KEY, sector INT)")
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT flight FROM triggered"
        " TRIGGER WHEN plane.sector = 7 FOR MORE THAN 5 MINUTES"
    )
    assert desk.fired("INSERT INTO plane VALUES ('LH1', 7), ('SK2', 6)") == []
    assert desk.run(minutes=5) == []
    (done,) = desk.run(seconds=1)
    assert done.inserted == [("LH1",)]


# --- 2.1 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("5:00pm everyday", "EVERY DAY AT '17:00'"),
        ("7:30:00 pm., March 30, 1999", "AT '1999-03-30 19:30:00'"),
        ("every Monday", "EVERY MONDAY AT '00:00'"),
        ("every two weeks", "EVERY 2 WEEKS"),
        ("every first day of the month", "EVERY FIRST DAY OF MONTH AT '00:00'"),
        ("50 seconds after execution of other", "50 SECONDS AFTER EXECUTION OF other"),
        ("immediate", "AFTER 1 CHANGE"),
    ],
)
def test_temporal_events(desk: QueryDesk, said: str, text: str) -> None:
    desk.sql("CREATE TABLE t (a INT)")
    desk.sql("CREATE CONTINUAL QUERY other AS SELECT a FROM t")
    desk.sql(f"Create CQ q as Query: SELECT a FROM t; Trigger: {said}; Stop: 1 month")
    assert desk.sql("SELECT trigger FROM continual_query WHERE name = 'q'") == [(text,)]


def test_signals_of_applications(desk: QueryDesk) -> None:
    """A failure signal from a diagnostic routine on a hardware component."""
    desk.sql("CREATE TABLE disk (id INT PRIMARY KEY)")
    desk.sql("Create CQ q as Query: SELECT id FROM disk; Trigger: SIGNAL failure; Stop: 1 year")
    desk.db.signal("failure")
    (done,) = desk.run()
    assert done.outcome == "no data"


DEPOSITS = "CREATE TABLE deposit (id INT PRIMARY KEY, amount INT)"


def deposited(desk: QueryDesk, trigger: str, *amounts: int) -> list[int]:
    """The deposits that execute a query."""
    desk.sql(DEPOSITS)
    desk.sql(f"CREATE CONTINUAL QUERY q AS SELECT id FROM deposit TRIGGER {trigger}")
    return [
        number
        for number, amount in enumerate(amounts)
        if desk.fired(f"INSERT INTO deposit VALUES ({number}, {amount})")
    ]


def test_whenever_a_deposit_of_10_000_is_made(desk: QueryDesk) -> None:
    trigger = "ON INSERT OF deposit WHERE amount >= 10000"
    assert deposited(desk, trigger, 5_000, 10_000, 1, 20_000) == [1, 3]


def test_when_a_total_of_1_million_has_been_deposited(desk: QueryDesk) -> None:
    trigger = "WHEN sum(deposit.amount) >= 1000000"
    assert deposited(desk, trigger, 400_000, 599_999, 1, 1_000_000) == [2]


def test_when_1_million_has_been_deposited_since_the_previous_execution(desk: QueryDesk) -> None:
    trigger = "WHEN sum(deposit.amount) SINCE LAST EXECUTION >= 1000000"
    assert deposited(desk, trigger, 600_000, 600_000, 600_000, 400_000) == [1, 3]


def test_the_total_of_orders_exceeds_the_inventory(desk: QueryDesk) -> None:
    desk.sql("CREATE TABLE ordered (id INT PRIMARY KEY, n INT)")
    desk.sql("CREATE TABLE inventory (level INT PRIMARY KEY)")
    desk.sql("INSERT INTO inventory VALUES (10)")
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT id FROM ordered TRIGGER WHEN EXISTS"
        " (SELECT 1 FROM inventory WHERE level < (SELECT sum(n) FROM ordered))"
    )
    assert desk.fired("INSERT INTO ordered VALUES (1, 10)") == []
    assert len(desk.fired("INSERT INTO ordered VALUES (2, 1)")) == 1


def test_the_new_position_of_the_ship_is_closer_than_the_old(desk: QueryDesk) -> None:
    desk.sql("CREATE TABLE ship (name STRING PRIMARY KEY, distance INT)")
    desk.sql("INSERT INTO ship VALUES ('Fram', 100)")
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT name FROM ship TRIGGER WHEN NEW.distance < OLD.distance"
    )
    assert desk.fired("UPDATE ship SET distance = 101") == []
    assert len(desk.fired("UPDATE ship SET distance = 99")) == 1


def test_the_output_of_the_sensor_increased_monotonically_over_two_hours(desk: QueryDesk) -> None:
    desk.sql("CREATE TABLE sensor (id INT PRIMARY KEY, output INT)")
    desk.sql("INSERT INTO sensor VALUES (1, 5), (2, 5)")
    desk.sql(
        "CREATE CONTINUAL QUERY q AS SELECT id FROM triggered"
        " TRIGGER WHEN sensor.output INCREASED MONOTONICALLY FOR 2 HOURS"
    )
    desk.sql("UPDATE sensor SET output = 6")
    assert desk.run(hours=1) == []
    desk.sql("UPDATE sensor SET output = 5 WHERE id = 2")
    desk.sql("UPDATE sensor SET output = 7 WHERE id = 1")
    (done,) = desk.run(hours=1)
    assert done.inserted == [(1,)]


def test_event_b_occurs_after_event_a(desk: QueryDesk) -> None:
    desk.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    desk.sql("INSERT INTO t VALUES (1, 0, 0)")
    desk.sql("CREATE CONTINUAL QUERY q AS SELECT id FROM t TRIGGER WHEN t.a = 1 THEN t.b = 1")
    assert desk.fired("UPDATE t SET b = 1") == desk.fired("UPDATE t SET b = 0, a = 1") == []
    assert len(desk.fired("UPDATE t SET b = 1")) == 1


# --- 2.4.2 ----------------------------------------------------------------------------------------


def test_the_weather_every_20_minutes(desk: QueryDesk, weather: Weather) -> None:
    """As printed, with the semicolon in the middle of its condition, over the page itself."""
    desk.sql(WEATHER_EVERY_20_MINUTES)
    weather(("Savannah", "Georgia", "snow"), ("Savannah", "Tennessee", "sun"))
    assert desk.run(minutes=19) == []
    (done,) = desk.run(minutes=1)
    assert done.inserted == [("Savannah", "Georgia", "snow")]
    assert desk.sql("SELECT stop FROM continual_query") == [("AFTER 1 YEAR",)]


def test_a_host_that_no_source_reads(desk: QueryDesk) -> None:
    with pytest.raises(harken.HarkenError, match="no source that is read from www"):
        desk.sql(WEATHER_EVERY_20_MINUTES)


def test_plans_when_the_weather_changes(
    desk: QueryDesk, weather: Weather, plain_database: PostgresDatabase
) -> None:
    """As printed: the trigger reads a page, and the query a table of a database."""
    plain_database.run(
        "CREATE TABLE transportation_plan (plan_no int PRIMARY KEY, plan_desc text,"
        " plan_alt_routes text, plan_route text)"
    )
    plain_database.run(
        "INSERT INTO transportation_plan VALUES (1, 'by road', 'I-16, GA-144',"
        " 'Savannah to Fort Stewart'), (2, 'by sea', '-', 'Savannah to Miami')"
    )
    desk.mirror("transportation_plan", plain_database)
    desk.sql(PLANS_WHEN_THE_WEATHER_CHANGES)
    assert desk.run(minutes=30) == []
    weather(("Fort Stewart", "Georgia", "heavy rain"))
    (done,) = desk.run(minutes=5)
    assert (done.outcome, done.rows) == ("unchanged", 1)  # the whole answer is delivered
    (row,) = desk.db.continual("savannah_weather_watch").history()[-1:]
    assert row.event == "content"
    weather(("Fort Stewart", "Georgia", "heavy rain"), ("Macon", "Georgia", "snow"))
    assert desk.run(minutes=5) == []  # another region
    weather(("Macon", "Georgia", "snow"))
    assert len(desk.run(minutes=5)) == 1


def test_bayer(desk: QueryDesk, plain_database: PostgresDatabase) -> None:
    plain_database.run(
        "CREATE TABLE stock (company_symbol text PRIMARY KEY, company_name text,"
        " stock_price int, hi_last_wk int, lo_last_wk int)"
    )
    plain_database.run(
        "INSERT INTO stock VALUES ('BAY', 'Bayer AG', 100, 110, 90), ('IBM', 'IBM', 100, 99, 90)"
    )
    desk.mirror("stock", plain_database)
    desk.sql(BAYER)
    plain_database.run("UPDATE stock SET stock_price = 50 WHERE company_symbol = 'IBM'")
    plain_database.run("UPDATE stock SET stock_price = 96 WHERE company_symbol = 'BAY'")
    assert desk.run(minutes=1) == []
    plain_database.run("UPDATE stock SET stock_price = 95 WHERE company_symbol = 'BAY'")
    (done,) = desk.run(minutes=1)
    assert done.inserted == [("BAY", 95, 110, 90)]
    desk.now = datetime.datetime(1998, 10, 26, 9, tzinfo=datetime.UTC)
    assert desk.run() == []
    assert desk.sql("SELECT state FROM continual_query") == [("stopped",)]


@pytest.mark.parametrize("sign", ["<=", "≤"])
def test_functions_of_percent(desk: QueryDesk, sign: str) -> None:
    """2.4.2 also writes the operators as functions."""
    desk.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, stock_price INT)")
    desk.sql("INSERT INTO stock VALUES ('BAY', 100)")
    trigger = f"DecreaseBy%(stock_price) {sign} 5"
    desk.sql(f"Create CQ q as Query: SELECT symbol FROM stock; Trigger: {trigger}")
    assert desk.fired("UPDATE stock SET stock_price = 96") == []
    assert len(desk.fired("UPDATE stock SET stock_price = 95")) == 1


def test_what_is_left_out(desk: QueryDesk) -> None:
    """Without a trigger it is every day, without a stop it ends by itself; a query is needed."""
    desk.sql("CREATE TABLE t (a INT)")
    desk.sql("Create CQ q as Query: SELECT a FROM t; Trigger: ; Stop:")
    assert desk.sql("SELECT trigger, stop FROM continual_query") == [("EVERY DAY", "AFTER 1 YEAR")]
    with pytest.raises(harken.HarkenError, match="needs a query"):
        desk.sql("Create CQ r as Query: ; Trigger: everyday; Stop: 1 year")
