"""Programs of production rules to measure: their rules, and facts of a size.

paper       the program of section 5.2 of Fabret, Regnier and Simon
inserts     rule r1 of section 3, which mostly inserts
deletes     rule r2 of section 3, which only deletes
manners     guests are seated by hobby, instance by instance (Miss Manners)
parts       obsolete parts of a bill of materials are replaced
workflow    tasks go through 50 steps, a rule for each
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from harken.values.rows import Row

Facts = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    text: str
    facts: Callable[[int], Facts]
    sizes: tuple[int, ...]


PAPER = """
.decl A(x: number, k: symbol, y: number) .decl B(x: number, y: symbol, z: number, k: symbol)
.decl C(x: number, y: number) .decl D(k: symbol, y: number, x: number)
.decl E(x: number, y: number, k: symbol) .decl F(x: number, y: number)
rule r1: A(x, "alpha", y), B(y, "beta", z, _), E(z, v, "gamma"), !F(x, z) -> C(x, z).
rule r2: C(x, y), D(k, y, z) -> D(k, z, x).
rule r3: B(x, _, y, "beta"), !D("delta", y, x), E(z, x, _) -> D("delta", z, x), !C(y, x).
rule r4: A(x, _, y), D("delta", x, y), C(y, t), F(y, w) -> !A(t, "alpha", x), F(y, x).
.priority r1, r2, r3 > r4
.priority r2 > r3 > r1
"""
"""With arities that let the constants of the paper be typed, and an order that lets it settle."""
SECTION_3 = """
.decl a(x: number, k: symbol, z: number) .decl b(x: number, y: number, k: symbol)
.decl c(k: symbol, x: number, y: number)
"""
BODY = 'a(x, "alpha", z), b(x, y, "beta"), c("gamma", y, w)'
INSERTS = f'{SECTION_3}rule r1 [instance]: {BODY} -> c("gamma", x, w), !c("gamma", y, z).'
DELETES = f'{SECTION_3}rule r2 [instance]: {BODY} -> !b(y, z, "beta"), !b(x, y, "beta").'
MANNERS = """
.decl guest(name: number, sex: symbol, hobby: number) .decl seats(n: number)
.decl phase(p: symbol) .decl next_id(c: number)
.decl seating(id: number, pid: number, s1: number, n1: number, n2: number, s2: number, done: number)
.decl path(id: number, name: number, seat: number)
.decl chosen(id: number, name: number, hobby: number)
rule first [priority 5]: phase("start"), guest(n, _, _), next_id(c)
    -> seating(c, 0, 1, n, n, 1, 1), path(c, n, 1), !next_id(c), next_id(c + 1),
       !phase("start"), phase("assign").
rule find_seating: phase("assign"), seating(id, _, _, _, n2, s2, 1), guest(n2, sex1, h),
    guest(g2, sex2, h), sex1 != sex2, next_id(c), !path(id, g2, _), !chosen(id, g2, h)
    -> !phase("assign"), seating(c, id, s2, n2, g2, s2 + 1, 0), path(c, g2, s2 + 1),
       chosen(id, g2, h), !next_id(c), next_id(c + 1), phase("make_path").
rule make_path [priority 1]: phase("make_path"), seating(id, pid, _, _, _, _, 0), path(pid, n, s),
    !path(id, n, _) -> path(id, n, s).
rule path_done: phase("make_path"), seating(id, pid, s1, n1, n2, s2, 0)
    -> !seating(id, pid, s1, n1, n2, s2, 0), seating(id, pid, s1, n1, n2, s2, 1),
       !phase("make_path"), phase("check").
rule are_we_done [priority 1]: phase("check"), seats(l), seating(_, _, _, _, _, l, _)
    -> !phase("check"), phase("done").
rule go_on: phase("check") -> !phase("check"), phase("assign").
.semantics instance
"""
PARTS = """
.decl uses(whole: number, part: number) .decl obsolete(part: number)
.decl replaced(part: number, by: number) .decl checked(whole: number)
rule replace: uses(w, p), obsolete(p), replaced(p, q) -> !uses(w, p), uses(w, q).
rule approve: uses(w, p), !obsolete(p), !checked(w) -> checked(w).
.priority replace > approve
"""
STEPS = 50
WORKFLOW = ".decl task(id: number, step: number) .decl open(step: number)\n" + "\n".join(
    f"rule step{i}: task(id, {i}), open({i}) -> !task(id, {i}), task(id, {i + 1})."
    for i in range(STEPS)
)


def _paper(size: int) -> Facts:
    """What r1 inserts into C has other values than what r3 deletes: the paper's rules would undo
    each other without end."""
    random = Random(size)

    def low() -> int:
        return random.randrange(max(4, size))

    def high() -> int:
        return size + low()

    return {
        "A": [(low(), "alpha", low()) for _ in range(size)],
        "B": [(low(), "beta", low(), "other") for _ in range(size)]
        + [(high(), "other", high(), "beta") for _ in range(size)],
        "C": [(high(), high()) for _ in range(size)],
        "D": [("delta", high(), high()) for _ in range(size // 10)],
        "E": [(low(), low(), "gamma") for _ in range(size)]
        + [(high(), high(), "other") for _ in range(size)],
        "F": [(low(), low()) for _ in range(size // 10)],
    }


def _section_3(size: int) -> Facts:
    """b leads from larger to smaller values, so that the programs settle."""
    random = Random(size)
    pairs = {
        tuple(sorted((random.randrange(size), random.randrange(size)))) for _ in range(3 * size)
    }
    return {
        "a": [(x, "alpha" if x % 3 else "other", -1) for x in range(size)],
        "b": [(y, x, "beta") for x, y in pairs if x != y],
        "c": [("gamma", x, x) for x in range(0, size, 10)],
    }


def _guests(size: int) -> Facts:
    random = Random(5)
    guests = [
        (number, "mf"[number % 2], hobby)
        for number in range(size)
        for hobby in random.sample(range(1, 4), 2)
    ]
    return {"guest": guests, "seats": [(size,)], "phase": [("start",)], "next_id": [(1,)]}


def _parts(size: int) -> Facts:
    random = Random(size)
    return {
        "uses": [(i, random.randrange(size)) for i in range(size)],
        "obsolete": [(i,) for i in range(0, size, 20)],
        "replaced": [(i, i + 1) for i in range(0, size, 20)],
    }


def _workflow(size: int) -> Facts:
    return {"task": [(i, i % STEPS) for i in range(size)], "open": [(0,), (1,), (25,)]}


WORKLOADS = (
    Workload("paper", PAPER, _paper, (300,)),
    Workload("inserts", INSERTS, _section_3, (300,)),
    Workload("deletes", DELETES, _section_3, (300,)),
    Workload("manners", MANNERS, _guests, (8, 16)),
    Workload("parts", PARTS, _parts, (5_000,)),
    Workload("workflow", WORKFLOW, _workflow, (5_000,)),
)
