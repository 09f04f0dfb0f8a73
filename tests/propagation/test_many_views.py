"""Many monitored views at once: a change is work for the views that it reaches, and what several
of them are defined by is computed once. Counted in SQLite's instructions and in lines of the trace,
so without a clock."""

from __future__ import annotations

import harken
from harken import Database

VIEWS = 80


def shop() -> Database:
    """For each of many shops its stock and orders, and the orders that it cannot fill."""
    db = harken.connect()
    db.datalog(
        "\n".join(
            f".decl stock{n}(item: number, quantity: number)\n"
            f".decl order{n}(id: number, item: number, amount: number)\n"
            f".decl filled{n}(id: number)\n.decl broken{n}(id: number)\n"
            f"stock{n}(7, 10). stock{n}(8, 10).\n"
            f"filled{n}(i) :- order{n}(i, x, a), stock{n}(x, q), q >= a.\n"
            f"broken{n}(i) :- order{n}(i, _, _), !filled{n}(i)."
            for n in range(VIEWS)
        )
    )
    return db


def work(db: Database, text: str) -> int:
    """The instructions that it takes, in tens."""
    ticks = 0

    def tick() -> bool:
        nonlocal ticks
        ticks += 1
        return False

    db.internals.connection.raw.set_progress_handler(tick, 10)
    db.sql(text)
    return ticks


def test_a_change_is_work_for_the_view_that_it_reaches() -> None:
    with shop() as db:
        subs = {40: db.monitor("broken40", keep=True)}
        work(db, "INSERT INTO order40 VALUES (1, 7, 3)")  # the first time makes what it needs
        alone = work(db, "INSERT INTO order40 VALUES (2, 7, 30)")
        for number in range(VIEWS):
            subs[number] = db.monitor(f"broken{number}", keep=True)
        work(db, "INSERT INTO order40 VALUES (3, 7, 3)")
        traced: list[str] = []
        db.trace(traced.append)
        among = work(db, "INSERT INTO order40 VALUES (4, 7, 30)")
        assert len([line for line in traced if line.startswith("Δmonitored")]) == 1
        assert {number for number, sub in subs.items() if sub.changes()} == {40}
    assert among <= 1.1 * alone


def test_what_views_share_is_computed_once() -> None:
    with harken.connect() as db:
        views = "".join(
            f".decl over{n}(x: number)\nover{n}(x) :- hop(x, y), y > {n}00.\n" for n in range(VIEWS)
        )
        db.datalog(
            ".decl edge(x: number, y: number)\n.decl hop(x: number, y: number)\n"
            f"edge(1, 2). hop(x, z) :- edge(x, y), edge(y, z).\n{views}"
        )
        subs = [db.monitor(f"over{number}") for number in range(VIEWS)]
        traced: list[str] = []
        db.trace(traced.append)
        db.datalog("+edge(2, 150).")
        assert [number for number, sub in enumerate(subs) if sub.changes()] == [0, 1]
        assert len([line for line in traced if line.startswith("Δhop() from")]) == 1
        assert all(" from hop() " in line for line in traced if line.startswith("Δmonitored"))
