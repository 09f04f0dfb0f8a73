"""What one would write without Harken: triggers in SQLite that keep the sums of a query.

It is possible where the rows of a query follow from sums over a join, each table once: a trigger
for each table that a refresh changes adds to the sums of a group what a new row joins, and takes
away what an old one does. The others have subqueries, of which one row does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import apsw

REVENUE = "l_extendedprice * (1 - l_discount)"
REFRESHED = {"lineitem": "l_", "orders": "o_"}
"""The tables that refresh functions change, and how the names of their columns begin."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of a join by group; how many rows are in a group is counted besides."""

    tables: tuple[str, ...]
    where: str
    sums: tuple[str, ...]
    groups: tuple[str, ...] = ("0",)


BY_HAND: Mapping[str, Sums] = MappingProxyType(
    {
        "q01": Sums(
            ("lineitem",),
            "l_shipdate <= '1998-09-02'",
            (
                "l_quantity",
                "l_extendedprice",
                REVENUE,
                f"{REVENUE} * (1 + l_tax)",
                "l_discount",
            ),
            ("l_returnflag", "l_linestatus"),
        ),
        "q03": Sums(
            ("customer", "orders", "lineitem"),
            "c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
            "AND o_orderdate < '1995-03-15' AND l_shipdate > '1995-03-15'",
            (REVENUE,),
            ("l_orderkey", "o_orderdate", "o_shippriority"),
        ),
        "q05": Sums(
            ("customer", "orders", "lineitem", "supplier", "nation", "region"),
            "c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey "
            "AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey "
            "AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
            "AND o_orderdate >= '1994-01-01' AND o_orderdate < '1995-01-01'",
            (REVENUE,),
            ("n_name",),
        ),
        "q06": Sums(
            ("lineitem",),
            "l_shipdate >= '1994-01-01' AND l_shipdate < '1995-01-01' "
            "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
            ("l_extendedprice * l_discount",),
        ),
        "q07": Sums(
            ("supplier", "lineitem", "orders", "customer", "nation n1", "nation n2"),
            "s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey "
            "AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey "
            "AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') "
            "OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')) "
            "AND l_shipdate BETWEEN '1995-01-01' AND '1996-12-31'",
            (REVENUE,),
            ("n1.n_name", "n2.n_name", "substr(l_shipdate, 1, 4)"),
        ),
        "q08": Sums(
            (
                *("part", "supplier", "lineitem", "orders", "customer"),
                *("nation n1", "nation n2", "region"),
            ),
            "p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey "
            "AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey "
            "AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' "
            "AND s_nationkey = n2.n_nationkey AND p_type = 'ECONOMY ANODIZED STEEL' "
            "AND o_orderdate BETWEEN '1995-01-01' AND '1996-12-31'",
            (f"iif(n2.n_name = 'BRAZIL', {REVENUE}, 0)", REVENUE),
            ("substr(o_orderdate, 1, 4)",),
        ),
        "q09": Sums(
            ("part", "supplier", "lineitem", "partsupp", "orders", "nation"),
            "s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey "
            "AND p_partkey = l_partkey AND o_orderkey = l_orderkey "
            "AND s_nationkey = n_nationkey AND p_name LIKE '%green%'",
            (f"{REVENUE} - ps_supplycost * l_quantity",),
            ("n_name", "substr(o_orderdate, 1, 4)"),
        ),
        "q10": Sums(
            ("customer", "orders", "lineitem"),
            "c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' "
            "AND o_orderdate >= '1993-10-01' AND o_orderdate < '1994-01-01'",
            (REVENUE,),
            ("c_custkey",),
        ),
        "q12": Sums(
            ("orders", "lineitem"),
            "o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') "
            "AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
            "AND l_receiptdate >= '1994-01-01' AND l_receiptdate < '1995-01-01'",
            ("o_orderpriority IN ('1-URGENT', '2-HIGH')",),
            ("l_shipmode",),
        ),
        "q14": Sums(
            ("lineitem", "part"),
            "l_partkey = p_partkey AND l_shipdate >= '1995-09-01' AND l_shipdate < '1995-10-01'",
            (f"iif(p_type LIKE 'PROMO%', {REVENUE}, 0)", REVENUE),
        ),
        "q19": Sums(
            ("lineitem", "part"),
            "p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG') "
            "AND l_shipinstruct = 'DELIVER IN PERSON' AND ("
            "(p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') "
            "AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5) OR "
            "(p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')"
            " AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10) OR "
            "(p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') "
            "AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))",
            (REVENUE,),
        ),
    }
)


class Triggers:
    """The triggers of one query in a database, until they are dropped."""

    def __init__(self, connection: apsw.Connection, sums: Sums) -> None:
        self._connection = connection
        self._sums = sums
        self._names: list[str] = []
        keys = [f"g{i}" for i in range(len(sums.groups))]
        totals = [f"s{i}" for i in range(len(sums.sums))]
        columns = ", ".join([*keys, *totals, "n"])
        connection.execute(
            f"CREATE TABLE kept ({columns}, PRIMARY KEY ({', '.join(keys)})) WITHOUT ROWID;"
            "CREATE INDEX emptied ON kept (n) WHERE n = 0;"
            f"INSERT INTO kept {self._recomputed()}"
        )
        self._added = ", ".join(f"{each} = {each} + excluded.{each}" for each in (*totals, "n"))
        for table in REFRESHED.keys() & set(sums.tables):
            for event, row, sign in (("INSERT", "NEW", "+"), ("DELETE", "OLD", "-")):
                self._create(table, event, row, sign)

    def _create(self, table: str, event: str, row: str, sign: str) -> None:
        sums = self._sums
        prefix = re.compile(rf"\b{REFRESHED[table]}\w+")

        def of_row(text: str) -> str:
            return prefix.sub(lambda found: f"{row}.{found.group()}", text)

        name = f"{event.lower()}_{table}"
        others = ", ".join(each for each in sums.tables if each != table)
        totals = [f"{sign}({of_row(each)})" for each in sums.sums]
        values = ", ".join([*map(of_row, sums.groups), *totals, f"{sign}1"])
        self._connection.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN "
            f"INSERT INTO kept SELECT {values} {f'FROM {others}' if others else ''} "
            f"WHERE {of_row(sums.where)} ON CONFLICT DO UPDATE SET {self._added}; "
            "DELETE FROM kept WHERE n = 0; END"
        )
        self._names.append(name)

    def _recomputed(self) -> str:
        sums = self._sums
        values = [*sums.groups, *(f"sum({each})" for each in sums.sums), "count(*)"]
        groups = ", ".join(str(i + 1) for i in range(len(sums.groups)))
        return (
            f"SELECT {', '.join(values)} FROM {', '.join(sums.tables)} "
            f"WHERE {sums.where} GROUP BY {groups}"
        )

    def kept(self) -> Iterator[tuple[object, ...]]:
        return self._connection.execute("SELECT * FROM kept")

    def recomputed(self) -> Iterator[tuple[object, ...]]:
        return self._connection.execute(self._recomputed())

    def drop(self) -> None:
        for name in self._names:
            self._connection.execute(f"DROP TRIGGER {name}")
        self._connection.execute("DROP TABLE kept")
