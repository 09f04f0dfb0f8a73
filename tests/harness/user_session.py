"""A whole database over a session of the user's, classic or Spark Connect.

Law: what Spark answers is what SQLite answers from the same lake, and the session is afterwards as
it was: its settings, its views, and that it runs.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken
from harken.engines import fetch_limits as limits

ITEMS = [f"i{number}" for number in range(40)]
MOMENT = datetime.datetime(2001, 2, 3, 23, 5, 6, 789, datetime.UTC)

PROGRAM = """
create function grade(integer n) -> integer as foreign;
create function total(integer s) -> integer as
    select sum(select q for each charstring i, integer q where stock(i) = q and supplier(i) = s);
create function inside(charstring i) -> charstring j as
    select j where j = part(i) or j = part(inside(i));
create function least(charstring item) -> integer;
create function low() -> bag of <charstring item, integer quantity> as
    select i, q for each charstring i, integer q where stock(i) = q and q < least(i);
create function ordered(charstring item) -> integer;
commit;
"""
RULE = """
create rule order_more() as
    when for each charstring i, integer q where stock(i) = q and q < least(i)
    do set ordered(i) = least(i) - q;
activate order_more();
commit;
"""
QUERIES = (
    "low();",
    "select s, total(s) for each charstring i, integer s where supplier(i) = s;",
    "select i, upper(i), grade(q) for each charstring i, integer q where stock(i) = q and q > 20;",
    'select j for each charstring j where inside("i30") = j;',
    'select i, t for each charstring i, timestamp t where checked(i) = t and t > checked("i3");',
    "select i for each charstring i where supplier(i) = 3 and notany(ordered(i));",
)


def check(session: Any, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    with left_alone(session), harken.connect(directory / "shop.db", spark=session) as db:
        stock = {item: number for number, item in enumerate(ITEMS)}
        make(db, directory, stock)
        check_queries(db)
        check_steps(db, directory, stock)
        check_queries(db)


@contextmanager
def left_alone(session: Any) -> Iterator[None]:
    settings, views = session.conf.getAll, session.catalog.listTables()
    yield
    assert session.conf.getAll == settings
    assert session.catalog.listTables() == views
    assert session.range(3).count() == 3


def make(db: harken.Database, directory: Path, stock: dict[str, int]) -> None:
    write(directory, stock)
    db.lake("stock", directory / "stock", key=["item"])
    supplier = {"item": ITEMS, "supplier": [number % 7 for number in range(len(ITEMS))]}
    db.lake("supplier", pa.table(supplier), key=["item"])
    wholes = [ITEMS[number // 3] for number in range(1, len(ITEMS))]
    db.lake("part", pa.table({"item": ITEMS[1:], "of": wholes}), key=["item"])
    times = [MOMENT + datetime.timedelta(hours=number) for number in range(len(ITEMS))]
    db.lake("checked", pa.table({"item": ITEMS, "time": times}), key=["item"])
    db.amosql(PROGRAM)
    db.foreign("grade", lambda n: n // 10)
    with db.transaction():
        db.function("least").update(dict.fromkeys(ITEMS, 5))
    db.amosql(RULE)


def write(directory: Path, stock: dict[str, int]) -> None:
    rows = pa.table({"item": list(stock), "quantity": list(stock.values())})
    write_deltalake(directory / "stock", rows, mode="overwrite")


def check_queries(db: harken.Database) -> None:
    for text in QUERIES:
        answers = {}
        for forced in ("spark", "resident"):
            before = db.internals.engine.tally.copy()
            db.internals.engine.forced = forced
            answers[forced] = Counter(db.amosql(text).rows)
            asked = db.internals.engine.tally.since(before).queries
            assert bool(asked) == (forced == "spark"), text
        db.internals.engine.forced = None
        assert answers["spark"] == answers["resident"], text
        assert answers["spark"], text


def check_steps(db: harken.Database, directory: Path, stock: dict[str, int]) -> None:
    """Two steps whose changes are too large to be held here, and a small one."""
    monitor = db.monitor("low")
    now = dict(db.amosql("low();").rows)
    for number, most_held in enumerate((0, 0, 100_000)):
        for item in ITEMS[number::3]:
            stock[item] = (stock[item] * 7 + 3) % 40
        write(directory, stock)
        before = db.internals.engine.tally.copy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "MOST_HELD", most_held)
            step = db.step()
        low = {item: quantity for item, quantity in stock.items() if quantity < 5}
        assert step.fired == {"order_more": len(low.items() - now.items())}
        assert bool(db.internals.engine.tally.since(before).queries) == (most_held == 0)
        (change,) = monitor.changes()
        assert set(change.plus) == low.items() - now.items()
        assert set(change.minus) == now.items() - low.items()
        ordered = dict(db.amosql("select i, ordered(i) for each charstring i;").rows)
        assert ordered.items() >= {item: 5 - quantity for item, quantity in low.items()}.items()
        now = low
    monitor.close()
