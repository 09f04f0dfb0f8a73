"""The law of restricted monitors: a client's copy is always the view filtered by its condition.

Random conditions of few shapes, so that many of them share a plan and a node, come and go between
random transactions: of this session and of another, committed and rolled back. Views are defined
again, which may be undone as well; the database is closed and opened, and clients whose changes are
kept go on with `since`.

The rows are asked with an ordinary query, which has the constants in its text.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import Copy, Database, HarkenError

SCHEMA = """
CREATE TABLE t (id INT PRIMARY KEY, city STRING, qty INT, price DECIMAL(8,2), day DATE);
CREATE TABLE w (city STRING, n INT);
CREATE VIEW whole AS SELECT * FROM t;
CREATE VIEW plain AS SELECT id, city, qty, price, day FROM t WHERE qty > 0 OR qty IS NULL;
CREATE VIEW copies AS SELECT city, qty FROM t;
CREATE VIEW different AS SELECT DISTINCT city, qty FROM t;
CREATE VIEW grouped AS SELECT city, count(*) AS qty FROM t GROUP BY city;
CREATE VIEW joined AS SELECT t.city, n AS qty FROM t JOIN w ON t.city = w.city;
INSERT INTO t VALUES (1, 'a', 1, 1.50, DATE '2026-01-01'), (2, 'b', 3, 2.00, NULL),
    (3, NULL, NULL, NULL, NULL);
INSERT INTO w VALUES ('a', 2), ('b', 1);
"""
VIEWS = ("whole", "plain", "copies", "different", "grouped", "joined")
AGAIN = {
    "whole": "SELECT *, {} AS more FROM t",
    "plain": "SELECT id, city, qty, price, day FROM t WHERE qty <> {}",
    "copies": "SELECT city, qty FROM t WHERE id > {}",
    "different": "SELECT DISTINCT city, qty + {} AS qty FROM t",
    "grouped": "SELECT city, sum(qty) AS qty FROM t WHERE id <> {} GROUP BY city",
    "joined": "SELECT t.city, n AS qty FROM t JOIN w ON t.city = w.city WHERE n <> {}",
}
SHAPES = (
    "city = {s}",
    "city = {s} AND qty > {i}",
    "{i} < qty",
    "qty > {d}",
    "qty <= {i} OR city = {s}",
    "qty BETWEEN {i} AND {i}",
    "qty IN ({i}, {i})",
    "qty NOT IN ({i}, {i}, {i}, {i})",
    "city LIKE {p}",
    "upper(city) = {s}",
    "NOT (qty > {i}) AND city <> {s}",
    "qty % 3 = {i}",
    "coalesce(qty, {i}) = {i}",
    "qty <=> {i}",
    "city IS NULL",
    "qty = NULL OR qty = {i}",
    "CASE WHEN qty > {i} THEN city ELSE {s} END = {s}",
    "city IN (SELECT city FROM w WHERE n > {i}) AND qty > {i}",
    "qty >= (SELECT count(*) FROM w WHERE n <> {i}) + {i}",
    "NOT EXISTS (SELECT 1 FROM w WHERE w.city = {v}.city AND n = {i}) AND qty > {i}",
    "{i} = {i}",
)
TEXTS = st.sampled_from(["'a'", "'b'", "'A'", "''", "'it\\'s'"])
WHOLE = st.integers(-1, 4).map(str)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "s": TEXTS,
    "i": WHOLE,
    "d": st.sampled_from(["0.5", "2.0", "2.25", "1e0"]),
    "p": st.sampled_from(["'a%'", "'%'", "'_'", "'A'"]),
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str]:
    view = draw(st.sampled_from(VIEWS))
    text = draw(st.sampled_from(SHAPES)).replace("{v}", view)
    for kind, values in VALUES.items():
        while f"{{{kind}}}" in text:
            text = text.replace(f"{{{kind}}}", draw(values), 1)
    return view, text


NUMBERS = st.integers(1, 5)
ROWS = st.tuples(
    NUMBERS,
    st.sampled_from(["'a'", "'b'", "'A'", "NULL"]),
    st.sampled_from(["0", "1", "2", "3", "NULL"]),
    st.sampled_from(["1.50", "NULL"]),
)
CHANGES = st.one_of(
    ROWS.map(
        lambda row: (
            f"DELETE FROM t WHERE id = {row[0]}; INSERT INTO t VALUES "
            f"({row[0]}, {row[1]}, {row[2]}, {row[3]}, NULL)"
        )
    ),
    NUMBERS.map(lambda id: f"DELETE FROM t WHERE id = {id}"),
    st.tuples(NUMBERS, WHOLE).map(lambda p: f"UPDATE t SET qty = {p[1]} WHERE id = {p[0]}"),
    st.tuples(TEXTS, WHOLE).map(lambda pair: f"INSERT INTO w VALUES ({pair[0]}, {pair[1]})"),
    TEXTS.map(lambda text: f"DELETE FROM w WHERE city = {text}"),
    st.just("INSERT INTO t VALUES (9, 'a', 1, 1, NULL), (9, 'b', 1, 1, NULL)"),  # fails
)
SCRIPTS = st.lists(CHANGES, min_size=1, max_size=4)
DEFINITIONS = st.tuples(st.sampled_from(VIEWS), st.integers(0, 3)).map(
    lambda what: f"CREATE OR REPLACE VIEW {what[0]} AS {AGAIN[what[0]].format(what[1])}"
)
TO_BE_UNDONE = st.lists(
    st.one_of(
        CHANGES,
        DEFINITIONS,
        st.just("ALTER TABLE t ADD COLUMN extra INT"),
        st.just("ALTER TABLE w ADD COLUMN extra INT"),
        st.just("CREATE OR REPLACE VIEW copies AS SELECT city, qty, 1 AS one FROM t"),
        st.just("CREATE OR REPLACE VIEW copies AS SELECT city, CAST(qty AS DOUBLE) AS qty FROM t"),
    ),
    min_size=1,
    max_size=4,
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.tuples(conditions(), st.booleans())),
        st.tuples(st.just("begin"), st.tuples(conditions(), st.booleans())),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("commit"), SCRIPTS),
        st.tuples(st.just("commit"), SCRIPTS),
        st.tuples(st.just("commit"), SCRIPTS),
        st.tuples(st.just("roll back"), TO_BE_UNDONE),
        st.tuples(st.just("fail"), st.tuples(SCRIPTS, TO_BE_UNDONE, st.booleans())),
        st.tuples(st.just("another session"), SCRIPTS),
        st.tuples(st.just("define"), DEFINITIONS),
        st.tuples(st.just("reopen"), st.none()),
    ),
    min_size=4,
    max_size=14,
)
relaxed = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
some = settings(max_examples=20, suppress_health_check=relaxed)
many = settings(max_examples=2_000, suppress_health_check=relaxed)


class Client:
    def __init__(self, db: Database, view: str, where: str, kept: bool) -> None:
        self.view, self.where, self.kept = view, where, kept
        self.sub = db.monitor(view, where=where, keep=kept or None)
        self.copy = Copy()
        self.copy.apply(self.sub.snapshot())

    def come_back(self, db: Database) -> None:
        self.sub = db.monitor(self.view, where=self.where, since=self.copy.position)

    def check(self, db: Database) -> None:
        for change in self.sub.changes():
            assert change.plus or change.minus or change.fresh
            self.copy.apply(change)
        asked = f"SELECT * FROM {self.view} WHERE {self.where}"
        (found,) = db.sql(asked)
        assert Counter(self.copy) == Counter(map(tuple, found.rows)), asked
        assert Counter(self.sub.rows()) == Counter(self.copy)
        assert Counter(db.snapshot(self.view, where=self.where).plus) == Counter(self.copy)


class World:
    def __init__(self, path: str) -> None:
        self.path = path
        self.db = harken.connect(path)
        self.other = harken.connect(path)
        self.clients: list[Client] = []

    def begin(self, asked: tuple[tuple[str, str], bool]) -> None:
        (view, where), kept = asked
        self.clients.append(Client(self.db, view, where, kept))

    def end(self, number: int) -> None:
        if self.clients:
            self.clients.pop(number % len(self.clients)).sub.close()

    def commit(self, script: list[str]) -> None:
        with suppress(HarkenError):
            self.db.sql("BEGIN; " + "; ".join(script) + "; COMMIT")
        if self.db.in_transaction:
            self.db.rollback()

    def roll_back(self, script: list[str]) -> None:
        with suppress(HarkenError):
            self.db.sql("BEGIN; " + "; ".join(script))
        if self.db.in_transaction:
            self.db.rollback()

    def fail(self, what: tuple[list[str], list[str], bool]) -> None:
        """A text fails in an open transaction, and is undone without what was before it."""
        before, text, commit = what
        with suppress(HarkenError):
            self.db.sql("BEGIN; " + "; ".join(before))
        with suppress(HarkenError):
            self.db.sql("; ".join([*text, "SELECT 1 FROM missing"]))
        if not self.db.in_transaction:
            return
        if commit:
            self.db.commit()
        else:
            self.db.rollback()

    def another_session(self, script: list[str]) -> None:
        """Only what is kept hears of it."""
        for client in [each for each in self.clients if not each.kept]:
            client.sub.close()
            self.clients.remove(client)
        for text in script:
            with suppress(HarkenError):
                self.other.sql(text)

    def define(self, what: str) -> None:
        self.db.sql(what)

    def reopen(self, _: None) -> None:
        self.close()
        self.db, self.other = harken.connect(self.path), harken.connect(self.path)
        self.clients = [each for each in self.clients if each.kept]
        for client in self.clients:
            client.come_back(self.db)

    def check(self) -> None:
        for client in self.clients:
            client.check(self.db)

    def close(self) -> None:
        self.other.close()
        self.db.close()


def play(template: Path, path: Path, acts: list[tuple[str, Any]]) -> None:
    shutil.copy(template, path)
    world = World(str(path))
    try:
        for name, what in acts:
            act: Callable[[Any], None] = getattr(world, name.replace(" ", "_"))
            act(what)
            world.check()
    finally:
        world.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("restricted") / "template.db"
    with harken.connect(str(path)) as db:
        db.sql(SCHEMA)
    return path


@pytest.mark.timeout(600)
@some
@given(acts=ACTS)
def test_a_copy_is_the_view_filtered(
    template: Path, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, Any]]
) -> None:
    play(template, tmp_path_factory.mktemp("one") / "x.db", acts)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@many
@given(acts=ACTS)
def test_a_copy_is_the_view_filtered_for_long(
    template: Path, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, Any]]
) -> None:
    play(template, tmp_path_factory.mktemp("one") / "x.db", acts)
