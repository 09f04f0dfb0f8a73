"""A domain is the rows of its members under names of its own."""

from __future__ import annotations

from collections import Counter

import pytest

import harken
from harken.database.permissions import Role, User
from harken.lang.sql.domain_statements import domain_text, domain_words
from harken.lang.sql.parser import statements

LIBRARY = """CREATE DOMAIN library OVER
    paper (title AS keyword, abstract AS keyword, published AS year),
    book (title AS keyword, year),
    page (text AS keyword)"""


@pytest.fixture
def db() -> harken.Database:
    db = harken.connect(":memory:")
    db.sql("CREATE TABLE paper (id INT PRIMARY KEY, title STRING, abstract STRING, published INT)")
    db.sql("CREATE TABLE book (title STRING, year INT, price DOUBLE)")
    db.sql("CREATE TABLE page (text STRING)")
    db.sql("INSERT INTO paper VALUES (1, 'On Java', 'and tea', 1998), (2, NULL, NULL, 1999)")
    db.sql("INSERT INTO book VALUES ('Java', 1996, 9.5)")
    db.sql("INSERT INTO page VALUES ('more Java')")
    db.sql(LIBRARY)
    return db


def test_each_member_has_the_names_of_the_domain(db: harken.Database) -> None:
    found = db.sql("SELECT * FROM library")
    assert found.columns == ("keyword", "year", "_member")
    assert Counter(found.rows) == {
        ("On Java\nand tea", 1998, "paper"): 1,
        (None, 1999, "paper"): 1,
        ("Java", 1996, "book"): 1,
        ("more Java", None, "page"): 1,
    }
    either = db.sql("SELECT year FROM library WHERE contains(keyword, 'tea')")
    assert either.rows == [(1998,)]


def test_a_domain_is_watched(db: harken.Database) -> None:
    seen = db.monitor("library")
    db.sql("UPDATE paper SET abstract = 'and rum' WHERE id = 1")
    db.sql("ALTER DOMAIN library DROP book")
    first, second = seen.changes()
    assert (first.minus, first.plus) == (
        [("On Java\nand tea", 1998, "paper")],
        [("On Java\nand rum", 1998, "paper")],
    )
    assert second.minus == [("Java", 1996, "book")]


def test_it_is_listed_described_and_dropped(db: harken.Database) -> None:
    db.sql("CREATE DOMAIN priced OVER book (price) UNAVAILABLE skip")
    assert db.sql("SHOW DOMAINS").rows == [
        ("library", "paper, book, page", "keyword, year", "fail"),
        ("priced", "book", "price", "skip"),
    ]
    described = dict(db.sql("DESCRIBE DOMAIN library").rows)
    assert described["member paper"] == "keyword from title and abstract; year from published"
    assert described["member page"] == "keyword from text; no year"
    assert ("library", "domain") in db.sql("SHOW TABLES").rows
    db.sql("DROP DOMAIN library")
    db.sql("DROP DOMAIN IF EXISTS library")
    assert db.sql("SHOW DOMAINS").rows == [("priced", "book", "price", "skip")]


def test_members_without_a_list_have_the_columns_of_that_name(db: harken.Database) -> None:
    db.sql("CREATE DOMAIN works (title, year) OVER paper, book")
    assert db.sql("SELECT title, year FROM works WHERE _member = 'paper'").rows == [
        ("On Java", None),
        (None, None),
    ]
    db.sql("CREATE OR REPLACE DOMAIN works OVER book, page")
    assert db.sql("SELECT * FROM works").columns == ("title", "year", "price", "text", "_member")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("CREATE DOMAIN library OVER paper", "exists", "already a domain library"),
        ("CREATE DOMAIN book OVER paper", "exists", "already a table book"),
        ("CREATE DOMAIN d OVER paper (tite AS k)", "unknown-column", "no column tite in paper"),
        ("CREATE DOMAIN d (a) OVER paper (id AS b)", "unknown-column", "no column b in the domain"),
        ("CREATE DOMAIN d (a) OVER paper", "unknown-column", "none of the columns"),
        ("CREATE DOMAIN d OVER nothing", "unknown-table", "nothing"),
        ("CREATE DOMAIN d OVER paper, paper", "exists", "a member twice"),
        ("CREATE DOMAIN d OVER paper (id AS k, title AS k)", "type-mismatch", "only texts"),
        ("CREATE DOMAIN d OVER paper (title AS _member)", "syntax", "_member"),
        (
            "CREATE DOMAIN d OVER book (title AS k), paper (id AS k)",
            "type-mismatch",
            "k is STRING in book and BIGINT",
        ),
        ("ALTER DOMAIN library ADD library", "cycle", "its own member"),
        ("ALTER DOMAIN library DROP bok", "unknown-table", "no member"),
        ("ALTER DOMAIN library", "syntax", "missing"),
        ("CREATE DOMAIN d OVER", "syntax", "missing"),
        ("CREATE DOMAIN age AS INT CHECK (VALUE > 1)", "syntax", "CREATE DOMAIN"),
        ("DROP VIEW library", "type-mismatch", "is a domain"),
        ("CREATE OR REPLACE VIEW library AS SELECT 1 AS a", "type-mismatch", "is a domain"),
        ("DROP DOMAIN paper", "unknown-table", "is no domain"),
        ("DROP TABLE book", "in-use", "library"),
        ("INSERT INTO library VALUES ('a', 1, 'b')", "not-updatable", ""),
    ],
)
def test_what_is_wrong_is_said(db: harken.Database, text: str, code: str, said: str) -> None:
    before = db.sql("SELECT * FROM library").rows
    with pytest.raises(harken.HarkenError) as found:
        db.sql(text)
    assert (found.value.code, said in found.value.message) == (code, True), found.value.message
    assert db.sql("SELECT * FROM library").rows == before


def test_a_text_of_a_domain_reads_back(db: harken.Database) -> None:
    (definition,) = [each for each in db.definitions() if each.kind == "domain"]
    (statement,) = statements(definition.text)
    words = domain_words(statement.node)
    assert words is not None
    assert domain_text(words) == definition.text


def test_a_domain_reads_with_the_rights_of_its_owner(path: str) -> None:
    ann, bob = User("ann", Role.AUTHOR), User("bob", Role.AUTHOR)
    with harken.connect(path) as db:
        db.sql("CREATE TABLE a (x INT)")
        db.sql("CREATE TABLE b (x INT)")
        db.sql("GRANT SELECT ON a TO ann")
        with db.acting_as(ann):
            db.sql("CREATE DOMAIN d OVER a")
            with pytest.raises(harken.HarkenError, match="b"):
                db.sql("ALTER DOMAIN d ADD b")
            with pytest.raises(harken.HarkenError, match="b"):
                db.sql("CREATE DOMAIN e OVER a, b")
            db.sql("GRANT SELECT ON d TO bob")
        with db.acting_as(bob):
            assert db.sql("SELECT * FROM d").rows == []
            assert [name for name, *_ in db.sql("SHOW DOMAINS").rows] == ["d"]
            for text in ("DROP DOMAIN d", "ALTER DOMAIN d UNAVAILABLE skip"):
                with pytest.raises(harken.HarkenError):
                    db.sql(text)


def test_a_content_trigger_speaks_of_the_domain(db: harken.Database) -> None:
    """The thesis, section 4.2.3.2: keyword CONTAINS 'Java' OR keyword CONTAINS 'JDBC', where
    keyword is the title and the abstract."""
    db.sql(
        "CREATE CONTINUAL QUERY news AS SELECT keyword FROM library "
        "TRIGGER WHEN library.keyword CONTAINS 'Rust' OR library.keyword CONTAINS 'JDBC' "
        "DELIVER INSERTED"
    )
    db.sql("INSERT INTO paper VALUES (3, 'Tea', 'and rum', 2000)")
    db.run_due()
    assert len(db.continual("news").history()) == 1
    db.sql("UPDATE paper SET abstract = 'by JDBC' WHERE id = 3")
    db.run_due()
    done = max(db.continual("news").history(), key=lambda each: each.execution)
    assert (done.event, done.inserted) == ("content", 1)
