"""`harken bench lake`: a change in the lake against recomputing in Spark.

A step is a whole transaction: looking up old values, making the change, differentiating the rule's
condition, running the action, committing everything and writing the Delta table. Recomputing is the
condition's view evaluated by Spark over the same files, in a warm session.

Law: both sides took turns in the same process and saw the same data.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from harken.bench.figures import Figure, seconds
from harken.bench.warehouse import CONDITIONS, PLENTY, Warehouse

SIZES = (1_000_000, 10_000_000, 30_000_000)
MANY = 1_000
FASTER = {1: ">= 20", MANY: ">= 10"}
COMPARED = 10_000_000
"""The size at which a step must be faster than recomputing by the required factor."""
GROWTH = "<= 1.5"
CHOICE = "<= 1.2"
PARTS = (0.01, 0.1, 0.5, 1.0)
PARTS_OF = 1_000_000
DELTAS = (1, 10, 100, 1_000, 10_000)
GENERATOR = random.Random(11)


def figures(
    items: Sequence[int] = SIZES, rounds: int = 7, only: Sequence[str] = ("steps", "parts")
) -> Iterator[Figure]:
    """`only` are the parts to run: few rows changed, and many; `growth` is the least of `steps`."""
    from harken.api.opening import spark_session

    sizes = sorted(set(items))
    with ExitStack() as stack:
        spark = spark_session()
        stack.callback(spark.stop)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-bench-"))
        steps: dict[str, dict[int, float]] = {condition: {} for condition in CONDITIONS}
        for size in sizes:
            warehouse = Warehouse(size, spark, directory)
            try:
                for condition in CONDITIONS if {"steps", "growth"} & set(only) else ():
                    warehouse.watch(condition)
                    yield from _steps(warehouse, condition, rounds, steps[condition])
                    if size <= COMPARED and "steps" in only:
                        yield from _against_recomputing(warehouse, condition, rounds)
                if size == sizes[0] and "steps" in only:
                    yield from _floor(warehouse, rounds)
                    yield from _by_change(warehouse, rounds)
                nearest = min(sizes, key=lambda each: abs(each - PARTS_OF))
                if size == nearest and "parts" in only:
                    yield from _parts(warehouse)
            finally:
                warehouse.close()
        for condition, by_size in steps.items():
            yield from _growth(condition, by_size)


def _steps(
    warehouse: Warehouse, condition: str, rounds: int, steps: dict[int, float]
) -> Iterator[Figure]:
    """The time of a step with one changed row, and what it opens."""
    figure = partial(Figure, f"lake-{condition}", params={"items": warehouse.items})
    tally = warehouse.db.internals.engine.tally
    for rows in (1, MANY):
        _change(warehouse, rows)
        before = tally.copy()
        _change(warehouse, rows)
        yield from _note(figure, f"step, {rows:,} rows", tally.since(before))
    taken = [seconds(partial(_change, warehouse, 1)) for _ in range(2 * rounds)]
    steps[warehouse.items] = statistics.median(taken)
    yield figure("step ms", steps[warehouse.items] * 1e3)


def _against_recomputing(warehouse: Warehouse, condition: str, rounds: int) -> Iterator[Figure]:
    figure = partial(Figure, f"lake-{condition}", params={"items": warehouse.items})
    recompute = partial(warehouse.recompute, condition)
    recompute()
    whole: list[float] = []
    taken: dict[int, list[float]] = {1: [], MANY: []}
    for _ in range(max(1, rounds // 2)):
        whole.append(seconds(recompute))
        for rows, times in taken.items():
            times += [seconds(partial(_change, warehouse, rows)) for _ in range(2)]
    yield figure("recompute ms", statistics.median(whole) * 1e3)
    for rows, times in taken.items():
        step = statistics.median(times)
        if rows > 1:
            yield figure(f"step ms, {rows:,} rows", step * 1e3)
        needs = FASTER[rows] if warehouse.items == COMPARED else None
        yield figure(f"recompute/step, {rows:,} rows", statistics.median(whole) / step, needs=needs)


def _note(figure: Any, what: str, tally: Any) -> Iterator[Figure]:
    for name in ("seeks", "files", "row_groups", "queries"):
        shown = "Spark queries" if name == "queries" else name.replace("_", " ")
        yield figure(f"{what}: {shown}", getattr(tally, name))


def _change(warehouse: Warehouse, rows: int) -> None:
    quantity = warehouse.db.function("quantity")
    items = GENERATOR.sample(range(1, warehouse.items + 1), min(rows, warehouse.items))
    with warehouse.db.transaction():
        quantity.update({item: GENERATOR.randrange(1_000, PLENTY) for item in items})


def _growth(condition: str, steps: dict[int, float]) -> Iterator[Figure]:
    """One changed row: how the cost grows with the data."""
    if len(steps) < 2:
        return
    smallest, largest = min(steps), max(steps)
    params = {"items": [smallest, largest]}
    ratio = steps[largest] / steps[smallest]
    yield Figure(f"lake-{condition}", "largest/smallest", ratio, params, GROWTH)
    yield Figure(f"lake-{condition}", "exponent of the data's size", _slope(steps), params)


def _by_change(warehouse: Warehouse, rounds: int) -> Iterator[Figure]:
    """How the cost of a step grows with the change, for the same data."""
    warehouse.watch("inventory")
    taken = {}
    for rows in DELTAS:
        if rows * 10 <= warehouse.items:
            _change(warehouse, rows)
            times = [seconds(partial(_change, warehouse, rows)) for _ in range(max(1, rounds // 2))]
            taken[rows] = statistics.median(times)
            params = {"items": warehouse.items, "rows": rows}
            yield Figure("lake-by-change", "step ms", taken[rows] * 1e3, params)
    params = {"items": warehouse.items}
    yield Figure("lake-by-change", "exponent of the change's size", _slope(taken), params)


def _slope(values: dict[int, float]) -> float:
    """The exponent b of the curve a·xᵇ that fits best."""
    xs = [math.log(x) for x in values]
    ys = [math.log(y) for y in values.values()]
    if len(xs) < 2:
        return 0.0
    return statistics.linear_regression(xs, ys).slope


def _floor(warehouse: Warehouse, rounds: int) -> Iterator[Figure]:
    """The smallest possible step, and where its time goes."""
    db = warehouse.db
    engine = db.internals.engine
    figure = partial(Figure, "lake-floor", params={"items": warehouse.items})
    db.amosql(f"deactivate {warehouse.rule}(); delete rule {warehouse.rule}; commit;")
    warehouse.rule = "watch_nothing"
    db.amosql(
        "create rule watch_nothing() as when for each integer i where quantity(i) < -1 "
        "do set ordered(i) = 1; activate watch_nothing(); commit;"
    )
    quantity = db.function("quantity")
    generator = random.Random(5)
    parts: dict[str, list[float]] = {"look up": [], "check and commit": [], "write": []}
    lazily = engine.after_commit
    for _ in range(rounds + 1):
        item = generator.randrange(1, warehouse.items + 1)
        engine.after_commit = lambda: None  # type: ignore[method-assign]
        try:
            db.begin()
            parts["look up"].append(
                seconds(lambda: quantity.update({item: generator.randrange(1_000, PLENTY)}))  # noqa: B023
            )
            parts["check and commit"].append(seconds(db.commit))
        finally:
            engine.after_commit = lazily  # type: ignore[method-assign]
        parts["write"].append(seconds(engine.flush))
    medians = {name: statistics.median(times[1:]) for name, times in parts.items()}
    for name, median in medians.items():
        yield figure(f"{name} ms", median * 1e3)
    yield figure("step ms", sum(medians.values()) * 1e3)


def _parts(warehouse: Warehouse) -> Iterator[Figure]:
    """Many rows changed from outside: by differentials, by recomputing, and as Harken chooses."""
    warehouse.watch("inventory")
    for part in PARTS:
        params = {"items": warehouse.items, "changed": part}
        taken: dict[str, list[float]] = {"incremental": [], "naive": [], "adaptive": []}
        for turn in range(3):
            for strategy in ("incremental", "naive", "adaptive"):
                warehouse.change_outside(part, seed=turn)
                warehouse.db.monitoring(strategy)
                taken[strategy].append(seconds(warehouse.db.step))
        warehouse.db.monitoring("adaptive")
        medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
        for name, median in medians.items():
            yield Figure("lake-parts", f"{name} ms", median * 1e3, params)
        better = min(medians["incremental"], medians["naive"])
        yield Figure("lake-parts", "adaptive/better", medians["adaptive"] / better, params, CHOICE)
