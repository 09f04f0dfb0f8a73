"""Chapter 4 of the thesis: how triggers are taken apart, detected and evaluated, and couplings."""

import pytest

import harken
from tests.harness.servers import PostgresDatabase
from tests.papers.continual_queries.conftest import QueryDesk

EXAMPLE_3 = "Stock.price(IBM) IncreaseBy% 5 OR Stock.price(Intel) DecreaseBy% 5"
KEYWORDS = "keyword CONTAINS 'Java' OR keyword CONTAINS 'JDBC'"
LIBRARY = """
@article{j1, title = {The {Java} Language}, author = {Gosling, James}, year = 1996}
@article{c1, title = {C}, abstract = {Pointers}, year = 1988}
"""
MORE = (
    "@book{j2, title = {Databases}, abstract = {With JDBC}, author = {Reese, George}, year = 1997}"
)


@pytest.fixture
def stock(desk: QueryDesk) -> QueryDesk:
    desk.sql("CREATE TABLE Stock (company STRING PRIMARY KEY, price INT, volume INT)")
    desk.sql("INSERT INTO Stock VALUES ('IBM', 100, 5), ('Intel', 100, 5), ('Bayer', 100, 5)")
    return desk


def install(desk: QueryDesk, trigger: str, query: str = "SELECT * FROM Stock") -> None:
    desk.sql(f"Create CQ q as Query: {query}; Trigger: {trigger}; Stop: 1 year")


# --- 4.2.3 ----------------------------------------------------------------------------------------


def test_the_triplets_of_example_3(stock: QueryDesk) -> None:
    """Corrected: the third triplet is printed with IncreaseBy%, but Intel is to fall."""
    install(stock, EXAMPLE_3)
    assert stock.events("q") == [
        "(Stock.price, Stock.price INCBYP 5, WHERE)",
        "(Stock.company, Stock.company = IBM, OR)",
        "(Stock.price, Stock.price DECBYP 5, WHERE)",
        "(Stock.company, Stock.company = Intel, END)",
    ]


def test_example_3_over_a_database(desk: QueryDesk, plain_database: PostgresDatabase) -> None:
    """A source that has triggers of its own tells of its updates by them."""
    plain_database.run("CREATE TABLE stock (company text PRIMARY KEY, price int)")
    plain_database.run("INSERT INTO stock VALUES ('IBM', 100), ('Intel', 100)")
    url = plain_database.url
    desk.db.source("stock", "postgresql", url=url, table="stock", capture="triggers", every=60)
    install(desk, EXAMPLE_3, "SELECT company, price FROM stock")
    plain_database.run("UPDATE stock SET price = 200 WHERE company = 'Intel'")  # ignorable: 4.2.5
    assert desk.run(minutes=1) == []
    plain_database.run("UPDATE stock SET price = 105 WHERE company = 'IBM'")
    (done,) = desk.run(minutes=1)
    assert sorted(done.inserted) == [("IBM", 105), ("Intel", 200)]
    plain_database.run("UPDATE stock SET price = 190 WHERE company = 'Intel'")
    assert len(desk.run(minutes=1)) == 1


def test_keywords_of_documents(desk: QueryDesk) -> None:
    """`keyword` stands for the title and the abstract of a document, in a file of BibTeX."""
    path = desk.directory / "library.bib"
    path.write_text(LIBRARY)
    desk.db.source("library", "bibtex", path=str(path), every=60)
    desk.sql(
        "CREATE VIEW Document AS SELECT citekey, title,"
        " concat(title, ' ', coalesce(abstract, '')) AS keyword FROM library"
    )
    install(desk, KEYWORDS, "SELECT title FROM Document WHERE keyword LIKE '%J%'")
    path.write_text(LIBRARY.replace("Pointers", "Pointers to JARs"))
    assert desk.run(minutes=1) == []
    path.write_text(LIBRARY + MORE)
    (done,) = desk.run(minutes=1)
    assert done.inserted == [("Databases",)]


@pytest.mark.parametrize(
    ("trigger", "events"),
    [
        ("qty_on_hand(item) > threshold(item)", ["qty_on_hand", "threshold"]),
        (
            "qty_on_hand(item) + qty_on_order > threshold(item)",
            ["qty_on_hand", "qty_on_order", "threshold"],
        ),
    ],
)
def test_columns_of_a_row_in_parentheses(desk: QueryDesk, trigger: str, events: list[str]) -> None:
    """qty_on_hand(item) is the column of whichever item it is."""
    desk.sql(
        "CREATE TABLE inventory (item STRING PRIMARY KEY, qty_on_hand INT, qty_on_order INT,"
        " threshold INT)"
    )
    desk.sql("INSERT INTO inventory VALUES ('cap', 1, 0, 10), ('hat', 1, 0, 50)")
    install(desk, trigger, "SELECT item FROM inventory WHERE qty_on_hand > 9")
    assert [each.strip("(").split(",")[0] for each in desk.events("q")] == events
    assert desk.fired("UPDATE inventory SET qty_on_hand = 20 WHERE item = 'hat'") == []
    (done,) = desk.fired("UPDATE inventory SET qty_on_hand = 20 WHERE item = 'cap'")
    assert sorted(done.inserted) == [("cap",), ("hat",)]


# --- 4.2.3 and 4.2.4: the walk through detection and evaluation -----------------------------------


def test_end_a_primitive_event(stock: QueryDesk) -> None:
    install(stock, "Stock.price > 110")
    assert stock.fired("UPDATE Stock SET volume = 6") == []
    assert len(stock.fired("UPDATE Stock SET price = 111 WHERE company = 'IBM'")) == 1


def test_where_restricts_the_event(stock: QueryDesk) -> None:
    install(stock, "Stock.price CHANGES WHERE Stock.company = 'IBM'")
    assert stock.fired("UPDATE Stock SET price = 1 WHERE company = 'Intel'") == []
    assert len(stock.fired("UPDATE Stock SET price = 1 WHERE company = 'IBM'")) == 1


def test_and_of_groups(stock: QueryDesk) -> None:
    install(
        stock,
        "Stock.price > 110 WHERE Stock.company = 'IBM'"
        " AND Stock.price > 110 WHERE Stock.company = 'Intel'",
    )
    assert stock.fired("UPDATE Stock SET price = 111 WHERE company = 'IBM'") == []
    assert len(stock.fired("UPDATE Stock SET price = 111 WHERE company = 'Intel'")) == 1


def test_or_of_groups(stock: QueryDesk) -> None:
    install(
        stock,
        "Stock.price > 110 WHERE Stock.company = 'IBM'"
        " OR Stock.price > 110 WHERE Stock.company = 'Intel'",
    )
    assert len(stock.fired("UPDATE Stock SET price = 111 WHERE company = 'Intel'")) == 1


# --- 4.1: the steps of an execution ---------------------------------------------------------------


def test_what_happens_when_a_query_is_entered(stock: QueryDesk) -> None:
    """It has an identifier, its first run is the whole answer, and its events are known."""
    install(stock, "Stock.price > 110", "SELECT company FROM Stock")
    ((cqid, name, executions, state),) = stock.sql(
        "SELECT id, name, executions, state FROM continual_query"
    )
    assert (cqid[:2], name, executions, state) == ("cq", "q", 1, "active")
    assert stock.sql("SELECT event, inserted FROM continual_execution") == [("installed", 3)]
    assert stock.events("q") == ["(Stock.price, Stock.price > 110, END)"]


# --- 4.2.1 and 4.2.2: coupling --------------------------------------------------------------------

ACTIVATE = """Activate <q>
  define communication protocol between
    {pair}
  TransactionCoupling = {transaction}
  ExecutionCoupling = {execution}
  {dependency}
  ScheduleCoupling = {schedule}
"""


def activated(
    transaction: str, execution: str, dependency: str, schedule: str, pair: str = "(3) and (4)"
) -> str:
    said = f"DependencyCoupling = causally {dependency}" if dependency else ""
    return ACTIVATE.format(
        pair=pair, transaction=transaction, execution=execution, dependency=said, schedule=schedule
    )


@pytest.mark.parametrize("pair", ["(1) and (2)", "(2) and (3)", "(3) and (4)"])
@pytest.mark.parametrize(
    "words",
    [
        ("same", "synchronous", "", "immediate"),
        ("same", "synchronous", "", "deferred"),
        ("separate", "synchronous", "", "immediate"),
        ("separate", "asynchronous", "dependent", "immediate"),
        ("separate", "asynchronous", "independent", "immediate"),
    ],
)
def test_couplings_that_can_be(stock: QueryDesk, words: tuple[str, ...], pair: str) -> None:
    install(stock, "Stock.price > 110")
    stock.sql(activated(*words, pair=pair))
    assert len(stock.fired("UPDATE Stock SET price = 111")) <= 1
    assert stock.sql("SELECT executions FROM continual_query") == [(2,)]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("separate", "synchronous", "", "deferred"), "deferred means before the commit"),
        (
            ("same", "asynchronous", "", "immediate"),
            "the same transaction waits for its parts, so it is",
        ),
        (("same", "synchronous", "dependent", "immediate"), "depend"),
        (("separate", "synchronous", "dependent", "immediate"), "depend"),
    ],
)
def test_couplings_that_cannot_be(stock: QueryDesk, words: tuple[str, ...], reason: str) -> None:
    """The last of them is the thesis's own default between (3) and (4)."""
    install(stock, "Stock.price > 110")
    with pytest.raises(harken.HarkenError, match=reason):
        stock.sql(activated(*words))


def test_deactivate(stock: QueryDesk) -> None:
    install(stock, "Stock.price > 110")
    ((cqid,),) = stock.sql("SELECT id FROM continual_query")
    stock.sql(f"Deactivate <{cqid}>")
    assert stock.fired("UPDATE Stock SET price = 111") == []
    assert stock.sql("SELECT state FROM continual_query") == [("stopped",)]
