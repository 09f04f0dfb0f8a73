"""What one changed value costs with this Harken, over what it costs with another installation.

    python -m harken.bench.beside PYTHON [ROUNDS]

PYTHON is the interpreter of the other installation, such as a worktree of an older commit. Both run
the program below, each in a process of its own, and take turns. Times are the processor's, and a
ratio is the median of the rounds' ratios. The figures are lines of JSON.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, TypeAlias

from harken.bench.figures import Figure

WORK = (
    *("point-write", "point-read", "inventory-1", "inventory-2", "inventory-3"),
    *("one-rule", "many-rules", "many-activations"),
)
NEEDS = "<= 1.05"
PROGRAM = """
import gc, sys, time
import harken

ITEMS, RULES = int(sys.argv[1]), int(sys.argv[2])
CHANGES = min(ITEMS, 200)

def inventory():
    db = harken.connect()
    db.amosql('''
        create type item properties (
            quantity integer, max_stock integer, min_stock integer, consume_frequency integer);
        create type supplier properties (supplies item);
        create function delivery_time(item, supplier) -> integer;
        create function threshold(item i) -> integer as
            select consume_frequency(i) * delivery_time(i, s) + min_stock(i)
            for each supplier s where supplies(s) = i;
        commit;''')
    properties = ("quantity", "max_stock", "min_stock", "consume_frequency")
    items = list(db.load("item", [(1000 + n, 9999, 100, 20) for n in range(ITEMS)], properties))
    suppliers = list(db.load("supplier", [(i,) for i in items], ["supplies"]))
    delivery_time = db.function("delivery_time")
    with db.transaction():
        for pair in zip(items, suppliers):
            delivery_time[pair] = 7
    return db, items, suppliers

def watched(rules, parameter):
    db, items, suppliers = inventory()
    db.foreign("order", lambda item, amount: None)
    if parameter:
        db.amosql('create rule watch(item i) as when quantity(i) < threshold(i) do order(i, 1);')
        for item in items[:rules]:
            db.assign("x", item)
            db.amosql("activate watch(:x);")
    else:
        db.amosql('''create rule low() as when for each item i where quantity(i) < threshold(i)
            do order(i, 1); activate low();''')
        for n in range(1, rules):
            db.amosql(f'''
                create rule other{n}() as when for each item i where max_stock(i) < {n % 99}
                    do order(i, {n});
                activate other{n}();''')
    db.amosql("commit;")
    return db, items, suppliers

def writing():
    db, items, _ = inventory()
    quantity = db.function("quantity")
    def work(turn):
        with db.transaction():
            for n, item in enumerate(items):
                quantity[item] = n + turn
    return work, ITEMS

def reading():
    db, items, _ = inventory()
    quantity = db.function("quantity")
    def work(turn):
        with db.transaction():
            for item in items:
                quantity[item]
    return work, ITEMS

def changing(names=("quantity",), rules=1, parameter=False):
    db, items, suppliers = watched(rules, parameter)
    functions = [db.function(name) for name in names]
    keys = [[i, (i, s), i][:len(names)] for i, s in zip(items, suppliers)][:CHANGES]
    values = [1000, 7, 20]
    def work(turn):
        for number, each in enumerate(keys):
            with db.transaction():
                for function, key, value in zip(functions, each, values):
                    function[key] = value - turn % 2
                if number % 100 == 0:  # every second turn orders it
                    functions[0][each[0]] = 1000 * (turn % 2)
    return work, len(keys)

KINDS = {
    "point-write": writing,
    "point-read": reading,
    "inventory-1": changing,
    "inventory-2": lambda: changing(("quantity", "delivery_time")),
    "inventory-3": lambda: changing(("quantity", "delivery_time", "consume_frequency")),
    "one-rule": changing,
    "many-rules": lambda: changing(rules=RULES),
    "many-activations": lambda: changing(rules=RULES, parameter=True),
}
work, turn = None, 0
for line in sys.stdin:
    name = line.strip()
    if name:
        work, count = KINDS[name]()
    turn += 1
    gc.collect()
    started = time.process_time()
    work(turn)
    print((time.process_time() - started) / count, flush=True)
"""
"""A program that other versions of Harken run, too. It reads what to prepare from a line, and does
it once for each empty line."""

Ask: TypeAlias = "partial[float]"


def figures(
    python: str, rounds: int = 15, items: int = 10_000, rules: int = 1_000
) -> Iterator[Figure]:
    params = {"items": items, "rules": rules}
    with ExitStack() as stack:
        ours, theirs = (
            stack.enter_context(_worker(each, items, rules)) for each in (sys.executable, python)
        )
        for name in WORK:
            yield from _compared(name, ours, theirs, rounds, params)


def _compared(
    name: str, ours: Ask, theirs: Ask, rounds: int, params: dict[str, int]
) -> Iterator[Figure]:
    for prepare in (ours, theirs):  # the first turn warms up
        prepare(name)
        prepare()
    pairs = []
    for number in range(rounds):
        order = (ours, theirs) if number % 2 else (theirs, ours)
        took = {id(each): each() for each in order}
        pairs.append((took[id(ours)], took[id(theirs)]))
    figure = partial(Figure, f"beside-{name}", params=params)
    for measure, seconds in zip(("harken µs", "other µs"), zip(*pairs, strict=True), strict=True):
        yield figure(measure, statistics.median(seconds) * 1e6)
    yield figure("harken/other", statistics.median(a / b for a, b in pairs), needs=NEEDS)


@contextmanager
def _worker(python: str, items: int, rules: int) -> Iterator[Ask]:
    """Ask a process of this interpreter for the seconds that its work takes."""
    command = [python, "-c", PROGRAM, str(items), str(rules)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield partial(_ask, process.stdin, process.stdout)
        process.stdin.close()


def _ask(requests: IO[str], answers: IO[str], prepare: str = "") -> float:
    requests.write(f"{prepare}\n")
    return float(answers.readline())


if __name__ == "__main__":
    for found in figures(sys.argv[1], *map(int, sys.argv[2:])):
        print(found.json_line(), flush=True)
