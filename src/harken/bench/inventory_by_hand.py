"""Benchmark 1 of the thesis written by hand for SQLite by an expert in its planner.

The same tables as Harken's, a trigger that records the Δ of `quantity`, and both partial
differentials of the condition: what it may have gained from the new quantities, and what it may
have lost with the old ones. Nothing else is checked, so nothing else costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import harken
from harken.bench import baseline, inventory

SCHEMA = """
CREATE TABLE object (c0 INTEGER PRIMARY KEY) STRICT;
CREATE TABLE item (
    c0 INTEGER PRIMARY KEY, FOREIGN KEY (c0) REFERENCES object (c0) ON DELETE CASCADE) STRICT;
CREATE TABLE supplier (
    c0 INTEGER PRIMARY KEY, FOREIGN KEY (c0) REFERENCES object (c0) ON DELETE CASCADE) STRICT;
CREATE TABLE quantity (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 INTEGER NOT NULL) STRICT;
CREATE TABLE max_stock (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 INTEGER NOT NULL) STRICT;
CREATE TABLE min_stock (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 INTEGER NOT NULL) STRICT;
CREATE TABLE consume_frequency (
    c0 INTEGER PRIMARY KEY REFERENCES item (c0) ON DELETE CASCADE, c1 INTEGER NOT NULL) STRICT;
CREATE TABLE supplies (
    c0 INTEGER PRIMARY KEY REFERENCES supplier (c0) ON DELETE CASCADE,
    c1 INTEGER NOT NULL REFERENCES item (c0) ON DELETE CASCADE) STRICT;
CREATE TABLE delivery_time (
    c0 INTEGER NOT NULL REFERENCES item (c0) ON DELETE CASCADE,
    c1 INTEGER NOT NULL REFERENCES supplier (c0) ON DELETE CASCADE,
    c2 INTEGER NOT NULL, PRIMARY KEY (c0, c1)) STRICT, WITHOUT ROWID;
CREATE INDEX supplied ON supplies (c1);
"""
EVENTS = """
CREATE TEMP TABLE delta (c0 INTEGER, c1 INTEGER, weight INTEGER);
CREATE TEMP TRIGGER quantity_changed AFTER UPDATE ON main.quantity BEGIN
    INSERT INTO delta VALUES (OLD.c0, OLD.c1, -1), (NEW.c0, NEW.c1, 1);
END;
"""

UPDATE = "UPDATE quantity SET c1 = ? WHERE c0 = ?"
CLEAR = "DELETE FROM delta"
ORDER = "SELECT m.c1 - q.c1 FROM max_stock m JOIN quantity q USING (c0) WHERE c0 = ?"


def differential(weight: int) -> str:
    """The items for which the condition holds with a changed quantity of this weight.

    The weight is part of the text: SQLite plans a statement again whenever a parameter is bound
    that may matter to the plan. CROSS JOIN keeps the joins in this order.
    """
    return f"""
        SELECT d.c0 FROM delta d
        CROSS JOIN supplies s ON s.c1 = d.c0
        CROSS JOIN delivery_time t ON t.c0 = d.c0 AND t.c1 = s.c0
        CROSS JOIN consume_frequency f ON f.c0 = d.c0
        CROSS JOIN min_stock m ON m.c0 = d.c0
        WHERE d.weight = {weight} AND d.c1 < f.c1 * t.c2 + m.c1
    """


GAINED, LOST = differential(1), differential(-1)


class ByHand:
    """The inventory in tables of its own, with the numbers that Harken gave the objects."""

    def __init__(
        self,
        items: Sequence[harken.Object],
        suppliers: Sequence[harken.Object],
        order: Callable[[Any, Any], None],
    ) -> None:
        self.connection = baseline.connect(":memory:")
        self.connection.execute(SCHEMA)
        self._order = order
        self._fill([item.oid for item in items], [supplier.oid for supplier in suppliers])
        self.connection.execute(EVENTS)

    def _fill(self, items: list[int], suppliers: list[int]) -> None:
        stock = [inventory.stock_row(number) for number in range(len(items))]
        pairs = list(zip(items, suppliers, strict=True))
        with self.connection:
            self._insert("object", [(oid,) for oid in (*items, *suppliers)])
            self._insert("item", [(oid,) for oid in items])
            self._insert("supplier", [(oid,) for oid in suppliers])
            for table, values in zip(inventory.PROPERTIES, zip(*stock, strict=True), strict=True):
                self._insert(table, list(zip(items, values, strict=True)))
            self._insert("supplies", [(supplier, item) for item, supplier in pairs])
            self._insert(
                "delivery_time", [(*pair, inventory.days(n)) for n, pair in enumerate(pairs)]
            )

    def _insert(self, table: str, rows: list[tuple[int, ...]]) -> None:
        places = ", ".join("?" for _ in rows[0])
        self.connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def set_quantity(self, item: int, value: int) -> None:
        """One transaction: the change, its consequences, the action, the commit."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        execute(UPDATE, (value, item))
        gained, lost = execute(GAINED).fetchall(), execute(LOST).fetchall()
        for row in gained:
            if row not in lost:
                for (amount,) in execute(ORDER, row):
                    self._order(row[0], amount)
        execute(CLEAR)
        execute("COMMIT")

    def close(self) -> None:
        self.connection.close()
