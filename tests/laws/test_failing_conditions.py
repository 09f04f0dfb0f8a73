"""Law: a rule whose condition can fail acts on what its condition gained, and a transaction fails
only if the condition fails in the state at its end.

AMOSQL functions that can fail are monitored as well. A twin database has the
same functions and no rules; it says what holds after each transaction, or that it cannot be said.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Database, HarkenError
from tests.laws import test_rules as rules
from tests.laws.test_failing_states import CODES, Client

Row = tuple[Any, ...]

some = settings(rules.some, max_examples=8)
many = settings(rules.many, max_examples=1500)

ITEMS = 4
SCHEMA = """
create type item;
create function quantity(item) -> integer;
create function pack(item) -> integer;
create function next(item) -> bag of item;
create function packs(item i) -> number as select quantity(i) / pack(i);
create function shares(item i) -> integer as select mod(quantity(i), count(next(i)) - 1);
create function left(item i) -> number as
    select quantity(i) / (pack(i) - 1) where quantity(i) > 1;
create function rate() -> number as
    select 6 / count(select i for each item i where pack(i) = 1);
create function over(item i) -> number as select quantity(i) - rate() where quantity(i) > rate();
create function worth(item i) -> number as
    select sum(select 2 / pack(j) for each item j where j in next(i)) where pack(i) > 0;
"""
OBJECTS = "".join(
    f"create item instances :i{n}; set quantity(:i{n}) = {n}; set pack(:i{n}) = {n + 1};"
    for n in range(ITEMS)
)
FUNCTIONS = ("packs", "shares", "left", "over", "worth")
RULES = "".join(
    f'create rule on_{name}() as for each item i when {name}(i) >= 1 do print("{name}", i);'
    for name in FUNCTIONS
)

items, numbers = st.integers(0, ITEMS - 1), st.integers(0, 3)
statements = st.one_of(
    st.builds("set quantity(:i{}) = {};".format, items, numbers),
    st.builds("set pack(:i{}) = {};".format, items, numbers),
    st.builds("add next(:i{}) = :i{};".format, items, items),
    st.builds("remove next(:i{}) = :i{};".format, items, items),
    st.builds("remove pack(:i{}) = {};".format, items, numbers),
)
scenarios = given(
    names=st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=2, unique=True),
    script=st.lists(
        st.tuples(
            st.lists(statements, min_size=1, max_size=4),
            st.sampled_from(["adaptive", "incremental", "naive"]),
        ),
        min_size=4,
        max_size=9,
    ),
)


def opened(names: list[str], watched: bool) -> Database:
    db = harken.connect(":memory:")
    db.amosql(SCHEMA + OBJECTS)
    if watched:
        db.amosql(RULES)
        db.amosql("".join(f"activate on_{name}();" for name in names))
    db.commit()
    return db


def numbered(db: Database, rows: Counter[Row]) -> Counter[Row]:
    """The rows with the numbers of their items, which are objects of this database alone."""
    numbers = {db.variables[f"i{n}"]: n for n in range(ITEMS)}
    return Counter({(numbers[item], *rest): count for (item, *rest), count in rows.items()})


def holds(db: Database, names: list[str]) -> dict[str, Counter[Row]] | None:
    """What each function has rows for, or None if one of them fails."""
    try:
        return {
            name: numbered(db, Counter(db.amosql(f"select i, {name}(i) for each item i;").rows))
            for name in names
        }
    except HarkenError as error:
        assert error.code in CODES
        return None


def gained(before: Counter[Row], after: Counter[Row]) -> Counter[Row]:
    """The items of which a rule is told."""
    now, then = ({item for item, value in rows if value >= 1} for rows in (after, before))
    return Counter((item,) for item in now - then)


def follow(names: list[str], script: list[tuple[list[str], str]]) -> None:
    with opened(names, False) as plain, opened(names, True) as db:
        clients = {
            name: [Client(db.monitor(name)), Client(db.monitor(name, durable=name))]
            for name in names
        }
        before = holds(plain, names)
        assert before is not None
        for changes, monitoring in script:
            db.monitoring(monitoring)
            text = "".join(changes)
            for each in (plain, db):
                each.amosql(text)
            after = holds(plain, names)
            acted = {name: Counter[Row]() for name in names}
            if after is None:
                plain.rollback()
                with pytest.raises(HarkenError) as caught:
                    db.amosql("commit;")
                assert caught.value.code in CODES
                db.rollback()
                after = before
            else:
                plain.commit()
                for result in db.amosql("commit;"):
                    for name, *row in result.rows:
                        acted[name][tuple(row)] += 1
            for name in names:
                assert numbered(db, acted[name]) == gained(before[name], after[name]), name
                for client in clients[name]:
                    client.follow()
                    assert numbered(db, client.copy) == after[name], name
            before = after


@some
@scenarios
def test_rules_act_on_what_their_conditions_gained(
    names: list[str], script: list[tuple[list[str], str]]
) -> None:
    follow(names, script)


@pytest.mark.nightly
@many
@scenarios
def test_rules_act_on_what_their_conditions_gained_search(
    names: list[str], script: list[tuple[list[str], str]]
) -> None:
    follow(names, script)
