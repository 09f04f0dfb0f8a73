"""The inventory of the thesis (section 3.2), at any size: items, each with a supplier of its own.

One item in a hundred has less in stock than its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

import harken

SCHEMA = """
create type item properties (
    quantity integer, max_stock integer, min_stock integer, consume_frequency integer);
create type supplier properties (supplies item);
create function delivery_time(item, supplier) -> integer;
create function threshold(item i) -> integer as
    select consume_frequency(i) * delivery_time(i, s) + min_stock(i)
    for each supplier s where supplies(s) = i;
commit;
"""

PROPERTIES = ("quantity", "max_stock", "min_stock", "consume_frequency")

MIN_STOCK = 100


def fill(
    db: harken.Database, items: int
) -> tuple[Sequence[harken.Object], Sequence[harken.Object]]:
    """Create the schema and this many items, each with its supplier; returns the items and the
    suppliers."""
    db.amosql(SCHEMA)
    stock = db.load("item", map(stock_row, range(items)), properties=PROPERTIES)
    suppliers = db.load("supplier", ((item,) for item in stock), properties=["supplies"])
    delivery_time = db.function("delivery_time")
    with db.transaction():
        for number, (item, supplier) in enumerate(zip(stock, suppliers, strict=True)):
            delivery_time[item, supplier] = days(number)
    return stock, suppliers


def stock_row(number: int) -> tuple[int, int, int, int]:
    """Quantity, max_stock, min_stock and consume_frequency of an item."""
    frequency = 10 + number % 21
    threshold = frequency * days(number) + MIN_STOCK
    quantity = threshold - 1 if is_low(number) else threshold + number % 5000
    return quantity, 10_000, MIN_STOCK, frequency


def days(number: int) -> int:
    """The delivery time of an item."""
    return 1 + number % 7


def is_low(number: int) -> bool:
    return number % 100 == 0
