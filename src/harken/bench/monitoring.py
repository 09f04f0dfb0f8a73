"""`harken bench inventory`: the seven benchmarks of the thesis (section 9.1), at several sizes.

A rule watches the stock of every item. A transaction changes one item (1 to 3) or all of them (4 to
7), and the rule's condition is monitored by partial differentials, by naive evaluation, and by the
planner's choice. In addition, one change of one quantity is compared with SQLite by hand.

Law: both sides took turns in the same rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from harken.bench.figures import Figure, compare, cpu_time
from harken.bench.inventory_by_hand import ByHand
from harken.bench.shop import ALL_TOGETHER, Shop, Timing

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STRATEGIES = INCREMENTAL, ADAPTIVE, NAIVE = ("incremental", "adaptive", "naive")

ITEMS_IN_A_TURN = 50
"""Each in two transactions: the thesis ran series of a hundred."""
ITEMS_READ_IN_A_TURN = 100_000
"""Naive evaluation reads all items in every transaction, so its turns are shorter."""
SHORT_TURNS = 5
FEW_ROUNDS_FROM = 1_000_000
"""Transactions that change at least this many items are timed in half of the rounds."""

GROWTH = "<= 1.5"
ADVANTAGE = {1_000_000: ">= 3000", 10_000_000: ">= 30000"}
CHOICE = "<= 1.15"
TO_HAND = "<= 5"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The functions that a transaction changes, for one item or for all."""

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

Turns = dict[str, list[Timing]]
"""The turns of each strategy, one for each round."""


def figures(
    items: Sequence[int] = SIZES,
    rounds: int = 5,
    only: Sequence[int] = tuple(range(1, 8)),
) -> Iterator[Figure]:
    """`only` are the numbers of the benchmarks to run."""
    with ExitStack() as stack:
        shops = [Shop(size) for size in sorted(set(items))]
        for shop in shops:
            stack.callback(shop.db.close)
            if 1 in only:
                yield from _by_hand(shop, rounds)
        for benchmark in (each for each in BENCHMARKS if each.number in only):
            if benchmark.number == 7:
                for shop in shops:
                    shop.share_min_stock()
            yield from figures_of(benchmark, _take_turns(benchmark, shops, rounds))


# --- benchmarks 1 to 7 ---------------------------------------------------------------------


def _take_turns(benchmark: Benchmark, shops: list[Shop], rounds: int) -> dict[int, Turns]:
    """Every strategy at every size once in each round; the first turns only warm up."""
    ways = [(shop, strategy) for shop in shops for strategy in STRATEGIES]
    if not benchmark.changes_all:  # sizes are compared, so they run one right after another
        ways = [(shop, strategy) for strategy in STRATEGIES for shop in shops]
    taken: dict[int, Turns] = {shop.size: {name: [] for name in STRATEGIES} for shop in shops}
    for shop, strategy in ways:
        shop.turn(benchmark.functions, strategy, [slice(0, 1)])
    for number in range(rounds):
        for shop, strategy in ways if number % 2 == 0 else reversed(ways):
            if number < _rounds(benchmark, shop, rounds):
                taken[shop.size][strategy].append(_take_turn(benchmark, shop, strategy))
    return taken


def _take_turn(benchmark: Benchmark, shop: Shop, strategy: str) -> Timing:
    """One turn, or the middle one of several if they are short."""
    places = _places(benchmark, shop, strategy)
    short = strategy != NAIVE and not benchmark.changes_all
    turns = [
        shop.turn(benchmark.functions, strategy, places) for _ in range(SHORT_TURNS if short else 1)
    ]
    return sorted(turns, key=lambda turn: turn.transaction)[len(turns) // 2]


def _rounds(benchmark: Benchmark, shop: Shop, rounds: int) -> int:
    few = benchmark.changes_all and shop.size >= FEW_ROUNDS_FROM
    return max(1, rounds // 2) if few else rounds


def _places(benchmark: Benchmark, shop: Shop, strategy: str) -> list[slice]:
    if benchmark.changes_all:
        return ALL_TOGETHER
    count = ITEMS_IN_A_TURN
    if strategy == NAIVE:
        count = max(1, min(count, ITEMS_READ_IN_A_TURN // shop.size))
    return [slice(number, number + 1) for number in shop.some(count)]


def figures_of(benchmark: Benchmark, taken: dict[int, Turns]) -> Iterator[Figure]:
    smallest, *_, largest = (min(taken), *taken)
    for size, turns in taken.items():
        figure = partial(Figure, benchmark.name, params={"items": size})
        for strategy in STRATEGIES:
            took = statistics.median(turn.transaction for turn in turns[strategy])
            yield figure(f"{strategy} ms", took * 1e3)
        if benchmark.changes_all:
            for strategy in STRATEGIES:
                took = statistics.median(turn.check for turn in turns[strategy])
                yield figure(f"{strategy}, check ms", took * 1e3)
            yield figure("adaptive/better", _to_better(turns), needs=CHOICE)
            continue
        advantage = _ratio(turns[NAIVE], turns[INCREMENTAL])
        yield figure("naive/incremental", advantage, needs=ADVANTAGE.get(size))
        yield figure("adaptive/better", _to_better(turns))
        if size == largest != smallest:
            growth = _ratio(turns[INCREMENTAL], taken[smallest][INCREMENTAL])
            yield figure("largest/smallest", growth, needs=GROWTH)


def _to_better(turns: Turns) -> float:
    """Adaptive monitoring relative to whichever other strategy was faster in most rounds."""
    ratio = _ratio(turns[NAIVE], turns[INCREMENTAL])
    return _ratio(turns[ADAPTIVE], turns[NAIVE if ratio < 1 else INCREMENTAL])


def _ratio(some: list[Timing], others: list[Timing]) -> float:
    pairs = zip(some, others, strict=True)
    return statistics.median(a.transaction / b.transaction for a, b in pairs)


# --- one change, against SQLite by hand ----------------------------------------------------


def _by_hand(shop: Shop, rounds: int) -> Iterator[Figure]:
    """The whole path through the fast path: update, event, differentials, check phase, commit."""
    numbers = shop.some(ITEMS_IN_A_TURN)
    changes = [
        (shop.items[number], shop.quantities[number] + more)
        for more in (1, 0)
        for number in numbers
    ]
    with closing(ByHand(shop.items, shop.suppliers, shop.order)) as plain:

        def ours() -> None:
            quantity = shop.db.function("quantity")
            for item, value in changes:
                with shop.db.transaction():
                    quantity[item] = value

        def theirs() -> None:
            for item, value in changes:
                plain.set_quantity(item.oid, value)

        for way in (ours, theirs):
            shop.orders = 0
            way()
            shop.check_orders(numbers)
        timing = compare(ours, theirs, 3 * rounds, cpu_time)
    figure = partial(Figure, "inventory-by-hand", params={"items": shop.size})
    yield figure("harken µs", timing.ours / len(changes) * 1e6)
    yield figure("by hand µs", timing.theirs / len(changes) * 1e6)
    yield figure("harken/by hand", timing.ratio, needs=TO_HAND)
