"""`harken bench closure`: recursive views under small changes of a graph, by each strategy.

Four views over five kinds of graphs. The same changes, single edges and batches of them, are
deleted and inserted again in a database for each strategy, in turns; `naive` is recomputation.
Besides the time we measure the rows that a change derives and the bytes stored for the view. A
strategy that takes too long for a single edge is left out, except recomputation and Harken's
choice; after some rounds those far behind pause, and the time goes to the others.

Law: all strategies see the same graph and the same changes, and report the same.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from harken.bench import calculated, from_scratch
from harken.bench.contestants import Contestant, contestant, in_turns, learn
from harken.bench.figures import Figure, cpu_time

SIZES = (1_000, 10_000, 100_000)
SIZES_OF_PAIRS = (300, 1_000, 3_000)
"""For views of pairs of nodes, which may have the square of that many rows; `largest` is the
limit."""
STRATEGIES = EXTERNAL, MATERIALIZED, NAIVE, AUTO = ("external", "materialized", "naive", "auto")
FASTER, SMALLER, CHOICE = ">= 100", "<= 0.01", "<= 1.3"
REQUIRED_FROM = 100_000
"""Edges of a power-law graph above which rederivation must meet its bound."""
BATCH = 20
WARMING = 14
"""Changes before the measured ones, while plans are made."""
SHORT, MOST = 6.0, 40
"""Up to MOST times the rounds, as long as they take no more than SHORT seconds."""
BEHIND = 4.0
"""A strategy this many times slower than the fastest is not measured further."""

Edge = tuple[int, int]

EDGES = ".decl edge(x: number, y: number)\n"
PATH = ".decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"
FORWARD = f"{EDGES}{PATH}path(x, z) :- path(x, y), edge(y, z).\n"


@dataclass(frozen=True, slots=True)
class Program:
    """A view over edges, and the sizes of the graphs that it is computed for."""

    name: str
    view: str
    text: str
    sizes: Sequence[int] = SIZES
    largest: Mapping[str, int] = field(default_factory=dict)
    """The largest graph of each kind."""


# The edges of a program under analysis are, by the number of their end: v = new o; v = w; v = *w;
# *v = w.
PROGRAMS = (
    Program(
        "reachable",
        "reached",
        f"{FORWARD}.decl reached(y: number)\nreached(y) :- path(0, y).\n",
    ),
    Program(
        "unreachable",
        "unreached",
        f"{FORWARD}.decl unreached(y: number)\nunreached(y) :- edge(y, _), !path(0, y).\n",
    ),
    Program(
        "closure",
        "path",
        FORWARD,
        SIZES_OF_PAIRS,
        {"random": 300, "chain": 300, "grid": 1_000},
    ),
    Program(
        "same-generation",
        "same",
        f"{EDGES}.decl same(x: number, y: number)\nsame(x, y) :- edge(p, x), edge(p, y).\n"
        "same(x, y) :- edge(p, x), same(p, q), edge(q, y).\n",
        SIZES_OF_PAIRS,
        {"random": 300, "tree": 300, "power-law": 300},
    ),
    Program(
        "points-to",
        "points",
        f"{EDGES}.decl points(v: number, o: number)\n.decl held(p: number, o: number)\n"
        "points(v, o) :- edge(v, o), o % 4 = 0.\n"
        "points(v, o) :- edge(v, w), w % 4 = 1, points(w, o).\n"
        "points(v, o) :- edge(v, w), w % 4 = 2, points(w, p), held(p, o).\n"
        "held(p, o) :- edge(v, w), w % 4 = 3, points(v, p), points(w, o).\n",
        SIZES_OF_PAIRS,
        {"random": 300, "grid": 300, "power-law": 1_000},
    ),
)


# --- graphs --------------------------------------------------------------------------------


def random_graph(edges: int, random: Random) -> set[Edge]:
    nodes = max(2, edges // 2)
    found: set[Edge] = set()
    while len(found) < edges:
        found.add((random.randrange(nodes), random.randrange(nodes)))
    return found


def chain(edges: int, _: Random) -> set[Edge]:
    return {(i, i + 1) for i in range(edges)}


def tree(edges: int, _: Random) -> set[Edge]:
    return {(i // 2, i + 1) for i in range(edges)}


def grid(edges: int, _: Random) -> set[Edge]:
    side = max(2, int((edges / 2) ** 0.5) + 1)
    right = {(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)}
    down = {(r * side + c, (r + 1) * side + c) for r in range(side - 1) for c in range(side)}
    return right | down


def power_law(edges: int, random: Random) -> set[Edge]:
    """Each new node gets two edges from existing nodes, chosen in proportion to their number of
    edges."""
    found: set[Edge] = {(0, 1)}
    ends, node = [0, 1], 2
    while len(found) < edges:
        for _ in range(2):
            start = random.choice(ends)
            if (start, node) not in found:
                found.add((start, node))
                ends.append(start)
        ends.append(node)
        node += 1
    return found


@dataclass(frozen=True, slots=True)
class Graph:
    name: str
    make: Callable[[int, Random], set[Edge]]
    largest: int = 10**9
    """A long chain needs a round of evaluation for each edge."""


GRAPHS = (
    Graph("random", random_graph),
    Graph("chain", chain, 1_000),
    Graph("tree", tree),
    Graph("grid", grid),
    Graph("power-law", power_law),
)


# --- measuring -----------------------------------------------------------------------------


def figures(
    items: Sequence[int] = (),
    rounds: int = 5,
    programs: Sequence[Program] = PROGRAMS,
    graphs: Sequence[Graph] = GRAPHS,
) -> Iterator[Figure]:
    for program in programs:
        for graph in graphs:
            for size in items or program.sizes:
                if size <= program.largest.get(graph.name, graph.largest):
                    yield from _figures(program, graph, size, rounds)
    if programs is PROGRAMS and graphs is GRAPHS and not items:
        yield from calculated.figures(rounds)
        yield from from_scratch.figures(list(_large_recursions()))


def _large_recursions() -> Iterator[tuple[str, str, list[Edge]]]:
    made = {each.name: each.make for each in GRAPHS} | {"small parts": from_scratch.small_parts}
    for name, graph, size in (
        ("reach from 20 sources", "random", 100_000),
        ("reach from 20 sources", "power-law", 100_000),
        ("reach from 20 sources", "grid", 100_000),
        ("closure", "small parts", 100_000),
        ("closure", "tree", 100_000),
        ("same generation", "small parts", 100_000),
        ("same generation", "tree", 1_000),
    ):
        yield name, graph, sorted(made[graph](size, Random(5)))


def _figures(program: Program, graph: Graph, size: int, rounds: int) -> Iterator[Figure]:
    edges = sorted(graph.make(size, Random(size)))
    with contextlib.ExitStack() as stack:
        field = [
            contestant(program.text, program.view, each, {"edge": edges}, stack)
            for each in STRATEGIES
        ]
        random = Random(1)
        first = random.sample(edges, 1)
        field = [
            each for each in field if each.strategy in (NAIVE, AUTO) or each.keeps_up("edge", first)
        ]
        for kind, batch in (("one edge", 1), (f"{BATCH} edges", BATCH)):
            chosen = partial(random.sample, edges, min(batch, len(edges)))
            for _ in range(WARMING // 2):
                in_turns(field, "edge", chosen(), random, counts=False)
            learn(field[-1], "edge", chosen)
            for _ in range(rounds):
                in_turns(field, "edge", chosen(), random, counts=True)
            ahead, until = _ahead(field), cpu_time() + SHORT
            for _ in range((MOST - 1) * rounds):
                if cpu_time() > until:
                    break
                in_turns(ahead, "edge", chosen(), random, counts=True)
            params = {"view": program.name, "graph": graph.name, "edges": size, "change": kind}
            yield from _measured(field, params, graph, program, batch)
            for each in field:
                each.forget()


def _ahead(field: list[Contestant]) -> list[Contestant]:
    """Those that may still be the fastest, and Harken's choice. One slow change does not put a
    strategy behind."""
    least = min(statistics.mean(each.times) for each in field if each.strategy != AUTO)
    return [
        each
        for each in field
        if each.strategy == AUTO or statistics.median(each.times) <= BEHIND * least
    ]


def _measured(
    field: list[Contestant], params: dict[str, object], graph: Graph, program: Program, batch: int
) -> Iterator[Figure]:
    name = "closure"
    # The mean: one change may take a thousand times as long as another, and all have the same
    # changes.
    took = {each.strategy: statistics.mean(each.times) for each in field}
    kept = {each.strategy: each.bytes_kept() for each in field}
    for each in field:
        yield Figure(name, f"{each.strategy} ms", took[each.strategy] * 1e3, params)
        yield Figure(name, f"{each.strategy} rows", statistics.mean(each.derived), params)
        yield Figure(name, f"{each.strategy} bytes", kept[each.strategy], params)
    required = (
        graph.name == "power-law"
        and program.name == "reachable"
        and batch == 1
        and int(str(params["edges"])) >= REQUIRED_FROM
    )
    if EXTERNAL in took:
        ratio = took[NAIVE] / took[EXTERNAL]
        yield Figure(name, "naive/external", ratio, params, FASTER if required else None)
    if required:
        memory = kept[EXTERNAL] / max(1, kept[MATERIALIZED])
        yield Figure(name, "external/materialized bytes", memory, params, SMALLER)
    best = min(seconds for strategy, seconds in took.items() if strategy != AUTO)
    yield Figure(name, "auto/best", took[AUTO] / best, params, CHOICE)
