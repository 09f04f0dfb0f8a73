"""`db.monitor(view, where=...)`: a condition that is compiled with the view."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Change, Database, HarkenError

SCHEMA = """
CREATE TABLE stock (
    quantity INT, item STRING NOT NULL, price DECIMAL(8,2), day DATE, PRIMARY KEY (item)
);
CREATE TABLE wanted (item STRING PRIMARY KEY);
CREATE VIEW low AS SELECT item, quantity, price FROM stock WHERE quantity < 10 OR quantity IS NULL;
CREATE VIEW prices AS SELECT price FROM stock;
INSERT INTO stock VALUES
    (5, 'pen', 1.50, DATE '2026-01-01'), (50, 'ink', 2.00, NULL), (NULL, 'it\\'s "x"', 2.00, NULL);
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.sql(SCHEMA)
    return db


def refused(db: Database, view: str, where: Any) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        db.monitor(view, where=where)
    return caught.value


def test_only_rows_that_meet_it_come_and_go(shop: Database) -> None:
    sub = shop.monitor("low", where="quantity > 3")
    assert sub.where == "quantity > 3"
    assert sub.rows() == [("pen", 5, decimal.Decimal("1.50"))]
    shop.sql("UPDATE stock SET quantity = 2 WHERE item = 'ink'")
    assert sub.changes() == []
    shop.sql("UPDATE stock SET quantity = 4 WHERE item = 'ink'")
    shop.sql("UPDATE stock SET quantity = 1 WHERE item = 'pen'")
    assert [(c.plus, c.minus) for c in sub.changes()] == [
        ([("ink", 4, decimal.Decimal("2.00"))], []),
        ([], [("pen", 5, decimal.Decimal("1.50"))]),
    ]


@pytest.mark.parametrize(
    ("where", "items"),
    [
        ("quantity IS NULL", ['it\'s "x"']),
        ({"quantity": None}, ['it\'s "x"']),
        ({"item": 'it\'s "x"'}, ['it\'s "x"']),
        ("item = 'it\\'s \"x\"'", ['it\'s "x"']),
        ({"item": "pen", "quantity": 5}, ["pen"]),
        ({"price": decimal.Decimal("2.00")}, ["ink", 'it\'s "x"']),
        ({"price": 1.5}, ["pen"]),
        ({"day": datetime.date(2026, 1, 1)}, ["pen"]),
        ("day < current_date() AND stock.quantity % 2 = 1 -- odd", ["pen"]),
        ("item LIKE 'i%' OR item IN ('pen')", ["ink", 'it\'s "x"', "pen"]),
        ("item IN (SELECT item FROM wanted)", []),
        ("NOT (quantity > 7)", ["pen"]),
        ("true", ["ink", 'it\'s "x"', "pen"]),
    ],
    ids=str,
)
def test_conditions_mean_what_sql_means(shop: Database, where: Any, items: list[str]) -> None:
    """Rows are whole rows of the function, its key first."""
    sub = shop.monitor("stock", where=where, warn=print)
    assert [row[0] for row in sub.rows()] == items
    copy = Counter(sub.rows())
    shop.sql("INSERT INTO wanted VALUES ('cap'), ('pen')")
    shop.sql(
        "INSERT INTO stock VALUES (3, 'cap', 1.50, DATE '2026-01-01'), (NULL, 'ibis', 2, NULL)"
    )
    shop.sql("DELETE FROM stock WHERE item = 'pen'")
    for change in sub.changes():
        copy.update(change.plus)
        copy.subtract(change.minus)
    assert +copy == Counter(sub.rows())


def test_a_bag_keeps_its_copies(shop: Database) -> None:
    sub = shop.monitor("prices", where="price = 2")
    assert sub.rows() == [(decimal.Decimal("2.00"),)] * 2
    shop.sql("DELETE FROM stock WHERE item = 'ink'")
    assert sub.changes() == [Change("prices", [], [(decimal.Decimal("2.00"),)], 1)]


def test_functions_of_amosql_have_columns_too(db: Database) -> None:
    db.amosql(
        "create type item properties (name charstring, quantity integer);"
        "create function same(item) -> item;"
        'create item(name, quantity) instances :a("a", 1), :b("b", 20); set same(:a) = :b; commit;'
    )
    sub = db.monitor("quantity", where="quantity > 10")
    a, b = db.variables["a"], db.variables["b"]
    assert sub.rows() == [(b, 20)]
    db.function("quantity")[a] = 30
    assert [change.plus for change in sub.changes()] == [[(a, 30)]]
    assert db.monitor("item.name", where={"name": "a"}).rows() == [(a, "a")]
    assert db.monitor("same", where="item = same").rows() == []


def test_relations_of_datalog_have_columns_too(db: Database) -> None:
    db.datalog(
        ".decl edge(x: symbol, y: symbol)\n.decl path(x: symbol, y: symbol)\n"
        'edge("a", "b"). edge("c", "d"). path(x, y) :- edge(x, y).'
        "path(x, z) :- path(x, y), edge(y, z)."
    )
    sub = db.monitor("path", where={"x": "a"})
    db.datalog('+edge("b", "e"). +edge("d", "e").')
    assert [change.plus for change in sub.changes()] == [[("a", "e")]]


def test_conditions_that_read_the_same_are_the_same(shop: Database) -> None:
    subs = [shop.monitor("low", where=text) for text in ("quantity>3", " quantity  > 3 ")]
    assert len({sub.where for sub in subs}) == 1
    assert len(list(shop.internals.network.graph.views())) == 1


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ("quantty > 3", "unknown-column", "quantty"),
        ("quantity >", "syntax", "missing"),
        ("quantity > 3; DROP TABLE stock", "syntax", "more than a condition"),
        ("quantity > 3 ORDER BY item", "syntax", "more than a condition"),
        ("quantity > 3 LIMIT 1", "syntax", "more than a condition"),
        ("quantity > 3 UNION SELECT 1", "syntax", "more than a condition"),
        ("1 = 1) OR (2 = 2", "syntax", "cannot stand here"),
        ("", "syntax", ""),
        ("quantity", "type-mismatch", ""),
        ("quantity > true", "type-mismatch", ""),
        ("item IN (SELECT item FROM nowhere)", "unknown-table", "nowhere"),
        ("sum(quantity) > 3", None, ""),
        ({"colour": "red"}, "unknown-column", "colour"),
        ({"quantity": [1]}, "type-mismatch", "cannot be compared"),
        ({3: 4}, "type-mismatch", "the name of a column"),
        ({}, "bad-value", "at least one column"),
        (3, "type-mismatch", "a condition must be a text"),
    ],
    ids=str,
)
def test_a_wrong_condition_is_explained(
    shop: Database, where: Any, code: str | None, said: str
) -> None:
    error = refused(shop, "low", where)
    assert code in (error.code, None)
    assert said in error.message
    assert not list(shop.internals.network.graph.views())


def test_an_error_points_into_the_condition(shop: Database) -> None:
    report = refused(shop, "low", "quantity > 1 AND quantty < 3").report()
    assert "  quantity > 1 AND quantty < 3\n                   ^^^^^^^" in report
    assert "quantity" in report.splitlines()[-1]


def test_what_a_condition_mentions_is_not_dropped(shop: Database) -> None:
    sub = shop.monitor("stock", where="item IN (SELECT item FROM wanted)")
    with pytest.raises(HarkenError, check=lambda error: error.code == "in-use"):
        shop.sql("DROP TABLE wanted")
    sub.close()
    shop.sql("DROP TABLE wanted")


def test_a_view_does_not_lose_the_columns_of_a_condition(shop: Database) -> None:
    sub = shop.monitor("low", where="quantity > 3")
    with pytest.raises(HarkenError, check=lambda error: error.code == "in-use"):
        shop.sql("CREATE OR REPLACE VIEW low AS SELECT item FROM stock")
    shop.sql("CREATE OR REPLACE VIEW low AS SELECT item, quantity, price FROM stock")
    assert [(c.plus, c.minus) for c in sub.changes()] == [
        ([("ink", 50, decimal.Decimal("2.00"))], [])
    ]


# --- conditions of one shape ---------------------------------------------------------------


def conditions_of(db: Database) -> list[str]:
    return [each.name for each in db.internals.network.graph.views()]


def test_conditions_that_differ_in_constants_are_one_node(shop: Database) -> None:
    subs = [shop.monitor("low", where=f"quantity > {i} AND item <> 'x{i}'") for i in range(5)]
    assert len(conditions_of(shop)) == 1
    shop.sql("UPDATE stock SET quantity = 3 WHERE item = 'pen'")
    price = decimal.Decimal("1.50")
    lost, gained = [("pen", 5, price)], [("pen", 3, price)]
    assert [[(c.plus, c.minus) for c in sub.changes()] for sub in subs] == [
        *([(gained, lost)] for _ in range(3)),
        *([([], lost)] for _ in range(2)),
    ]
    for sub in subs:
        sub.close()
    assert conditions_of(shop) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("price > 1.5", "price > 1.555"),  # digits are part of a decimal's type
        ("quantity > 1", "quantity > 1.0"),
        ("quantity = 1", "quantity = NULL"),
        ("quantity IN (1, 2, 3)", "quantity IN (1, 2, 3, 4)"),
        ("item IN (SELECT item FROM wanted WHERE item > 'a')", "item = 'a'"),
    ],
)
def test_literals_that_make_another_type_or_plan_are_not_shared(
    shop: Database, one: str, other: str
) -> None:
    subs = [shop.monitor("stock", where=where) for where in (one, other)]
    assert len(conditions_of(shop)) == 2
    shop.sql("INSERT INTO stock VALUES (2, 'a', 1.56, NULL)")
    for sub in subs:
        (found,) = shop.sql(f"SELECT item FROM stock WHERE {sub.where}")
        assert {row[0] for row in sub.rows()} == {row[0] for row in found.rows}


def test_a_rollback_does_not_take_subscriptions_away(tmp_path: Path) -> None:
    """Another session notices them in the transaction that it then rolls back."""
    path = str(tmp_path / "x.db")
    with harken.connect(path) as db, harken.connect(path) as other:
        db.sql(SCHEMA)
        other.sql("SELECT * FROM stock")
        subs = [db.monitor("low", where={"item": item}, keep=True) for item in ("pen", "ink")]
        with suppress(ZeroDivisionError), other.transaction():
            other.sql("UPDATE stock SET quantity = 1")
            raise ZeroDivisionError
        with other.transaction():
            other.sql("UPDATE stock SET quantity = 2")
        assert [[change.plus[0][:2] for change in sub.changes()] for sub in subs] == [
            [("pen", 2)],
            [("ink", 2)],
        ]


def test_a_subscription_that_ends_in_a_transaction_stays_ended(shop: Database) -> None:
    subs = [shop.monitor("low", where={"item": item}) for item in ("pen", "ink")]
    with suppress(ZeroDivisionError), shop.transaction():
        shop.sql("UPDATE stock SET quantity = 1")
        for sub in subs:
            sub.close()
        raise ZeroDivisionError
    again = shop.monitor("low", where={"item": "ink"})
    shop.sql("UPDATE stock SET quantity = 2")
    assert [change.plus[0][:2] for change in again.changes()] == [("ink", 2)]


def test_a_strategy_is_of_one_condition_alone(shop: Database) -> None:
    plain = shop.monitor("low", where="quantity > 1")
    naive = shop.monitor("low", where="quantity > 2", strategy="naive")
    assert len(conditions_of(shop)) == 2
    shop.sql("UPDATE stock SET quantity = 3 WHERE item = 'ink'")
    assert len(plain.changes()) == len(naive.changes()) == 1


def test_a_condition_on_the_time_is_of_its_own(shop: Database) -> None:
    for where in ("day < current_date()", "day < current_date() - INTERVAL 1 DAY"):
        found = shop.monitor("stock", where=where)
        assert [row[0] for row in found.rows()] == ["pen"]
    assert len(conditions_of(shop)) == 2


def test_a_snapshot_watches_nothing(shop: Database) -> None:
    taken = shop.snapshot("low", where="quantity > 3")
    assert (taken.plus, taken.fresh) == ([("pen", 5, decimal.Decimal("1.50"))], True)
    assert conditions_of(shop) == []
    assert shop.snapshot("low").plus == shop.monitor("low").rows()
    with pytest.raises(HarkenError, check=lambda error: error.column == 18):
        shop.snapshot("low", where="quantity > 1 AND quantty < 3")


def test_texts_that_say_the_same_are_one_shape(shop: Database) -> None:
    shop.monitor("low", where="quantity > 1 AND item = 'a'")
    shop.monitor("low", where="(quantity > (2)) and (item = 'b')")
    (name,) = conditions_of(shop)
    assert name.startswith("monitor low() where quantity > ? ∧ item = ? [")


SCHEMA_CHANGES = {
    "a column more": "ALTER TABLE stock ADD COLUMN shelf INT",
    "the view again": "CREATE OR REPLACE VIEW everything AS SELECT *, 1 AS one FROM stock",
    "another type": (
        "CREATE OR REPLACE VIEW everything AS SELECT CAST(quantity AS DOUBLE) AS quantity FROM "
        "stock"
    ),
    "twice": (
        "ALTER TABLE stock ADD COLUMN shelf INT; ALTER TABLE stock ADD COLUMN room INT; "
        "INSERT INTO wanted VALUES ('a')"
    ),
}


def roll_back(db: Database, text: str) -> None:
    db.sql(f"BEGIN; {text}; ROLLBACK")


def fail_in_a_text(db: Database, text: str) -> None:
    db.sql("BEGIN; DELETE FROM wanted")
    with pytest.raises(HarkenError):
        db.sql(f"{text}; INSERT INTO stock VALUES (1)")
    db.sql("COMMIT")


def fail_in_a_block(db: Database, text: str) -> None:
    db.sql("BEGIN; DELETE FROM wanted")
    with suppress(ZeroDivisionError), db.transaction():
        db.sql(text)
        raise ZeroDivisionError
    db.rollback()


def fail_at_once(db: Database, text: str) -> None:
    with pytest.raises(HarkenError):
        db.sql(f"BEGIN; {text}; INSERT INTO stock VALUES (1)")


@pytest.mark.parametrize("undo", [roll_back, fail_in_a_text, fail_in_a_block, fail_at_once])
@pytest.mark.parametrize("change", SCHEMA_CHANGES)
def test_a_change_of_the_schema_can_be_undone(
    shop: Database, undo: Callable[[Database, str], None], change: str
) -> None:
    """Each change gives the condition another table of constants."""
    shop.sql("CREATE VIEW everything AS SELECT * FROM stock")
    subs = [shop.monitor("everything", where=f"quantity = {number}") for number in (7, 8)]
    undo(shop, SCHEMA_CHANGES[change])
    shop.sql("INSERT INTO stock VALUES (7, 'nib', NULL, NULL)")
    assert [[c.plus for c in sub.changes()] for sub in subs] == [[[(7, "nib", None, None)]], []]
    undo(shop, SCHEMA_CHANGES[change])
    subs.append(shop.monitor("everything", where="quantity = 9"))
    subs.pop(0).close()
    shop.sql("UPDATE stock SET quantity = quantity + 1 WHERE item = 'nib'")
    shop.sql("UPDATE stock SET quantity = quantity + 1 WHERE item = 'nib'")
    assert [len(sub.changes()) for sub in subs] == [2, 1]
