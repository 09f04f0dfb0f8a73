"""Law: whatever happens to a client, in the end its copy is the view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Copy, Keep
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

SCHEMA = """
CREATE TABLE stock (item INT, quantity INT);
CREATE VIEW low AS SELECT quantity FROM stock WHERE quantity < 6;
"""
ROW = st.tuples(st.integers(1, 3), st.integers(0, 8))
ROWS = st.lists(ROW, max_size=3)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), ROWS, ROWS),
        st.tuples(st.just("write elsewhere"), ROWS, ROWS),
        st.tuples(st.just("fail"), ROWS, ROWS),
        st.tuples(st.just("come"), st.integers(0, 3), st.sampled_from([0.0, 0.02])),
        st.tuples(st.just("go"), st.integers(0, 3), st.none()),
        st.tuples(st.just("poll"), st.integers(0, 2), st.booleans()),
    ),
    max_size=12,
)


class Follower:
    """A client that comes and goes; a condition may leave out some of the rows."""

    def __init__(self, served: Served, where: str | None) -> None:
        self.client, self.where = served.client, where
        self.copy = Copy()
        self.changes: Iterator[Change] | None = None
        self.started = False

    def come(self, every: float) -> None:
        self.go()
        since = self.copy.position if self.started else None
        self.changes = self.follow(since, every)

    def follow(self, since: int | None, every: float) -> Iterator[Change]:
        return self.client.follow("low", since, where=self.where, every=every)

    def go(self) -> None:
        """Not before it has taken something, if only to be in the middle of it."""
        if self.changes is not None:
            if not self.started:
                self.take()
            self.changes.close()  # type: ignore[attr-defined]
            self.changes = None

    def poll(self, net: bool) -> None:
        if self.started:
            self.go()
            for change in self.client.changes("low", self.copy.position, where=self.where, net=net):
                self.copy.apply(change)

    def take(self) -> None:
        assert self.changes is not None
        self.copy.apply(next(self.changes))
        self.started = True

    def catch_up(self, position: int) -> None:
        if self.changes is None:
            self.come(0.0)
        while not self.started or self.copy.position < position:
            self.take()
        self.changes.close()  # type: ignore[union-attr]


class Together(Follower):
    """One that follows the view and the table below it, in one stream."""

    def __init__(self, served: Served) -> None:
        super().__init__(served, None)
        self.table = Copy()

    def follow(self, since: int | None, every: float) -> Iterator[Change]:
        for changes in self.client.follow_all(["low", "stock"], since, every=every):
            for change in changes:
                if change.view == "stock":
                    self.table.apply(change)
            found = [change for change in changes if change.view == "low"]
            yield from found or [Change("low", [], [], changes[-1].position)]

    def poll(self, net: bool) -> None:
        pass


@pytest.fixture(scope="module")
def law_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("law") / "shop.db"
    with harken.connect(path) as db:
        db.sql(SCHEMA)
    return path


@pytest.fixture(scope="module", params=[10_000, 400], ids=["much kept", "little kept"])
def served(request: pytest.FixtureRequest, law_path: Path) -> Iterator[Served]:
    served = Served(str(law_path), keep=Keep(bytes=request.param), capacity=3)
    yield served
    served.stop()


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
def test_a_copy_always_ends_as_the_view(served: Served, law_path: Path, acts: Any) -> None:
    followers = [Follower(served, where) for where in (None, None, "quantity > 2")]
    together = Together(served)
    followers.append(together)
    with harken.connect(law_path, timeout=PATIENCE) as other:
        for what, first, second in acts:
            match what:
                case "write":
                    served.client.apply(insert={"stock": first}, delete={"stock": second})
                case "write elsewhere":
                    with other.transaction():
                        for row in first:
                            other.sql(f"INSERT INTO stock VALUES ({row[0]}, {row[1]})")
                        for row in second:
                            other.sql(f"DELETE FROM stock WHERE item = {row[0]}")
                case "fail":
                    with pytest.raises(harken.HarkenError):
                        served.client.apply(insert={"stock": [*first, (1,)]})
                case "come":
                    followers[first].come(second)
                case "go":
                    followers[first].go()
                case "poll":
                    followers[first].poll(second)
        other.sql("INSERT INTO stock VALUES (9, 5)")
        last = position(served)
        for follower in followers:
            follower.catch_up(last)
        for follower in followers:
            condition = "" if follower.where is None else f" WHERE {follower.where}"
            expected = Counter(other.sql(f"SELECT * FROM low{condition}").rows)
            assert Counter(follower.copy) == expected
        assert Counter(together.table) == Counter(other.sql("SELECT * FROM stock").rows)


def position(served: Served) -> int:
    return int(served.ask("GET", "/api/v1/views")[1]["position"])
