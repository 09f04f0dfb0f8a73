"""`harken bench inventory`: the seven benchmarks of the thesis (section 9.1), at several sizes.

A rule watches every item's stock. A transaction changes one item (1 to 3) or all of them (4 to 7),
and the rule's condition is monitored by partial differentials, by naive evaluation, and by
whatever the planner chooses. A turn makes its items rich enough and then poor again, so each turn
does the same work, ends where it began, and orders every low item once, which is checked.

Law: what is compared took turns in the same rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import harken
from harken.bench import by_hand, inventory
from harken.bench.figures import Figure, compare

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STRATEGIES = INCREMENTAL, NAIVE, ADAPTIVE = ("incremental", "naive", "adaptive")

ITEMS_IN_A_TURN = 50
"""Each in two transactions: the thesis ran series of a hundred."""
ITEMS_READ_IN_A_TURN = 100_000
"""Naive evaluation reads all items in every transaction, so its turns are shorter."""
FEW_ROUNDS_FROM = 1_000_000
"""Transactions that change so many items are timed less often."""
SLOWEST_GROWTH = "<= 1.5"
ADVANTAGE = {1_000_000: ">= 3000", 10_000_000: ">= 30000"}
BY_HAND = "<= 5"
WORST_CHOICE = "<= 1.15"

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


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Which functions a transaction changes, for one item or for all."""

    number: int
    functions: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"inventory-{self.number}"

    @property
    def changes_all(self) -> bool:
        return self.number >= 4


BENCHMARKS = (
    Benchmark(1, ("quantity",)),
    Benchmark(2, ("quantity", "delivery_time")),
    Benchmark(3, ("quantity", "delivery_time", "consume_frequency")),
    Benchmark(4, ("quantity",)),
    Benchmark(5, ("quantity", "delivery_time")),
    Benchmark(6, ("quantity", "delivery_time", "consume_frequency")),
    Benchmark(7, ("quantity", "min_stock")),
)

RICHER = {"quantity": 1, "delivery_time": -1, "consume_frequency": -1, "min_stock": -1}
"""What to add to a value of each function to make its item richer, or its threshold lower."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds for a transaction, and for its check phase and commit alone."""

    transaction: float
    check: float


Turns = dict[tuple[int, str], list[Turn]]
"""The turns of each size and strategy, one for each round."""


def figures(items: Sequence[int] = SIZES, rounds: int = 5) -> Iterator[Figure]:
    with ExitStack() as stack:
        shops = [Shop(size) for size in sorted(set(items))]
        for shop in shops:
            stack.callback(shop.db.close)
        for shop in shops:
            yield from _by_hand(shop, rounds)
        for benchmark in BENCHMARKS:
            if benchmark.number == 7:
                for shop in shops:
                    shop.share_min_stock()
            yield from _figures(benchmark, _take_turns(benchmark, shops, rounds))


class Shop:
    """An inventory whose stock a rule watches."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ordered = 0
        self.db = harken.connect()
        items, suppliers = inventory.fill(self.db, size)
        self.items, self.suppliers = list(items), list(suppliers)
        rows = [inventory.stock_row(number) for number in range(size)]
        self._arguments: dict[str, list[Any]] = {
            "quantity": self.items,
            "consume_frequency": self.items,
            "delivery_time": list(zip(self.items, self.suppliers, strict=True)),
            "min_stock": [()],
        }
        self._values = {
            "quantity": [row[0] for row in rows],
            "consume_frequency": [row[3] for row in rows],
            "delivery_time": [inventory.days(number) for number in range(size)],
            "min_stock": [inventory.MIN_STOCK],
        }
        self._activate()

    def _activate(self) -> None:
        self.db.foreign("order", self.order)
        self.db.amosql(RULE)

    def share_min_stock(self) -> None:
        self.db.amosql(COMMON_MIN_STOCK)
        self._activate()

    def order(self, item: Any, amount: int) -> None:
        self.ordered += 1

    def quantity(self, number: int) -> int:
        """What the item has when it is poor."""
        return self._values["quantity"][number]

    def some(self, count: int) -> list[int]:
        """The numbers of so many items, far from each other, one in a hundred of them low."""
        return [number * 7919 % self.size for number in range(min(count, self.size))]

    def turn(self, benchmark: Benchmark, strategy: str, count: int) -> Turn:
        """Make so many items rich and then poor again, each in a transaction of its own, or all
        items together."""
        numbers = self.some(count)
        places = [slice(n, n + 1) for n in numbers]
        if benchmark.changes_all:
            numbers, places = list(range(self.size)), [slice(None)]
        work = [
            [self._change(function, place, rich) for function in benchmark.functions]
            for rich in (True, False)
            for place in places
        ]
        self.db.monitoring(strategy)
        self.ordered = 0
        gc.collect()
        times = [self._transaction(changes) for changes in work]
        expected = sum(map(inventory.is_low, numbers))
        if self.ordered != expected:
            raise AssertionError(f"{strategy}: {self.ordered} orders for {expected} low items")
        return Turn(*(sum(part) / len(times) for part in zip(*times, strict=True)))

    def _change(self, function: str, place: slice, rich: bool) -> Change:
        arguments, values = self._arguments[function][place], self._values[function][place]
        return self.db.function(function), arguments, values, RICHER[function] if rich else 0

    def _transaction(self, changes: list[Change]) -> tuple[float, float]:
        """The seconds it took, and those of its end."""
        start = time.perf_counter()
        with self.db.transaction():
            for function, arguments, values, more in changes:
                for argument, value in zip(arguments, values, strict=True):
                    function[argument] = value + more
            changed = time.perf_counter()
        end = time.perf_counter()
        return end - start, end - changed


# --- the figures ---------------------------------------------------------------------------


def _by_hand(shop: Shop, rounds: int) -> Iterator[Figure]:
    """The whole path of one change through the fast path."""
    params, numbers = {"items": shop.size}, shop.some(ITEMS_IN_A_TURN)
    changes = [
        (shop.items[number], shop.quantity(number) + more) for more in (1, 0) for number in numbers
    ]
    plain = by_hand.Shop(shop.items, shop.suppliers, shop.order)
    shop.db.monitoring(ADAPTIVE)
    ways = partial(_write_ours, shop, changes), partial(_write_by_hand, plain, changes)
    for way in ways:
        shop.ordered = 0
        way()
        if shop.ordered != sum(map(inventory.is_low, numbers)):
            raise AssertionError(f"{shop.ordered} orders is not what benchmark 1 gives")
    timing = compare(*ways, rounds=3 * rounds)
    plain.close()
    name = "inventory-by-hand"
    yield Figure(name, "harken µs", timing.ours / len(changes) * 1e6, params)
    yield Figure(name, "by hand µs", timing.theirs / len(changes) * 1e6, params)
    yield Figure(name, "harken/by hand", timing.ratio, params, BY_HAND)


def _write_ours(shop: Shop, changes: list[tuple[harken.Object, int]]) -> None:
    db, quantity = shop.db, shop.db.function("quantity")
    for item, value in changes:
        with db.transaction():
            quantity[item] = value


def _write_by_hand(plain: by_hand.Shop, changes: list[tuple[harken.Object, int]]) -> None:
    for item, value in changes:
        plain.set_quantity(item.oid, value)


def _take_turns(benchmark: Benchmark, shops: list[Shop], rounds: int) -> Turns:
    """Every strategy at every size once in each round; the first turns only warm up."""
    ways = [(shop, strategy) for shop in shops for strategy in STRATEGIES]
    turns: Turns = {(shop.size, strategy): [] for shop, strategy in ways}
    for shop, strategy in ways:
        shop.turn(benchmark, strategy, 1)
    for number in range(rounds):
        for shop, strategy in ways if number % 2 == 0 else reversed(ways):
            if number < _rounds(benchmark, shop, rounds):
                count = _items_in_a_turn(shop, strategy)
                turns[shop.size, strategy].append(shop.turn(benchmark, strategy, count))
    return turns


def _rounds(benchmark: Benchmark, shop: Shop, rounds: int) -> int:
    few = benchmark.changes_all and shop.size >= FEW_ROUNDS_FROM
    return max(1, rounds // 2) if few else rounds


def _items_in_a_turn(shop: Shop, strategy: str) -> int:
    limit = ITEMS_READ_IN_A_TURN // shop.size if strategy == NAIVE else ITEMS_IN_A_TURN
    return max(1, min(limit, ITEMS_IN_A_TURN))


def _figures(benchmark: Benchmark, turns: Turns) -> Iterator[Figure]:
    sizes = sorted({size for size, _ in turns})
    for size in sizes:
        of = {strategy: turns[size, strategy] for strategy in STRATEGIES}
        make = partial(Figure, benchmark.name, params={"items": size})
        for strategy, times in of.items():
            took = statistics.median(turn.transaction for turn in times)
            yield make(measure=f"{strategy} ms", value=took * 1e3)
        if benchmark.changes_all:
            yield from _of_all(of, make)
        else:
            ratio = _ratio(of[NAIVE], of[INCREMENTAL])
            yield make(measure="naive/incremental", value=ratio, needs=ADVANTAGE.get(size))
            yield make(measure="adaptive/better", value=_to_better(of))
    if len(sizes) > 1 and not benchmark.changes_all:
        growth = _ratio(turns[sizes[-1], INCREMENTAL], turns[sizes[0], INCREMENTAL])
        params = {"items": sizes[-1]}
        yield Figure(benchmark.name, "largest/smallest", growth, params, SLOWEST_GROWTH)
