"""`harken bench programs`: production rules under each policy, and beside CLIPS.

Every policy runs the same program over the same facts, in turns, each time in a new database; the
time includes planning. `stored rows` are those of memories and of the conflict set at the end.

Law: all policies make the same number of firings.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from importlib.util import find_spec

import harken
from harken.api.rule_programs import ProgramRun, RuleProgram
from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.rule_workloads import INSERTS, MANNERS, WORKLOADS, Facts, Workload
from harken.maintenance.materialisation import POLICIES

IDLE = (1_000, 100_000)
"""Facts that match nothing, to see that a cycle does not cost more with them."""
CLIPS_MANNERS = (
    "(deftemplate guest (slot name) (slot sex) (slot hobby))",
    "(deftemplate seats (slot n))",
    "(deftemplate phase (slot p))",
    "(deftemplate next_id (slot c))",
    "(deftemplate seating (slot id) (slot pid) (slot s1) (slot n1) (slot n2) (slot s2)"
    " (slot done))",
    "(deftemplate path (slot id) (slot name) (slot seat))",
    "(deftemplate chosen (slot id) (slot name) (slot hobby))",
    "(defrule first (declare (salience 5)) ?p <- (phase (p start)) (guest (name ?n))"
    " ?f <- (next_id (c ?c)) =>"
    " (assert (seating (id ?c) (pid 0) (s1 1) (n1 ?n) (n2 ?n) (s2 1) (done 1)))"
    " (assert (path (id ?c) (name ?n) (seat 1))) (modify ?f (c (+ ?c 1))) (modify ?p (p assign)))",
    "(defrule find_seating ?p <- (phase (p assign)) (seating (id ?id) (n2 ?n2) (s2 ?s2) (done 1))"
    " (guest (name ?n2) (sex ?x1) (hobby ?h)) (guest (name ?g2) (sex ?x2&~?x1) (hobby ?h))"
    " ?f <- (next_id (c ?c)) (not (path (id ?id) (name ?g2)))"
    " (not (chosen (id ?id) (name ?g2) (hobby ?h))) =>"
    " (assert (seating (id ?c) (pid ?id) (s1 ?s2) (n1 ?n2) (n2 ?g2) (s2 (+ ?s2 1)) (done 0)))"
    " (assert (path (id ?c) (name ?g2) (seat (+ ?s2 1))))"
    " (assert (chosen (id ?id) (name ?g2) (hobby ?h)))"
    " (modify ?f (c (+ ?c 1))) (modify ?p (p make_path)))",
    "(defrule make_path (declare (salience 1)) (phase (p make_path))"
    " (seating (id ?id) (pid ?pid) (done 0)) (path (id ?pid) (name ?n) (seat ?s))"
    " (not (path (id ?id) (name ?n))) => (assert (path (id ?id) (name ?n) (seat ?s))))",
    "(defrule path_done ?p <- (phase (p make_path)) ?s <- (seating (done 0)) =>"
    " (modify ?s (done 1)) (modify ?p (p check)))",
    "(defrule are_we_done (declare (salience 1)) ?p <- (phase (p check)) (seats (n ?l))"
    " (seating (s2 ?l)) => (modify ?p (p done)))",
    "(defrule go_on ?p <- (phase (p check)) => (modify ?p (p assign)))",
)


def figures(items: int | None = None, rounds: int = 3) -> Iterator[Figure]:
    """With `items` each program has that size."""
    for workload in WORKLOADS:
        for size in workload.sizes if items is None else (items,):
            yield from _policies(workload, size, rounds)
    yield from _beside_clips(16 if items is None else items, rounds)
    yield from _idle_facts(rounds, IDLE if items is None else (items, items * 10))


def _opened(text: str, facts: Facts) -> tuple[harken.Database, RuleProgram]:
    db = harken.connect()
    program = db.program(text)
    for relation, rows in facts.items():
        db.insert(relation, sorted(set(rows)))
    return db, program


def _timed(program: RuleProgram, policy: str = "auto") -> tuple[float, ProgramRun]:
    runs: list[ProgramRun] = []
    took = seconds(lambda: runs.append(program.run(materialise=policy)), cpu_time)
    return took, runs[0]


def _policies(workload: Workload, size: int, rounds: int) -> Iterator[Figure]:
    facts = workload.facts(size)
    took: dict[str, list[float]] = {each: [] for each in POLICIES}
    stored: dict[str, int] = {}
    firings = 0
    for _ in range(rounds):
        for policy in POLICIES:
            db, program = _opened(workload.text, facts)
            with db:
                took_now, run = _timed(program, policy)
                took[policy].append(took_now)
                stored[policy], firings = run.stored_rows, run.firings
    name, params = f"programs, {workload.name}", {"items": size, "firings": firings}
    median = {each: statistics.median(times) for each, times in took.items()}
    for policy in POLICIES:
        yield Figure(name, f"{policy}, ms", median[policy] * 1e3, params)
        yield Figure(name, f"{policy}, stored rows", float(stored[policy]), params)
    better = min(median["rete"], median["treat"])
    yield Figure(name, "cosma/better of rete and treat", median["cosma"] / better, params, "<= 1.1")
    rows = stored["cosma"] / max(stored["rete"], 1)
    yield Figure(name, "stored rows, cosma/rete", rows, params, "<= 1")


def _beside_clips(guests: int, rounds: int) -> Iterator[Figure]:
    """Miss Manners, instance by instance."""
    if find_spec("clips") is None:
        return
    workload = next(each for each in WORKLOADS if each.text == MANNERS)
    facts = workload.facts(guests)
    ours, theirs, firings = [], [], 0
    for _ in range(rounds):
        db, program = _opened(MANNERS, facts)
        with db:
            took, run = _timed(program)
            ours.append(took)
            firings = run.firings
        theirs.append(_clips(facts))
    params = {"guests": guests, "firings": firings}
    ratio = statistics.median(ours) / statistics.median(theirs)
    yield Figure("programs, manners", "harken/clips", ratio, params)
    yield Figure(
        "programs, manners",
        "a firing of clips, µs",
        statistics.median(theirs) / firings * 1e6,
        params,
    )


def _clips(facts: Facts) -> float:
    import clips  # type: ignore[import-untyped]

    environment = clips.Environment()
    for construct in CLIPS_MANNERS:
        environment.build(construct)
    for name, rows in facts.items():
        template = environment.find_template(name)
        slots = [slot.name for slot in template.slots]
        for row in sorted(set(rows)):
            values = (clips.Symbol(v) if isinstance(v, str) else v for v in row)
            template.assert_fact(**dict(zip(slots, values, strict=True)))
    return seconds(environment.run, cpu_time)


def _idle_facts(rounds: int, sizes: tuple[int, ...]) -> Iterator[Figure]:
    """Rule r1 over 200 facts, and many more that it does not match."""
    found = []
    base = next(each for each in WORKLOADS if each.text == INSERTS).facts(200)
    for size in sizes:
        idle = [(1_000_000 + i, "other", -1) for i in range(size)]
        facts = {**base, "a": [*base["a"], *idle]}
        times = []
        for _ in range(rounds):
            db, program = _opened(INSERTS, facts)
            with db:
                took, run = _timed(program)
                times.append(took / max(run.firings, 1))
        found.append(statistics.median(times))
    params = {"facts": sizes[0], "more": sizes[-1]}
    yield Figure("programs, idle facts", "more/fewer", found[-1] / found[0], params, "<= 1.5")
