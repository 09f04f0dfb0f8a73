"""An inventory whose stock a rule watches, and turns of transactions that change it.

Law: a turn ends where it began. It raises its items above their thresholds and lowers them again,
so every turn is the same work, and every low item in it is ordered once; a turn in which that is
not so fails.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import harken
from harken.bench import inventory
from harken.bench.figures import cpu_time

RULE = """
create rule monitor_all_items() as
    when for each item i where quantity(i) < threshold(i)
    do order(i, max_stock(i) - quantity(i));
activate monitor_all_items();
commit;
"""
COMMON_MIN_STOCK = f"""
deactivate monitor_all_items();
delete rule monitor_all_items;
delete function threshold;
delete function min_stock;
create function min_stock() -> integer;
create function threshold(item i) -> integer as
    select consume_frequency(i) * delivery_time(i, s) + min_stock()
    for each supplier s where supplies(s) = i;
set min_stock() = {inventory.MIN_STOCK};
commit;
"""
"""The redefinition of benchmark 7: one value that the threshold of every item depends on."""

RICHER = {"quantity": 1, "delivery_time": -1, "consume_frequency": -1, "min_stock": -1}
"""What to add to a value of each function to raise its item above the threshold."""

ALL_TOGETHER = [slice(None)]
TIMED_APART = 4
"""Up to this many transactions are timed one by one, with their check phases."""

Change: TypeAlias = tuple[Any, list[Any], list[int], int]
"""A function, arguments, their values when poor, and what to add to each."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds for a transaction, and for its check phase and commit alone."""

    transaction: float
    check: float


class Shop:
    def __init__(self, size: int) -> None:
        self.size = size
        self.orders = 0
        self.db = harken.connect()
        items, suppliers = inventory.fill(self.db, size)
        self.items, self.suppliers = list(items), list(suppliers)
        rows = [inventory.stock_row(number) for number in range(size)]
        self.quantities = [row[0] for row in rows]
        self._stock: dict[str, tuple[list[Any], list[int]]] = {
            "quantity": (self.items, self.quantities),
            "consume_frequency": (self.items, [row[3] for row in rows]),
            "delivery_time": (
                list(zip(self.items, self.suppliers, strict=True)),
                [inventory.days(number) for number in range(size)],
            ),
            "min_stock": ([()], [inventory.MIN_STOCK]),
        }
        self.db.foreign("order", self.order)
        self.db.amosql(RULE)

    def share_min_stock(self) -> None:
        self.db.amosql(COMMON_MIN_STOCK)
        self.db.amosql(RULE)

    def order(self, item: Any, amount: int) -> None:
        self.orders += 1

    def some(self, count: int) -> list[int]:
        """The numbers of this many items, far from each other; at least one of them is low."""
        return [number * 7919 % self.size for number in range(min(count, self.size))]

    def turn(self, functions: Sequence[str], strategy: str, places: list[slice]) -> Timing:
        """Change these functions of the items at each place in a transaction, twice."""
        work = [
            [self._change(function, place, rich) for function in functions]
            for rich in (True, False)
            for place in places
        ]
        self.db.monitoring(strategy)
        self.orders = 0
        gc.collect()
        took = self._each(work) if len(work) <= TIMED_APART else self._together(work)
        # The common min_stock raises every item above its threshold, and lowers it again.
        changed = ALL_TOGETHER if "min_stock" in functions else places
        self.check_orders(number for place in changed for number in range(self.size)[place])
        return took

    def _each(self, work: list[list[Change]]) -> Timing:
        times = [self._transaction(changes) for changes in work]
        return Timing(*(sum(part) / len(times) for part in zip(*times, strict=True)))

    def _together(self, work: list[list[Change]]) -> Timing:
        """Reading the processor's clock is slow, so it is not read between short transactions."""
        start = cpu_time()
        for changes in work:
            with self.db.transaction():
                _make(changes)
        return Timing((cpu_time() - start) / len(work), 0.0)

    def check_orders(self, numbers: Iterable[int]) -> None:
        """Every low item among these was ordered once since counting began."""
        low = sum(map(inventory.is_low, numbers))
        if self.orders != low:
            raise AssertionError(f"{self.orders} orders for {low} items that became low")

    def _change(self, function: str, place: slice, rich: bool) -> Change:
        arguments, values = self._stock[function]
        more = RICHER[function] if rich else 0
        return self.db.function(function), arguments[place], values[place], more

    def _transaction(self, changes: list[Change]) -> tuple[float, float]:
        """The seconds of the transaction, and of its end."""
        start = cpu_time()
        with self.db.transaction():
            _make(changes)
            changed = cpu_time()
        end = cpu_time()
        return end - start, end - changed


def _make(changes: list[Change]) -> None:
    for function, arguments, values, more in changes:
        for argument, value in zip(arguments, values, strict=True):
            function[argument] = value + more
