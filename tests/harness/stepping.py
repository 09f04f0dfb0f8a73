"""A pipeline over inputs that others change, and all that tells whether it took each change once.

`Inputs` are a Delta table and a directory of CSV files; both have a row `clock` that says how often
they were changed. `seen` is what a database makes of them: two that took the same states in, one
step each, see the same, to the last number of a transaction.

Run as a script it is a server of pipelines, as `ledger` is one of writers: each reports 0 once it
is open, and then each step that found something.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

import harken
from harken import Database
from harken.engines import fetch_limits as limits
from tests.harness.ledger import serve

ITEMS = ("pen", "ink", "nib", "pad", "cap", "box")
PROGRAM = """
create function sold(charstring i) -> integer as
    select sum(select a for each integer r, integer a where sale(r) = <i, a>);
create function low() -> bag of <charstring item, integer version, integer quantity> as
    select i, v, q for each charstring i, integer q, integer v
    where stock(i) = <q, v> and q - sold(i) < 10;
create function ordered() -> bag of <charstring item, integer version, integer quantity>;
create function times(charstring item) -> integer;
create function latest(charstring item) -> integer version stored in lake;
create rule order_more() as
    when for each charstring i, integer v, integer q
        where stock(i) = <q, v> and q - sold(i) < 10
    do begin
        add ordered() = <i, v, q>;
        set times(i) = times(i) + 1;
        set latest(i) = v;
    end;
commit;
"""


class Inputs:
    """What someone else writes: the stock of each item, and files of sales that come and go."""

    def __init__(self, directory: Path, chance: Random) -> None:
        self.stock, self.sales = directory / "stock", directory / "sales"
        self.state = 0
        self._chance = chance
        self._rows = {item: (chance.randrange(20), 0) for item in ITEMS}
        self._files: list[str] = []
        self.sales.mkdir()
        self._write_sales("all", [(number, item, 0) for number, item in enumerate(ITEMS, 1)])
        self._write()

    def change(self) -> None:
        """Some items have another quantity or are gone, and some file of sales is another."""
        self.state += 1
        for item in self._chance.sample(ITEMS, 2):
            self._rows[item] = (self._chance.randrange(20), self.state)
        if self._chance.random() < 0.2:
            self._rows.pop(self._chance.choice(ITEMS), None)
        match self._chance.randrange(3):
            case 0 if self._files:
                name = self._files.pop(self._chance.randrange(len(self._files)))
                (self.sales / f"{name}.csv").unlink()
            case 1 if self._files:
                self._write_some_sales(self._chance.choice(self._files))
            case _:
                self._files.append(str(self.state))
                self._write_some_sales(self._files[-1])
        self._write()

    def _write_some_sales(self, name: str) -> None:
        first = 100 * int(name)
        items = self._chance.sample(ITEMS, 2)
        self._write_sales(
            name, [(first + n, item, self._chance.randrange(8)) for n, item in enumerate(items)]
        )

    def _write_sales(self, name: str, rows: list[tuple[int, str, int]]) -> None:
        draft = self.sales / f".{name}"
        lines = [",".join(map(str, row)) for row in rows]
        draft.write_text("\n".join(["receipt,item,amount", *lines, ""]))
        draft.rename(self.sales / f"{name}.csv")

    def _write(self) -> None:
        self._write_sales("clock", [(0, "clock", self.state)])
        rows = {**self._rows, "clock": (1_000_000, self.state)}
        table = pa.table(
            {
                "item": list(rows),
                "quantity": [quantity for quantity, _ in rows.values()],
                "version": [version for _, version in rows.values()],
            }
        )
        write_deltalake(self.stock, table, mode="overwrite")


def prepare(db: Database, inputs: Inputs) -> None:
    db.lake("stock", inputs.stock, key=["item"])
    db.lake("sale", inputs.sales, key=["receipt"])
    db.amosql(PROGRAM)
    for item in ITEMS:
        db.function("times")[item] = 0
    db.commit()
    db.monitor("low", durable="reports").close()
    db.amosql("activate order_more(); commit;")


def state(db: Database) -> int:
    """The state of the inputs that was taken in: of both the same, or the step was torn."""
    ((stock, sales),) = db.amosql(
        "select v, a for each integer q, integer v, integer a "
        'where stock("clock") = <q, v> and sale(0) = <"clock", a>;'
    ).rows
    assert stock == sales
    return int(stock)


def seen(db: Database) -> dict[str, Any]:
    with db.monitor("low", durable="reports") as monitor:
        told = [(c.transaction, sorted(c.plus), sorted(c.minus)) for c in monitor.changes()]
    return {
        "state": state(db),
        "low": Counter(db.amosql("low();").rows),
        "ordered": Counter(db.amosql("ordered();").rows),
        "times": dict(db.amosql("select i, times(i) for each charstring i;").rows),
        "latest": dict(db.amosql("select i, latest(i) for each charstring i;").rows),
        "fired": db.amosql("select name(r), fired(r) for each rule r;").rows,
        "told": told,
    }


def step_for_ever(path: str, report: int, engine: str) -> None:
    limits.COMPACT_EVERY = 4  # rare moments are to be common
    db = harken.connect(path)
    os.write(report, b"0\n")
    steps = 0
    while True:
        if db.step().taken:
            steps += 1
            os.write(report, f"{steps}\n".encode())


if __name__ == "__main__":
    serve(step_for_ever)
