"""Content triggers: when they fire, and for which rows."""

import datetime
from typing import Any

import pytest

import harken
from tests.continual.conftest import Watched


def install(watched: Watched, trigger: str, query: str = "SELECT symbol FROM stock") -> None:
    watched.sql(f"CREATE CONTINUAL QUERY q AS {query} TRIGGER {trigger}")


def fired(watched: Watched, *statements: str, **later: float) -> list[list[Any]]:
    """The keys of the rows of each firing, after each of the statements."""
    found = []
    for statement in statements:
        watched.sql(statement)
        found += [_keys(done.cause.rows) for done in watched.run()]
    if later:
        found += [_keys(done.cause.rows) for done in watched.run(**later)]
    return found


def _keys(rows: Any) -> list[Any]:
    return sorted(next(iter(row.values())) for row in rows)


def price(symbol: str, value: object) -> str:
    return f"UPDATE stock SET price = {value} WHERE symbol = '{symbol}'"


def test_bayer(watched: Watched) -> None:
    """Section 2.4.2 of the thesis: notify me whenever the stock price of Bayer drops by 5%."""
    install(watched, "WHEN stock.price DECBYP 5 WHERE stock.company = 'Bayer AG'")
    assert fired(watched, price("BAY", 10), price("BAY", 9.9)) == [["BAY"]]  # 5.7 % of 10.5
    assert fired(watched, price("IBM", 1), price("BAY", 9.5), price("BAY", 9.4)) == [["BAY"]]


def test_the_layout_of_the_thesis_and_its_conjunction(watched: Watched) -> None:
    install(watched, "Stock.company = 'Bayer AG' AND Stock.price DecreaseBy% 5;")
    assert fired(watched, price("IBM", 1), price("BAY", 9)) == [["BAY"]]


def test_rows_by_their_key(watched: Watched) -> None:
    """Section 4.2.3: IBM rises or Intel falls."""
    watched.sql("INSERT INTO stock VALUES ('INT', 'Intel', 50)")
    install(watched, "Stock.price(IBM) IncreaseBy% 5 OR Stock.price(INT) DecreaseBy% 5")
    statements = price("IBM", 90), price("INT", 60), price("BAY", 99)
    assert fired(watched, *statements) == []
    assert fired(watched, price("INT", 40)) == [["INT"]]  # of 50, at the installation
    assert fired(watched, price("IBM", 95)) == [["IBM"]]  # of 90, at the last execution


def test_an_execution_moves_the_reference_of_every_row(watched: Watched) -> None:
    install(watched, "WHEN price DECBY 10")
    assert fired(watched, price("IBM", 95)) == []
    assert fired(watched, price("BAY", 0)) == [["BAY"]]
    assert fired(watched, price("IBM", 90)) == []  # 95 is the reference now
    assert fired(watched, price("IBM", 85)) == [["IBM"]]


def test_it_fires_when_it_becomes_true(watched: Watched) -> None:
    install(watched, "WHEN price > 50")
    statements = price("IBM", 101), price("BAY", 60), price("BAY", 70), price("BAY", 5)
    assert fired(watched, *statements) == [["BAY"]]
    assert fired(watched, price("BAY", 60)) == [["BAY"]]


def test_while_it_is_true_every_relevant_change_fires(watched: Watched) -> None:
    install(watched, "WHILE price > 50")
    statements = price("IBM", 101), price("BAY", 60), price("BAY", 5), price("IBM", 102)
    assert fired(watched, *statements) == [["IBM"], ["BAY"], ["IBM"]]
    assert fired(watched, "UPDATE stock SET company = 'x'") == []


def test_two_changes_of_a_transaction_are_one_event(watched: Watched) -> None:
    install(watched, "WHEN price CHANGES")
    with watched.db.transaction():
        watched.sql(price("BAY", 1))
        watched.sql(price("IBM", 2))
        watched.sql(price("BAY", 3))
    assert fired(watched, "SELECT 1") == [["BAY", "IBM"]]
    with watched.db.transaction():
        watched.sql(price("BAY", 1))
        watched.sql(price("BAY", 3))
    assert fired(watched, "SELECT 1") == []


def test_what_is_rolled_back_has_not_happened(watched: Watched) -> None:
    install(watched, "WHEN price CHANGES")
    watched.sql("BEGIN")
    watched.sql(price("BAY", 1))
    watched.sql("ROLLBACK")
    assert fired(watched, price("IBM", 5)) == [["IBM"]]


def test_waiting_firings_merge(watched: Watched) -> None:
    install(watched, "WHEN price CHANGES")
    watched.sql(price("BAY", 1))
    watched.sql(price("IBM", 2))
    assert fired(watched, "SELECT 1") == [["BAY", "IBM"]]


def test_inserted_and_deleted_rows_have_changed(watched: Watched) -> None:
    install(watched, "WHEN price CHANGES")
    statements = (
        "INSERT INTO stock VALUES ('INT', 'Intel', NULL)",
        "DELETE FROM stock WHERE symbol = 'IBM'",
        "INSERT INTO stock VALUES ('IBM', 'IBM', 100)",
        "UPDATE stock SET company = 'x'",
    )
    assert fired(watched, *statements) == [["INT"], ["IBM"], ["IBM"]]


def test_no_previous_value_no_increase(watched: Watched) -> None:
    install(watched, "WHEN price INCBY 1 OR price INCBYP 1 OR price DECBY 1 OR price DECBYP 1")
    statements = (
        "INSERT INTO stock VALUES ('INT', 'Intel', 50)",
        price("INT", 70),
        price("IBM", "NULL"),
        price("IBM", 1),
        "DELETE FROM stock WHERE symbol = 'BAY'",
    )
    assert fired(watched, *statements) == [["IBM"]]  # from 100 to 1, since nothing was executed


def test_percent_is_of_the_absolute_value_and_false_at_0(watched: Watched) -> None:
    watched.sql(price("BAY", 0))
    watched.sql(price("IBM", -100))
    install(watched, "WHEN price INCBYP 10")
    assert fired(watched, price("BAY", 5), price("IBM", -91)) == []
    assert fired(watched, price("IBM", -90)) == [["IBM"]]


def test_aggregates(watched: Watched) -> None:
    install(watched, "MAX(stock.price) < 50 OR COUNT(stock.price) > 3", "SELECT * FROM stock")
    assert len(fired(watched, price("IBM", 50), price("IBM", 49), price("IBM", 48))) == 1
    insert = "INSERT INTO stock VALUES ('A', 'a', 1), ('B', 'b', 2)"
    assert len(fired(watched, "DELETE FROM stock", insert)) == 1  # the maximum was NULL
    assert len(fired(watched, price("A", 90))) == 0
    assert len(fired(watched, "INSERT INTO stock VALUES ('C', 'c', 1), ('D', 'd', 2)")) == 1


def test_groups(watched: Watched) -> None:
    """Section 6.2.1.5, with its columns corrected: the average sales in each department."""
    watched.sql("CREATE TABLE dept (id INT PRIMARY KEY, item STRING, sale DOUBLE)")
    watched.sql("INSERT INTO dept VALUES (1, 'a', 50000), (2, 'b', 10000)")
    install(watched, "AVG(DEPT.SALE) > 40000 GROUPBY DEPT.ITEM")
    statements = (
        "INSERT INTO dept VALUES (3, 'b', 90000)",
        "INSERT INTO dept VALUES (4, 'a', 90000)",
        "DELETE FROM dept WHERE item = 'a'",
        "INSERT INTO dept VALUES (5, 'a', 90000)",
    )
    assert fired(watched, *statements) == [["b"], ["a"]]


def test_aggregates_have_previous_values(watched: Watched) -> None:
    install(watched, "WHEN MAX(price) INCBYP 10 WHERE company = 'IBM'")
    assert fired(watched, price("IBM", 109), price("BAY", 500)) == []
    assert len(fired(watched, price("IBM", 110))) == 1


def test_independent_groups(watched: Watched) -> None:
    watched.sql("CREATE TABLE weather (place STRING PRIMARY KEY, rain DOUBLE)")
    install(watched, "WHEN stock.price > 150 AND weather.rain > 5")
    assert fired(watched, price("IBM", 200)) == []
    assert fired(watched, "INSERT INTO weather VALUES ('x', 9)") == [["IBM", "x"]]
    assert fired(watched, price("BAY", 300)) == [["BAY", "x"]]


def test_a_join_is_one_condition(watched: Watched) -> None:
    watched.sql("CREATE TABLE limit_of (symbol STRING PRIMARY KEY, most DOUBLE)")
    watched.sql("INSERT INTO limit_of VALUES ('IBM', 150)")
    install(watched, "WHEN stock.price > limit_of.most WHERE stock.symbol = limit_of.symbol")
    assert fired(watched, price("BAY", 900), price("IBM", 151)) == [["IBM"]]
    raised = "UPDATE limit_of SET most = 200"
    assert fired(watched, raised, "UPDATE limit_of SET most = 100") == [["IBM"]]


def test_events_of_a_table(watched: Watched) -> None:
    install(watched, "ON INSERT OR DELETE OF stock WHERE price > 20")
    statements = (
        "INSERT INTO stock VALUES ('A', 'a', 5)",
        "INSERT INTO stock VALUES ('B', 'b', 50)",
        price("A", 60),
        "DELETE FROM stock WHERE symbol = 'BAY'",
    )
    assert fired(watched, *statements) == [["B"]]
    watched.sql("DELETE FROM stock WHERE symbol = 'B'")
    assert len(watched.run()) == 1


def test_updates_of_columns(watched: Watched) -> None:
    install(watched, "ON UPDATE OF stock (price)")
    statements = ("UPDATE stock SET company = 'x'", price("IBM", 100), price("IBM", 5))
    assert fired(watched, *statements) == [["IBM"]]
    assert fired(watched, "INSERT INTO stock VALUES ('A', 'a', 5)") == []


def test_any_change_of_rows_elsewhere(watched: Watched) -> None:
    """The second weather example: the trigger reads another table than the query."""
    watched.sql("CREATE TABLE weather (location STRING PRIMARY KEY, state STRING, sky STRING)")
    watched.sql("INSERT INTO weather VALUES ('Savannah', 'Georgia', 'snow'), ('Rome', 'x', 'sun')")
    install(
        watched,
        "FROM weather WHERE location like 'Savannah' AND state = 'Georgia' "
        "OR location like 'Fort Stewart';",
    )
    statements = (
        "UPDATE weather SET sky = 'rain' WHERE location = 'Rome'",
        "UPDATE weather SET sky = 'rain' WHERE location = 'Savannah'",
        "INSERT INTO weather VALUES ('Fort Stewart', 'Georgia', 'sun')",
        "DELETE FROM weather WHERE location = 'Fort Stewart'",
    )
    assert fired(watched, *statements) == [["Savannah"], ["Fort Stewart"], ["Fort Stewart"]]


def test_old_and_new(watched: Watched) -> None:
    install(watched, "WHEN NEW.price > 2 * OLD.price")
    assert fired(watched, price("IBM", 200), price("IBM", 201)) == [["IBM"]]


def test_a_total_since_the_last_execution(watched: Watched) -> None:
    """Chapter 2: when a total of deposits has been made since the previous execution."""
    watched.sql("CREATE TABLE deposit (who STRING, amount INT)")
    watched.sql("INSERT INTO deposit VALUES ('a', 500)")
    install(watched, "WHEN sum(deposit.amount) SINCE LAST EXECUTION > 100")
    insert = "INSERT INTO deposit VALUES ('a', 50)"
    assert len(fired(watched, insert, insert)) == 0
    assert len(fired(watched, insert)) == 1
    assert len(fired(watched, insert, insert)) == 0
    assert len(fired(watched, insert)) == 1


def test_any_condition_of_sql(watched: Watched) -> None:
    install(watched, "WHEN NOT EXISTS (SELECT 1 FROM stock WHERE price > 50)")
    assert len(fired(watched, price("IBM", 40), price("IBM", 60))) == 1
    assert len(fired(watched, price("IBM", 40))) == 1


def test_a_table_without_a_key(watched: Watched) -> None:
    watched.sql("CREATE TABLE seen (what STRING, n INT)")
    install(watched, "WHEN seen CHANGES")
    insert = "INSERT INTO seen VALUES ('a', 1)"
    statements = insert, insert, "DELETE FROM seen WHERE n = 2", "DELETE FROM seen"
    assert fired(watched, *statements) == [["a"], ["a"], ["a"]]


def test_views_have_previous_values(watched: Watched) -> None:
    watched.sql(
        "CREATE VIEW total AS SELECT company, sum(price) AS worth FROM stock GROUP BY company"
    )
    install(watched, "WHEN total.worth INCBY 10 WHERE total.company = 'IBM'")
    insert = "INSERT INTO stock VALUES ('IB2', 'IBM', {})"
    assert fired(watched, insert.format(9)) == []
    assert fired(watched, "UPDATE stock SET price = 10 WHERE symbol = 'IB2'") == [["IBM"]]


def test_another_session_fires(watched: Watched) -> None:
    install(watched, "WHEN price DECBYP 5")
    with watched.connect() as other:
        other.sql(price("IBM", 96))
        other.sql(price("IBM", 95))
    assert fired(watched, "SELECT 1") == [["IBM"]]
    with watched.connect() as other:
        other.sql(price("IBM", 91))
        assert other.run_due() == []
        other.sql(price("IBM", 90))
        (done,) = other.run_due()
    assert done.execution == 3


def test_a_restart_loses_nothing(watched: Watched) -> None:
    install(watched, "WHEN price DECBYP 5")
    watched.sql(price("IBM", 96))
    watched.reopen()
    assert fired(watched, price("IBM", 95)) == [["IBM"]]


def test_a_condition_that_cannot_be_computed_fails_no_transaction(watched: Watched) -> None:
    install(watched, "WHEN 100 / price > 5")
    assert fired(watched, price("BAY", 0)) == []
    assert fired(watched, price("BAY", 1)) == [["BAY"]]


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ("WHEN prise > 5", "there is no column prise"),
        ("WHEN stick.price > 5", "there is no table or view stick"),
        ("WHEN company INCBY 5", "INCBY compares numbers"),
        ("WHEN price DECBY 0", "DECBY takes a number above 0"),
        ("AVG(DEPT.SALE) > 40000 GROUPBY SALE.ITEM", "there is no table or view dept"),
        ("WHEN max(price) > 5 AND company = 'x' GROUP BY symbol", "neither in GROUP BY"),
        ("WHEN price >", "something is missing after >"),
    ],
)
def test_what_cannot_be_watched(watched: Watched, trigger: str, message: str) -> None:
    with pytest.raises(harken.HarkenError, match=message) as caught:
        install(watched, trigger)
    assert caught.value.span is not None
    assert watched.sql("SELECT count(*) FROM stock") == [(2,)]
    install(watched, "WHEN price > 5")


def test_a_table_of_a_trigger_cannot_be_dropped(watched: Watched) -> None:
    watched.sql("CREATE TABLE weather (place STRING PRIMARY KEY, rain DOUBLE)")
    install(watched, "WHEN weather.rain > 5")
    with pytest.raises(harken.HarkenError, match="q"):
        watched.sql("DROP TABLE weather")
    watched.sql("DROP CONTINUAL QUERY q")
    watched.sql("DROP TABLE weather")


def test_explain_shows_the_events(watched: Watched) -> None:
    install(watched, "WHEN stock.price DECBYP 5 WHERE stock.company = 'Bayer AG'")
    lines = [row[0] for row in watched.sql("EXPLAIN CONTINUAL QUERY q")]
    assert "  (stock.price, stock.price DECBYP 5, WHERE)" in lines
    assert "  (stock.company, stock.company = 'Bayer AG', END)" in lines


def test_signals(watched: Watched) -> None:
    install(watched, "SIGNAL failure")
    watched.db.signal("other")
    assert watched.run() == []
    watched.db.signal("Failure")
    assert len(watched.run()) == 1
    with watched.db.transaction():
        watched.db.signal("failure")
        watched.db.signal("failure")
    assert len(watched.run()) == 1


def test_a_signal_while_a_condition_holds(watched: Watched) -> None:
    install(watched, "WHEN SIGNAL check AND stock.price > 150")
    watched.db.signal("check")
    assert fired(watched, price("IBM", 200)) == []
    watched.db.signal("check")
    assert fired(watched, "SELECT 1") == [["IBM"]]


def test_one_after_another(watched: Watched) -> None:
    install(
        watched,
        "WHEN stock.price > 150 THEN stock.price < 50 WHERE symbol = 'IBM' WITHIN 10 MINUTES",
    )
    assert fired(watched, price("IBM", 40), price("IBM", 200)) == []
    watched.clock.move(minutes=11)
    assert fired(watched, price("IBM", 40), price("IBM", 200), price("IBM", 30)) == [["IBM"]]
    assert fired(watched, price("IBM", 60), price("IBM", 30)) == []


def test_all_of_in_any_order(watched: Watched) -> None:
    install(watched, "WHEN ALL OF (price > 150, SIGNAL a, SIGNAL b)")
    watched.db.signal("b")
    assert fired(watched, price("IBM", 200), price("IBM", 100)) == []
    watched.db.signal("a")
    assert len(watched.run()) == 1
    watched.db.signal("a")
    watched.db.signal("b")
    assert watched.run() == []


def test_a_serial_alternative(watched: Watched) -> None:
    install(watched, "WHEN price > 150 ELSE price < 5")
    with watched.db.transaction():
        watched.sql(price("BAY", 1))
        watched.sql(price("IBM", 200))
    assert fired(watched, "SELECT 1") == [["IBM"]]
    assert fired(watched, price("BAY", 10), price("BAY", 2)) == [["BAY"]]


SECTOR = "WHEN sector = 5 FOR MORE THAN 5 MINUTES"


@pytest.fixture
def planes(watched: Watched) -> Watched:
    watched.sql("CREATE TABLE plane (flight STRING PRIMARY KEY, sector INT)")
    watched.sql("INSERT INTO plane VALUES ('LH1', 5), ('SK2', 4)")
    return watched


def test_a_plane_in_a_sector_for_more_than_five_minutes(planes: Watched) -> None:
    install(planes, SECTOR, "SELECT flight FROM plane")
    planes.clock.move(minutes=2)
    assert fired(planes, "UPDATE plane SET sector = 5 WHERE flight = 'SK2'", minutes=3) == []
    assert planes.db.next_due() == planes.clock.now + datetime.timedelta(microseconds=1)
    assert fired(planes, seconds=1) == [["LH1"]]  # five minutes and a second
    assert fired(planes, minutes=2) == [["SK2"]]
    assert fired(planes, hours=2) == []


def test_a_break_starts_over(planes: Watched) -> None:
    install(planes, SECTOR, "SELECT flight FROM plane")
    planes.clock.move(minutes=4)
    away = "UPDATE plane SET sector = {} WHERE flight = 'LH1'"
    assert fired(planes, away.format(1), away.format(5), minutes=4) == []
    planes.reopen()
    assert fired(planes, minutes=2) == [["LH1"]]


def test_a_plane_that_comes_and_goes_in_one_transaction_has_not_left(planes: Watched) -> None:
    install(planes, SECTOR, "SELECT flight FROM plane")
    planes.clock.move(minutes=4)
    with planes.db.transaction():
        planes.sql("DELETE FROM plane WHERE flight = 'LH1'")
        planes.sql("INSERT INTO plane VALUES ('LH1', 5)")
    assert fired(planes, minutes=2) == [["LH1"]]


def test_increased_monotonically(watched: Watched) -> None:
    install(watched, "WHEN stock.price INCREASED MONOTONICALLY FOR 2 HOURS")
    for value in (101, 102, 103):
        assert fired(watched, price("IBM", value), minutes=30) == []
    assert fired(watched, minutes=31) == [["IBM"]]
    assert fired(watched, price("IBM", 104)) == []
    assert fired(watched, price("IBM", 90), hours=3) == []
    assert fired(watched, price("IBM", 91)) == [["IBM"]]
    assert fired(watched, price("BAY", 9), hours=3) == []


def test_paused_queries_do_not_look(watched: Watched) -> None:
    install(watched, "WHEN price DECBYP 5")
    watched.sql("PAUSE CONTINUAL QUERY q")
    assert fired(watched, price("IBM", 50)) == []
    watched.sql("RESUME CONTINUAL QUERY q")
    assert fired(watched, price("IBM", 49)) == []
    assert fired(watched, price("IBM", 40)) == [["IBM"]]


def test_a_trigger_can_be_altered(watched: Watched) -> None:
    install(watched, "WHEN price DECBYP 5")
    watched.sql("ALTER CONTINUAL QUERY q TRIGGER WHEN price INCBYP 5")
    assert fired(watched, price("IBM", 50), price("BAY", 20)) == [["BAY"]]


def test_the_query_reads_the_rows_that_triggered_it(planes: Watched) -> None:
    """Tell me the flight number whenever a plane has been in this sector for so long."""
    trigger = "WHEN plane.sector = 5 FOR MORE THAN 5 MINUTES"
    install(planes, trigger, "SELECT flight FROM triggered")
    (done,) = planes.run(minutes=6)
    assert done.inserted == [("LH1",)]
    planes.sql("UPDATE plane SET sector = 1 WHERE flight = 'LH1'")
    planes.sql("UPDATE plane SET sector = 5")
    (done,) = planes.run(minutes=6)
    assert done.inserted == [("LH1",), ("SK2",)]
    assert planes.run(minutes=6) == []


def test_triggered_joins_other_tables(watched: Watched) -> None:
    install(
        watched,
        "WHEN price DECBYP 5 STRATEGY naive",
        "SELECT stock.symbol, triggered.price FROM stock JOIN triggered USING (company)",
    )
    watched.sql("INSERT INTO stock VALUES ('IB2', 'IBM', 7)")
    watched.sql(price("IBM", 50))
    (done,) = watched.run()
    assert done.inserted == [("IB2", 50.0), ("IBM", 50.0)]
    watched.sql("DELETE FROM stock WHERE symbol = 'IBM'")
    assert watched.run() == []


def test_a_deleted_row_has_triggered_with_its_previous_values(watched: Watched) -> None:
    install(watched, "WHEN stock CHANGES", "SELECT symbol, price FROM triggered")
    watched.sql(price("IBM", 50))
    watched.sql("DELETE FROM stock WHERE symbol = 'BAY'")
    (done,) = watched.run()
    assert done.inserted == [("BAY", 10.5), ("IBM", 50.0)]


def test_a_predicate_in_python(watched: Watched) -> None:
    def alarming(price: float) -> bool:
        return price > 150

    watched.db.foreign("alarming", alarming)
    install(watched, "WHEN alarming(stock.price) AND stock.price CHANGES")
    assert fired(watched, price("BAY", 140), price("BAY", 160)) == [["BAY"]]
    assert fired(watched, price("BAY", 160), "DELETE FROM stock WHERE symbol = 'BAY'") == [["BAY"]]
    watched.db.close()
    watched.db = watched.connect()
    with pytest.raises(harken.HarkenError, match="alarming"):
        watched.sql("ALTER CONTINUAL QUERY q TRIGGER WHEN alarming(stock.price)")


def test_count_is_of_the_table_of_the_query(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER WHEN COUNT(*) > 2")
    assert watched.run() == []
    watched.sql("INSERT INTO stock VALUES ('SAP', 'SAP', 1)")
    assert [each.inserted for each in watched.run()] == [[("SAP",)]]
    with pytest.raises(harken.HarkenError, match="does not say of which table"):
        watched.sql(
            "CREATE CONTINUAL QUERY p AS SELECT a.symbol FROM stock a, stock b "
            "TRIGGER WHEN COUNT(*) > 2"
        )


def test_a_deleted_row_is_shown_as_it_was_at_the_last_execution(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER ON DELETE OF stock")
    watched.sql("UPDATE stock SET price = 7 WHERE symbol = 'IBM'")
    watched.sql("INSERT INTO stock VALUES ('NEW', 'New', 1)")
    watched.sql("DELETE FROM stock WHERE symbol = 'IBM'; DELETE FROM stock WHERE symbol = 'NEW'")
    (done,) = watched.run()
    rows = {row["symbol"]: (row["company"], row["price"]) for row in done.cause.rows}
    assert rows == {"IBM": ("IBM", 100.0), "NEW": (None, None)}


def test_a_condition_on_the_table_of_the_query_and_another_delivers_what_came(
    watched: Watched,
) -> None:
    watched.sql("CREATE TABLE weather (place STRING PRIMARY KEY, sun INT)")
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock "
        "TRIGGER WHEN price > 200 AND weather.sun > 5 NOTIFY OUT"
    )
    watched.sql("UPDATE stock SET price = 300 WHERE symbol = 'IBM'")
    watched.sql("INSERT INTO weather VALUES ('Oslo', 9)")
    assert [each.outcome for each in watched.run()] == ["unchanged"]
    assert len(watched.messages()) == 1  # nothing came: only the first message


def test_what_is_true_when_installed_or_executed_begins_no_sequence(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock "
        "TRIGGER WHEN (NOT price CHANGES) THEN (price > 500)"
    )
    watched.sql("INSERT INTO stock VALUES ('SAP', 'SAP', 600)")
    assert watched.run() == []  # nothing has ceased to be changed since it was installed
    watched.sql("UPDATE stock SET price = 200 WHERE symbol = 'IBM'")
    watched.sql("UPDATE stock SET price = 100 WHERE symbol = 'IBM'")
    watched.sql("UPDATE stock SET price = 700 WHERE symbol = 'BAY'")
    assert len(watched.run()) == 1
    watched.sql("UPDATE stock SET price = 800 WHERE symbol = 'IBM'")
    assert watched.run() == []


@pytest.mark.parametrize(("minutes", "fires"), [(10, True), (10.01, False)])
@pytest.mark.parametrize("trigger", ["(a) THEN (b)", "ALL OF (a, b)"])
def test_within_counts_its_last_moment(
    watched: Watched, trigger: str, minutes: float, fires: bool
) -> None:
    text = (
        trigger.replace("a", "price > 200", 1)
        .replace("(b)", "(price < 5)")
        .replace(" b)", " price < 5)")
    )
    watched.sql(
        f"CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER WHEN {text} "
        "WITHIN 10 MINUTES"
    )
    watched.sql("UPDATE stock SET price = 300 WHERE symbol = 'IBM'")
    watched.clock.move(minutes=minutes)
    watched.sql("UPDATE stock SET price = 4 WHERE symbol = 'BAY'")
    assert bool(watched.run()) is fires


def test_an_execution_does_not_fire_its_own_query(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER WHEN NOT price CHANGES"
    )
    watched.sql("UPDATE stock SET price = 300 WHERE symbol = 'IBM'")
    watched.sql("EXECUTE CONTINUAL QUERY q")  # from now on the price has not changed
    assert watched.run() == []
    assert watched.run(days=1) == []


def test_a_delayed_firing_waits_while_its_query_is_executed(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock "
        "TRIGGER 5 MINUTES AFTER WHEN price > 200"
    )
    watched.sql("UPDATE stock SET price = 300 WHERE symbol = 'IBM'")
    watched.clock.move(minutes=2)
    done = watched.db.continual("q").run()
    assert done is not None
    assert (done.cause.kind, list(done.cause.rows)) == ("request", [])
    (late,) = watched.run(minutes=3)
    assert [row["symbol"] for row in late.cause.rows] == ["IBM"]


def test_a_condition_that_had_held_long_enough_fires_late(planes: Watched) -> None:
    """Nobody looked when it was due, and then it ended."""
    install(planes, "WHEN plane.sector = 5 FOR MORE THAN 5 MINUTES", "SELECT flight FROM triggered")
    planes.clock.move(minutes=6)
    planes.sql("UPDATE plane SET sector = 1 WHERE flight = 'LH1'")
    (done,) = planes.run()
    assert done.inserted == [("LH1",)]
    planes.sql("UPDATE plane SET sector = 5")
    planes.clock.move(minutes=5)  # not more than 5
    planes.sql("UPDATE plane SET sector = 1")
    assert planes.run(hours=1) == []


def test_a_trend_that_had_lasted_long_enough_fires_late(watched: Watched) -> None:
    install(watched, "WHEN price INCREASED MONOTONICALLY FOR 2 HOURS")
    watched.sql(price("BAY", 101))
    watched.clock.move(hours=2)
    watched.sql(price("BAY", 1))
    assert [each.query for each in watched.run()] == ["q"]
    assert watched.run(hours=2) == []


@pytest.mark.parametrize(
    ("event", "keys"),
    [
        ("UPDATE Stock.price", [["BAY"]]),
        ("UPDATE price(stock)", [["BAY"]]),
        ("UPDATE OF stock (price, company)", [["BAY"]]),
        ("(UPDATE stock.price) OR (DELETE FROM stock)", [["BAY"], ["IBM"]]),
        ("UPDATE stock.price WHERE stock.symbol = 'IBM'", []),
        ("WHEN INSERT INTO stock OR stock.price > 1000", [["NEW"]]),
    ],
)
def test_update_events_as_the_thesis_writes_them(
    watched: Watched, event: str, keys: list[list[str]]
) -> None:
    install(watched, event)
    statements = (
        price("BAY", 7),
        "DELETE FROM stock WHERE symbol = 'IBM'",
        "INSERT INTO stock VALUES ('NEW', 'New', 1)",
    )
    assert fired(watched, *statements) == keys
