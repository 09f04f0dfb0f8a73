"""Numbered transactions on a database, and what it must hold after the first n of them.

Each one changes several functions and creates objects; some delete objects, change the schema, load
in bulk or are followed by work that is rolled back. `Ledger` is the same in plain Python, so a
database that was cut off at any moment can be compared with the n that its `counter()` tells.

Run as a script it is a server of writers: it forks one for each path on standard input, and the
writer runs transactions for ever, reporting each on a pipe after its commit has returned.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import harken

SCHEMA = """
create type account properties (name charstring, balance integer);
create type gold subtype of account;
create function counter() -> integer;
create function tags(account) -> bag of integer;
create function owes(account, account) -> integer;
create function twice(account a) -> integer as select balance(a) * 2;
create function total() -> integer as select sum(select balance(a) for each account a);
create function named(charstring n) -> account a as select a where name(a) = n;
create function rich(account) -> integer;
create rule enrich() as for each account a when balance(a) > 5 do set rich(a) = balance(a);
create function pay(account a, integer n) -> boolean as set balance(a) = balance(a) + n;
"""


def transaction(db: harken.Database, k: int) -> None:
    """The k-th transaction; the 0th makes the schema. The caller commits."""
    if k == 0:
        db.amosql(SCHEMA + "activate enrich(); set counter() = 0;")
        return
    db.amosql(f"""
        create {"gold" if k % 2 else "account"}(name, balance) instances :new("n{k}", {k});
        add tags(:new) = {k};
        add tags(:new) = {k};
        add tags(:new) = {k + 1};
        for each account a where a = named("n{k - 1}") do begin
            pay(a, {k});
            set owes(:new, a) = {k};
        end;
    """)
    if k % 3 == 0:
        db.amosql(f'for each account a where a = named("n{k - 2}") do delete a;')
    if k % 4 == 1:
        db.amosql(f"""
            create type extra{k} subtype of gold properties (weight{k} integer);
            create function heavy{k}(extra{k} e) -> integer as select weight{k}(e) + balance(e);
            create extra{k}(name, balance, weight{k}) instances :extra("e{k}", 1, {k});
        """)
    if k % 4 == 3:
        db.amosql(f"""
            for each extra{k - 2} e do delete e;
            delete function heavy{k - 2};
            delete type extra{k - 2};
        """)
    if k % 5 == 0:
        loaded = [(f"l{k}.{i}", i) for i in range(200)]
        db.load("account", loaded, ["name", "balance"])
    if k % 5 == 1:
        db.amosql('for each account a where like(name(a), "l%") do delete a;')
    db.function("counter")[()] = k


def abandoned(db: harken.Database, k: int) -> None:
    """Work that is rolled back and must leave no trace."""
    db.amosql(f"""
        create type never{k} subtype of account properties (nothing{k} integer);
        create never{k}(name, balance) instances :never("never", 1000000);
        for each account a do set balance(a) = -1;
        for each gold g do delete g;
        set counter() = 1000000;
    """)
    db.rollback()


@dataclass
class Ledger:
    """The state after the first `n` transactions, by the names of the accounts."""

    types: dict[str, str] = field(default_factory=dict)
    balances: dict[str, int] = field(default_factory=dict)
    tags: Counter[tuple[str, int]] = field(default_factory=Counter)
    owes: dict[tuple[str, str], int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    rich: dict[str, int] = field(default_factory=dict)
    extra_types: set[str] = field(default_factory=set)
    n: int = -1

    def advance(self) -> None:
        self.n += 1
        k = self.n
        poor = {name for name, balance in self.balances.items() if balance <= 5}
        known = set(self.balances)
        if k > 0:
            self._transaction(k)
        for name, balance in self.balances.items():
            if balance > 5 and (name in poor or name not in known):
                self.rich[name] = balance

    def _transaction(self, k: int) -> None:
        new, before = f"n{k}", f"n{k - 1}"
        self._create(new, "gold" if k % 2 else "account", k)
        self.tags.update({(new, k): 2, (new, k + 1): 1})
        if before in self.types:
            self.balances[before] += k
            self.owes[new, before] = k
        if k % 3 == 0:
            self._delete(f"n{k - 2}")
        if k % 4 == 1:
            self.extra_types.add(f"extra{k}")
            self._create(f"e{k}", f"extra{k}", 1)
            self.weights[f"e{k}"] = k
        if k % 4 == 3:
            self.extra_types.discard(f"extra{k - 2}")
            self._delete(f"e{k - 2}")
        if k % 5 == 0:
            for i in range(200):
                self._create(f"l{k}.{i}", "account", i)
        if k % 5 == 1:
            for name in [name for name in self.types if name.startswith("l")]:
                self._delete(name)

    def _create(self, name: str, type_: str, balance: int) -> None:
        self.types[name] = type_
        self.balances[name] = balance

    def _delete(self, name: str) -> None:
        if self.types.pop(name, None) is None:
            return
        del self.balances[name]
        self.weights.pop(name, None)
        self.rich.pop(name, None)
        self.tags = Counter({key: n for key, n in self.tags.items() if key[0] != name})
        self.owes = {key: n for key, n in self.owes.items() if name not in key}

    def answers(self) -> dict[str, Any]:
        """What `answers` below gives for a database in this state."""
        return {
            "types": sorted(self.types.items()),
            "balances": sorted(self.balances.items()),
            "twice": sorted((name, 2 * n) for name, n in self.balances.items()),
            "total": [(sum(self.balances.values()),)],
            "tags": sorted(self.tags.elements()),
            "owes": sorted((*pair, n) for pair, n in self.owes.items()),
            "rich": sorted(self.rich.items()),
            "heavy": sorted((name, n + self.balances[name]) for name, n in self.weights.items()),
            "user types": sorted({"account", "gold"} | self.extra_types),
        }


def ledger_after(n: int) -> Ledger:
    ledger = Ledger()
    while ledger.n < n:
        ledger.advance()
    return ledger


def answers(db: harken.Database) -> dict[str, Any]:
    def rows(text: str) -> list[tuple[Any, ...]]:
        return sorted(db.amosql(text).rows)

    user_types = [
        name
        for (name,) in rows("select name(t) for each type t;")
        if name in ("account", "gold") or name.startswith(("extra", "never"))
    ]
    heavy = []
    for name in user_types:
        if name.startswith("extra"):
            number = name.removeprefix("extra")
            heavy += rows(f"select name(e), heavy{number}(e) for each {name} e;")
    return {
        "types": rows("select name(a), name(typesof(a)) for each account a;"),
        "balances": rows("select name(a), balance(a) for each account a;"),
        "twice": rows("select name(a), twice(a) for each account a;"),
        "total": rows("total();"),
        "tags": sorted(
            (name, tag)
            for (name, account) in db.amosql("select name(a), a for each account a;").rows
            for tag in db.function("tags")[account]
        ),
        "owes": rows("select name(a), name(b), owes(a, b) for each account a, account b;"),
        "rich": rows("select name(a), rich(a) for each account a;"),
        "heavy": sorted(heavy),
        "user types": user_types,
    }


def committed(db: harken.Database) -> int:
    """How many transactions the database holds; -1 before the first."""
    try:
        value = db.function("counter").get((), -1)
    except harken.NameFault:
        return -1
    return int(value)


def told(db: harken.Database) -> Counter[tuple[Any, ...]]:
    """What all changes that a durable monitor of `twice` has recorded add up to. It began, or
    begins now, when there were no accounts."""
    total: Counter[tuple[Any, ...]] = Counter()
    with db.monitor("twice", durable="copy") as monitor:
        for change in monitor.changes():
            total.update(change.plus)
            total.subtract(change.minus)
    assert min(total.values(), default=0) >= 0
    return +total


def write_for_ever(path: str, report: int, engine: str) -> None:
    db = harken.connect(path, engine=engine)
    k = committed(db) + 1
    if k == 0:
        transaction(db, 0)
        db.commit()
        os.write(report, b"0\n")
        k = 1
    told(db)
    if k % 2:
        # Checkpoints are rare moments: make them common for half of the writers.
        db.internals.connection.raw.pragma("wal_autocheckpoint", 5)
    while True:
        transaction(db, k)
        db.commit()
        os.write(report, f"{k}\n".encode())
        if k % 6 == 4:
            abandoned(db, k)
        k += 1


def serve(run: Callable[[str, int, str], None]) -> None:
    """Fork a writer for each path; a line `dead` follows the last report of one that was killed."""
    report, engine = int(sys.argv[1]), sys.argv[2]
    transaction(harken.connect(), 0)
    if engine == "lake":
        importlib.import_module(
            "harken.engines.placement.placed_relation"
        )  # takes a second; here only once
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(line.rstrip("\n"), report, engine)
        os.write(report, f"started {child}\n".encode())
        os.waitpid(child, 0)
        os.write(report, b"dead\n")


if __name__ == "__main__":
    serve(write_for_ever)
