"""`db.load`: many objects with their properties in one call, all of them or none."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Any

import numpy
import pyarrow
import pytest

import harken
from harken import Database, HarkenError, IntegrityError, Object, TypeFault, ValueFault
from harken.statements import bulk_rows
from tests.harness import consistency

UTC = datetime.UTC

SHOP = """
create type supplier;
create type thing properties (code integer);
create type item subtype of thing properties (
    name charstring, quantity integer, price number, due date, seen timestamp, open boolean,
    maker supplier);
create function tags(item) -> bag of charstring;
create function size(item) -> <integer w, integer h>;
create function delivery(item, supplier) -> integer;
create function stock(item i) -> integer as select quantity(i);
create function value(item i) -> number as select quantity(i) * price(i);
create supplier instances :acme;
create item(name, quantity) instances :toy("toy", 5);
commit;
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


def named(db: Database) -> list[tuple[str, int]]:
    return sorted(db.amosql("select name(i), quantity(i) for each item i;").rows)


def count(db: Database, type_: str = "item") -> int:
    ((found,),) = db.amosql(f"select count(select x for each {type_} x);").rows
    return int(found)


BOTH = ["name", "quantity"]


# --- iterables -----------------------------------------------------------------------------


def generated() -> Iterator[tuple[str, int]]:
    yield "a", 1
    yield "b", 2


@pytest.mark.parametrize(
    "rows",
    [
        [("a", 1), ("b", 2)],
        (("a", 1), ("b", 2)),
        [["a", 1], ["b", 2]],
        generated(),
        iter([("a", 1), ("b", 2)]),
        zip(["a", "b"], [1, 2], strict=True),
        {"a": 1, "b": 2}.items(),
        map(tuple, [["a", 1], ["b", 2]]),
    ],
    ids=["list", "tuple", "lists", "generator", "iterator", "zip", "items", "map"],
)
def test_rows_may_come_from_any_iterable(shop: Database, rows: Any) -> None:
    loaded = shop.load("item", rows, BOTH)
    assert len(loaded) == 2
    assert named(shop) == [("a", 1), ("b", 2), ("toy", 5)]


def test_the_new_objects_are_a_sequence_in_the_order_of_the_rows(shop: Database) -> None:
    loaded = shop.load("item", ((f"n{i}", i) for i in range(10)), BOTH)
    name = shop.function("name")
    assert [name[item] for item in loaded] == [f"n{i}" for i in range(10)]
    assert isinstance(loaded[0], Object)
    assert name[loaded[-1]] == "n9"
    assert [name[item] for item in loaded[2:4]] == ["n2", "n3"]
    assert loaded[3] in loaded
    assert repr(loaded[0]).startswith("#[item ")
    with pytest.raises(IndexError):
        loaded[10]


def test_loading_commits_unless_a_transaction_is_open(shop: Database) -> None:
    shop.load("item", [("a", 1)], BOTH)
    assert not shop.in_transaction
    shop.rollback()
    assert count(shop) == 2
    shop.amosql("set quantity(:toy) = 6;")
    shop.load("item", [("b", 2)], BOTH)
    assert shop.in_transaction
    shop.rollback()
    assert named(shop) == [("a", 1), ("toy", 5)]


def test_no_rows_and_no_properties(shop: Database) -> None:
    assert list(shop.load("item", [], BOTH)) == []
    assert (
        list(shop.load("item", pyarrow.table({"name": pyarrow.array([], pyarrow.string())}))) == []
    )
    assert len(shop.load("item", [(), (), ()], [])) == 3
    assert count(shop) == 4


def test_none_is_no_value(shop: Database) -> None:
    first, second = shop.load("item", [("a", None), (None, 2)], BOTH)
    name, quantity = shop.function("name"), shop.function("quantity")
    assert (name.get(first), quantity.get(first)) == ("a", None)
    assert (name.get(second), quantity.get(second)) == (None, 2)


def test_values_of_every_type(shop: Database) -> None:
    acme = shop.variables["acme"]
    values = {
        "name": "å ∆ 🙂\n",
        "quantity": 2**63 - 1,
        "price": 0.1,
        "due": datetime.date(2026, 11, 15),
        "seen": datetime.datetime(2026, 11, 15, 8, 30, 0, 5, tzinfo=UTC),
        "open": False,
        "maker": acme,
        "code": -(2**63),
    }
    (item,) = shop.load("item", [tuple(values.values())], list(values))
    for name, value in values.items():
        assert shop.function(name)[item] == value


def test_numbers_of_other_kinds(shop: Database) -> None:
    rows = [(numpy.int64(7), numpy.float64(0.5)), (8, 3), (numpy.int8(9), numpy.float32(0.25))]
    items = shop.load("item", rows, ["quantity", "price"])
    assert [shop.function("quantity")[item] for item in items] == [7, 8, 9]
    assert [shop.function("price")[item] for item in items] == [0.5, 3.0, 0.25]


def test_objects_are_in_the_extents_of_the_supertypes(shop: Database) -> None:
    shop.amosql("create type toyware subtype of item;")
    shop.load("toyware", [("train", 1)], BOTH)
    assert [count(shop, name) for name in ("thing", "item", "toyware")] == [2, 2, 1]
    consistency.check(shop)


def test_a_property_of_a_supertype_a_bag_and_a_renamed_one(shop: Database) -> None:
    (item,) = shop.load("item", [(7, "new", 8)], ["code", "tags", "stock"])
    assert shop.function("code")[item] == 7
    assert shop.function("tags")[item] == ["new"]
    assert shop.function("quantity")[item] == 8


def test_more_rows_than_fit_in_one_chunk(shop: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_rows, "CHUNK", 10)
    items = shop.load("item", ((f"n{i}", i) for i in range(95)), BOTH)
    assert [shop.function("quantity")[item] for item in items] == list(range(95))
    table = pyarrow.table({"name": [f"t{i}" for i in range(35)], "quantity": list(range(35))})
    items = shop.load("item", table)
    assert [shop.function("quantity")[item] for item in items] == list(range(35))
    consistency.check(shop)


def test_rows_that_are_made_with_the_database_itself(shop: Database) -> None:
    """A generator may look things up, and even create objects, while its rows are loaded."""

    def rows() -> Iterator[tuple[str, Object]]:
        for name in ("a", "b"):
            shop.amosql("create supplier instances :new;")
            yield name, shop.variables["new"]

    items = shop.load("item", rows(), ["name", "maker"])
    assert [shop.function("name")[item] for item in items] == ["a", "b"]
    assert count(shop, "supplier") == 3
    consistency.check(shop)


# --- arrow ---------------------------------------------------------------------------------


TABLE = pyarrow.table({"name": ["a", None, "c"], "quantity": [1, 2, None]})


def test_an_arrow_table_names_its_properties(shop: Database) -> None:
    items = shop.load("item", TABLE)
    name, quantity = shop.function("name"), shop.function("quantity")
    assert [(name.get(item), quantity.get(item)) for item in items] == [
        ("a", 1),
        (None, 2),
        ("c", None),
    ]


def test_the_columns_of_a_table_are_chosen_by_name(shop: Database) -> None:
    (first, *_) = shop.load("item", TABLE, ["quantity"])
    assert shop.function("quantity")[first] == 1
    assert shop.function("name").get(first) is None
    (first, *_) = shop.load("item", TABLE, ["quantity", "name"])
    assert (shop.function("quantity")[first], shop.function("name")[first]) == (1, "a")


@pytest.mark.parametrize(
    "rows",
    [
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        pyarrow.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    ],
    ids=["batch", "reader", "several chunks"],
)
def test_other_forms_of_arrow_data(shop: Database, rows: Any) -> None:
    items = shop.load("item", rows)
    assert [shop.function("quantity").get(item) for item in items] == [1, 2, None]


def test_arrow_columns_of_every_type(shop: Database) -> None:
    acme = shop.variables["acme"]
    day, moment = datetime.date(2026, 11, 15), datetime.datetime(2026, 11, 15, 8, 30, tzinfo=UTC)
    table = pyarrow.table(
        {
            "name": pyarrow.array(["x", "y"]).dictionary_encode(),
            "quantity": pyarrow.array([1, 2], pyarrow.int8()),
            "price": pyarrow.array([0.5, 2], pyarrow.float32()),
            "due": pyarrow.array([day, None]),
            "seen": pyarrow.array([moment, None], pyarrow.timestamp("us", tz="UTC")),
            "open": pyarrow.array([True, None]),
            "maker": pyarrow.array([str(acme), None]),
            "code": pyarrow.array([2**63 - 1, 0], pyarrow.uint64()),
        }
    )
    first, second = shop.load("item", table)
    found = {name: shop.function(name).get(first) for name in table.column_names}
    assert found == {
        "name": "x",
        "quantity": 1,
        "price": 0.5,
        "due": day,
        "seen": moment,
        "open": True,
        "maker": acme,
        "code": 2**63 - 1,
    }
    assert shop.function("due").get(second) is None
    assert shop.function("maker").get(second) is None


# --- what is refused -----------------------------------------------------------------------


GOOD = ("good", 1)


def refused(db: Database, *arguments: Any) -> HarkenError:
    """Assert that a load fails and that nothing of it is there afterwards."""
    before = named(db), count(db, "object")
    with pytest.raises(HarkenError) as caught:
        db.load(*arguments)
    assert not db.in_transaction
    assert (named(db), count(db, "object")) == before
    consistency.check_extents(db)
    return caught.value


@pytest.mark.parametrize(
    "rows",
    [
        [GOOD, ("short",)],
        [GOOD, ("long", 1, 2)],
        [("short",), ("short",)],
        [("long", 1, 2)],
        [GOOD, ()],
        [GOOD, 5],
        [5, 6],
        [None],
        ["ab", "cd"],
        [b"ab"],
        [{"name": "a", "quantity": 1}],
        {"a1": 1},
        "ab",
        5,
        None,
    ],
    ids=repr,
)
def test_rows_of_another_width_are_refused(shop: Database, rows: Any) -> None:
    error = refused(shop, "item", rows, BOTH)
    assert isinstance(error, TypeFault)
    assert error.code == "arity"
    assert error.hint


def test_rows_that_are_texts_are_not_taken_apart(shop: Database) -> None:
    assert refused(shop, "item", ["a", "b"], ["name"]).code == "arity"
    assert refused(shop, "item", ["ab"], ["name", "tags"]).code == "arity"
    assert refused(shop, "item", [{"name": "x", "tags": "y"}], ["name", "tags"]).code == "arity"


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (("bad", "one"), "bad-value"),
        (("bad", 1.5), "bad-value"),
        (("bad", True), "bad-value"),
        (("bad", 2**63), "overflow"),
        ((5, 1), "bad-value"),
        ((b"bad", 1), "bad-value"),
        (("a\0b", 1), "bad-value"),
        (("\ud800", 1), "bad-value"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_one_wrong_value_and_nothing_is_loaded(
    shop: Database, bad: tuple[Any, Any], code: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_rows, "CHUNK", 3)
    rows = [GOOD] * 7
    rows[place] = bad
    error = refused(shop, "item", rows, BOTH)
    assert isinstance(error, ValueFault)
    assert error.code == code


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1", None.__class__])
def test_numbers_must_be_finite(shop: Database, bad: Any) -> None:
    for rows in ([(0.5,), (bad,)], [(bad,), (0.5,)]):
        assert refused(shop, "item", rows, ["price"]).code == "bad-value"


def test_infinities_that_cancel_out_are_found(shop: Database) -> None:
    rows = [(1e308,), (1e308,), (-1e308,)]
    items = shop.load("item", rows, ["price"])
    assert [shop.function("price")[item] for item in items] == [1e308, 1e308, -1e308]
    assert refused(shop, "item", [(math.inf,), (-math.inf,)], ["price"]).code == "bad-value"


@pytest.mark.parametrize("bad", ["acme", 1.5, 1_000_000, True])
def test_a_value_that_is_no_such_object_is_refused(shop: Database, bad: Any) -> None:
    acme, toy = shop.variables["acme"], shop.variables["toy"]
    assert refused(shop, "item", [(acme,), (bad,)], ["maker"]).code == "wrong-object"
    assert refused(shop, "item", [(acme,), (toy,)], ["maker"]).code == "wrong-object"


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pyarrow.array(["1"]), "bad-value"),
        (pyarrow.array([1.5]), "bad-value"),
        (pyarrow.array([True]), "bad-value"),
        (pyarrow.array([2**63], pyarrow.uint64()), "overflow"),
        (pyarrow.array([[1]]), "bad-value"),
        (pyarrow.array([datetime.date(2026, 1, 1)]), "bad-value"),
    ],
)
def test_arrow_columns_of_a_wrong_type_are_refused(shop: Database, column: Any, code: str) -> None:
    assert refused(shop, "item", pyarrow.table({"quantity": column})).code == code


def test_a_timestamp_without_a_zone_is_refused(shop: Database) -> None:
    moment = datetime.datetime(2026, 1, 1)
    error = refused(shop, "item", pyarrow.table({"seen": pyarrow.array([moment])}))
    assert error.code == "bad-value"
    assert "time zone" in str(error.hint)


@pytest.mark.parametrize(
    ("properties", "code", "hint"),
    [
        (["name", "quantty"], "unknown-function", "quantity"),
        (["name", "size"], "not-updatable", ""),
        (["name", "value"], "not-updatable", ""),
        (["name", "delivery"], "arity", ""),
        (["name", "name"], "arity", ""),
        ("ab", "type-mismatch", ""),
        (None, "arity", "properties="),
    ],
)
def test_properties_that_cannot_be_loaded(
    shop: Database, properties: Any, code: str, hint: str
) -> None:
    error = refused(shop, "item", [GOOD], properties)
    assert error.code == code
    assert hint in (error.hint or "")


def test_columns_that_a_table_lacks_or_the_type_lacks(shop: Database) -> None:
    error = refused(shop, "item", TABLE, ["name", "price"])
    assert error.code == "arity"
    assert "quantity" in str(error.hint)
    assert (
        refused(shop, "item", TABLE.rename_columns(["name", "amount"])).code == "unknown-function"
    )
    assert (
        refused(shop, "item", pyarrow.Table.from_arrays([[1], [2]], ["code", "code"])).code
        == "arity"
    )


@pytest.mark.parametrize(
    ("type_", "code"),
    [("itm", "unknown-type"), ("object", "in-use"), ("type", "in-use"), ("function", "in-use")],
)
def test_types_that_cannot_be_loaded(shop: Database, type_: str, code: str) -> None:
    error = refused(shop, type_, [()], [])
    assert error.code == code
    assert error.hint


def test_a_type_of_values_cannot_be_loaded(shop: Database) -> None:
    error = refused(shop, "integer", [()], [])
    assert isinstance(error, TypeFault | IntegrityError)
    assert "did you mean integer" not in str(error.hint)


def test_an_exception_of_the_rows_passes_through_and_nothing_is_loaded(shop: Database) -> None:
    def rows() -> Iterator[tuple[str, int]]:
        yield GOOD
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        shop.load("item", rows(), BOTH)
    assert not shop.in_transaction
    assert named(shop) == [("toy", 5)]


def test_a_load_that_fails_in_a_transaction_undoes_itself_alone(shop: Database) -> None:
    with shop.transaction():
        shop.amosql("set quantity(:toy) = 6;")
        with pytest.raises(ValueFault):
            shop.load("item", [GOOD, ("bad", "one")], BOTH)
        shop.load("item", [GOOD], BOTH)
    assert named(shop) == [("good", 1), ("toy", 6)]


def test_what_was_loaded_into_a_file_is_there_after_reopening(path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(SHOP)
        loaded = db.load("item", [("a", 1), ("b", 2)], BOTH)
        numbers = [item.oid for item in loaded]
    with harken.connect(path) as db:
        assert named(db) == [("a", 1), ("b", 2), ("toy", 5)]
        db.amosql("create item instances :next;")
        assert db.variables["next"].oid > max(numbers)
        consistency.check(db)
