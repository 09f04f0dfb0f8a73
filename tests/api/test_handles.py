"""`db.function("quantity")`: a function as a mapping, in and outside a transaction alike."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from harken import (
    Database,
    FunctionHandle,
    HarkenError,
    LanguageError,
    NameFault,
    NoValue,
    Object,
    SafetyFault,
    TypeFault,
    ValueFault,
)

UTC = datetime.UTC

SHOP = """
create type item properties (
    name charstring, quantity integer, price number, due date, seen timestamp, open boolean);
create type supplier properties (name charstring);
create type special subtype of item;
create function delivery(item, supplier) -> integer;
create function tags(item) -> bag of charstring;
create function rate() -> number;
create function log() -> bag of integer;
create function size(item) -> <integer width, number height>;
create function sales(item) -> bag of <integer amount, date day>;
create function maker(item) -> supplier;
create function coded(charstring) -> item;
create function square(integer) -> integer;
create function stock(item i) -> integer as select quantity(i);
create function value(item i) -> number as select quantity(i) * price(i);
create function both(item i) -> <integer q, number p> as select quantity(i), price(i);
create function double(integer n) -> integer as select n * 2;
create function made_by(supplier s) -> item i as select i where maker(i) = s;
create function late(item i) -> date as select due(i) + 10;
create function restock(item i) -> boolean as begin set quantity(i) = 100; end;
create item(name, quantity) instances :toy("toy", 5), :book("book", 50);
create special instances :gift;
create supplier instances :acme;
commit;
"""


@pytest.fixture(params=["alone", "in a transaction"])
def shop(request: pytest.FixtureRequest, db: Database) -> Iterator[Database]:
    """The same results are due on the fast path and on the slow one."""
    db.amosql(SHOP)
    with nullcontext() if request.param == "alone" else db.transaction():
        yield db


@pytest.fixture
def toy(shop: Database) -> Object:
    return shop.variables["toy"]  # type: ignore[no-any-return]


@pytest.fixture
def acme(shop: Database) -> Object:
    return shop.variables["acme"]  # type: ignore[no-any-return]


# --- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("quantity", 0),
        ("quantity", 2**63 - 1),
        ("quantity", -(2**63)),
        ("price", 0.1),
        ("price", -1.7976931348623157e308),
        ("price", 5e-324),
        ("name", ""),
        ("name", "å ∆ 🙂 'quoted' \"twice\" \\ \n\t"),
        ("open", True),
        ("open", False),
        ("due", datetime.date(2026, 11, 15)),
        ("due", datetime.date.min),
        ("due", datetime.date.max),
        ("seen", datetime.datetime(2026, 11, 15, 8, 30, 0, 123456, tzinfo=UTC)),
        ("seen", datetime.datetime.min.replace(tzinfo=UTC)),
        ("seen", datetime.datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_what_is_set_is_what_is_read(shop: Database, toy: Object, name: str, value: object) -> None:
    function = shop.function(f"item.{name}")
    function[toy] = value
    assert function[toy] == value
    assert type(function[toy]) is type(value)
    assert shop.amosql(f"{name}(:toy);").rows == [(value,)]


def test_values_that_stand_for_others(shop: Database, toy: Object) -> None:
    shop.function("price")[toy] = 5
    assert repr(shop.function("price")[toy]) == "5.0"
    elsewhere = datetime.timezone(datetime.timedelta(hours=2))
    shop.function("seen")[toy] = datetime.datetime(2026, 1, 1, 2, tzinfo=elsewhere)
    assert shop.function("seen")[toy] == datetime.datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("quantity", 2**63, "overflow"),
        ("quantity", -(2**63) - 1, "overflow"),
        ("quantity", 5.0, "bad-value"),
        ("quantity", "5", "bad-value"),
        ("quantity", True, "bad-value"),
        ("quantity", [5], "bad-value"),
        ("quantity", b"5", "bad-value"),
        ("price", math.nan, "bad-value"),
        ("price", math.inf, "bad-value"),
        ("price", -math.inf, "bad-value"),
        ("price", 10**400, "overflow"),
        ("price", False, "bad-value"),
        ("price", "1.5", "bad-value"),
        ("price", 1j, "bad-value"),
        ("name", 5, "bad-value"),
        ("name", b"toy", "bad-value"),
        ("name", "a\0b", "bad-value"),
        ("name", "\ud800", "bad-value"),
        ("open", 1, "bad-value"),
        ("open", "true", "bad-value"),
        ("due", datetime.datetime(2026, 1, 1, tzinfo=UTC), "bad-value"),
        ("due", "2026-01-01", "bad-value"),
        ("seen", datetime.date(2026, 1, 1), "bad-value"),
        ("seen", datetime.datetime(2026, 1, 1), "bad-value"),
        ("maker", "acme", "wrong-object"),
        ("maker", 1.5, "wrong-object"),
    ],
)
def test_a_value_of_another_type_is_refused(
    shop: Database, toy: Object, name: str, value: object, code: str
) -> None:
    function = shop.function(f"item.{name}")
    before = function.get(toy)
    with pytest.raises(ValueFault) as caught:
        function[toy] = value
    assert caught.value.code == code
    assert function.get(toy) == before


# --- mappings ------------------------------------------------------------------------------


def test_a_function_is_a_mapping(shop: Database, toy: Object) -> None:
    quantity = shop.function("quantity")
    gift = shop.variables["gift"]
    assert quantity[toy] == 5
    assert quantity.get(toy) == 5
    assert toy in quantity
    assert gift not in quantity
    assert quantity.get(gift) is None
    assert quantity.get(gift, 7) == 7
    with pytest.raises(NoValue) as caught:
        quantity[gift]
    assert isinstance(caught.value, KeyError)
    assert caught.value.code == "no-value"
    assert str(caught.value) == f"quantity has no value for {gift!r}"
    assert quantity(toy) == [5]
    assert quantity(gift) == []
    assert sorted(value for _, value in quantity.items()) == [5, 50]
    assert dict(quantity.items())[toy] == 5
    assert repr(quantity) == "<function quantity(item)>"


def test_setting_replaces_and_deleting_removes(shop: Database, toy: Object) -> None:
    quantity = shop.function("quantity")
    quantity[toy] = 6
    quantity[toy] = 7
    assert quantity[toy] == 7
    del quantity[toy]
    assert toy not in quantity
    del quantity[toy]
    quantity[toy] = 8
    quantity[toy] = None
    assert toy not in quantity


def test_a_key_or_value_may_be_a_tuple_of_one(shop: Database, toy: Object) -> None:
    quantity = shop.function("quantity")
    quantity[(toy,)] = (9,)
    assert quantity[(toy,)] == quantity[toy] == 9


def test_a_function_that_is_iterated_gives_its_arguments(
    shop: Database, toy: Object, acme: Object
) -> None:
    shop.function("delivery")[toy, acme] = 3
    assert set(shop.function("quantity")) == {toy, shop.variables["book"]}
    assert list(shop.function("delivery")) == [(toy, acme)]
    assert list(shop.function("rate")) == []


def test_several_arguments(shop: Database, toy: Object, acme: Object) -> None:
    delivery = shop.function("delivery")
    delivery[toy, acme] = 3
    assert delivery[toy, acme] == 3
    assert delivery(toy, acme) == [3]
    assert (toy, acme) in delivery
    assert list(delivery.items()) == [((toy, acme), 3)]
    del delivery[toy, acme]
    assert (toy, acme) not in delivery


def test_no_argument(shop: Database) -> None:
    rate = shop.function("rate")
    assert rate.get((), 1.0) == 1.0
    rate[()] = 0.25
    rate[()] = 0.5
    assert rate[()] == 0.5
    assert rate() == [0.5]
    assert list(rate.items()) == [((), 0.5)]
    del rate[()]
    assert rate() == []


def test_a_bag_of_no_argument(shop: Database) -> None:
    log = shop.function("log")
    log[()] = [1, 2, 2]
    log.add(3)
    assert sorted(log[()]) == [1, 2, 2, 3]
    log.remove(2)
    assert sorted(log()) == [1, 2, 3]
    log[()] = []
    assert log() == []


def test_several_columns(shop: Database, toy: Object) -> None:
    size = shop.function("size")
    size[toy] = (10, 2)
    assert size[toy] == (10, 2.0)
    assert size(toy) == [(10, 2.0)]
    assert list(size.items()) == [(toy, (10, 2.0))]
    size[toy] = (11, 2.5)
    assert size[toy] == (11, 2.5)
    for wrong in (5, (5,), (1, 2, 3), [1, 2]):
        with pytest.raises(TypeFault) as caught:
            size[toy] = wrong
        assert caught.value.code == "arity"
    with pytest.raises(ValueFault):
        size[toy] = (1, "high")
    assert size[toy] == (11, 2.5)


def test_bags(shop: Database, toy: Object) -> None:
    tags = shop.function("tags")
    assert tags[toy] == []
    assert tags.get(toy) == []
    assert toy not in tags
    tags[toy] = ["a", "b", "a"]
    assert sorted(tags[toy]) == ["a", "a", "b"]
    tags.add(toy, "b")
    assert sorted(tags[toy]) == ["a", "a", "b", "b"]
    tags.remove(toy, "a")
    assert sorted(tags[toy]) == ["a", "b", "b"]
    tags.remove(toy, "never there")
    tags[toy] = "only"
    assert tags[toy] == ["only"]
    assert toy in tags
    del tags[toy]
    assert tags[toy] == []
    with pytest.raises(ValueFault):
        tags[toy] = ["a", 5]
    assert tags[toy] == []


def test_bags_of_several_columns(shop: Database, toy: Object) -> None:
    sales = shop.function("sales")
    day = datetime.date(2026, 11, 15)
    sales[toy] = [(1, day), (1, day), (2, day)]
    sales.add(toy, 3, day)
    sales.remove(toy, 1, day)
    assert sorted(sales[toy]) == [(1, day), (2, day), (3, day)]
    assert sorted(row for _, row in sales.items()) == sorted(sales[toy])
    sales[toy] = (9, day)
    assert sales[toy] == [(9, day)]


def test_objects_as_values_and_values_as_arguments(
    shop: Database, toy: Object, acme: Object
) -> None:
    shop.function("maker")[toy] = acme
    assert shop.function("maker")[toy] == acme
    assert repr(shop.function("maker")[toy]).startswith("#[supplier ")
    shop.function("coded")["T1"] = toy
    assert shop.function("coded")["T1"] == toy
    shop.function("square")[7] = 49
    assert shop.function("square")[7] == 49
    assert 8 not in shop.function("square")


def test_an_object_of_a_subtype_will_do(shop: Database) -> None:
    gift = shop.variables["gift"]
    shop.function("quantity")[gift] = 1
    assert shop.function("quantity")[gift] == 1


def test_add_keeps_one_value(shop: Database, toy: Object) -> None:
    quantity = shop.function("quantity")
    quantity.add(toy, 5)
    with pytest.raises(ValueFault) as caught:
        quantity.add(toy, 6)
    assert caught.value.code == "many-values"
    quantity.remove(toy, 6)
    assert quantity[toy] == 5
    quantity.remove(toy, 5)
    assert toy not in quantity


@pytest.mark.parametrize("arguments", [(), ("toy", "toy"), ("toy", "acme", "toy")])
def test_a_wrong_number_of_arguments(shop: Database, arguments: tuple[str, ...]) -> None:
    key = tuple(shop.variables[name] for name in arguments)
    quantity = shop.function("quantity")
    for attempt in (
        lambda: quantity[key],
        lambda: quantity.get(key),
        lambda: key in quantity,
        lambda: quantity(*key),
        lambda: quantity.__setitem__(key, 5),
        lambda: quantity.__delitem__(key),
    ):
        with pytest.raises(TypeFault) as caught:
            attempt()
        assert caught.value.code == "arity"


@pytest.mark.parametrize("row", [(), ("toy",), ("toy", 5, 6)])
def test_add_and_remove_of_a_wrong_number_of_columns(shop: Database, row: tuple[Any, ...]) -> None:
    given = tuple(shop.variables.get(value, value) for value in row)
    for change in (shop.function("quantity").add, shop.function("quantity").remove):
        with pytest.raises(TypeFault) as caught:
            change(*given)
        assert caught.value.code == "arity"


# --- wrong objects -------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, "toy", 1.5, [1], 1_000_000, "an object of another type"])
def test_an_object_of_another_type_is_refused(shop: Database, toy: Object, wrong: Any) -> None:
    supplier = shop.variables["acme"] if wrong == "an object of another type" else wrong
    item = toy if wrong == "an object of another type" else wrong
    for attempt in (
        lambda: shop.function("quantity").__setitem__(supplier, 5),
        lambda: shop.function("delivery").__setitem__((toy, item), 5),
        lambda: shop.function("maker").add(toy, item),
        lambda: shop.function("made_by")(supplier if wrong is None else "acme"),
    ):
        with pytest.raises(ValueFault) as caught:
            attempt()
        assert caught.value.code == "wrong-object"


def test_a_deleted_object_has_no_values_and_takes_none(shop: Database, toy: Object) -> None:
    quantity, coded = shop.function("quantity"), shop.function("coded")
    coded["T1"] = toy
    shop.amosql("delete :toy;")
    assert quantity.get(toy) is None
    assert toy not in quantity
    assert "T1" not in coded
    assert toy not in [item for item, _ in quantity.items()]
    for attempt in (
        lambda: quantity.__setitem__(toy, 5),
        lambda: quantity.add(toy, 5),
        lambda: coded.__setitem__("T1", toy),
        lambda: shop.function("tags").__setitem__(toy, ["a"]),
    ):
        with pytest.raises(ValueFault) as caught:
            attempt()
        assert caught.value.code == "wrong-object"
    quantity.remove(toy, 5)
    del quantity[toy]


# --- derived functions ---------------------------------------------------------------------


def test_derived_functions_can_be_read(shop: Database, toy: Object, acme: Object) -> None:
    shop.function("price")[toy] = 2.5
    shop.function("maker")[toy] = acme
    assert shop.function("value")[toy] == 12.5
    assert shop.function("both")[toy] == (5, 2.5)
    assert shop.function("double")[21] == 42
    assert shop.function("made_by")(acme) == [toy]
    assert shop.function("value").get(shop.variables["gift"]) is None
    assert shop.variables["gift"] not in shop.function("value")
    assert list(shop.function("value").items()) == [(toy, 12.5)]
    shop.function("due")[toy] = datetime.date(2026, 1, 1)
    assert shop.function("late")[toy] == datetime.date(2026, 1, 11)
    with pytest.raises(NoValue):
        shop.function("value")[shop.variables["gift"]]


def test_derived_functions_follow_each_change(shop: Database, toy: Object) -> None:
    value, price = shop.function("value"), shop.function("price")
    for number in range(5):
        price[toy] = number
        assert value[toy] == 5 * number


def test_a_derived_function_that_is_a_stored_one_can_be_set(shop: Database, toy: Object) -> None:
    stock = shop.function("stock")
    stock[toy] = 8
    assert shop.function("quantity")[toy] == stock[toy] == 8
    del stock[toy]
    assert toy not in shop.function("quantity")


@pytest.mark.parametrize(("name", "argument"), [("value", "toy"), ("double", 5), ("both", "toy")])
def test_other_derived_functions_are_not_set(shop: Database, name: str, argument: Any) -> None:
    key = shop.variables.get(argument, argument)
    with pytest.raises(SafetyFault) as caught:
        shop.function(name)[key] = (1, 2.0) if name == "both" else 1
    assert caught.value.code == "not-updatable"
    assert caught.value.hint


def test_errors_of_derived_functions(shop: Database) -> None:
    double = shop.function("double")
    with pytest.raises(ValueFault):
        double["x"]
    with pytest.raises(HarkenError) as caught:
        double[2**62]
    assert caught.value.code == "overflow"
    with pytest.raises(SafetyFault) as unsafe:
        list(double.items())
    assert unsafe.value.code == "unsafe"


# --- names ---------------------------------------------------------------------------------


def test_an_unknown_function_is_named_with_the_nearest(shop: Database) -> None:
    with pytest.raises(NameFault) as caught:
        shop.function("quantty")
    assert caught.value.code == "unknown-function"
    assert "quantity" in str(caught.value.hint)
    with pytest.raises(NameFault):
        shop.function("supplier.quantity")


def test_an_overloaded_name_needs_its_type(shop: Database) -> None:
    with pytest.raises(TypeFault) as caught:
        shop.function("name")
    assert caught.value.code == "ambiguous"
    assert '.name"' in str(caught.value.hint)
    assert repr(shop.function("supplier.name")) == "<function name(supplier)>"
    assert shop.function("item.name")[shop.variables["toy"]] == "toy"


@pytest.mark.parametrize("name", ["restock", "count", "abs"])
def test_what_is_not_a_mapping_is_refused(shop: Database, name: str) -> None:
    with pytest.raises(LanguageError) as caught:
        shop.function(name)
    assert f"did you mean {name}?" != caught.value.hint


def test_the_catalog_can_be_read_and_not_set(shop: Database) -> None:
    names = {name for _, name in shop.function("type.name").items()}
    assert {"item", "supplier", "integer"} <= names
    with pytest.raises(SafetyFault) as caught:
        shop.function("type.name")[2] = "x"
    assert caught.value.code == "not-updatable"


# --- with other changes --------------------------------------------------------------------


def test_handles_and_statements_see_each_other(shop: Database, toy: Object) -> None:
    quantity = shop.function("quantity")
    for number in range(3):
        quantity[toy] = number
        assert shop.amosql("quantity(:toy);").rows == [(number,)]
        shop.amosql(f"set quantity(:toy) = {number + 10};")
        assert quantity[toy] == number + 10


def test_a_handle_outlives_changes_of_the_schema(shop: Database, toy: Object) -> None:
    quantity, value = shop.function("quantity"), shop.function("value")
    shop.amosql("create type other; create function quantity(other) -> integer;")
    quantity[toy] = 6
    shop.function("price")[toy] = 2
    assert (quantity[toy], value[toy]) == (6, 12.0)
    shop.amosql("create function value(item i) -> number as select price(i);")
    assert value[toy] == 2.0
    shop.amosql("delete function value;")
    for attempt in (
        lambda: value[toy],
        lambda: value.__setitem__(toy, 1),
        lambda: list(value.items()),
    ):
        with pytest.raises(LanguageError) as caught:
            attempt()
        assert caught.value.code == "unknown-function"


def test_many_updates_in_one_transaction(db: Database) -> None:
    db.amosql("create type item properties (quantity integer); commit;")
    items = db.load("item", ((i,) for i in range(1000)), ["quantity"])
    quantity: FunctionHandle = db.function("quantity")
    with db.transaction():
        for number, item in enumerate(items):
            quantity[item] = 2 * number
    assert [value for _, value in sorted(quantity.items(), key=lambda row: row[0].oid)] == list(
        range(0, 2000, 2)
    )


def test_each_change_outside_a_transaction_is_committed(db: Database) -> None:
    db.amosql(SHOP)
    toy = db.variables["toy"]
    db.function("quantity")[toy] = 6
    assert not db.in_transaction
    db.rollback()
    assert db.function("quantity")[toy] == 6
