"""Transactions on the tables of TPC-H: its two refresh functions, and updates of every table.

RF1 inserts new orders with their lineitems, under keys above all others; RF2 deletes the oldest
orders with theirs. The updates take values that the conditions of the queries ask for, so that
at a small scale, too, rows enter and leave all of the views.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Protocol, TypeAlias

import pyarrow
import pyarrow.compute as pc

from harken.values.rows import Row

FIRST_DAY = datetime.date(1992, 1, 1)
CURRENT_DAY = datetime.date(1995, 6, 17)
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
COMMENTS = ("carefully final packages", "special deposits wake; pending requests haggle")

NATIONS = (2, 3, 6, 7, 8, 12, 18, 20, 24)
"""The nations that queries ask for by name, and some of the regions that they ask for."""
WANTED_PARTS = (
    "p_brand = 'Brand#12', p_container = 'SM CASE', p_size = 3",
    "p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 9",
    "p_brand = 'Brand#34', p_container = 'LG PACK', p_size = 14",
    "p_type = 'LARGE BRASS', p_size = 15, p_name = 'forest green lace'",
    "p_type = 'ECONOMY ANODIZED STEEL', p_name = 'sky green'",
    "p_type = 'PROMO POLISHED TIN', p_name = 'forest azure snow'",
    "p_type = 'MEDIUM POLISHED BRASS', p_size = 15",
)
"""The combinations that queries ask for."""


@dataclass(frozen=True, slots=True)
class Insert:
    table: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Statement:
    text: str


RefreshStep: TypeAlias = Insert | Statement
Transaction: TypeAlias = list[RefreshStep]


class Store(Protocol):
    """What transactions run on."""

    def insert(self, table: str, rows: Sequence[Row]) -> None: ...

    def run(self, text: str) -> None: ...


def apply(transaction: Transaction, store: Store) -> None:
    for step in transaction:
        if isinstance(step, Insert):
            store.insert(step.table, step.rows)
        else:
            store.run(step.text)


@dataclass(slots=True)
class Refresh:
    """A stream of transactions, the same for the same seed and data."""

    tables: Mapping[str, pyarrow.Table]
    seed: int = 1
    random: Random = field(init=False)
    orders: list[int] = field(init=False)
    """Their keys, oldest first."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.orders = sorted(self.tables["orders"].column("o_orderkey").to_pylist())

    # --- the refresh functions -------------------------------------------------------------

    def insert_orders(self, count: int) -> Transaction:
        """RF1."""
        orders: list[Row] = []
        items: list[Row] = []
        for _ in range(count):
            key = self.orders[-1] + 1
            day = self._day(2400)
            own = [self._item(key, number, day) for number in range(1, self._between(1, 7) + 1)]
            items += own
            status = {item[9] for item in own}
            orders.append(
                (
                    key,
                    self._key("customer"),
                    status.pop() if len(status) == 1 else "P",
                    sum((item[5] for item in own), Decimal(0)),
                    day,
                    self._one(PRIORITIES),
                    f"Clerk#{self._between(1, 1000):09}",
                    0,
                    self._one(COMMENTS),
                )
            )
            self.orders.append(key)
        return [Insert("orders", orders), Insert("lineitem", items)]

    def _item(self, order: int, number: int, ordered: datetime.date) -> Row:
        quantity = self._between(1, 50)
        price = Decimal(quantity * self._between(90_000, 110_000)) / 100
        shipped = ordered + datetime.timedelta(self._between(1, 121))
        received = shipped + datetime.timedelta(self._between(1, 30))
        return (
            order,
            self._key("part"),
            self._key("supplier"),
            number,
            Decimal(quantity),
            price,
            Decimal(self._between(0, 10)) / 100,
            Decimal(self._between(0, 8)) / 100,
            self._one("RA") if received <= CURRENT_DAY else "N",
            "O" if shipped > CURRENT_DAY else "F",
            shipped,
            ordered + datetime.timedelta(self._between(30, 90)),
            received,
            self._one(INSTRUCTIONS),
            self._one(MODES),
            "deposits sleep",
        )

    def delete_orders(self, count: int) -> Transaction:
        """RF2."""
        gone, self.orders = self.orders[:count], self.orders[count:]
        return [
            Statement(f"DELETE FROM orders WHERE o_orderkey <= {gone[-1]}"),
            Statement(f"DELETE FROM lineitem WHERE l_orderkey <= {gone[-1]}"),
        ]

    def exchange(self, share: float) -> Transaction:
        """RF1 and RF2: insert this share of new orders, and delete as many. (In this order:
        inserting rows in place of deleted ones, all in one transaction, takes SQLite quadratic
        time.)"""
        count = max(1, round(share * len(self.orders)))
        return self.insert_orders(count) + self.delete_orders(count)

    def exchanged(self, share: float) -> dict[str, tuple[pyarrow.Table, pyarrow.Table]]:
        """The same for many orders, as whole tables, those that come and those that go: the oldest
        orders, and their items, get keys above all others, and other customers and quantities.
        (Those that came in by a refresh stay.)"""
        count = max(1, round(share * len(self.orders)))
        first, last, more = self.orders[0], self.orders[count - 1], self.orders[-1]
        tables = {}
        for name, key, shuffled in (
            ("orders", "o_orderkey", "o_custkey"),
            ("lineitem", "l_orderkey", "l_quantity"),
        ):
            minus = self.tables[name]
            is_meant = pc.and_(pc.greater_equal(minus[key], first), pc.less_equal(minus[key], last))
            minus = minus.filter(is_meant)
            order = list(range(minus.num_rows))
            self.random.shuffle(order)
            plus = minus
            for column, values in (
                (key, pc.add(minus[key], more)),
                (shuffled, minus[shuffled].take(pyarrow.array(order))),
            ):
                field_ = minus.schema.field(column)
                values = values.cast(field_.type)
                plus = plus.set_column(plus.schema.names.index(column), field_, values)
            tables[name] = plus, minus
        return tables

    # --- updates ---------------------------------------------------------------------------

    def update(self, table: str, count: int = 1) -> Transaction:
        """Updates of single rows of a table."""
        return [UPDATES[table](self) for _ in range(count)]

    def update_all(self) -> Transaction:
        """Some rows of every table."""
        return [step for table in UPDATES for step in self.update(table)]

    def restock(self, share: float) -> Transaction:
        """Give other quantities and costs to the suppliers of this share of the parts."""
        parts = self.tables["part"].num_rows
        count = max(1, round(share * parts))
        first = self._between(1, parts - count + 1)
        more = Decimal(self._between(1, 99)) / 100
        return [
            Statement(
                "UPDATE partsupp "
                f"SET ps_availqty = ps_availqty + 1, ps_supplycost = ps_supplycost + {more} "
                f"WHERE ps_partkey BETWEEN {first} AND {first + count - 1}"
            )
        ]

    def _set(self, table: str, where: str, **values: object) -> Statement:
        chosen = self.random.sample(sorted(values), self._between(1, min(3, len(values))))
        text = ", ".join(f"{name} = {_literal(values[name])}" for name in chosen)
        return Statement(f"UPDATE {table} SET {text} WHERE {where}")

    def update_region(self) -> Statement:
        name = self._one(("EUROPE", "ASIA", "AMERICA", "AFRICA"))
        return self._set("region", f"r_regionkey = {self._between(0, 4)}", r_name=name)

    def update_nation(self) -> Statement:
        return self._set(
            "nation",
            f"n_nationkey = {self._one(NATIONS)}",
            n_regionkey=self._between(0, 4),
            n_name=self._one(("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "INDIA")),
        )

    def update_supplier(self) -> Statement:
        return self._set(
            "supplier",
            f"s_suppkey = {self._key('supplier')}",
            s_acctbal=self._money(-999, 9999),
            s_nationkey=self._one(NATIONS),
            s_comment=self._one(("Customer slow Complaints", "blithely regular")),
        )

    def update_part(self) -> Statement:
        values = self._one(WANTED_PARTS)
        return Statement(f"UPDATE part SET {values} WHERE p_partkey = {self._key('part')}")

    def update_partsupp(self) -> Statement:
        part = self._key("part")
        return self._set(
            "partsupp",
            f"ps_partkey = {part} AND ps_suppkey < {self._key('supplier')}",
            ps_supplycost=self._money(1, 1000),
            ps_availqty=self._between(1, 9999),
        )

    def update_customer(self) -> Statement:
        return self._set(
            "customer",
            f"c_custkey = {self._key('customer')}",
            c_acctbal=self._money(-999, 9999),
            c_nationkey=self._one(NATIONS),
            c_phone=f"{self._one((13, 31, 23, 29, 30, 18, 17, 11))}-719-748-3364",
            c_mktsegment=self._one(("BUILDING", "MACHINERY")),
        )

    def update_orders(self) -> Statement:
        return self._set(
            "orders",
            f"o_orderkey = {self._one(self.orders)}",
            o_custkey=self._key("customer"),
            o_orderstatus=self._one("FOP"),
            o_orderdate=self._day(2400),
            o_orderpriority=self._one(PRIORITIES),
            o_comment=self._one(COMMENTS),
        )

    def update_lineitem(self) -> Statement:
        return self._set(
            "lineitem",
            f"l_orderkey = {self._one(self.orders)} AND l_linenumber <= {self._between(1, 4)}",
            l_quantity=Decimal(self._one((1, 2, 15, 25, 301))),
            l_discount=Decimal(self._between(0, 10)) / 100,
            l_suppkey=self._key("supplier"),
            l_partkey=self._key("part"),
            l_shipdate=self._day(2500),
            l_receiptdate=self._day(2500),
            l_returnflag=self._one("RAN"),
            l_shipmode=self._one(MODES),
            l_shipinstruct=self._one(INSTRUCTIONS),
        )

    # --- values ----------------------------------------------------------------------------

    def _between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def _one(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def _key(self, table: str) -> int:
        return self._between(1, self.tables[table].num_rows)

    def _day(self, span: int) -> datetime.date:
        return FIRST_DAY + datetime.timedelta(self._between(0, span))

    def _money(self, low: int, high: int) -> Decimal:
        return Decimal(self._between(low * 100, high * 100)) / 100


UPDATES: Mapping[str, Callable[[Refresh], Statement]] = {
    "region": Refresh.update_region,
    "nation": Refresh.update_nation,
    "supplier": Refresh.update_supplier,
    "part": Refresh.update_part,
    "partsupp": Refresh.update_partsupp,
    "customer": Refresh.update_customer,
    "orders": Refresh.update_orders,
    "lineitem": Refresh.update_lineitem,
}


def _literal(value: object) -> str:
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)
