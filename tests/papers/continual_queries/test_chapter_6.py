"""Chapter 6 of the thesis: its forms, its objects, its messages, and the statements in them."""

import datetime
import json

import pytest

import harken
from tests.harness.servers import PostgresDatabase
from tests.papers.continual_queries.conftest import QueryDesk

NEW_JAVA_BOOKS = """
Query:

  SELECT  title, author, isbn#, year, price
  FROM    BOOK
  WHERE   category='computer';

Trigger:

  every Monday;

Stop;

  12-31-1998 00:00:00
"""
IBM_OR_ALL = """STOCK.price DECBYP 5 WHERE STOCK.companyname = 'IBM'
  OR MAX(STOCK.trans_volume) < 2390000"""
FIGURE_6_15 = """STOCK.PRICE DECBYP 5 WHERE STOCK.COMPANYNAME = 'IBM' OR
MAX(STOCK.VOLUME) < 2390000"""


# --- 6.2.1.3: the normal query --------------------------------------------------------------------

NORMAL_QUERY = """SELECT *
FROM ALP_INV_STORAGE, ALP_INV_ORDER
WHERE QTY_ON_HAND + QTY_ON_ORDER > THRESHOLD
GROUP BY ITEM_CAT
ORDER BY ITEM_NAME
"""


@pytest.fixture
def inventory(desk: QueryDesk) -> QueryDesk:
    desk.sql(
        "CREATE TABLE ALP_INV_STORAGE (ITEM_NAME STRING PRIMARY KEY, ITEM_CAT STRING,"
        " QTY_ON_HAND INT, THRESHOLD INT)"
    )
    desk.sql("CREATE TABLE ALP_INV_ORDER (ITEM STRING PRIMARY KEY, QTY_ON_ORDER INT)")
    desk.sql("INSERT INTO ALP_INV_STORAGE VALUES ('hat', 'wear', 5, 6), ('cap', 'wear', 1, 9)")
    desk.sql("INSERT INTO ALP_INV_ORDER VALUES ('hat', 2), ('cap', 2)")
    return desk


def test_the_normal_query_as_printed_names_the_column_that_is_not_grouped(
    inventory: QueryDesk,
) -> None:
    with pytest.raises(harken.HarkenError, match="item_name must be in GROUP BY"):
        inventory.sql(NORMAL_QUERY)


def test_the_normal_query(inventory: QueryDesk) -> None:
    """Corrected: what is shown and sorted by is grouped, and the two tables are joined."""
    query = NORMAL_QUERY.replace("SELECT *", "SELECT ITEM_CAT, ITEM_NAME")
    query = query.replace("GROUP BY ITEM_CAT", "AND ITEM = ITEM_NAME GROUP BY ITEM_CAT, ITEM_NAME")
    assert inventory.sql(query) == [("wear", "hat")]


# --- 6.2.1.5: time triggers -----------------------------------------------------------------------


@pytest.fixture
def stock(desk: QueryDesk) -> QueryDesk:
    desk.sql(
        "CREATE TABLE STOCK (symbol STRING PRIMARY KEY, companyname STRING, price INT, high INT,"
        " low INT, trans_volume INT, volume INT)"
    )
    desk.sql(
        "INSERT INTO STOCK VALUES ('IBM', 'IBM', 100, 1, 1, 3000000, 3000000),"
        " ('BAY', 'Bayer', 100, 1, 1, 100, 100)"
    )
    return desk


def install(desk: QueryDesk, trigger: str, stop: str = "1 year", query: str = "") -> None:
    query = query or "SELECT symbol, price FROM STOCK"
    desk.sql(f"Create CQ q as Query: {query}; Trigger: {trigger}; Stop: {stop}")


def due(desk: QueryDesk, count: int) -> list[str]:
    """When a query is executed next, several times."""
    found = []
    for _ in range(count):
        desk.now = desk.db.next_due() or desk.now
        found += [f"{done.at:%a %d %b %H:%M}" for done in desk.db.run_due()]
    return found


@pytest.mark.parametrize(
    ("trigger", "times"),
    [
        ("16:25, June 2, 1998", ["Tue 02 Jun 16:25"]),
        ("every Monday", ["Mon 11 May 00:00", "Mon 18 May 00:00"]),
        ("at 10:00 every first day of the month", ["Mon 01 Jun 10:00", "Wed 01 Jul 10:00"]),
        (
            "at midnight and noon every weekday",
            ["Tue 05 May 00:00", "Tue 05 May 12:00", "Wed 06 May 00:00"],
        ),
        ("midnight every first day of the month", ["Mon 01 Jun 00:00"]),
        ("every hour", ["Mon 04 May 13:00", "Mon 04 May 14:00"]),
        # The table: midnight of every weekday, and of the first and the 15th.
        ("0 && 0 && 1,15 && null && 1-5", ["Tue 05 May 00:00", "Wed 06 May 00:00"]),
        ("0 0 1,15 * 1-5", ["Tue 05 May 00:00", "Wed 06 May 00:00"]),
        # Its second row, corrected: 0,30 are minutes, and stand in the field of the hours.
        (
            "0,30 && null && null && null && 6,0",
            ["Sat 09 May 00:00", "Sat 09 May 00:30", "Sat 09 May 01:00"],
        ),
        # Figure 6-17, with spaces between the five fields.
        ("* * * * 1,2,3,4,5,6", ["Mon 04 May 12:01", "Mon 04 May 12:02"]),
    ],
)
def test_time_triggers(stock: QueryDesk, trigger: str, times: list[str]) -> None:
    install(stock, trigger)
    assert due(stock, len(times)) == times


def test_both_day_fields_apply(stock: QueryDesk) -> None:
    install(stock, "0 && 0 && 1,15 && null && 1-5")
    stock.now = datetime.datetime(1998, 7, 31, 12, tzinfo=datetime.UTC)
    stock.run()
    assert due(stock, 2) == ["Sat 01 Aug 00:00", "Mon 03 Aug 00:00"]  # the 1st, and a weekday


def test_the_hour_30_of_the_second_row(stock: QueryDesk) -> None:
    with pytest.raises(harken.HarkenError, match=r"no cron schedule.*the hour"):
        install(stock, "0 && 0,30 && null && null && 6,0")


# --- 6.2.1.5 and 6.2.3: content triggers ----------------------------------------------------------


def test_when_the_price_of_ibm_is_greater_than_500(stock: QueryDesk) -> None:
    """The text says $100, the statement 500."""
    install(stock, "STOCK.PRICE > 500 WHERE STOCK.SYMBOL = 'IBM'")
    assert stock.fired("UPDATE STOCK SET price = 501 WHERE symbol = 'BAY'") == []
    assert len(stock.fired("UPDATE STOCK SET price = 501 WHERE symbol = 'IBM'")) == 1


def test_when_the_average_of_sales_is_greater_than_40_000(desk: QueryDesk) -> None:
    """Corrected: the column that is grouped by is one of DEPT, as there is no table SALE."""
    desk.sql("CREATE TABLE DEPT (id INT PRIMARY KEY, item STRING, sale INT)")
    desk.sql("INSERT INTO DEPT VALUES (1, 'hats', 39000), (2, 'caps', 90000)")
    query = "SELECT item FROM triggered"
    with pytest.raises(harken.HarkenError, match="no table or view sale"):
        install(desk, "AVG(DEPT.SALE) > 40000 GROUPBY SALE.ITEM", query=query)
    install(desk, "AVG(DEPT.SALE) > 40000 GROUPBY DEPT.ITEM", query=query)
    assert desk.fired("INSERT INTO DEPT VALUES (3, 'hats', 41000)") == []
    (done,) = desk.fired("INSERT INTO DEPT VALUES (4, 'hats', 41000)")
    assert done.inserted == [("hats",)]


@pytest.mark.parametrize("trigger", [IBM_OR_ALL, FIGURE_6_15])
def test_ibm_falls_or_the_maximum_of_the_market_is_low(stock: QueryDesk, trigger: str) -> None:
    install(stock, trigger, "6-8-1998 12:00")
    assert stock.fired("UPDATE STOCK SET price = 50 WHERE symbol = 'BAY'") == []
    assert len(stock.fired("UPDATE STOCK SET price = 95 WHERE symbol = 'IBM'")) == 1
    assert stock.fired("UPDATE STOCK SET trans_volume = 2390000, volume = 2390000") == []
    assert len(stock.fired("UPDATE STOCK SET trans_volume = 9, volume = 9")) == 1
    assert stock.sql("SELECT stop FROM continual_query") == [("AT '1998-06-08 12:00:00'",)]


def test_the_events_of_the_two_groups(stock: QueryDesk) -> None:
    install(stock, IBM_OR_ALL)
    assert stock.events("q") == [
        "(STOCK.price, STOCK.price DECBYP 5, WHERE)",
        "(STOCK.companyname, STOCK.companyname = 'IBM', OR)",
        "(STOCK.trans_volume, MAX(STOCK.trans_volume) < 2390000, END)",
    ]


def test_joint_where(stock: QueryDesk) -> None:
    """`^` joins conditions inside of a WHERE."""
    install(stock, "STOCK.price > 110 WHERE STOCK.symbol = 'IBM' ^ STOCK.low = 2")
    assert stock.fired("UPDATE STOCK SET price = 111") == []
    assert len(stock.fired("UPDATE STOCK SET low = 2 WHERE symbol = 'IBM'")) == 1


@pytest.mark.parametrize(
    ("operator", "changed", "fires"),
    [
        ("and", "IBM", False),
        ("and", "BAY", False),
        ("and", "IBM BAY", True),
        ("or", "", False),
        ("or", "IBM", True),
        ("or", "BAY", True),
        ("or", "IBM BAY", True),
    ],
)
def test_the_truth_tables_of_figure_6_3(
    stock: QueryDesk, operator: str, changed: str, fires: bool
) -> None:
    groups = [f"STOCK.price > 110 WHERE STOCK.symbol = '{symbol}'" for symbol in ("IBM", "BAY")]
    install(stock, f" {operator.upper()} ".join(groups))
    symbols = ", ".join(f"'{each}'" for each in changed.split()) or "''"
    assert bool(stock.fired(f"UPDATE STOCK SET price = 111 WHERE symbol IN ({symbols})")) == fires


@pytest.mark.parametrize(
    ("test", "price"),
    [
        ("CHANGES", 99),
        ("<> 100", 99),
        ("= 99", 99),
        ("< 100", 99),
        ("> 100", 101),
        ("<= 99", 99),
        (">= 101", 101),
        ("INCBY 5", 105),
        ("DECBY 5", 95),
        ("INCBYP 5", 105),
        ("DECBYP 5", 95),
    ],
)
def test_numerical_operators(stock: QueryDesk, test: str, price: int) -> None:
    install(stock, f"STOCK.price {test}")
    assert stock.fired("UPDATE STOCK SET volume = 0") == []
    assert len(stock.fired(f"UPDATE STOCK SET price = {price} WHERE symbol = 'IBM'")) == 1


@pytest.mark.parametrize("test", ["CONTAINS 'ig Bl'", "LIKE '%Blue'", "LIKE 'Big_Blue'", "CHANGES"])
def test_operators_of_strings(stock: QueryDesk, test: str) -> None:
    """Corrected: a single character is `_`, as in SQL; the footnote prints a point."""
    install(stock, f"STOCK.companyname {test}")
    assert len(stock.fired("UPDATE STOCK SET companyname = 'Big Blue' WHERE symbol = 'IBM'")) == 1


@pytest.mark.parametrize("value", [90, 95])
def test_an_update_that_raises_the_price_is_ignorable(stock: QueryDesk, value: int) -> None:
    """4.2.5: stock.price(Intel) DecreaseBy% 5 and an update to a higher value."""
    install(stock, "STOCK.price(IBM) DecreaseBy% 5")
    assert stock.fired("UPDATE STOCK SET price = 200 WHERE symbol = 'IBM'") == []
    assert stock.fired("UPDATE STOCK SET price = 101 WHERE symbol = 'IBM'") == []
    assert len(stock.fired(f"UPDATE STOCK SET price = {value} WHERE symbol = 'IBM'")) == 1


# --- 6.2.1.5: stops -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("12-31-1998 00:00:00", "AT '1998-12-31 00:00:00'"),
        ("midnight of December 31, 1998", "AT '1998-12-31 00:00:00'"),
        ("stop by the midnight of December 31, 1998", "AT '1998-12-31 00:00:00'"),
        ("June 8, 1998 12:00", "AT '1998-06-08 12:00:00'"),
        ("in the next six months", "AFTER 6 MONTHS"),
        ("two hours", "AFTER 2 HOURS"),
        ("STOCK.price > 500", "WHEN STOCK.price > 500"),
    ],
)
def test_stops(stock: QueryDesk, stop: str, text: str) -> None:
    install(stock, "every Monday", stop)
    assert stock.sql("SELECT stop FROM continual_query") == [(text,)]


def test_a_stop_that_has_passed(stock: QueryDesk) -> None:
    """Figure 6-17 shows queries of May 1998 that were to stop in April."""
    with pytest.raises(harken.HarkenError, match="would stop at once"):
        install(stock, "every Monday", "4-6-1998 11:00:00")


# --- 6.2.3.1: books -------------------------------------------------------------------------------

BOOKS = """
@book{flanagan, title = {Java in a Nutshell}, author = {Flanagan, David}, year = 1996,
  isbn = {1-56592-183-6}, price = {19.95}, category = {computer}}
@book{hesse, title = {Siddhartha}, author = {Hesse, Hermann}, year = 1922,
  isbn = {0-553-20884-5}, price = {5.50}, category = {novel}}
"""
NEW_BOOK = """
@book{arnold, title = {The Java Programming Language}, author = {Arnold, Ken}, year = 1998,
  isbn = {0-201-31006-6}, price = {36.95}, category = {computer}}
"""


@pytest.fixture
def library(desk: QueryDesk) -> QueryDesk:
    path = desk.directory / "books.bib"
    path.write_text(BOOKS)
    desk.db.source("bib_info", "bibtex", path=str(path), every=3600)
    isbn, price, category = (
        f"""regexp_extract(other, '"{name}": "([^"]*)"', 1)"""
        for name in ("isbn", "price", "category")
    )
    desk.sql(
        f"CREATE VIEW BOOK AS SELECT title, author, {isbn} AS `isbn#`, year,"
        f" CAST({price} AS DOUBLE) AS price, {category} AS category FROM bib_info"
    )
    return desk


def test_books_as_printed_name_the_sign_that_needs_quotes(library: QueryDesk) -> None:
    with pytest.raises(harken.HarkenError, match="# cannot stand here") as caught:
        library.sql(NEW_JAVA_BOOKS)
    assert caught.value.hint == "a name that has this sign stands in backticks"


def test_books(library: QueryDesk) -> None:
    """Corrected: isbn# in backticks. The semicolon after Stop, and the query without a name, are
    read as printed."""
    library.sql(NEW_JAVA_BOOKS.replace("isbn#", "`isbn#`"))
    (library.directory / "books.bib").write_text(BOOKS + NEW_BOOK)
    done = [each for each in library.run(days=6, hours=12) if each.outcome == "changed"]
    (row,) = done[0].inserted
    assert row[0] == "The Java Programming Language"
    assert row[2:] == ("0-201-31006-6", 1998, 36.95)
    ((name, stop),) = library.sql("SELECT name, stop FROM continual_query")
    assert (name[:2], stop) == ("cq", "AT '1998-12-31 00:00:00'")


# --- 6.2.2.3, 6.2.4 and the figures ---------------------------------------------------------------


def test_the_attributes_of_a_continual_query(stock: QueryDesk) -> None:
    """CQ_Info, and what figure 6-17 shows."""
    install(stock, "every Monday", query="select symbol, price,high, low from STOCK order by price")
    ((name, kind, sources, query, trigger, zone, executions),) = stock.sql(
        "SELECT name, type, sources, query, trigger, zone, executions FROM continual_query"
    )
    assert (name, kind, sources, zone, executions) == ("q", "time", "stock", "UTC", 1)
    assert (query, trigger) == (
        "select symbol, price,high, low from STOCK order by price",
        "EVERY MONDAY AT '00:00'",
    )
    ((installed, evaluated),) = stock.sql("SELECT installed, evaluated FROM continual_query")
    assert installed == evaluated == stock.now


def test_each_situation_in_which_someone_is_notified(stock: QueryDesk) -> None:
    """6.2.4: new results, an error, the end; `announce` tells everybody of news of the system."""
    out = stock.directory / "out.jsonl"
    stock.sql(
        "CREATE CONTINUAL QUERY cq208 AS SELECT symbol, 100 / low AS share FROM STOCK"
        f" TRIGGER AFTER 1 CHANGE STOP AFTER 2 HOURS NOTIFY FILE '{out}'"
    )
    stock.fired("UPDATE STOCK SET low = 2 WHERE symbol = 'IBM'")
    stock.db.notifications.announce("The server is down at noon.", subject="Upgrade")
    stock.run(hours=2)
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each["kind"] for each in told] == ["results", "results", "announcement", "stopped"]
    assert told[1]["inserted"] == [{"symbol": "IBM", "share": 50.0}]


def test_a_continual_query_over_two_databases(
    stock: QueryDesk, plain_database: PostgresDatabase
) -> None:
    """6.2.3.5: wrappers hide what kind of source it is."""
    plain_database.run("CREATE TABLE company (name text PRIMARY KEY, town text)")
    plain_database.run("INSERT INTO company VALUES ('IBM', 'Armonk')")
    stock.mirror("company", plain_database)
    install(
        stock,
        "every hour",
        query="SELECT town, price FROM STOCK JOIN company ON companyname = name",
    )
    plain_database.run("INSERT INTO company VALUES ('Bayer', 'Leverkusen')")
    done = [each for each in stock.run(hours=1) if each.outcome == "changed"]
    assert done[0].inserted == [("Leverkusen", 100)]
