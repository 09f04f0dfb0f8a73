"""What installing a continual query, opening a file with many, and hearing in another session that
one was installed cost: nothing that grows with queries that differ in constants only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from tests.harness.counting import Cost, cost, counted, growth

FEW, MANY = 6, 46
NOISE = 1.1
"""Numbers that pass a power of two are reviewed, whatever they count."""


class Installed:
    """A session on a file, and queries that it has installed."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = str(path / "cq.db"), 0
        self.db = self.connect()
        self.db.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, company STRING, price DOUBLE)")
        self.db.sql("INSERT INTO stock VALUES ('a', 'c1', 5), ('b', 'c2', 500)")

    def connect(self) -> harken.Database:
        return harken.connect(self.path)

    def install(self) -> None:
        n = self.count = self.count + 1
        self.db.sql(
            f"CREATE CONTINUAL QUERY q{n} AS SELECT company, count(*) AS n FROM stock "
            f"WHERE company = 'c{n}' AND price > {n} GROUP BY company "
            f"TRIGGER WHEN price DECBYP 5 WHERE company = 'c{n}' NOTIFY LOG"
        )

    def until(self, number: int) -> None:
        with self.db.transaction():
            while self.count < number:
                self.install()


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    made = Installed(tmp_path)
    yield made
    made.db.close()


def check_as_cheap(few: Cost, many: Cost) -> None:
    for what in ("statements", "prepared", "rows", "lines"):
        assert getattr(many, what) <= NOISE * getattr(few, what), growth({"": few}, {"": many})


def test_installing_one_more(installed: Installed) -> None:
    installed.until(FEW)
    few = cost(installed.db, installed.install)
    installed.until(MANY)
    many = cost(installed.db, installed.install)
    check_as_cheap(few, many)


def test_hearing_that_another_session_has_installed_one(installed: Installed) -> None:
    with installed.connect() as other:

        def begin() -> None:
            other.sql("UPDATE stock SET price = 0 WHERE symbol = 'none'")

        def heard() -> Cost:
            for _ in range(3):
                installed.install()
                begin()
            installed.install()
            return counted(other, begin)

        installed.until(FEW)
        few = heard()
        installed.until(MANY)
        many = heard()
    check_as_cheap(few, many)


LINES = 1_200
"""What reading a query and its constants takes; compiling one takes several times as many."""


def test_opening_a_file_compiles_each_form_once(installed: Installed) -> None:
    compiled, lines = [], []
    for number in (FEW, MANY):
        installed.until(number)
        with installed.connect() as db:
            answers = db.internals.continual.answers
            assert len(db.internals.network.graph.views_of(answers)) == 1
            compiled.append(answers.lifted.compiled)  # type: ignore[attr-defined]
        lines.append(counted(installed.db, lambda: installed.connect().close()).lines)
    assert compiled == [1, 1]
    assert lines[1] - lines[0] < LINES * (MANY - FEW)
