"""How experience chooses between differentials and naive evaluation, and breaks off what takes
longer than it may.

Time is what SQLite works: a thousand of its instructions are a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

import harken
from harken import Database
from harken.engines.protocol import BrokenOff
from harken.maintenance import capacities, measurement_store, tuning
from harken.maintenance.decisions import Decision, DecisionLog, DecisionReason
from harken.maintenance.measurements import Experience
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode
from harken.maintenance.strategies import Strategy, base
from harken.maintenance.wave_plan import WavePlan

T = TypeVar("T")

GROUPS, MEMBERS = 10, 100
INSTRUCTIONS = 100


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self) -> bool:
        self.now += INSTRUCTIONS * 1e-6
        return False


@pytest.fixture
def db() -> Iterator[Database]:
    with opened(":memory:") as db:
        db.sql("CREATE TABLE member (id INT, g INT NOT NULL, v INT NOT NULL, PRIMARY KEY (id))")
        db.load("member", [(n, n % GROUPS, n) for n in range(GROUPS * MEMBERS)])
        yield db


@contextmanager
def opened(path: str | Path) -> Iterator[Database]:
    """A database on the clock that counts instructions."""
    with harken.connect(path) as db:
        connection, clock = db.internals.connection, Clock()
        connection.working_time = clock
        connection.raw.set_progress_handler(clock.work, INSTRUCTIONS, id="clock")
        connection.raw.set_progress_handler(connection.is_over, INSTRUCTIONS)
        yield db


def summed(db: Database) -> None:
    """A view with totals that are kept, and two small transactions."""
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT g, sum(v) AS s FROM member GROUP BY g")
    for _ in range(2):
        db.sql("UPDATE member SET v = v + 1 WHERE id = 7")


def experience(db: Database) -> Experience:
    node = db.internals.network.graph.node("materialized total()")
    assert node is not None
    assert node.experience is not None
    return node.experience


def totals_are_kept(db: Database) -> bool:
    nodes = [
        each for each in db.internals.network.graph.derived.values() if isinstance(each, TotalsNode)
    ]
    assert nodes
    return all(each.table.holds() for each in nodes)


def ways(db: Database, text: str) -> list[str]:
    """How the nodes computed their change in a transaction; it ends with the right rows."""
    lines: list[str] = []
    db.trace(lines.append)
    db.sql(text)
    db.trace(None)
    check(db)
    return [line.rpartition("(")[2].partition(")")[0] for line in lines if " from " in line]


def check(db: Database) -> None:
    wanted = db.sql("SELECT g, sum(v) FROM member GROUP BY g").rows
    assert sorted(db.sql("SELECT * FROM total").rows) == sorted(wanted)


SMALL = "UPDATE member SET v = v + 1 WHERE id = 8"
LARGE = "UPDATE member SET v = v + 1 WHERE id < 500"
BY_TOTALS = ["followed", "totals"]
BROKEN_OFF = ["skipped: another strategy took too long and was interrupted", "copied"]
NAIVELY = ["skipped: every view above is recomputed", "copied"]
BUILT = ["skipped: it will be built after this change has been propagated", "copied"]


def test_the_first_evaluation_is_the_first_experience(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT g, sum(v) AS s FROM member GROUP BY g")
    known = experience(db)
    assert known.is_first
    assert known.naive is not None
    assert known.naive > 0
    assert "the first evaluation took" in str(db.explain("total", verbose=True))
    assert totals_are_kept(db)
    assert ways(db, SMALL) == BY_TOTALS
    assert ways(db, LARGE) == BROKEN_OFF
    assert not known.is_first
    assert "recomputing took" in str(db.explain("total", verbose=True))


def test_close_to_the_first_evaluation_naive_evaluation_is_sampled(db: Database) -> None:
    summed(db)
    known = experience(db)
    known.note_naive(0.3, is_first=True)
    assert ways(db, LARGE) == BY_TOTALS
    assert not known.is_first
    assert known.naive is not None
    assert known.naive < 0.03
    assert ways(db, LARGE) == NAIVELY


def test_a_sample_takes_no_longer_than_the_differentials_did(db: Database) -> None:
    summed(db)
    known = experience(db)
    known.note_naive(0.003, is_first=True)
    db.sql("UPDATE member SET v = v + 1 WHERE id BETWEEN 10 AND 15")
    check(db)
    assert known.naive == 0.003


def test_differentials_are_broken_off_and_the_next_time_not_tried(db: Database) -> None:
    summed(db)
    assert ways(db, SMALL) == BY_TOTALS
    assert totals_are_kept(db)
    assert ways(db, LARGE) == BROKEN_OFF
    assert not totals_are_kept(db)
    assert "was interrupted after" in str(db.explain("total", verbose=True))
    assert ways(db, LARGE) == NAIVELY
    assert ways(db, "UPDATE member SET v = v + 1") == NAIVELY


def test_totals_are_built_again_when_a_change_is_small(db: Database) -> None:
    summed(db)
    ways(db, LARGE)
    assert ways(db, SMALL) == BUILT
    assert totals_are_kept(db)
    assert ways(db, SMALL) == BY_TOTALS


def test_what_is_passed_over_is_tried_again_one_day(db: Database) -> None:
    summed(db)
    ways(db, LARGE)
    ways(db, SMALL)
    tried = []
    for _ in range(40):
        tried.append(ways(db, LARGE))
        ways(db, SMALL)
    assert tried[:10] == [NAIVELY] * 10
    assert BROKEN_OFF in tried


@pytest.mark.parametrize("in_a_row", [1, 4])
def test_trials_take_a_small_part_of_the_time_however_long_they_are(in_a_row: int) -> None:
    known, changed = Experience({}, memory=32), frozenset({"edge"})
    fast, slow = ("fast", changed), ("slow", changed)
    seconds = {fast: 1.0, slow: 4.0}
    for case in seconds:
        known.note(case, 1, seconds[case])
    taken = {fast: 0.0, slow: 0.0}
    while sum(taken.values()) < 10_000:
        case = known.best_of([fast, slow], 1, lambda _: in_a_row)
        known.credit_others([fast, slow], case, 1)
        if case == slow:
            known.try_again(case, 1)
        for _ in range(in_a_row if case == slow else 1):
            taken[case] += seconds[case]
            known.note(case, 1, seconds[case])
    assert 0 < taken[slow] < 0.04 * taken[fast]


def test_naive_evaluation_is_known_to_grow_with_the_tables() -> None:
    known = Experience({}, now=1000.0)
    known.note_naive(2.0)
    known.now = 1500.0
    assert known.naive_seconds == pytest.approx(3.0, rel=0.01)
    assert known.budget > 3.0


def test_beyond_the_largest_measured_change_the_time_grows_as_it_did() -> None:
    known, case = Experience({}), ("incremental", frozenset({"f"}))
    known.note(case, 10, 1.0)
    known.note(case, 100, 4.0)
    assert known.expected(case, 1000) == pytest.approx(34.0)


def test_far_away_a_guess_that_is_close_is_found_out_once() -> None:
    known, case = Experience({}, reads_lake=True), ("incremental", frozenset({"f"}))
    known.note_naive(8.2)
    known.note(case, 100, 0.1)
    known.note(case, 1000, 1.0)
    assert known.expected(case, 10_000) == pytest.approx(10.0)
    assert not known.prefers_recomputing(case, 10_000)
    assert known.prefers_recomputing(case, 20_000)
    known.note(case, 10_000, 10.0)
    assert known.prefers_recomputing(case, 10_000)


@pytest.mark.parametrize(("reads_lake", "seconds"), [(False, 4.0), (True, 40.0)])
def test_what_had_to_be_broken_off_takes_no_less_for_more_rows(
    reads_lake: bool, seconds: float
) -> None:
    """Spark would not be broken off."""
    known, case = Experience({}, reads_lake=reads_lake), ("incremental", frozenset({"f"}))
    known.note(case, 100, 2.0, broken_off=True)
    assert known.expected(case, 1000) == pytest.approx(seconds)


def test_of_tables_that_have_become_others_nothing_is_known(db: Database) -> None:
    summed(db)
    assert experience(db).naive is not None
    rows = GROUPS * MEMBERS
    with db.transaction():
        db.load("member", [(n, n % GROUPS, n) for n in range(rows, 4 * rows)])
    check(db)
    assert experience(db).rows == {"member(integer)": 4.0 * rows}


def test_an_attempt_that_was_broken_off_can_be_rolled_back(db: Database) -> None:
    summed(db)
    before = sorted(db.sql("SELECT * FROM total").rows)
    db.internals.transactions.begin()
    db.sql(LARGE)
    db.internals.reactions.check()
    assert not totals_are_kept(db)
    db.rollback()
    assert sorted(db.sql("SELECT * FROM total").rows) == before
    assert totals_are_kept(db)
    assert ways(db, SMALL) == BY_TOTALS
    assert ways(db, LARGE) == NAIVELY


def test_nothing_is_learnt_from_what_is_forced(db: Database) -> None:
    summed(db)
    before = list(experience(db).lines())
    for strategy in ("naive", "incremental"):
        db.monitoring(strategy)
        ways(db, LARGE)
        assert list(experience(db).lines()) == before


@dataclass
class Counting:
    looks: int = 0

    def __call__(self) -> float:
        self.looks += 1
        return 0.0


def test_where_there_is_nothing_to_choose_the_nodes_are_not_timed(db: Database) -> None:
    summed(db)
    assert ways(db, SMALL) == BY_TOTALS
    db.internals.connection.working_time = clock = Counting()
    for _ in range(tuning.UNTIMED_WAVES // 2):
        ways(db, SMALL)
    assert clock.looks == tuning.UNTIMED_WAVES // 2 * 2  # the beginning and the end
    for _ in range(tuning.UNTIMED_WAVES):
        ways(db, SMALL)
    assert clock.looks > (tuning.UNTIMED_WAVES // 2 + tuning.UNTIMED_WAVES) * 2


def calm(db: Database) -> bool:
    return bool(db.internals.network.chooser.settled)


def test_calm_is_for_changes_no_larger(db: Database) -> None:
    summed(db)
    known = experience(db)
    known.note_naive(1.0)
    many = "UPDATE member SET v = v + 1 WHERE id < 200"
    ways(db, many)  # it makes the plans
    ways(db, many)
    known.note_naive(0.0001)  # now all else would go naive
    assert ways(db, many) == BY_TOTALS
    assert ways(db, LARGE) != BY_TOTALS


def test_calm_ends_with_a_change_that_takes_long(db: Database) -> None:
    summed(db)
    experience(db).note_naive(1.0)
    ways(db, SMALL)
    assert calm(db)
    clock = db.internals.connection.working_time
    db.internals.connection.working_time = lambda: 1000 * clock()
    ways(db, SMALL)
    assert not calm(db)


def test_small_changes_of_rules_do_not_look_at_the_clock(db: Database) -> None:
    db.internals.connection.working_time = clock = Counting()
    db.amosql(
        "create function f(integer) -> integer; create function log() -> bag of integer;"
        "create rule r() as when for each integer i where f(i) > 5 do add log() = i; activate r();"
        "commit; set f(1) = 6; commit;"
    )
    assert clock.looks > 0  # the first one of its kind is broken off if it runs away
    clock.looks = 0
    db.amosql("set f(2) = 6; commit;")
    assert sorted(db.amosql("log();").rows) == [(1,), (2,)]
    assert clock.looks == 0


# --- nodes between -----------------------------------------------------------------------------

NESTED = """
CREATE VIEW per_group AS SELECT g, sum(v) AS s, count(*) AS n FROM member GROUP BY g;
CREATE MATERIALIZED VIEW total AS
    SELECT a.g, a.s FROM per_group a WHERE a.s > (SELECT avg(b.s) FROM per_group b)
"""


@pytest.mark.parametrize("limit", [0.0, 0.001, 0.01, 0.1])
def test_nodes_between_are_passed_by_when_there_is_no_time_left(db: Database, limit: float) -> None:
    """However much naive evaluation is thought to take, the rows are right."""
    db.sql(NESTED)
    wanted = "SELECT g, s FROM per_group WHERE s > (SELECT avg(s) FROM per_group)"
    for n, text in enumerate([SMALL, LARGE, SMALL, LARGE, "DELETE FROM member WHERE g = 3", LARGE]):
        experience(db).note_naive(limit)
        experience(db).taken.clear()
        db.sql(text)
        found = db.sql("SELECT * FROM total").rows
        assert sorted(found) == sorted(db.sql(wanted).rows), n


def test_what_nodes_below_take_counts_for_the_view(db: Database) -> None:
    """Naively or not: here the view itself takes hardly any time."""
    db.sql(NESTED)
    for text in (SMALL, SMALL, LARGE, LARGE):
        db.sql(text)
    lines: list[str] = []
    db.trace(lines.append)
    experience(db).note_naive(0.002)
    experience(db).taken.clear()
    db.sql(LARGE)
    assert any("(skipped: another strategy took too long" in line for line in lines)
    lines.clear()
    db.sql(LARGE)
    *below, last = [line for line in lines if " from " in line]
    assert "(copied)" in last
    assert below
    assert all("(skipped: " in line for line in below)


def taking(
    seconds: float, work: Callable[..., T], db: Database, begun: list[str]
) -> Callable[..., T]:
    """The work of a node, which takes these seconds and is never interrupted."""

    def working(node: DerivedNode, *given: Any) -> T:
        begun.append(node.id)
        found = work(node, *given)
        db.internals.connection.working_time.now += seconds  # type: ignore[attr-defined]
        return found

    return working


def test_what_has_no_time_left_does_not_begin(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two totals below a view; the first takes longer than all from scratch, in one go, as Spark
    does."""
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT g, sum(v) AS s, max(v) FROM member GROUP BY g")
    for _ in range(2):
        db.sql("UPDATE member SET v = v + 1 WHERE id = 7")
    experience(db).note_naive(1.0)
    begun: list[str] = []
    monkeypatch.setattr(TotalsNode, "follow", taking(60.0, TotalsNode.follow, db, begun))
    for _ in range(2):
        db.sql("UPDATE member SET v = v + 1 WHERE id < 300")
        assert len(begun) == 1
    assert "was interrupted after" in str(db.explain("total", verbose=True))


def test_what_was_followed_in_vain_is_remembered(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The totals at the top are not there yet, so all from scratch is evaluated anyway."""
    db.sql(
        "CREATE MATERIALIZED VIEW total AS SELECT sum(s) AS s FROM "
        "(SELECT g, sum(v) AS s FROM member GROUP BY g) AS x WHERE s > 0"
    )
    for _ in range(2):
        db.sql("UPDATE member SET v = v + 1 WHERE id = 7")
    experience(db).note_naive(1.0)
    upper = next(
        each
        for each in db.internals.network.graph.derived.values()
        if isinstance(each, TotalsNode) and not each.totals.groups
    )
    begun: list[str] = []
    monkeypatch.setattr(base, "fill", taking(60.0, base.fill, db, begun))
    for _ in range(2):
        upper.table.revoke()
        db.sql("UPDATE member SET v = v + 1 WHERE id < 120")
        assert len(begun) == 1
    assert "was interrupted after" in str(db.explain("total", verbose=True))


def test_a_load_is_evaluated_once_and_not_followed(db: Database) -> None:
    """Measurements of few rows say nothing about many; what lies between is skipped."""
    db.sql(NESTED)
    lines: list[str] = []
    db.trace(lines.append)
    db.load("member", [(n, n % GROUPS, n) for n in range(10_000, 20_000)])
    db.trace(None)
    *below, last = [line for line in lines if " from " in line]
    assert "(copied)" in last
    assert below
    assert all("(skipped: " in line for line in below)


# --- breaking off ------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "


def test_reading_is_interrupted_and_the_transaction_continues(db: Database) -> None:
    connection = db.internals.connection
    connection.begin()
    connection.run("CREATE TABLE t (i INTEGER)")
    connection.run("INSERT INTO t VALUES (1)")
    with pytest.raises(BrokenOff), connection.limited(0.01):
        connection.read(ENDLESS)
    assert connection.in_transaction
    assert connection.rows("SELECT * FROM t") == [(1,)]
    connection.rollback()


def test_what_writes_is_not_broken_off(db: Database) -> None:
    connection = db.internals.connection
    connection.begin()
    connection.run("CREATE TABLE t (i INTEGER)")
    with connection.limited(0.001):
        connection.run(f"{LONG} INSERT INTO t SELECT i FROM n")
    assert connection.value("SELECT count(*) FROM t") == 9999
    connection.rollback()


def test_what_had_to_fetch_is_tried_once_more() -> None:
    known, case = Experience({}), ("incremental", frozenset({"member"}))
    known.note_naive(1.0)
    known.note(case, 100, 1.8, has_fetched=True)
    assert not known.prefers_recomputing(case, 100)
    known.note(case, 100, 0.7, has_fetched=True)  # this time it counts alone, and as it is
    assert known.expected(case, 100) == pytest.approx(0.7)
    known.note(case, 100, 2.9, has_fetched=True)
    assert known.prefers_recomputing(case, 100)


@pytest.mark.parametrize("times", [1, 2])
def test_a_strategy_that_was_passed_over_is_tried_again(times: int) -> None:
    known, case = Experience({}), ("incremental", frozenset({"member"}))
    known.note_naive(1.0)
    for _ in range(times):
        known.note(case, 100, 1.5)
    for _ in range(14):
        assert known.prefers_recomputing(case, 100)
        known.forget(case, 100)
    assert not known.prefers_recomputing(case, 100)


# --- decisions ---------------------------------------------------------------------------------


def test_the_decisions_of_a_view_are_remembered_with_reasons_and_numbers(db: Database) -> None:
    summed(db)
    ways(db, SMALL)
    ways(db, LARGE)
    ways(db, LARGE)
    *_, tried, measured = db.internals.network.chooser.decisions("condition materialized total()")
    assert tried.decision.reason is DecisionReason.BROKEN_OFF
    assert (measured.decision.strategy, measured.decision.reason) == (
        "copied",
        DecisionReason.MEASURED,
    )
    numbers = measured.decision.numbers
    assert numbers["changed_rows"] == 1000
    assert numbers["expected_seconds"] > numbers["recompute_seconds"] > 0
    assert measured.seconds is not None
    assert "fastest" in measured.decision.sentence


def test_equal_decisions_in_a_row_are_one_entry_with_a_count() -> None:
    log, small = DecisionLog(), Decision(Strategy.INCREMENTAL, DecisionReason.SMALL_CHANGE)
    for n in range(10):
        log.add("v", small)
        log.note_seconds("v", float(n))
    (entry,) = log.of("v")
    assert (entry.times, entry.seconds) == (10, 9.0)
    for n in range(20):
        log.add("v", Decision(Strategy.NAIVE, list(DecisionReason)[n % 7]))
    assert len(log.of("v")) == capacities.REMEMBERED_DECISIONS


def test_deciding_changes_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked any number of times, the plan of a wave says the same, and is not changed by it."""
    summed(db)
    decide = WavePlan.decide

    def twice(plan: WavePlan, node: Node) -> Decision:
        first = decide(plan, node)
        before = (set(plan.skipped), set(plan.broken_off), dict(plan.to_build))
        lines = list(node.experience.lines()) if node.experience is not None else []
        assert decide(plan, node) == first
        assert before == (plan.skipped, plan.broken_off, plan.to_build)
        assert lines == (list(node.experience.lines()) if node.experience is not None else [])
        return first

    monkeypatch.setattr(WavePlan, "decide", twice)
    for text in (SMALL, LARGE, LARGE, SMALL, SMALL):
        ways(db, text)


# --- what survives the session -----------------------------------------------------------------


def learn(path: Path) -> None:
    with opened(path) as db:
        db.sql("CREATE TABLE member (id INT, g INT NOT NULL, v INT NOT NULL, PRIMARY KEY (id))")
        db.load("member", [(n, n % GROUPS, n) for n in range(GROUPS * MEMBERS)])
        summed(db)
        assert ways(db, LARGE) == BROKEN_OFF


def test_a_reopened_database_chooses_as_it_had_learnt(tmp_path: Path) -> None:
    learn(tmp_path / "shop.db")
    with opened(tmp_path / "shop.db") as db:
        assert ways(db, LARGE) == NAIVELY
        last = db.internals.network.chooser.decisions("condition materialized total()")[-1]
        assert last.decision.reason is DecisionReason.MEASURED


def test_what_another_machine_measured_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(tmp_path / "shop.db")
    monkeypatch.setattr(measurement_store, "machine", lambda: "another")
    with opened(tmp_path / "shop.db") as db:
        assert ways(db, LARGE) != NAIVELY


def test_a_commit_that_taught_nothing_new_writes_no_measurements(tmp_path: Path) -> None:
    learn(tmp_path / "shop.db")
    with opened(tmp_path / "shop.db") as db:
        ways(db, SMALL)
        ways(db, SMALL)
        written: list[str] = []
        run = db.internals.connection.run

        def noting(sql: str, *given: Any) -> Any:
            written.append(sql)
            return run(sql, *given)

        db.internals.connection.run = noting  # type: ignore[method-assign,assignment]
        ways(db, SMALL)
        assert not [sql for sql in written if measurement_store.MEASUREMENTS.name in sql]
