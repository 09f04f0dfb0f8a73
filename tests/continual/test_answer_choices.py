"""STRATEGY auto: an answer is followed or recomputed, whatever takes less between executions."""

from typing import Any

import pytest

from tests.continual.conftest import Watched

QUERY = (
    "SELECT company, count(*) AS n, max(price) AS most FROM stock WHERE price > 1 GROUP BY company"
)


class Timed:
    """Following takes a second, and whatever is done at an execution ten."""

    def __init__(self, watched: Watched) -> None:
        self.watched, self.now, self.step = watched, 0.0, 1.0
        self.sql, self.state = watched.sql, watched.state
        self.begin()

    def begin(self) -> None:
        self.watched.db.internals.connection.working_time = self.clock

    def clock(self) -> float:
        self.now += self.step
        return self.now

    def run(self) -> list[Any]:
        self.step = 10.0
        done = self.watched.run(hours=1)
        self.step = 1.0
        return done

    def reopen(self) -> None:
        self.watched.reopen()
        self.begin()


@pytest.fixture
def timed(watched: Watched) -> Timed:
    return Timed(watched)


def install(watched: Timed | Watched, rest: str = "") -> None:
    if isinstance(watched, Timed):
        watched.step = 10.0
    watched.sql(f"CREATE CONTINUAL QUERY q AS {QUERY} TRIGGER EVERY HOUR {rest}")
    if isinstance(watched, Timed):
        watched.step = 1.0


def change(watched: Timed | Watched, times: int) -> None:
    for n in range(times):
        watched.sql(f"UPDATE stock SET price = {n + 5} WHERE symbol = 'IBM'")


def explained(watched: Timed | Watched, word: str) -> str:
    lines = [row[0] for row in watched.sql("EXPLAIN CONTINUAL QUERY q")]
    return next(each for each in lines if each.startswith(word))


def strategies(watched: Timed) -> list[str]:
    return [
        s for (s,) in watched.sql("SELECT strategy FROM continual_execution ORDER BY execution")
    ]


def test_many_changes_between_executions_are_cheaper_to_recompute(timed: Timed) -> None:
    install(timed)
    assert explained(timed, "decision") == "decision: not compared yet"
    timed.run()
    change(timed, 60)
    timed.run()
    said = explained(timed, "decision")
    assert "recomputed" in said
    assert "60 transactions" in said
    assert "following them 60 s, recomputing 10 s" in said
    assert timed.state("follows") == ("naive",)
    change(timed, 3)
    (done,) = timed.run()
    assert (done.strategy, done.inserted) == ("naive", [("IBM", 1, 7.0)])
    assert strategies(timed) == ["complete", "differential", "differential", "naive"]


def test_few_changes_are_followed_again(timed: Timed) -> None:
    timed.watched.db.monitor("stock")  # somebody follows the table
    install(timed)
    timed.run()
    change(timed, 60)
    timed.run()
    found = []
    for n in range(4):
        timed.sql(f"INSERT INTO stock VALUES ('n{n}', 'IBM', {1000 + n})")
        found += [(each.strategy, each.inserted) for each in timed.run()]
    assert found[0] == ("naive", [("IBM", 2, 1000.0)])
    assert found[-1] == ("differential", [("IBM", 5, 1003.0)])
    assert explained(timed, "decision").startswith("decision: differentials")


def test_a_table_that_nobody_follows_is_tried_again(timed: Timed) -> None:
    install(timed)
    timed.run()
    change(timed, 60)
    used = []
    for n in range(18):
        timed.sql(f"INSERT INTO stock VALUES ('n{n}', 'IBM', {1000 + n})")
        used += [each.strategy for each in timed.run()]
    assert used[:2] == ["differential", "naive"]
    assert "differential" in used[2:]


def test_a_strategy_that_is_asked_for_stays(timed: Timed) -> None:
    install(timed, "STRATEGY differential")
    timed.run()
    change(timed, 60)
    timed.run()
    assert timed.state("follows") == ("differential",)
    assert explained(timed, "difference").endswith("(STRATEGY differential)")
    timed.sql("ALTER CONTINUAL QUERY q STRATEGY naive")
    change(timed, 2)
    (done,) = timed.run()
    assert (done.strategy, timed.state("follows")) == ("naive", ("naive",))


def test_short_runs_are_followed(watched: Watched) -> None:
    watched.db.internals.connection.working_time = lambda: 0.0
    install(watched)
    for _ in range(2):
        change(watched, 60)
        watched.run(hours=1)
    assert watched.state("follows") == ("differential",)
    assert "the change is small" in explained(watched, "decision")


def test_another_session_goes_on_with_the_choice(timed: Timed) -> None:
    install(timed)
    timed.run()
    change(timed, 60)
    timed.run()
    timed.reopen()
    change(timed, 1)
    (done,) = timed.run()
    assert done.strategy == "naive"
    assert "60 transactions" in explained(timed, "decision")
    timed.sql("DROP CONTINUAL QUERY q")
    install(timed)
    assert explained(timed, "decision") == "decision: not compared yet"


def test_counting_changes_needs_them(timed: Timed) -> None:
    timed.sql(f"CREATE CONTINUAL QUERY q AS {QUERY} TRIGGER AFTER 3 CHANGES")
    for _ in range(3):
        change(timed, 60)
        timed.run()
    assert timed.state("follows") == ("differential",)
