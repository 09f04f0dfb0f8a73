"""`harken bench point`: one value at a time, against the same updates and reads through apsw.

The baseline is a bare table, `item INTEGER PRIMARY KEY, quantity INTEGER`, without a foreign key,
for someone who needs none of Harken's checks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import apsw

import harken
from harken.bench import baseline
from harken.bench.figures import Figure, Work, compare, median_seconds

SCHEMA = "create type item properties (quantity integer); commit;"
TABLE = "CREATE TABLE stock (item INTEGER PRIMARY KEY, quantity INTEGER NOT NULL) STRICT"
UPDATE = "UPDATE stock SET quantity = ?1 WHERE item = ?2"
SELECT = "SELECT quantity FROM stock WHERE item = ?"

Changes = list[tuple[harken.Object, int]]


def figures(items: int = 100_000, rounds: int = 7) -> Iterator[Figure]:
    with baseline.directory() as directory:
        for where, ours, theirs in (
            ("memory", ":memory:", ":memory:"),
            ("file", str(directory / "harken.db"), str(directory / "plain.db")),
        ):
            with harken.connect(ours) as db, closing(baseline.connect(theirs)) as plain:
                yield from _measure(db, plain, {"items": items, "database": where}, rounds)


def _measure(
    db: harken.Database, plain: apsw.Connection, params: dict[str, Any], rounds: int
) -> Iterator[Figure]:
    """As many updates as there are items, at random places, in one transaction."""
    stock = _fill(db, plain, params["items"])
    changes = _changes(stock)
    items = [item for item, _ in changes]
    oids = [item.oid for item in items]
    writes = partial(_write_ours, db, changes), partial(_write_plain, plain, changes)
    reads = partial(_read_ours, db, items), partial(_read_plain, plain, oids)
    grouped = partial(_in_transaction, db, reads[0]), partial(_in_block, plain, reads[1])
    for name, (ours, theirs) in (
        ("point-write", writes),
        ("point-read", grouped),
        ("point-read-alone", reads),
    ):
        timing = compare(ours, theirs, rounds)
        yield Figure(name, "harken µs", timing.ours / len(items) * 1e6, params)
        yield Figure(name, "apsw µs", timing.theirs / len(items) * 1e6, params)
        yield Figure(name, "harken/apsw", timing.ratio, params, needs="<= 4")
    if reads[0]() != reads[1]():
        raise AssertionError("the two ways disagree about the quantities")
    yield from _text_figures(db, changes, params, rounds)


def _fill(db: harken.Database, plain: apsw.Connection, items: int) -> Sequence[harken.Object]:
    db.amosql(SCHEMA)
    stock = db.load("item", ((0,) for _ in range(items)), properties=["quantity"])
    with plain:
        plain.execute(TABLE)
        plain.executemany("INSERT INTO stock VALUES (?, 0)", ((item.oid,) for item in stock))
    return stock


def _changes(stock: Sequence[harken.Object]) -> Changes:
    chance = random.Random(1)
    places = chance.choices(range(len(stock)), k=len(stock))
    return [(stock[place], chance.randrange(10_000)) for place in places]


def _write_ours(db: harken.Database, changes: Changes) -> None:
    quantity = db.function("quantity")
    with db.transaction():
        for item, value in changes:
            quantity[item] = value


def _write_plain(plain: apsw.Connection, changes: Changes) -> None:
    execute = plain.execute
    execute("BEGIN IMMEDIATE")
    for item, value in changes:
        execute(UPDATE, (value, item.oid))
    execute("COMMIT")


def _read_ours(db: harken.Database, items: list[harken.Object]) -> list[int]:
    quantity = db.function("quantity")
    return [quantity[item] for item in items]


def _read_plain(plain: apsw.Connection, oids: list[int]) -> list[int]:
    execute = plain.execute
    return [execute(SELECT, (oid,)).get for oid in oids]


def _in_transaction(db: harken.Database, work: Work) -> None:
    with db.transaction():
        work()


def _in_block(plain: apsw.Connection, work: Work) -> None:
    with plain:
        work()


# --- the same through program text ---------------------------------------------------------


def _text_figures(
    db: harken.Database, changes: Changes, params: dict[str, Any], rounds: int
) -> Iterator[Figure]:
    """Many statements of one shape in one text, and each as a text of its own."""
    few = changes[: max(1, len(changes) // 10)]
    for number, (item, _) in enumerate(few):
        db.assign(f"x{number}", item)
    texts = [f"set quantity(:x{n}) = {value};" for n, (_, value) in enumerate(few)]
    whole = " ".join(texts)
    together = median_seconds(partial(_run_texts, db, [whole]), rounds) / len(few)
    apart = median_seconds(partial(_run_texts, db, texts), rounds) / len(few)
    yield Figure("point-text", "µs a statement, in one text", together * 1e6, params)
    yield Figure("point-text", "statements a second, in one text", 1 / together, params)
    yield Figure("point-text", "µs a statement, each a text", apart * 1e6, params)


def _run_texts(db: harken.Database, texts: list[str]) -> None:
    for text in texts:
        db.amosql(text)
    db.commit()
