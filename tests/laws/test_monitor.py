"""The law of monitors, over random transactions on the inventory of the papers.

The rows that a client has, with the change of each transaction, are the rows of the view: for sets
and bags, with and without arguments, however they are monitored, while rules act and while
functions are defined again. A change has nothing in it that was there already, or was not there to
be lost.

The rows are asked with an ordinary query.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Database, HarkenError, Subscription
from harken.maintenance import tuning
from tests.laws import test_rules as rules

Row = tuple[Any, ...]

some = settings(rules.some, max_examples=8)
many = settings(rules.many, max_examples=1000)


def _functions(condition: rules.Condition) -> list[str]:
    """A condition as functions: what it holds for as a set, as a bag, and for a given item."""
    columns = condition.columns
    types = ", ".join(type_ for type_, _ in columns) or "boolean"
    names = ", ".join(name for _, name in columns) or "true"
    result = f"<{types}>" if len(columns) > 1 else types
    query = f"select {names} {rules.for_each(columns)} where {condition.holds};"
    made = [
        f"create function set_{condition.name}() -> {result} as {query}",
        f"create function bag_{condition.name}() -> bag of {result} as {query}",
    ]
    if columns and columns[0] == rules.ITEM:
        shown = ", ".join(name for _, name in columns[1:]) or "true"
        result = ", ".join(type_ for type_, _ in columns[1:]) or "boolean"
        more = rules.for_each(columns[1:])
        made.append(
            f"create function for_{condition.name}(item i) -> {result} as "
            f"select {shown} {more} where {condition.holds};"
        )
    return made


LISTABLE = tuple(c for c in rules.CONDITIONS if c.name not in ("below", "total"))
VIEWS = (
    *(f"{kind}_{each.name}" for each in LISTABLE for kind in ("set", "bag")),
    *(f"for_{each.name}" for each in LISTABLE if each.columns and each.columns[0] == rules.ITEM),
    *("quantity", "next", "supplies", "delivery_time", "tags", "threshold", "weight"),
    *("item.worth", "fresh.worth", "rare.worth", "set_total"),
)
AGAIN = (
    "create function threshold(item i) -> integer as select min_stock(i) + 1;",
    "create function threshold(item i) -> integer as select quantity(i) + 1 where quantity(i) > 1;",
    "create function weight(item i) -> integer as select count(tags(i)) + 2;",
    "create function weight(item i) -> integer as select sum(tags(i)) + quantity(i);",
    "create function worth(fresh i) -> integer as select quantity(i) + 1;",
    "create function worth(item i) -> integer as select 7 where max_stock(i) > 2;",
)
CLAMP = """
create rule clamp() as for each item i when quantity(i) > max_stock(i)
    do set quantity(i) = max_stock(i);
create rule at_once() immediate as for each item i when min_stock(i) > 2 do set min_stock(i) = 0;
create rule later() detached as for each item i when quantity(i) = 3 do add tags(i) = 3;
"""
RULES = ("clamp", "at_once", "later")

steps = st.one_of(*[rules.changes] * 9, st.sampled_from(AGAIN))
transactions = st.builds(
    rules.Transaction,
    st.lists(steps, min_size=2, max_size=6),
    st.sampled_from(["adaptive", "incremental", "naive"]),
    st.sampled_from(["commit;", "commit;", "commit;", "rollback;"]),
)
scenarios = given(
    views=st.lists(st.sampled_from(VIEWS), min_size=2, max_size=5, unique=True),
    active=st.sets(st.sampled_from(RULES)),
    durable=st.booleans(),
    script=st.lists(transactions, min_size=3, max_size=5),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("monitors") / "template.db"
    with harken.connect(str(path)) as db:
        db.amosql(rules.SCHEMA + CLAMP)
        for condition in rules.CONDITIONS:
            for text in _functions(condition) if condition.name != "below" else ():
                db.amosql(text)
    return path


@pytest.fixture
def no_change_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL_CHANGE", 0)
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", 0)


class Client:
    """Holds a copy of a view, and brings it up to date with nothing but its changes."""

    def __init__(self, sub: Subscription) -> None:
        self.sub = sub
        self.copy = Counter(sub.rows())
        self.last = 0

    def follow(self) -> None:
        for change in self.sub.changes():
            assert change.transaction > self.last
            self.last = change.transaction
            self.apply(change)

    def apply(self, change: Change) -> None:
        plus, minus = Counter(change.plus), Counter(change.minus)
        assert plus or minus
        assert not plus & minus
        assert minus <= self.copy
        self.copy = self.copy - minus + plus
        if not self.sub.view.startswith("bag_") and self.sub.view != "tags":
            assert set(self.copy.values()) <= {1}

    def check(self) -> None:
        assert self.copy == Counter(self.sub.rows()), self.sub.view


@contextmanager
def opened(template: Path, path: Path) -> Iterator[Database]:
    shutil.copy(template, path)
    db = harken.connect(str(path))
    try:
        yield db
    finally:
        db.rollback()
        db.close()


def follow(db: Database, views: list[str], durable: bool, script: list[rules.Transaction]) -> None:
    watcher = rules.Watcher(db, [])
    clients = [
        Client(db.monitor(view, durable=view if durable and not n else None))
        for n, view in enumerate(views)
    ]
    for transaction in script:
        db.monitoring(transaction.strategy)
        for change in transaction.changes:
            run(watcher, change)
            assert not any(client.sub.changes() for client in clients)
        run(watcher, transaction.end)
        for client in clients:
            if transaction.end == "rollback;":
                assert not client.sub.changes()
            client.follow()
            client.check()


def run(watcher: rules.Watcher, text: str) -> None:
    try:
        watcher.db.amosql(text)
    except HarkenError as error:
        if error.code not in rules.MAY_HAPPEN:
            raise


def watch(
    template: Path,
    path: Path,
    views: list[str],
    active: set[str],
    durable: bool,
    script: list[rules.Transaction],
) -> None:
    with opened(template, path) as db:
        for rule in sorted(active):
            db.amosql(f"activate {rule}();")
        db.commit()
        follow(db, views, durable, script)


@some
@scenarios
@pytest.mark.usefixtures("no_change_is_small")
def test_the_copy_of_a_client_is_the_view(
    views: list[str],
    active: set[str],
    durable: bool,
    script: list[rules.Transaction],
    template: Path,
    tmp_path: Path,
) -> None:
    watch(template, tmp_path / "watched.db", views, active, durable, script)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@many
@scenarios
@pytest.mark.usefixtures("no_change_is_small")
def test_the_copy_of_a_client_is_the_view_all_night(
    views: list[str],
    active: set[str],
    durable: bool,
    script: list[rules.Transaction],
    template: Path,
    tmp_path: Path,
) -> None:
    watch(template, tmp_path / "watched.db", views, active, durable, script)
