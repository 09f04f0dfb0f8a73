"""Appendix A of the thesis: its syntax, production by production."""

import itertools

import pytest

import harken
from tests.papers.continual_queries.conftest import QueryDesk


@pytest.fixture
def stock(desk: QueryDesk) -> QueryDesk:
    desk.sql(
        "CREATE TABLE stock (symbol STRING PRIMARY KEY, company STRING, price INT, volume INT)"
    )
    desk.sql("INSERT INTO stock VALUES ('IBM', 'IBM', 100, 5), ('BAY', 'Bayer', 50, 7)")
    return desk


def install(
    desk: QueryDesk, trigger: str, stop: str = "12-31-1998 23:59 -07", query: str = ""
) -> None:
    query = query or "SELECT * FROM stock"
    desk.sql(f"Create CQ q as Query: {query}; Trigger: {trigger}; Stop: {stop}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM stock",
        "SELECT symbol, stock.price FROM stock",
        "SELECT COUNT(*) FROM stock",
        "SELECT company, AVG(price), MAX(price), MIN(price), SUM(price), COUNT(price) FROM stock"
        " GROUP BY company",
        "SELECT stock.symbol FROM stock, stock s WHERE stock.symbol = s.symbol",
        "SELECT symbol FROM stock WHERE NOT price > 10",
        "SELECT symbol FROM stock WHERE price <> 1 AND price = 2 OR price < 3 OR price >= 4",
        "SELECT symbol FROM stock WHERE company LIKE 'B%' AND company NOT LIKE 'C%'",
        "SELECT symbol FROM stock WHERE price + volume * 2 - -3 / 4 <= (price)",
        "SELECT symbol FROM stock ORDER BY price ASC, symbol DESC",
    ],
)
def test_query(stock: QueryDesk, query: str) -> None:
    install(stock, "every Monday", query=query)
    assert stock.sql("SELECT executions FROM continual_query") == [(1,)]


@pytest.mark.parametrize(
    ("fields", "cron"),
    [
        ("00 && 18 && null && null && null", "00 18 * * *"),
        ("00,30 && 08-17 && null && null && 1-5", "00,30 08-17 * * 1-5"),
        ("05 && 06 && 01,15 && null && 0", "05 06 01,15 * 0"),
        ("59 && 23 && 31 && 1,3-5 && 6", "59 23 31 1,3-5 6"),
        ("'0' && '0' && '1' && '' && ''", "0 0 1 * *"),
    ],
)
def test_time_triggers(stock: QueryDesk, fields: str, cron: str) -> None:
    """A field that is not specified is null."""
    install(stock, fields)
    assert stock.sql("SELECT trigger FROM continual_query") == [(f"CRON '{cron}'",)]


def test_months_are_1_to_12(stock: QueryDesk) -> None:
    """Corrected: MonthVal is printed as 0 to 11; 6.2.1.5 says 1 through 12."""
    install(stock, "0 && 0 && 1 && 12 && null")
    with pytest.raises(harken.HarkenError, match=r"no cron schedule.*month"):
        install(stock, "0 && 0 && 1 && 0 && null")


@pytest.mark.parametrize("field", ["60 && 0", "0 && 24", "0 && 0 && 32", "0 && 0 && 1 && 1 && 9"])
def test_values_out_of_range(stock: QueryDesk, field: str) -> None:
    whole = " && ".join([*field.split(" && "), *["null"] * 5][:5])
    with pytest.raises(harken.HarkenError, match="no cron schedule"):
        install(stock, whole)


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("10-26-1998 09:00 -05", "AT '1998-10-26 09:00:00-05:00'"),
        ("10-26-1998 09:00 +00", "AT '1998-10-26 09:00:00+00:00'"),
        ("6-1-1999 00:00 +12", "AT '1999-06-01 00:00:00+12:00'"),
    ],
)
def test_stop_condition(stock: QueryDesk, stop: str, text: str) -> None:
    install(stock, "every Monday", stop)
    assert stock.sql("SELECT stop FROM continual_query") == [(text,)]


PRIMITIVES = (
    "stock.price <> 100",
    "stock.price CHANGES",
    "stock.company CONTAINS 'Bay'",
    "stock.company LIKE 'B%'",
    "stock.price INCBY 5",
    "stock.price DECBY 5",
    "stock.price INCBYP 5",
    "stock.price DECBYP 5",
    "AVG(stock.price) >= 80",
    "COUNT(stock.symbol) > 2",
    "MAX(stock.price) = 7",
    "MIN(stock.price) < 2",
    "SUM(stock.volume) <= 2",
    "MAX(stock.price(IBM)) > 100",
)
CONSTRAINTS = (
    "",
    "WHERE stock.company = 'IBM'",
    "WHERE stock.company = 'IBM' ^ stock.volume > 1",
    "WHERE (stock.company = 'IBM' OR stock.volume > 1)",
)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_event_groups(stock: QueryDesk, primitive: str) -> None:
    for number, constraint in enumerate(CONSTRAINTS):
        if "(IBM)" in primitive and constraint:
            continue
        query = "SELECT * FROM stock"
        stock.sql(f"Create CQ q{number} as Query: {query}; Trigger: {primitive} {constraint}")
    assert stock.sql("SELECT count(*) FROM continual_query WHERE type <> 'content'") == [(0,)]


@pytest.mark.parametrize("operator", ["AND", "OR", "THEN", "ELSE"])
def test_event_operators(stock: QueryDesk, operator: str) -> None:
    """<sequence> is written THEN; <parallel> is ALL OF (a, b) or ANY OF (a, b)."""
    groups = [f"{primitive} WHERE stock.symbol = 'IBM'" for primitive in PRIMITIVES[:4]]
    for number, pair in enumerate(itertools.combinations(groups, 2)):
        trigger = f" {operator} ".join(pair)
        stock.sql(f"Create CQ q{number} as Query: SELECT * FROM stock; Trigger: {trigger}")
    install(stock, f"ALL OF ({groups[0]}, {groups[1]}) OR ANY OF ({groups[2]}, {groups[3]})")


def test_group_by(stock: QueryDesk) -> None:
    trigger = "SUM(stock.price) > 60 WHERE stock.volume > 1 GROUPBY stock.company"
    install(stock, trigger, query="SELECT company FROM triggered")
    (done,) = stock.fired("UPDATE stock SET price = 61 WHERE symbol = 'BAY'")
    assert done.inserted == [("Bayer",)]
