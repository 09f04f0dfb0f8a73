"""A definition or query of SQL is translated once, however many places need what it became.

Law: what a stored definition means follows from its text and from the tables that it asks for. As
long as those are the same, it is not translated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database
from harken.statements.sql import view_clauses


class Translations:
    """Counts the queries that are translated."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, work: Callable[[], object]) -> int:
        before = self.count
        work()
        return self.count - before


@pytest.fixture
def translations(monkeypatch: pytest.MonkeyPatch) -> Translations:
    counter = Translations()
    new_translation = view_clauses.new_translation

    def counted(*given: Any) -> Any:
        counter.count += 1
        return new_translation(*given)

    monkeypatch.setattr(view_clauses, "new_translation", counted)
    return counter


@pytest.fixture
def db(translations: Translations) -> Iterator[Database]:
    with harken.connect() as database:
        database.sql("CREATE TABLE sale (city STRING, amount INT)")
        database.sql("INSERT INTO sale VALUES ('Oslo', 3), ('Rome', 5)")
        yield database


VIEW = "SELECT city, sum(amount) AS amount FROM sale GROUP BY city"


def test_a_view(db: Database, translations: Translations) -> None:
    assert translations.of(lambda: db.sql(f"CREATE VIEW total AS {VIEW}")) == 1
    assert translations.of(lambda: db.monitor("total", lambda change: None)) == 0
    assert translations.of(lambda: db.explain("total", verbose=True)) == 0
    assert translations.of(lambda: db.sql("SELECT * FROM total")) == 1  # the question itself


def test_a_materialized_view(db: Database, translations: Translations) -> None:
    assert translations.of(lambda: db.sql(f"CREATE MATERIALIZED VIEW total AS {VIEW}")) == 1
    assert translations.of(lambda: db.sql("INSERT INTO sale VALUES ('Oslo', 4)")) == 0
    assert db.sql("SELECT * FROM total ORDER BY city").rows == [("Oslo", 7), ("Rome", 5)]


def test_a_view_that_replaces_another(db: Database, translations: Translations) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW total AS {VIEW}")
    other = "CREATE OR REPLACE MATERIALIZED VIEW total AS SELECT city FROM sale"
    assert translations.of(lambda: db.sql(other)) == 1


def test_constraints(db: Database, translations: Translations) -> None:
    text = "CREATE TABLE shop (city STRING UNIQUE, floors INT CHECK (floors > 0))"
    assert translations.of(lambda: db.sql(text)) == 2


def test_what_others_do_to_the_schema(db: Database, translations: Translations) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW total AS {VIEW}")
    db.sql(f"CREATE VIEW plain AS {VIEW}")
    db.monitor("plain", lambda change: None)
    db.sql("CREATE TABLE shop (city STRING UNIQUE)")
    assert translations.of(lambda: db.sql("CREATE TABLE other (x INT)")) == 0
    assert translations.of(lambda: db.sql("DROP TABLE other")) == 0
    assert translations.of(lambda: db.amosql("create type item; commit;")) == 0


def test_a_table_that_changes(db: Database, translations: Translations) -> None:
    """What reads it is translated again, and nothing else is."""
    db.sql(f"CREATE MATERIALIZED VIEW total AS {VIEW}")
    db.sql("CREATE TABLE shop (city STRING)")
    db.sql("CREATE MATERIALIZED VIEW cities AS SELECT city FROM shop")
    assert translations.of(lambda: db.sql("ALTER TABLE shop ADD COLUMN floors INT")) == 1
    assert db.sql("SELECT * FROM cities").rows == []


def test_a_column_that_may_be_null_or_not(db: Database, translations: Translations) -> None:
    """Types do not tell themselves apart by that, but what a query becomes does."""
    db.sql("CREATE TABLE shop (city STRING NOT NULL)")
    db.sql("CREATE VIEW others AS SELECT city FROM sale WHERE city NOT IN (SELECT city FROM shop)")
    assert db.sql("SELECT city FROM others ORDER BY city").rows == [("Oslo",), ("Rome",)]
    altered = "ALTER TABLE shop ALTER COLUMN city DROP NOT NULL"
    assert translations.of(lambda: db.sql(altered)) == 1
    db.sql("INSERT INTO shop VALUES (NULL)")
    assert db.sql("SELECT city FROM others").rows == []


def test_a_view_follows_the_columns_of_what_it_reads(
    db: Database, translations: Translations
) -> None:
    db.sql("CREATE VIEW every AS SELECT * FROM sale")
    db.sql("ALTER TABLE sale ADD COLUMN day INT DEFAULT 1")
    assert db.sql("SELECT * FROM every WHERE city = 'Oslo'").rows == [("Oslo", 3, 1)]


def test_a_rolled_back_change_leaves_the_old_meaning(db: Database) -> None:
    db.sql("CREATE VIEW every AS SELECT * FROM sale")
    db.sql("BEGIN; ALTER TABLE sale ADD COLUMN day INT; ROLLBACK")
    assert db.sql("SELECT * FROM every WHERE city = 'Oslo'").rows == [("Oslo", 3)]


def test_another_session_may_change_the_schema(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with harken.connect(path) as one, harken.connect(path) as two:
        one.sql("CREATE TABLE sale (city STRING); CREATE VIEW every AS SELECT * FROM sale")
        assert two.sql("SELECT * FROM every").rows == []
        one.sql("ALTER TABLE sale ADD COLUMN day INT; INSERT INTO sale VALUES ('Oslo', 2)")
        assert two.sql("SELECT * FROM every").rows == [("Oslo", 2)]


@pytest.mark.parametrize("values", ["('Bonn', 1 + 1)", "(upper('bonn'), 1)"])
def test_values_are_translated_once(db: Database, translations: Translations, values: str) -> None:
    assert translations.of(lambda: db.sql(f"INSERT INTO sale VALUES {values}")) == 1
    assert translations.of(lambda: db.sql(f"INSERT INTO sale VALUES {values}")) == 0


def test_rows_of_constants_are_not_translated(db: Database, translations: Translations) -> None:
    assert translations.of(lambda: db.sql("INSERT INTO sale VALUES ('Bonn', 1)")) == 0


def test_a_query_is_translated_once(db: Database, translations: Translations) -> None:
    query = "SELECT city FROM sale WHERE amount > 3 ORDER BY city LIMIT 1"
    assert translations.of(lambda: db.sql(query)) == 1
    assert translations.of(lambda: db.sql(query)) == 0
