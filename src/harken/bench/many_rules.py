"""`harken bench many-rules`: what a transaction pays for rules that it does not affect.

Two databases take turns. In the first comparison both have the rule that a transaction affects, and
one of them has thousands of others that watch another function. In the second both have one rule
with a parameter, activated for one item or for thousands.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import harken
from harken.bench.figures import Figure, compare, cpu_time, median_seconds, seconds

SCHEMA = """
create type item properties (quantity integer, price integer, min_stock integer);
commit;
"""
PROPERTIES = ("quantity", "price", "min_stock")
QUANTITY, PRICE, MIN_STOCK = 1_000, 500, 100

AFFECTED = """
create rule low() as
    when for each item i where quantity(i) < min_stock(i) do order(i, 1);
activate low();
commit;
"""
OTHER = """
create rule cheap{number}() as
    when for each item i where price(i) < {price} do order(i, {number});
activate cheap{number}();
commit;
"""
WITH_PARAMETER = """
create rule watch(item i) as when quantity(i) < min_stock(i) do order(i, 1);
commit;
"""
TRANSACTIONS = 100
NEEDS = "<= 1.2"
TENTHS = 10


def figures(items: int = 10_000, rounds: int = 15) -> Iterator[Figure]:
    """`items` is the number of rules, and of activations: at least two."""
    count = max(2, items)
    yield from _rules(count, rounds)
    yield from _activations(count, rounds)


# --- many rules ----------------------------------------------------------------------------


def _rules(count: int, rounds: int) -> Iterator[Figure]:
    figure = partial(Figure, "many-rules", params={"rules": count})
    with _database(TRANSACTIONS) as (alone, few), _database(TRANSACTIONS) as (among, many):
        for db in (alone, among):
            db.amosql(AFFECTED)
        took = _in_tenths(count - 1, partial(_create, among))
        yield figure("create and activate ms a rule", statistics.mean(took) * 1e3)
        yield figure("the last tenth/the first", took[-1] / took[0])
        timing = compare(
            partial(_change, among, many), partial(_change, alone, few), rounds, cpu_time
        )
    yield figure("transaction, that one alone µs", timing.theirs / TRANSACTIONS * 1e6)
    yield figure("transaction, among all µs", timing.ours / TRANSACTIONS * 1e6)
    yield figure("among all/alone", timing.ratio, needs=NEEDS)


def _create(db: harken.Database, numbers: range) -> None:
    """Rules that no item satisfies, each with a price of its own."""
    for number in numbers:
        db.amosql(OTHER.format(number=number, price=number % PRICE))


def _in_tenths(count: int, work: Callable[[range], None]) -> list[float]:
    """The seconds per rule, in the first tenth of them, in the second, and so on."""
    bounds = [count * tenth // TENTHS for tenth in range(TENTHS + 1)]
    parts = [range(start, end) for start, end in pairwise(bounds)]
    return [seconds(partial(work, part), cpu_time) / len(part) for part in parts if part]


# --- many activations ----------------------------------------------------------------------


def _activations(count: int, rounds: int) -> Iterator[Figure]:
    figure = partial(Figure, "many-activations", params={"activations": count})
    with _database(count) as (once, few), _database(count) as (often, many):
        for db in (once, often):
            db.amosql(WITH_PARAMETER)
        _switch(once, few[:1], "activate")
        took = _in_tenths(
            count, lambda part: _switch(often, many[part.start : part.stop], "activate")
        )
        yield figure("activate µs", statistics.mean(took) * 1e6)
        yield figure("the last tenth/the first", took[-1] / took[0])
        spare = min(TRANSACTIONS, count - 1)
        timing = compare(
            partial(_switch, often, many[1 : spare + 1], "deactivate", "activate"),
            partial(_switch, once, few[1 : spare + 1], "activate", "deactivate"),
            rounds,
            cpu_time,
        )
        yield figure("activate and deactivate, all/one", timing.ratio, needs=NEEDS)
        some = many[:TRANSACTIONS]
        timing = compare(
            partial(_change, often, some),
            partial(_change, once, few[:1] * len(some)),
            rounds,
            cpu_time,
        )
        look_up = median_seconds(partial(_read, often, some), rounds)
    yield figure("transaction, one activation µs", timing.theirs / len(some) * 1e6)
    yield figure("transaction, all activations µs", timing.ours / len(some) * 1e6)
    yield figure("all activations/one", timing.ratio, needs=NEEDS)
    yield figure("look-up in a table µs", look_up / len(some) * 1e6)


def _switch(db: harken.Database, items: Sequence[harken.Object], *verbs: str) -> None:
    """Activate or deactivate the rule for each item, in transactions of their own."""
    for item in items:
        db.assign("x", item)
        for verb in verbs:
            db.amosql(f"{verb} watch(:x); commit;")


def _read(db: harken.Database, items: Sequence[harken.Object]) -> None:
    quantity = db.function("quantity")
    with db.transaction():
        for item in items:
            quantity[item]


# --- both ----------------------------------------------------------------------------------


@contextmanager
def _database(items: int) -> Iterator[tuple[harken.Database, list[harken.Object]]]:
    """In memory, with this many items that have enough of everything."""
    with harken.connect() as db:
        db.foreign("order", _order)
        db.amosql(SCHEMA)
        row = (QUANTITY, PRICE, MIN_STOCK)
        yield db, list(db.load("item", (row for _ in range(items)), PROPERTIES))


def _order(item: Any, amount: int) -> None:
    raise AssertionError(f"{item} has enough and is ordered")


def _change(db: harken.Database, items: Sequence[harken.Object]) -> None:
    """One transaction for each item, which decreases its quantity; the next call increases it
    again."""
    quantity = db.function("quantity")
    for item in items:
        with db.transaction():
            quantity[item] = 2 * QUANTITY - 1 - quantity[item]
