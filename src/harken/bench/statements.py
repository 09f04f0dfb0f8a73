"""`harken bench statements`: one small statement at a time, each a transaction of its own, beside
SQLite by hand and a PostgreSQL server of this machine.

Where Harken's database is in memory, PostgreSQL does not wait for its disk either
(`synchronous_commit = off`); where it is a file, both wait for the disk at each commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any

import apsw

import harken
from harken.bench import baseline
from harken.bench.figures import Figure, compare
from harken.bench.postgres import NoPostgres, postgres

COLUMNS = ("id", "shop", "kind", "amount")
STATEMENTS = {
    "update": "UPDATE sale SET amount = {3} WHERE id = {0}",
    "insert": "INSERT INTO sale VALUES ({0}, {1}, {2}, {3})",
    "select": "SELECT id, shop, kind, amount FROM sale WHERE id = {0}",
    "delete": "DELETE FROM sale WHERE id = {0}",
}
NEEDED = {"parameters": "<= 0.4", "text": "<= 1"}
TURN = 400
"""Statements in a turn."""
FIRST_NEW = 10**9
"""The first key that no row has at the start."""

Values = tuple[Any, ...]
Run = Callable[[str, Values | None], object]


@dataclass(frozen=True, slots=True)
class Side:
    """Someone who runs statements. `mark` is what a parameter is written as; `new` are keys that
    are not there yet, `gone` those that go next."""

    run: Run
    mark: str = "?"
    new: Iterator[int] = field(default_factory=lambda: count(FIRST_NEW))
    gone: Iterator[int] = field(default_factory=lambda: count(FIRST_NEW))


def figures(items: int = 100_000, rounds: int = 7) -> Iterator[Figure]:
    with baseline.directory() as directory:
        for where in ("memory", "file"):
            paths = (
                (":memory:", ":memory:")
                if where == "memory"
                else (str(directory / "harken.db"), str(directory / "plain.db"))
            )
            with ExitStack() as stack:
                db = stack.enter_context(harken.connect(paths[0]))
                plain = stack.enter_context(closing(baseline.connect(paths[1])))
                others = {"sqlite": _sqlite(plain, items)}
                try:
                    server = stack.enter_context(postgres())
                    others["postgresql"] = _postgres(server, items, where)
                except NoPostgres as reason:
                    print(f"left out beside PostgreSQL: {reason}")
                ours = _ours(db, items)
                yield from _compared(ours, others, {"items": items, "database": where}, rounds)


def _rows(items: int) -> list[Values]:
    return [(i, i % 100, i % 10, i) for i in range(items)]


def _ours(db: harken.Database, items: int) -> Side:
    db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, kind INT, amount INT)")
    db.load("sale", _rows(items))
    return Side(lambda text, values: db.sql(text, values))


def _sqlite(plain: apsw.Connection, items: int) -> Side:
    plain.execute(
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, shop INT, kind INT, amount INT) STRICT"
    )
    with plain:
        plain.executemany("INSERT INTO sale VALUES (?, ?, ?, ?)", _rows(items))
    return Side(lambda text, values: plain.execute(text, values or ()).fetchall())


def _postgres(server: Any, items: int, where: str) -> Side:
    server.execute("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, kind INT, amount INT)")
    with server.cursor() as cursor, cursor.copy("COPY sale FROM STDIN") as copy:
        for row in _rows(items):
            copy.write_row(row)
    server.execute("ANALYZE sale")
    if where == "memory":
        server.execute("SET synchronous_commit = off")

    def run(text: str, values: Values | None) -> None:
        cursor = server.execute(text, values)
        if cursor.description:
            cursor.fetchall()

    return Side(run, "%s")


def _compared(
    ours: Side, others: dict[str, Side], params: dict[str, Any], rounds: int
) -> Iterator[Figure]:
    where = params["database"]
    for name in STATEMENTS:
        for how, needs in NEEDED.items():
            for whose, side in others.items():
                work = _turns(ours, name, how, params), _turns(side, name, how, params)
                timing = compare(*work, rounds)
                figure = partial(Figure, f"statements-{name}", params={**params, "how": how})
                yield figure(f"harken µs, beside {whose}", timing.ours / TURN * 1e6)
                yield figure(f"{whose} µs", timing.theirs / TURN * 1e6)
                asked = needs if (whose, where) == ("postgresql", "memory") else None
                yield figure(f"harken/{whose}", timing.ratio, needs=asked)


def _turns(side: Side, name: str, how: str, params: dict[str, Any]) -> Callable[[], None]:
    """Runs `TURN` statements with other values each time. What is inserted is new; what is deleted
    was inserted before."""
    chance = Random(1)
    template = STATEMENTS[name]
    marks = template.format(*[side.mark] * 4)
    order = [int(part[0]) for part in template.split("{")[1:]]

    def key() -> int:
        if name == "insert":
            return next(side.new)
        return next(side.gone) if name == "delete" else chance.randrange(params["items"])

    def turn() -> None:
        for _ in range(TURN):
            place = key()
            row = (place, place % 100, place % 10, chance.randrange(1_000_000))
            if how == "text":
                side.run(template.format(*row), None)
            else:
                side.run(marks, tuple([row[i] for i in order]))

    return turn
