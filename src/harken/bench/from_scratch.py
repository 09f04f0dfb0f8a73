"""Part of `harken bench closure`: recursions from scratch, against Python and DuckDB.

The Python is the semi-naive evaluator that one would write by hand for this one program, with sets
of tuples and a dictionary of edges; DuckDB says the same as `WITH RECURSIVE`. Processor time, of
all threads: both sides end with a Python list of the rows.

Law: all find the same number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import harken
from harken.bench.figures import Figure

Edge = tuple[int, int]

NEEDED = "<= 1"
Adjacent = dict[int, list[int]]
REACH = """.decl edge(x: number, y: number)
.decl source(x: number)
.decl found(x: number, y: number)
found(x, y) :- source(x), edge(x, y).
found(x, z) :- found(x, y), edge(y, z).
"""
CLOSURE = REACH.replace("found(x, y) :- source(x), ", "found(x, y) :- ")
SAME = """.decl edge(x: number, y: number)
.decl source(x: number)
.decl found(x: number, y: number)
found(x, y) :- edge(p, x), edge(p, y).
found(x, y) :- edge(p, x), found(p, q), edge(q, y).
"""
FORWARD = "SELECT f.x, e.y FROM found f JOIN edge e ON e.x = f.y"
SIBLINGS = "SELECT a.y, b.y FROM edge a JOIN edge b ON a.x = b.x"
BELOW = "SELECT a.y, b.y FROM found f JOIN edge a ON a.x = f.x JOIN edge b ON b.x = f.y"


def forward(found: Edge, adjacent: Adjacent) -> list[Edge]:
    x, y = found
    return [(x, z) for z in adjacent.get(y, ())]


def below(found: Edge, adjacent: Adjacent) -> list[Edge]:
    ends = adjacent.get(found[1], ())
    return [(x, y) for x in adjacent.get(found[0], ()) for y in ends] if ends else []


def reached(edges: Sequence[Edge], sources: set[int], _: Adjacent) -> set[Edge]:
    return {each for each in edges if each[0] in sources}


def all_edges(edges: Sequence[Edge], _: set[int], __: Adjacent) -> set[Edge]:
    return set(edges)


def siblings(_: Sequence[Edge], __: set[int], adjacent: Adjacent) -> set[Edge]:
    return {(x, y) for ends in adjacent.values() for x in ends for y in ends}


@dataclass(frozen=True, slots=True)
class Recursion:
    name: str
    text: str
    begin: Callable[[Sequence[Edge], set[int], Adjacent], set[Edge]]
    go_on: Callable[[Edge, Adjacent], list[Edge]]
    sql: tuple[str, str]


RECURSIONS = (
    Recursion(
        "reach from 20 sources",
        REACH,
        reached,
        forward,
        ("SELECT s.x, e.y FROM source s JOIN edge e ON e.x = s.x", FORWARD),
    ),
    Recursion("closure", CLOSURE, all_edges, forward, ("SELECT x, y FROM edge", FORWARD)),
    Recursion("same generation", SAME, siblings, below, (SIBLINGS, BELOW)),
)


def small_parts(edges: int, random: Random) -> set[Edge]:
    """Many small graphs of 20 nodes without cycles, where a closure of many edges is not large."""
    found: set[Edge] = set()
    while len(found) < edges:
        part = 20 * random.randrange(max(1, edges // 10))
        x, y = random.randrange(20), random.randrange(20)
        if x < y:
            found.add((part + x, part + y))
    return found


def figures(
    cases: Sequence[tuple[str, str, Sequence[Edge]]],
) -> Iterator[Figure]:
    """Of (recursion, kind of graph, edges)."""
    for name, graph, edges in cases:
        recursion = next(each for each in RECURSIONS if each.name == name)
        sources = {x for x, _ in Random(1).sample(list(edges), min(20, len(edges)))}
        params = {"from scratch": name, "graph": graph, "edges": len(edges)}
        ours = min(_by_harken(recursion, edges, sources) for _ in range(2))
        python = _by_python(recursion, edges, sources)
        duckdb = _by_duckdb(recursion, edges, sources)
        if not ours[1] == python[1] == duckdb[1]:
            raise AssertionError(f"{name}: {ours[1]}, {python[1]} and {duckdb[1]} rows")
        yield Figure("closure", "harken ms", ours[0] * 1e3, params)
        yield Figure("closure", "harken/Python", ours[0] / python[0], params, NEEDED)
        yield Figure("closure", "harken/DuckDB", ours[0] / duckdb[0], params, NEEDED)


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    started = time.process_time()
    rows = work()
    return time.process_time() - started, rows


def _by_harken(recursion: Recursion, edges: Sequence[Edge], sources: set[int]) -> tuple[float, int]:
    with harken.connect() as db:
        db.datalog(recursion.text)
        engine, relation = db.internals.engine, db.internals.relation
        with db.transaction():
            engine.add_many(relation("edge"), edges)
            engine.add_many(relation("source"), [(each,) for each in sorted(sources)])
        return _timed(lambda: len(db.datalog("?- found(x, y).")[0].rows))


def _by_python(recursion: Recursion, edges: Sequence[Edge], sources: set[int]) -> tuple[float, int]:
    def evaluate() -> int:
        adjacent: Adjacent = {}
        for x, y in edges:
            adjacent.setdefault(x, []).append(y)
        found = recursion.begin(edges, sources, adjacent)
        recent = list(found)
        while recent:
            before, recent = recent, []
            for row in before:
                for each in recursion.go_on(row, adjacent):
                    if each not in found:
                        found.add(each)
                        recent.append(each)
        return len(found)

    return _timed(evaluate)


def _by_duckdb(recursion: Recursion, edges: Sequence[Edge], sources: set[int]) -> tuple[float, int]:
    import duckdb
    import pandas

    with duckdb.connect() as connection:
        frame = pandas.DataFrame(edges, columns=["x", "y"])
        given = pandas.DataFrame({"x": sorted(sources)})
        connection.register("frame", frame)
        connection.register("given", given)
        connection.execute("CREATE TABLE edge AS SELECT * FROM frame")
        connection.execute("CREATE TABLE source AS SELECT * FROM given")
        first, step = recursion.sql
        sql = f"WITH RECURSIVE found(x, y) AS ({first} UNION {step}) SELECT * FROM found"
        return _timed(lambda: len(connection.execute(sql).fetchall()))
