"""The inventory of the thesis in the lake, at a size that does not fit a resident database.

Items are numbers. Three conditions watch the stock: the thesis's own, one with a grouped aggregate
in it, and one that goes through three levels of derived functions. In the beginning no item is low.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import harken

SUPPLIERS = 1_000
REGIONS = 50
OUTLETS = 3
PLENTY, SCARCE = 5_000, 0

FUNCTIONS = """
create function threshold(integer i) -> integer as
    select consume_freq(i) * delivery_time(i, supplier(i)) + min_stock(i);
create function consumption(integer i) -> integer as
    select sum(select used(i, o) for each integer o);
create function daily(integer i) -> integer as select consume_freq(i) * season(i);
create function lead(integer i) -> integer as
    select delivery_time(i, supplier(i)) + delay(region(supplier(i)));
create function reserve(integer i) -> integer as select daily(i) * lead(i) + min_stock(i);
create function low_stock() -> bag of integer as
    select i for each integer i where quantity(i) < threshold(i);
create function low_use() -> bag of integer as
    select i for each integer i where quantity(i) < consumption(i) * 2 + min_stock(i);
create function low_reserve() -> bag of integer as
    select i for each integer i where quantity(i) < reserve(i);
create function ordered(integer i) -> integer;
commit;
"""
CONDITIONS = {
    "inventory": "quantity(i) < threshold(i)",
    "aggregate": "quantity(i) < consumption(i) * 2 + min_stock(i)",
    "levels": "quantity(i) < reserve(i)",
}
VIEWS = {"inventory": "low_stock", "aggregate": "low_use", "levels": "low_reserve"}


class Warehouse:
    """A database with the inventory in the lake and, one at a time, a rule over it."""

    def __init__(self, items: int, spark: Any, directory: str) -> None:
        self.items = items
        self.path = Path(tempfile.mkdtemp(prefix=f"warehouse-{items}-", dir=directory))
        self.db = harken.connect(self.path / "warehouse.db", spark=spark)
        self.rule: str | None = None
        self._fill()

    def _fill(self) -> None:
        import numpy as np

        random = np.random.default_rng(7)
        item = np.arange(1, self.items + 1)
        supplier = random.integers(1, SUPPLIERS + 1, self.items)

        def some(low: int, high: int) -> Any:
            return random.integers(low, high, self.items)

        self._table("quantity", {"item": item, "quantity": some(1_000, PLENTY)}, 1)
        self._table("min_stock", {"item": item, "stock": some(10, 100)}, 1)
        self._table("consume_freq", {"item": item, "freq": some(1, 20)}, 1)
        self._table("supplier", {"item": item, "supplier": supplier}, 1)
        times = {"item": item, "supplier": supplier, "days": some(1, 10)}
        self._table("delivery_time", times, 2)
        self._table("season", {"item": item, "factor": some(1, 3)}, 1)
        outlets = {
            "item": np.repeat(item, OUTLETS),
            "outlet": np.tile(np.arange(1, OUTLETS + 1), self.items),
            "units": random.integers(1, 50, self.items * OUTLETS),
        }
        self._table("used", outlets, 2)
        numbers = np.arange(1, SUPPLIERS + 1)
        self._table("region", {"supplier": numbers, "region": numbers % REGIONS + 1}, 1)
        regions = np.arange(1, REGIONS + 1)
        self._table("delay", {"region": regions, "days": regions % 5}, 1)
        self.db.amosql(FUNCTIONS)

    def _table(self, name: str, columns: Mapping[str, Any], inputs: int) -> None:
        import pyarrow as pa

        table = pa.table({column: pa.array(values) for column, values in columns.items()})
        self.db.lake(name, table, key=list(columns)[:inputs])

    def watch(self, condition: str) -> None:
        """Activate the rule over this condition, and no other."""
        if self.rule is not None:
            self.db.amosql(f"deactivate {self.rule}(); delete rule {self.rule}; commit;")
        self.rule = f"watch_{condition}"
        self.db.amosql(
            f"create rule {self.rule}() as when for each integer i where {CONDITIONS[condition]} "
            f"do set ordered(i) = 1; activate {self.rule}(); commit;"
        )

    def recompute(self, condition: str) -> int:
        """All items that fulfil the condition, from scratch, on Spark."""
        return len(self.db.function(VIEWS[condition])())

    def change_outside(self, part: float, seed: int) -> None:
        """Someone else writes the table of quantities: a part of the items get other ones."""
        import numpy as np
        import pyarrow as pa

        from harken.sources.own_table import open_table

        table = open_table(self.db.internals.engine.lake_relations["quantity(integer)"].place.path)
        version = table.version
        rows = table.rows(version)
        random = np.random.default_rng(seed)
        chosen = random.random(rows.num_rows) < part
        before = rows.filter(pa.array(chosen))
        moved = (before["quantity"].to_numpy() + 1) % PLENTY + 1_000
        after = before.set_column(1, "quantity", pa.array(moved))
        table.commit(after, before, expected_version=version)

    def close(self) -> None:
        self.db.close()
