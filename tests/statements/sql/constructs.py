"""What of SQL is maintained how: an example of each construct, for the documents.

The table in docs/sql.md is made from this by `table`, so that it cannot say anything else than the
code does.
"""

from __future__ import annotations

import harken
from harken.ir.assemble import assemble
from harken.ir.safety import required_inputs
from harken.planner.change_methods import How, worst
from harken.planner.expand import expand

SCHEMA = """
CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE TABLE c (k INT PRIMARY KEY, z DECIMAL(9, 2) NOT NULL);
"""
CONSTRUCTS = {
    "selection, projection, expressions, CASE": (
        "SELECT k + 1 AS k, CASE WHEN x > 1 THEN 1 END AS x FROM a WHERE x > 0 OR k IS NULL"
    ),
    "inner joins, cross joins, self-joins": "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k",
    "UNION ALL": "SELECT k FROM a UNION ALL SELECT k FROM b",
    "IN and EXISTS, left semi joins": "SELECT x FROM a WHERE k IN (SELECT k FROM b)",
    "NOT IN, NOT EXISTS, left anti joins": (
        "SELECT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"
    ),
    "left, right and full joins": "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k",
    "DISTINCT, UNION, INTERSECT, EXCEPT": "SELECT DISTINCT x FROM a",
    "INTERSECT ALL, EXCEPT ALL": "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
    "GROUP BY, HAVING": "SELECT k, sum(x) AS s FROM a GROUP BY k HAVING count(*) > 1",
    "count(DISTINCT …)": "SELECT k, count(DISTINCT x) AS n FROM a GROUP BY k",
    "stddev, median, string_agg, max_by and the like": (
        "SELECT k, median(x) AS m, max_by(x, k) AS b FROM a GROUP BY k"
    ),
    "correlated subqueries": "SELECT k, (SELECT max(y) FROM b WHERE b.k = a.k) AS m FROM a",
    "aggregates of all rows": "SELECT sum(z) AS s, count(*) AS n FROM c",
    "uncorrelated subqueries that stand for a value": (
        "SELECT x FROM a WHERE x > (SELECT avg(y) FROM b)"
    ),
    "window functions with PARTITION BY": (
        "SELECT k, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM a"
    ),
    "IGNORE NULLS, frames of GROUPS, DISTINCT in a window, QUALIFY": (
        "SELECT k, last(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY x GROUPS 1 PRECEDING) AS l"
        " FROM a QUALIFY count(DISTINCT x) OVER (PARTITION BY k) > 1"
    ),
    "window functions over all rows": "SELECT k, rank() OVER (ORDER BY x) AS r FROM a",
    "ORDER BY … LIMIT": "SELECT k FROM a ORDER BY x LIMIT 10",
    "WITH RECURSIVE … UNION": (
        "WITH RECURSIVE r AS (SELECT k, x FROM a UNION SELECT r.k, a.x FROM r JOIN a ON a.k = r.x)"
        " SELECT k, x FROM r"
    ),
    "WITH RECURSIVE … UNION ALL": (
        "WITH RECURSIVE r AS (SELECT k, x FROM a UNION ALL"
        " SELECT r.k, a.x FROM r JOIN a ON a.k = r.x) SELECT k, x FROM r"
    ),
    "now(), current_date(), compared with data": "SELECT k FROM a WHERE x < unix_date(now())",
    "rand(), randn(), uuid()": "SELECT k, rand() AS r FROM a",
}
SAID = {
    How.DIFFERENTIAL: "differentials: only changed rows and what they join",
    How.IN_ORDER: "the first rows are kept with those that come after them: only changed rows",
    How.REDERIVED: "derived again where a change may reach; or the rows are kept (ADR 17)",
    How.BY_KEY: "by key: the affected groups, partitions or outer rows, before and after",
    How.WHOLE: "as a whole, before and after; sums and counts are kept where they are exact",
    How.IN_ROUNDS: "the rounds are stored, and only what changes in each is followed",
    How.RECOMPUTED: "recomputed, and compared with the rows of the last look",
}


def how(query: str) -> How:
    db = harken.connect()
    db.sql(SCHEMA)
    db.sql(f"CREATE VIEW v AS {query}")
    catalog = db.internals.catalog
    relation = db.internals.relation("v")
    assert relation is not None
    program = assemble(relation, (), catalog)
    program = expand(program, catalog.hierarchy, required_inputs(program))
    return worst(program)


def table() -> str:
    lines = ["| construct | how its changes are found |", "| --- | --- |"]
    lines += [f"| {name} | {SAID[how(query)]} |" for name, query in CONSTRUCTS.items()]
    return "\n".join(lines)
